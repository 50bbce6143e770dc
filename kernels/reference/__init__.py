"""The executable specification: slow, scalar and exact; it shares no arithmetic with the kernels that it judges.

Of the rest of the package it imports two modules without arithmetic: `variant`, which says what is computed, and `assumptions`, which
names what is assumed and the choice. No kernel imports the reference. A test reads the imports of both.

`formats` converts between bit patterns and exact values, `arith` computes exactly and rounds once, `sums` fixes the order of sums; then
one file per operator family:

- `selu`: aclnnSelu, aclnnSeluBackward
- `log_sigmoid`: aclnnLogSigmoid, aclnnLogSigmoidBackward
- `softmax`: aclnnSoftmax, aclnnSoftmaxBackward, aclnnLogSoftmax, aclnnLogSoftmaxBackward
- `exponential`: aclnnExp, aclnnSigmoid, aclnnGelu

Each function gives the formula of its operator's document, and the steps that the products compute instead. Every operator takes and
returns bit patterns and can list its intermediate steps, each addition of a sum included.

`fast` computes the same elementwise and `fast_rows` row by row on arrays, for `emu verify`, with the host's FLOAT operations; the tests
hold both against the scalar form. `exponential` has its array form beside the scalar one.
"""
