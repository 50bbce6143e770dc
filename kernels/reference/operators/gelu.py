"""Gelu, one value at a time, in FLOAT with one rounding per step, narrowed once to the dtype.

Its document gives the tanh form, x / 2 * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))). The kernels of the card compute the same as
x / (1 + exp(-1.5957691 * (x + 0.044715 * x**3))).
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT
from emu_kernels.reference.operands import narrow, widen
from emu_kernels.variant import Variant

#: 2 * sqrt(2 / pi), whose negative the flow multiplies with, and the cubic coefficient.
SCALE = "1.5957691216057308"
CUBE = "0.044715"


def gelu(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return the tanh form of one pattern; -inf gives NaN (+0 where the dtype saturates): -inf / inf."""
    f = Arith(FLOAT, v, trace)
    wide = widen(f, v, x, "x")
    c = f.mul(f.mul(f.mul(wide, wide, "x*x"), wide, "x*x*x"), f.const(CUBE), "c = x*x*x*0.044715")
    u = f.mul(f.add(c, wide, "c + x"), f.neg(f.const(SCALE)), "u = -1.5957691*(c + x)")
    d = f.add(f.exp(u, "e = exp(u)"), f.const("1"), "d = e + 1")
    return narrow(f, v, f.div(wide, d, "y = x / d"), "out")


def gelu_array(x: Bits, v: Variant) -> Bits:
    """As :func:`gelu`, on an array of patterns."""
    with np.errstate(all="ignore"):
        wide = arrays.widen(v.dtype, x)
        u = (wide * wide * wide * arrays.const(CUBE) + wide) * -arrays.const(SCALE)
        return arrays.narrow(arrays.div(wide, arrays.elementary("exp", u, v) + np.float32(1), arrays.flushes(v)), v)
