"""aclnnSoftmax, aclnnLogSoftmax and their backward operators. FLOAT16 and BF16 widen to FLOAT and round once at the end.

The order of the sums is in `reduce`: off dav_3510 64 accumulators along the last dim [assumed: tbe_row_order] and one
accumulator along any other [assumed: tbe_col_order]; trees on dav_3510.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ..bits import fma32, inline
from ..catalog import chosen, flushes
from ..elementary import Elementary
from ..formats import round_half
from ..variant import Variant
from . import RowPlan

F = np.float32


@inline
def _same(x):  # type: ignore[no-untyped-def]
    return x


@inline
def _product(g, y, m):  # type: ignore[no-untyped-def]
    return y * g


@inline
def _gradient_tbe(g, y, m, s):  # type: ignore[no-untyped-def]
    return y * (g - s)


@inline
def _gradient_3510(g, y, m, s):  # type: ignore[no-untyped-def]
    return fma32(-y, s, y * g)


@inline
def _gradient_document(g, y, m, s):  # type: ignore[no-untyped-def]
    return y * g - s * y


def _order(v: Variant, last: bool) -> str:
    if v.numerics == "document":
        return "lanes64"
    if v.arch == "dav_3510":
        return "tree"
    return chosen(v.assume, "tbe_row_order" if last else "tbe_col_order")


def _key(steps: str, v: Variant, order: str, saturate: bool, last: bool) -> tuple[Any, ...]:
    return (steps, v.dtype, "sat" if saturate else "inf", order, "last" if last else "cols")


def softmax_backward(v: Variant, last: bool) -> RowPlan:
    """(gradOutput g, output y): s = sum of y*g; out = y*(g - s), on dav_3510 y*g + (-y)*s with one rounding.

    The document variant is y*g - s*y with every operation rounded and 64 accumulators.
    """
    if v.numerics == "document":
        steps, gradient = "document", _gradient_document
    elif v.arch == "dav_3510":
        steps, gradient = "fused", _gradient_3510
    else:
        steps, gradient = "tbe", _gradient_tbe
    saturate = v.saturate and v.dtype != "FLOAT"
    order = _order(v, last)

    def gradients(g: Any, y: Any, s: Any) -> Any:
        return (-y).fma(s, y * g) if steps == "fused" else gradient(g, y, None, s)

    def products(g: Any, y: Any) -> Any:
        return _product(g, y, None)

    return RowPlan(
        _key(steps, v, order, saturate, last), 2, v.dtype, saturate, order, False, False,
        lambda: (_same, _product, _same, gradient), None if v.dtype == "DOUBLE" else (products, gradients),
    )  # fmt: skip


def log_softmax_backward(v: Variant, last: bool) -> RowPlan:
    """(gradOutput g, output y): g - exp(y) * sum of g."""
    v = v._replace(numerics="device")
    flush = flushes(v)
    saturate = v.saturate and v.dtype != "FLOAT"
    order = _order(v, last)

    def scalars() -> Any:
        exp = Elementary(flush).exp

        @inline
        def term(g, y, m):  # type: ignore[no-untyped-def]
            return g

        @inline
        def gradient(g, y, m, s):  # type: ignore[no-untyped-def]
            return g - exp(y) * s

        return _same, term, _same, gradient

    return RowPlan(_key("ftz" if flush else "sub", v, order, saturate, last), 2, v.dtype, saturate, order, False, True, scalars)


def _double() -> Any:
    from .. import double

    return double


def _difference(flush: bool) -> Any:
    """LogSoftmax's `exponent`."""

    @inline
    def argument(x, m):  # type: ignore[no-untyped-def]
        return x - m

    return argument, None, Elementary(flush).exp_tile


def softmax(v: Variant, last: bool) -> RowPlan:
    """exp(x - max) / sum. A NaN makes its row NaN; a row of -inf is NaN.

    FLOAT16 takes the maximum and the difference natively: the difference is rounded to FLOAT16, and under saturation
    a NaN difference is +0, as any FLOAT16 step has it, so that inf - inf counts as the maximum itself.
    """
    v = v._replace(numerics="device")
    double = v.dtype == "DOUBLE"
    flush = flushes(v) and not double
    saturate = v.saturate and v.dtype not in ("FLOAT", "DOUBLE")
    order = _order(v, last)

    def scalars() -> Any:
        math = Elementary(flush)
        exp, div = (_double().exp64, _double().div64) if double else (math.exp, math.div)
        native = round_half(saturate) if v.dtype == "FLOAT16" else _same

        @inline
        def term(x, b, m):  # type: ignore[no-untyped-def]
            return exp(native(x - m))

        @inline
        def share(x, b, m, s):  # type: ignore[no-untyped-def]
            return div(exp(native(x - m)), s)

        return _same, term, _same, share

    def exponent() -> Any:
        math = Elementary(flush)
        native, div = round_half(saturate) if v.dtype == "FLOAT16" else _same, math.div

        @inline
        def argument(x, m):  # type: ignore[no-untyped-def]
            return native(x - m)

        @inline
        def share(e, s):  # type: ignore[no-untyped-def]
            return div(e, s)

        return argument, share, math.exp_tile

    key = _key("ftz" if flush else "sub", v, order, saturate, last)
    return RowPlan(key, 1, v.dtype, saturate, order, True, True, scalars, exponent=None if double else exponent)


def log_softmax(v: Variant, last: bool) -> RowPlan:
    """x - max - log(sum of exp(x - max)), left to right.

    Along the last dim the maximum of a FLOAT or BF16 row is taken after a cast to FLOAT16 (with the overflow mode): as
    rounding keeps the order, that is the rounded maximum. A row with a NaN is NaN either way.
    """
    v = v._replace(numerics="device")
    double = v.dtype == "DOUBLE"
    flush = flushes(v) and not double
    saturate = v.saturate and v.dtype not in ("FLOAT", "DOUBLE")
    cast = last and v.dtype in ("FLOAT", "BF16")
    order = _order(v, last)

    def scalars() -> Any:
        math = Elementary(flush)
        exp, log = (_double().exp64, _double().log64) if double else (math.exp, math.log)
        prepare = round_half(v.saturate) if cast else _same

        @inline
        def term(x, b, m):  # type: ignore[no-untyped-def]
            return exp(x - m)

        @inline
        def share(x, b, m, s):  # type: ignore[no-untyped-def]
            return (x - m) - s

        return prepare, term, log, share

    steps = ("ftz" if flush else "sub") + ("_satmax" if cast and v.saturate else "")
    exponent = partial(_difference, flush)
    key = _key(steps, v, order, saturate, last)
    return RowPlan(key, 1, v.dtype, saturate, order, True, True, scalars, exponent=None if double else exponent)
