"""The gradient of LogSoftmax, one row or column at a time.

With y the forward output, e**y is softmax(x), and the derivative of log(softmax(x)) on g is

    out = g - e**y * sum(g)

The order of the sum is in `sums`.
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Trace
from emu_kernels.reference.array_sums import row_sum_array
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.operands import narrow_row, row_format, widen_row
from emu_kernels.reference.sums import row_sum
from emu_kernels.variant import Variant


def log_softmax_backward(g: list[int], y: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """The derivative of log(softmax(x)) on g, with y the forward output: e**y is softmax(x).

    Return g - exp(y) * sum(g) of one row, in FLOAT, two roundings after the sum; NaN and infinities propagate."""
    f = row_format(v, trace)
    wide_g, wide_y = widen_row(f, v, g, "g"), widen_row(f, v, y, "y")
    s = row_sum(f, wide_g, last, "s = sum(g)")
    e = [f.exp(b, f"e[{i}] = exp(y)") for i, b in enumerate(wide_y)]
    t = [f.mul(a, s, f"t[{i}] = e * s") for i, a in enumerate(e)]
    return narrow_row(f, v, [f.sub(a, b, f"out[{i}] = g - t") for i, (a, b) in enumerate(zip(wide_g, t, strict=True))])


def log_softmax_backward_array(g: Bits, y: Bits, v: Variant, last: bool) -> Bits:
    """As :func:`log_softmax_backward`."""
    with np.errstate(all="ignore"):
        wg = arrays.widen(v.dtype, g)
        return arrays.narrow(wg - arrays.elementary("exp", arrays.widen(v.dtype, y), v) * row_sum_array(wg, v, last), v)
