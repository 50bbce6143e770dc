"""Exp, Sigmoid and Gelu: one value at a time, and on arrays for sweeps. FLOAT with one rounding per step, narrowed once.

The operator document of Gelu gives the tanh form; the kernels of the card compute it as x / (1 + exp(-1.5957691 * (x + 0.044715 * x**3))).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from emu_kernels.reference import fast
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.formats import FLOAT, FORMATS
from emu_kernels.variant import Variant
from numpy.typing import NDArray

Bits = NDArray[Any]

#: 2 * sqrt(2 / pi), whose negative the flow multiplies with, and the cubic coefficient.
SCALE = "1.5957691216057308"
CUBE = "0.044715"


def _exp(f: Arith, x: int) -> int:
    return f.exp(x, "exp(x)")


def _sigmoid(f: Arith, x: int) -> int:
    one = f.const("1")
    return f.div(one, f.add(f.exp(f.neg(x), "e = exp(-x)"), one, "d = e + 1"), "y = 1 / d")


def _gelu(f: Arith, x: int) -> int:
    cube = f.mul(f.mul(f.mul(x, x, "x*x"), x, "x*x*x"), f.const(CUBE), "c = x*x*x*0.044715")
    u = f.mul(f.add(cube, x, "c + x"), f.neg(f.const(SCALE)), "u = -1.5957691*(c + x)")
    return f.div(x, f.add(f.exp(u, "e = exp(u)"), f.const("1"), "d = e + 1"), "y = x / d")


def _scalar(steps: Callable[[Arith, int], int], x: int, v: Variant, trace: Trace | None) -> int:
    f = Arith(FLOAT, v, trace)
    bits = steps(f, f.from_format(FORMATS[v.dtype], x, "x"))
    return Arith(FORMATS[v.dtype], v, trace).from_format(FLOAT, bits, f"out = RINT to {v.dtype}" if v.dtype != "FLOAT" else None)


def exp(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return exp of one pattern; -inf gives +0, NaN gives NaN (+0 where the dtype saturates)."""
    return _scalar(_exp, x, v, trace)


def sigmoid(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return 1 / (exp(-x) + 1) of one pattern; +0 below -88.73, where exp(-x) overflows."""
    return _scalar(_sigmoid, x, v, trace)


def gelu(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return the tanh form of one pattern; -inf gives NaN (+0 where the dtype saturates): -inf / inf."""
    return _scalar(_gelu, x, v, trace)


def exp_array(x: Bits, v: Variant) -> Bits:
    """As :func:`exp`, on an array of patterns."""
    return fast.narrow(fast.elementary("exp", fast.widen(v.dtype, x), v), v)


def sigmoid_array(x: Bits, v: Variant) -> Bits:
    """As :func:`sigmoid`, on an array of patterns."""
    one = np.float32(1)
    with np.errstate(all="ignore"):
        wide = fast.widen(v.dtype, x)
        return fast.narrow(fast.div(np.full_like(wide, one), fast.elementary("exp", -wide, v) + one, fast.flushes(v)), v)


def gelu_array(x: Bits, v: Variant) -> Bits:
    """As :func:`gelu`, on an array of patterns."""
    with np.errstate(all="ignore"):
        wide = fast.widen(v.dtype, x)
        u = (wide * wide * wide * fast.const(CUBE) + wide) * -fast.const(SCALE)
        return fast.narrow(fast.div(wide, fast.elementary("exp", u, v) + np.float32(1), fast.flushes(v)), v)
