"""Sigmoid, one value at a time: 1 / (1 + e**-x) in FLOAT with one rounding per step, narrowed once to the dtype."""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT
from emu_kernels.reference.operands import narrow, widen
from emu_kernels.variant import Variant


def sigmoid(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return 1 / (exp(-x) + 1) of one pattern; +0 below -88.73, where exp(-x) overflows. NaN as :func:`exp.exp`."""
    f = Arith(FLOAT, v, trace)
    one = f.const("1")
    e = f.exp(f.neg(widen(f, v, x, "x")), "e = exp(-x)")
    d = f.add(e, one, "d = e + 1")
    return narrow(f, v, f.div(one, d, "y = 1 / d"), "out")


def sigmoid_array(x: Bits, v: Variant) -> Bits:
    """As :func:`sigmoid`, on an array of patterns."""
    one = np.float32(1)
    with np.errstate(all="ignore"):
        wide = arrays.widen(v.dtype, x)
        d = arrays.elementary("exp", -wide, v) + one
        return arrays.narrow(arrays.div(np.full_like(wide, one), d, arrays.flushes(v)), v)
