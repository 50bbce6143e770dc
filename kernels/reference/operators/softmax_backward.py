"""The gradient of Softmax, one row or column at a time.

The document of aclnnSoftmaxBackward:

    out = gradOutput * output - sum(gradOutput * output) * output

FLOAT16 and BF16 are widened to FLOAT, and the result is rounded once to the input dtype. What the document leaves
open, and what decides the last bits, is the order of the sum: see `sums`.
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Trace
from emu_kernels.reference.array_sums import fma, lanes64_array, row_sum_array
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.operands import narrow_row, row_format, widen_row
from emu_kernels.reference.sums import lanes64, row_sum
from emu_kernels.variant import Variant


def softmax_backward(g: list[int], y: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """out = gradOutput * output - sum(gradOutput * output) * output, with g for gradOutput and y for output.

    p = y * g is the first product, s the sum, t = s * y the second product. dav_3510 fuses the last product and the subtraction; the
    others take y out: y * (g - s).

    Return one row of gradients from one row of gradOutput and of the forward output, as patterns of `v.dtype`.

    `last`: nothing follows the reduced dimension. A NaN or infinity in a row makes the row NaN or as the arithmetic
    has it; no other row is touched. Where the dtype saturates, a NaN result is +0 and an infinite one the largest
    finite value.
    """
    f = row_format(v, trace)
    wide_g, wide_y = widen_row(f, v, g, "g"), widen_row(f, v, y, "y")
    p = [f.mul(b, a, f"p[{i}] = y * g") for i, (a, b) in enumerate(zip(wide_g, wide_y, strict=True))]
    if v.numerics == "document":
        # out = gradOutput * output - sum(gradOutput * output) * output
        s = f.note("s = sum(p)", p[0] if len(p) == 1 else lanes64(f, p))
        t = [f.mul(s, b, f"t[{i}] = s * y") for i, b in enumerate(wide_y)]
        out = [f.sub(a, b, f"out[{i}] = p - t") for i, (a, b) in enumerate(zip(p, t, strict=True))]
    elif v.arch == "dav_3510":
        s = row_sum(f, p, last, "s = sum(p)")
        pairs = enumerate(zip(p, wide_y, strict=True))
        out = [f.fma(f.neg(b), s, a, f"out[{i}] = p + (-y) * s") for i, (a, b) in pairs]
    else:
        s = row_sum(f, p, last, "s = sum(p)")
        d = [f.sub(a, s, f"d[{i}] = g - s") for i, a in enumerate(wide_g)]
        out = [f.mul(b, a, f"out[{i}] = y * d") for i, (a, b) in enumerate(zip(d, wide_y, strict=True))]
    return narrow_row(f, v, out)


def softmax_backward_array(g: Bits, y: Bits, v: Variant, last: bool) -> Bits:
    """As :func:`softmax_backward`, over the last axis; every dtype but DOUBLE."""
    with np.errstate(all="ignore"):
        wg, wy = arrays.widen(v.dtype, g), arrays.widen(v.dtype, y)
        p = wy * wg
        if v.numerics == "document":
            s = p if p.shape[-1] == 1 else lanes64_array(p)[..., None]
            return arrays.narrow(p - s * wy, v)
        s = row_sum_array(p, v, last)
        return arrays.narrow(fma(-wy, s, p) if v.arch == "dav_3510" else wy * (wg - s), v)
