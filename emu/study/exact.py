"""The exact mathematical value of an operator, as a double-double with an absolute bound.

Two questions can be asked of an operator that sees the forward *result* y instead of the input x:
- "exact": its own function of what it is given, g and the rounded y;
- "true": the derivative at x, of which y = RN(f(x)) has already lost a part.
For the other operators both are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emu.study import dd
from emu.study.dd import DD, F64

SCALE = Fraction("1.0507009873554804934193349852946")
ALPHA = Fraction("1.6732632423543772848170429916717")
SCALE_ALPHA = SCALE * ALPHA
_PI = Decimal("3.1415926535897932384626433832795028841971693993751058209749445923")
#: 2 * sqrt(2 / pi) and 0.044715 of GELU's tanh form.
GELU_SCALE = 2 * Fraction(Context(prec=60).divide(Decimal(2), _PI).sqrt(Context(prec=60)))
GELU_CUBE = Fraction("0.044715")


class Golden(NamedTuple):
    """hi + lo within `bound` (absolute). Infinities and NaN stand in hi, with lo and bound 0."""

    hi: F64
    lo: F64
    bound: F64


#: Flows whose last input is the forward result, with the forward flow.
FORWARD_OF = {"selu_backward": "selu", "softmax_backward": "softmax", "log_softmax_backward": "log_softmax"}
#: Flows that reduce a row.
ROWS = frozenset({"softmax", "log_softmax", "softmax_backward", "log_softmax_backward"})


def _abs_sum(x: F64) -> F64:
    out: F64 = np.abs(x).sum(axis=-1, keepdims=True)
    return out


def _wide(a: DD, like: F64) -> DD:
    """One value a row, for every element."""
    return DD(np.broadcast_to(a.hi, like.shape), np.broadcast_to(a.lo, like.shape))


def _selu(x: F64) -> tuple[DD, F64]:
    a = dd.constant(SCALE, x)
    n = dd.mul(dd.constant(SCALE_ALPHA, x), dd.expm1(dd.of(np.minimum(x, 0.0))))
    p = dd.scale(a, x)
    hi = np.where(x > 0, p.hi, n.hi)
    return DD(hi, np.where(x > 0, p.lo, n.lo)), np.abs(hi) * 2.0**-85


def _selu_backward(g: F64, y: F64, closed: bool) -> tuple[DD, F64]:
    sa = dd.constant(SCALE_ALPHA, y)
    n = dd.scale(dd.add(dd.of(y), sa), g)
    p = dd.scale(dd.constant(SCALE, y), g)
    negative = (y <= 0) if closed else (y < 0)
    bound = np.abs(g) * np.where(negative, 2.0**-100 * np.abs(y + sa.hi) + 2.0**-103, 2.0**-100)
    return DD(np.where(negative, n.hi, p.hi), np.where(negative, n.lo, p.lo)), bound


def _selu_slope(g: F64, x: F64, closed: bool) -> tuple[DD, F64]:
    n = dd.mul(dd.constant(SCALE_ALPHA, x), dd.exp(dd.of(np.minimum(x, 0.0))))
    p = dd.constant(SCALE, x)
    negative = (x <= 0) if closed else (x < 0)
    out = dd.scale(DD(np.where(negative, n.hi, p.hi), np.where(negative, n.lo, p.lo)), g)
    return out, np.abs(out.hi) * 2.0**-94


def _log_sigmoid(x: F64) -> tuple[DD, F64]:
    log = dd.log1p(dd.exp(dd.of(-np.abs(x))))
    low = dd.add(dd.of(np.minimum(x, 0.0)), -log)
    return low, np.abs(low.hi) * 2.0**-88


def _log_sigmoid_backward(g: F64, x: F64) -> tuple[DD, F64]:
    e = dd.exp(dd.of(-np.abs(x)))
    one = dd.of(np.ones_like(x))
    top = DD(np.where(x < 0, 1.0, e.hi), np.where(x < 0, 0.0, e.lo))
    out = dd.scale(dd.div(top, dd.add(one, e)), g)
    return out, np.abs(out.hi) * 2.0**-93


def _exp(x: F64) -> tuple[DD, F64]:
    e = dd.exp(dd.of(x))
    return e, e.hi * dd.EXP_BOUND


def _sigmoid(x: F64) -> tuple[DD, F64]:
    return _log_sigmoid_backward(np.ones_like(x), -x)


def _gelu(x: F64) -> tuple[DD, F64]:
    cube = dd.scale(dd.two_prod(x, x), x)
    u = dd.mul(dd.constant(GELU_SCALE, x), dd.add(dd.mul(dd.constant(GELU_CUBE, x), cube), dd.of(x)))
    e = dd.exp(-DD(np.abs(u.hi), np.where(u.hi < 0, -u.lo, u.lo)))
    top = DD(np.where(x < 0, e.hi, 1.0), np.where(x < 0, e.lo, 0.0))
    out = dd.scale(dd.div(top, dd.add(dd.of(np.ones_like(x)), e)), x)
    return out, np.abs(out.hi) * 2.0**-84


def _exps(x: F64) -> tuple[DD, DD, DD]:
    """exp(x - max), its row sum, and x - max."""
    d = dd.two_sum(x, -np.broadcast_to(x.max(axis=-1, keepdims=True), x.shape))
    e = dd.exp(d)
    return e, dd.row_sum(e), d


def _softmax(x: F64) -> tuple[DD, F64]:
    e, s, _ = _exps(x)
    out = dd.div(e, _wide(s, x))
    return out, np.abs(out.hi) * 2.0**-90


def _log_softmax(x: F64) -> tuple[DD, F64]:
    e, _, d = _exps(x)
    # Without the maximum's own 1 the sum keeps its relative error however small the others are.
    for part in e:
        np.put_along_axis(part, x.argmax(axis=-1, keepdims=True), 0.0, axis=-1)
    log = dd.log1p(dd.row_sum(e))
    wide = _wide(log, x)
    out = dd.add(d, -wide)
    # d may be a tie exactly, with a tiny logarithm beside it: the sum keeps both, only the low parts are rounded.
    return out, np.abs(wide.hi) * 2.0**-88 + (np.abs(out.lo) + np.abs(d.lo)) * 2.0**-50


def _minus_sum(g: F64, y: DD, others: Callable[[NDArray[np.intp]], DD]) -> tuple[DD, F64]:
    """y * (g - sum(y * g)) and its bound. `others(m)`: 1 - y at one place m of each row.

    Where one product y_m * g_m outweighs its row, g_m - sum cancels, in a row [1, 0, 0 …] to nothing: there the
    difference is g_m * (1 - y_m) - (the other products), and the bound is relative to those.
    """
    p = dd.scale(y, g)
    m = np.abs(p.hi).argmax(axis=-1, keepdims=True)

    def at(a: F64) -> F64:
        return np.take_along_axis(a, m, -1)

    top, rest = DD(at(p.hi), at(p.lo)), DD(p.hi.copy(), p.lo.copy())
    for part in rest:
        np.put_along_axis(part, m, 0.0, axis=-1)
    s = dd.row_sum(rest)
    d = dd.add(dd.of(g), -_wide(dd.add(s, top), g))
    size = np.abs(g) + _abs_sum(p.hi)
    head = dd.scale(others(m), at(g))
    np.put_along_axis(size, m, np.abs(head.hi) + _abs_sum(rest.hi), axis=-1)
    head = dd.add(head, -s)
    # 0 - 0 is +0 in every rounding but one: adding 0 makes +0 of the -0 that negation left.
    np.put_along_axis(d.hi, m, head.hi + 0.0, axis=-1)
    np.put_along_axis(d.lo, m, head.lo, axis=-1)
    return dd.mul(y, d), np.abs(y.hi) * size * 2.0**-88


def _softmax_backward(g: F64, y: F64) -> tuple[DD, F64]:
    return _minus_sum(g, dd.of(y), lambda m: dd.two_sum(np.ones(m.shape), -np.take_along_axis(y, m, -1)))


def _softmax_slope(g: F64, x: F64) -> tuple[DD, F64]:
    e, total, _ = _exps(x)

    def others(m: NDArray[np.intp]) -> DD:
        rest = DD(e.hi.copy(), e.lo.copy())
        for part in rest:
            np.put_along_axis(part, m, 0.0, axis=-1)
        return dd.div(dd.row_sum(rest), total)

    value, bound = _minus_sum(g, dd.div(e, _wide(total, x)), others)
    # exp is held at e^-530, 2^-764: what that hides is far below every format, but may be all that is left of a difference.
    return value, bound + (np.abs(g) + _abs_sum(g)) * 2.0**-760


def _minus_weighted(g: F64, weight: DD, relative: float) -> tuple[DD, F64]:
    t = dd.mul(weight, _wide(dd.row_sum(dd.of(g)), g))
    return dd.add(dd.of(g), -t), np.abs(g) * 2.0**-100 + np.abs(weight.hi) * _abs_sum(g) * relative


def _log_softmax_backward(g: F64, y: F64) -> tuple[DD, F64]:
    return _minus_weighted(g, dd.exp(dd.of(y)), 2.0**-92)


def _log_softmax_slope(g: F64, x: F64) -> tuple[DD, F64]:
    return _minus_weighted(g, _softmax(x)[0], 2.0**-88)


_STORED: dict[str, Callable[..., tuple[DD, F64]]] = {
    "selu": _selu, "log_sigmoid": _log_sigmoid, "log_sigmoid_backward": _log_sigmoid_backward, "softmax": _softmax,
    "log_softmax": _log_softmax, "softmax_backward": _softmax_backward, "log_softmax_backward": _log_softmax_backward,
    "selu_backward": _selu_backward, "exp": _exp, "sigmoid": _sigmoid, "gelu": _gelu,
}  # fmt: skip
_TRUE = _STORED | {
    "selu_backward": _selu_slope, "softmax_backward": _softmax_slope, "log_softmax_backward": _log_softmax_slope,
}  # fmt: skip


def plain(flow: str, true: bool, arrays: tuple[F64, ...], closed: bool) -> F64:
    """The same function in ordinary float64: what infinities, NaN and overflow come from, and `float64`'s golden."""
    out: F64 = _plain(flow, true, arrays, closed)
    return out


def _plain(flow: str, true: bool, arrays: tuple[F64, ...], closed: bool) -> Any:
    with np.errstate(all="ignore"):
        x = arrays[-1]
        g = arrays[0]
        s, sa = float(SCALE), float(SCALE_ALPHA)
        nan = np.isnan(x)
        if flow == "selu":
            return np.where(x > 0, s * x, sa * np.expm1(np.where(x > 0, 0.0, x)))
        if flow == "exp":
            return np.exp(x)
        if flow == "sigmoid":
            return 1.0 / (1.0 + np.exp(-x))
        if flow == "gelu":
            return np.where(x < -40.0, -0.0, x / (1.0 + np.exp(-float(GELU_SCALE) * (x + 0.044715 * x * x * x))))
        if flow == "log_sigmoid":
            return np.minimum(x, 0.0) - np.log1p(np.exp(-np.abs(x)))
        if flow == "selu_backward":
            negative = (x <= 0) if closed else (x < 0)
            slope = sa * np.exp(x) if true else x + sa
            return np.where(nan, np.nan, g * np.where(negative, slope, s))
        if flow == "log_sigmoid_backward":
            e = np.exp(-np.abs(x))
            return g * (np.where(x < 0, 1.0, e) / (1.0 + e))
        if flow == "log_softmax_backward" and not true:
            return g - np.exp(x) * g.sum(-1, keepdims=True)
        if flow == "softmax_backward" and not true:
            return x * (g - (x * g).sum(-1, keepdims=True))
        d = x - x.max(-1, keepdims=True)
        e = np.exp(d)
        total = e.sum(-1, keepdims=True)
        if flow == "softmax":
            return e / total
        if flow == "log_softmax":
            return d - np.log(total)
        y = e / total
        return g - y * g.sum(-1, keepdims=True) if flow == "log_softmax_backward" else y * (g - (y * g).sum(-1, keepdims=True))


def golden(flow: str, true: bool, arrays: tuple[F64, ...], closed: bool) -> Golden:
    """The exact value for float64 inputs (g, x or y) that are taken as they are.

    `closed`: SELU's derivative at 0 is taken from the left (y <= 0), as dav_3510 does; else from the right. NaN
    inputs give NaN; infinite ones what the limit in float64 gives.
    """
    finite = np.ones(arrays[0].shape, bool)
    for a in arrays:
        finite &= np.isfinite(a)
    if flow in ROWS:
        finite &= finite.all(-1, keepdims=True)
    simple = plain(flow, true, arrays, closed)
    safe = tuple(np.where(finite, a, 0.0) for a in arrays)
    function = (_TRUE if true else _STORED)[flow]
    with np.errstate(all="ignore"):
        value, bound = function(*safe, closed) if flow == "selu_backward" else function(*safe)
    good = finite & np.isfinite(value.hi) & np.isfinite(value.lo)
    # An exact 0 has lost its sign in the additions of the pairs; in float64 it has it.
    hi = np.where(good & ((value.hi != 0) | (simple != 0)), value.hi, simple)
    # Smaller errors than 2^-800 come from subnormal error terms alone; e^-530, where exp is held, is larger and so keeps its sign.
    return Golden(hi, np.where(good, value.lo, 0.0), np.where(good, np.where(bound > 0, bound + 2.0**-800, 0.0), 0.0))
