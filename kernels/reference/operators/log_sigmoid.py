"""LogSigmoid, one value at a time, in FLOAT with one rounding per step.

LogSigmoid(x) = log(1 / (1 + e**-x))
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT
from emu_kernels.reference.operands import narrow, widen
from emu_kernels.variant import Variant


def log_sigmoid(x: int, v: Variant, trace: Trace | None = None) -> int:
    """LogSigmoid(x) = log(1 / (1 + e**-x)), which is -log(1 + e**-x) and also x - log(1 + e**x).

    Return the forward result: x - log1p(exp(x)) up to 0, -log1p(exp(-x)) above and for NaN, narrowed once.

    +inf gives -0.0, -inf gives -inf (the largest negative value where the dtype saturates), NaN gives NaN (there +0).
    """
    f = Arith(FLOAT, v, trace)
    wide = widen(f, v, x, "x")
    if f.le(wide, 0):
        out = f.sub(wide, f.log1p(f.exp(wide, "e = exp(x)"), "l = log1p(e)"), "y = x - l")
    else:
        log = f.log1p(f.exp(f.neg(wide), "e = exp(-x)"), "l = log1p(e)")
        out = f.note("y = -l", f.neg(log))
    return narrow(f, v, out, "out")


def log_sigmoid_array(x: Bits, v: Variant) -> Bits:
    """As :func:`log_sigmoid`."""
    with np.errstate(all="ignore"):
        wide = arrays.widen(v.dtype, x)
        log = arrays.elementary("log1p", arrays.elementary("exp", -np.abs(wide), v), v)
        return arrays.narrow(np.where(wide <= 0, wide - log, -log), v)
