"""The executable specification: slow, scalar and exact; it shares no arithmetic with the kernels that it judges.

Of the rest of the package it imports two modules without arithmetic: `variant`, which says what is computed, and `assumptions`, which
names what is assumed and the choice. No kernel imports the reference. A test reads the imports of both.

`formats` converts between bit patterns and exact values, `arith` computes exactly and rounds once, `sums` fixes the order of sums,
`operands` brings arguments into the compute format and results out of it. `operators` has one file for each operator: the formula of its
document and the steps that the products compute instead. Every operator takes and returns bit patterns and can list its intermediate
steps, with the additions of a sum but for those of a zero. `operators.scalar` and `operators.array` are the way in.

For sweeps each operator's file has a second form on arrays, made of the host's FLOAT operations in `arrays` and the sums in `array_sums`;
the tests hold it against the scalar form.
"""
