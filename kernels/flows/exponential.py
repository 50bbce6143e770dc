"""aclnnExp, aclnnSigmoid and aclnnGelu: one exp and at most one division. FLOAT16 and BF16 widen to FLOAT and round once at the end.

The steps are those of dav_2201; on the other architectures the same ones with their overflow mode and subnormal rule [assumed:
forward_all_archs].
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..bits import inline
from ..catalog import flushes
from ..elementary import Elementary
from ..formats import reader, writer
from ..variant import Variant
from . import Plan

F = np.float32
#: -2*sqrt(2/pi) and 0.044715 of the tanh form, each rounded to FLOAT.
GELU_SCALE = F(-1.5957691216057308)
GELU_CUBE = F(0.044715)


def _unary(v: Variant, steps: Callable[[Elementary], Any]) -> Plan:
    flush = flushes(v)
    saturate = v.saturate and v.dtype != "FLOAT"

    def make() -> Any:
        step, read, write = steps(Elementary(flush)), reader(v.dtype), writer(v.dtype, saturate)

        @inline
        def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                write(out, i, step(read(xs, i)))

        return tile

    key = (v.dtype, "sat" if saturate else "inf", "ftz" if flush else "sub")
    return Plan(key, (v.dtype,), v.dtype, make)


def exp(v: Variant) -> Plan:
    """exp(x) in FLOAT [assumed: exp_precision]. -inf gives +0, +inf gives +inf, NaN gives NaN."""
    return _unary(v, lambda math: math.exp)


def sigmoid(v: Variant) -> Plan:
    """1 / (exp(-x) + 1). -inf and every x < -88.73 give +0 (exp(-x) overflows), +inf gives 1, NaN gives NaN."""

    def steps(math: Elementary) -> Any:
        exp, div = math.exp, math.div

        @inline
        def step(x):  # type: ignore[no-untyped-def]
            return div(F(1.0), exp(-x) + F(1.0))

        return step

    return _unary(v, steps)


def gelu(v: Variant) -> Plan:
    """The tanh form x / (1 + exp(-1.5957691 * (x + 0.044715 x^3))), x^3 as x*x*x [assumed: gelu_steps].

    ±0 stays, +inf gives +inf, NaN gives NaN; -inf gives NaN (-inf / inf), as the formula does.
    """

    def steps(math: Elementary) -> Any:
        exp, div = math.exp, math.div

        @inline
        def step(x):  # type: ignore[no-untyped-def]
            u = x * x * x * GELU_CUBE + x
            return div(x, exp(u * GELU_SCALE) + F(1.0))

        return step

    return _unary(v, steps)
