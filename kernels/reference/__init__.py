"""The executable specification: slow, scalar, exact, and sharing no code with the kernels that it judges.

`formats` converts between bit patterns and exact values, `arith` computes exactly and rounds once, `sums` fixes the
order of sums; then one file per operator family. Every operator takes and returns bit patterns and can list its
intermediate steps. `fast` computes the same elementwise and `fast_rows` row by row on arrays; the tests hold both
against the scalar form.
"""
