"""Exp, one value at a time: e**x in FLOAT, correctly rounded, narrowed once to the dtype."""

from __future__ import annotations

from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT
from emu_kernels.reference.operands import narrow, widen
from emu_kernels.variant import Variant


def exp(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return exp of one pattern; -inf gives +0, NaN gives NaN (+0 where the dtype saturates)."""
    f = Arith(FLOAT, v, trace)
    return narrow(f, v, f.exp(widen(f, v, x, "x"), "exp(x)"), "out")


def exp_array(x: Bits, v: Variant) -> Bits:
    """As :func:`exp`, on an array of patterns."""
    return arrays.narrow(arrays.elementary("exp", arrays.widen(v.dtype, x), v), v)
