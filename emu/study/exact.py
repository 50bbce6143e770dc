"""The exact mathematical value of an operator, as a double-double with an absolute bound; MPFR where that is too near
a tie.

Two questions can be asked of an operator that sees the forward *result* y instead of the input x:
- "exact": its own function of what it is given, g and the rounded y;
- "true": the derivative at x, of which y = RN(f(x)) has already lost a part.
For the other operators both are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emu.study import dd, numbers
from emu.study.dd import DD, F64
from emu.study.numbers import Bits

SCALE = Fraction("1.0507009873554804934193349852946")
ALPHA = Fraction("1.6732632423543772848170429916717")
SCALE_ALPHA = SCALE * ALPHA


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
    return np.abs(x).sum(axis=-1, keepdims=True)


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


def _exps(x: F64) -> tuple[DD, DD, DD]:
    """exp(x - max), its row sum, and x - max."""
    d = dd.two_sum(x, -np.broadcast_to(x.max(axis=-1, keepdims=True), x.shape))
    e = dd.exp(d)
    return e, dd.row_sum(e), d


def _softmax(x: F64) -> tuple[DD, F64]:
    e, s, _ = _exps(x)
    out = dd.div(e, DD(np.broadcast_to(s.hi, x.shape), np.broadcast_to(s.lo, x.shape)))
    return out, np.abs(out.hi) * 2.0**-90


def _log_softmax(x: F64) -> tuple[DD, F64]:
    _, s, d = _exps(x)
    log = dd.log1p(dd.add(s, dd.of(np.full_like(s.hi, -1.0))))
    wide = DD(np.broadcast_to(log.hi, x.shape), np.broadcast_to(log.lo, x.shape))
    return dd.add(d, -wide), (np.abs(d.hi) + np.abs(wide.hi)) * 2.0**-88


def _minus_sum(g: F64, y: DD) -> tuple[DD, F64]:
    """y * (g - sum(y * g)) and its bound."""
    p = dd.scale(y, g)
    s = dd.row_sum(p)
    d = dd.add(dd.of(g), -DD(np.broadcast_to(s.hi, g.shape), np.broadcast_to(s.lo, g.shape)))
    return dd.mul(y, d), np.abs(y.hi) * (np.abs(g) + _abs_sum(p.hi)) * 2.0**-88


def _softmax_backward(g: F64, y: F64) -> tuple[DD, F64]:
    return _minus_sum(g, dd.of(y))


def _softmax_slope(g: F64, x: F64) -> tuple[DD, F64]:
    return _minus_sum(g, _softmax(x)[0])


def _minus_weighted(g: F64, weight: DD, relative: float) -> tuple[DD, F64]:
    s = dd.row_sum(dd.of(g))
    wide = DD(np.broadcast_to(s.hi, g.shape), np.broadcast_to(s.lo, g.shape))
    t = dd.mul(weight, wide)
    return dd.add(dd.of(g), -t), np.abs(g) * 2.0**-100 + np.abs(weight.hi) * _abs_sum(g) * relative


def _log_softmax_backward(g: F64, y: F64) -> tuple[DD, F64]:
    return _minus_weighted(g, dd.exp(dd.of(y)), 2.0**-92)


def _log_softmax_slope(g: F64, x: F64) -> tuple[DD, F64]:
    return _minus_weighted(g, _softmax(x)[0], 2.0**-88)


_STORED: dict[str, Callable[..., tuple[DD, F64]]] = {
    "selu": _selu, "log_sigmoid": _log_sigmoid, "log_sigmoid_backward": _log_sigmoid_backward, "softmax": _softmax,
    "log_softmax": _log_softmax, "softmax_backward": _softmax_backward, "log_softmax_backward": _log_softmax_backward,
    "selu_backward": _selu_backward,
}  # fmt: skip
_TRUE = _STORED | {
    "selu_backward": _selu_slope, "softmax_backward": _softmax_slope, "log_softmax_backward": _log_softmax_slope,
}  # fmt: skip


def plain(flow: str, true: bool, arrays: tuple[F64, ...], closed: bool) -> F64:
    """The same function in ordinary float64: what infinities, NaN and overflow come from, and `float64`'s golden."""
    with np.errstate(all="ignore"):
        x = arrays[-1]
        g = arrays[0]
        s, sa = float(SCALE), float(SCALE_ALPHA)
        nan = np.isnan(x)
        if flow == "selu":
            return np.where(x > 0, s * x, sa * np.expm1(np.where(x > 0, 0.0, x)))
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
    # Below 2^-960 the error terms of a product are themselves subnormal.
    return Golden(
        np.where(good, value.hi, simple), np.where(good, value.lo, 0.0), np.where(good, np.where(bound > 0, bound + 2.0**-1000, 0.0), 0.0)
    )


def rounded(dtype: str, g: Golden, better: Callable[[int], Any], truncate: bool = False) -> tuple[Bits, int]:
    """Patterns of the exact value rounded once, and how many of them `better` (flat place -> a function of precision
    that gives an MPFR number) had to decide."""
    bits, doubtful = numbers.round_pair(dtype, DD(g.hi, g.lo), g.bound, truncate)
    flat = bits.reshape(-1)
    for place in doubtful:
        flat[place] = _decide(dtype, better(int(place)), truncate)
    return bits, int(doubtful.size)


def _decide(dtype: str, value: Callable[[int], Any], truncate: bool) -> Any:
    """One value rounded with MPFR: the precision doubles until the value is clear of every boundary. A value that
    equals a boundary to 1,600 bits is taken as equal to it."""
    precision = 300
    while True:
        v = value(precision)
        ratio = Fraction(*(int(part) for part in v.as_integer_ratio()))
        hi, lo = dd.pair(ratio)
        slack = 2.0 ** -1060 if precision >= 1600 else abs(hi) * 2.0 ** max(-1000.0, 100.0 - precision)
        exact_tie = precision >= 1600
        one = numbers.round_pair(dtype, DD(np.array([hi]), np.array([lo])), np.array([slack]), truncate)
        if exact_tie or one[1].size == 0:
            return one[0][0]
        precision *= 2


def mpfr(flow: str, true: bool, row: tuple[F64, ...], at: int, closed: bool) -> Callable[[int], Any]:
    """The exact value of one element as a function of the precision; `row` holds the whole row (or one element)."""
    gmp = _gmpy2()

    def compute(precision: int) -> Any:
        with gmp.context(gmp.get_context(), precision=precision):
            return _mpfr_value(gmp, flow, true, row, at, closed)

    return compute


def _gmpy2() -> Any:
    try:
        return import_module("gmpy2")
    except ImportError as error:
        raise ImportError("a value lies too near a tie and needs gmpy2: pip install 'aclnn-emu[study]'") from error


def _mpfr_value(gmp: Any, flow: str, true: bool, row: tuple[F64, ...], at: int, closed: bool) -> Any:
    m = gmp.mpfr
    s = m(SCALE.numerator) / m(SCALE.denominator)
    sa = m(SCALE_ALPHA.numerator) / m(SCALE_ALPHA.denominator)
    x, g = m(float(row[-1][at])), m(float(row[0][at]))
    if flow == "selu":
        return s * x if x > 0 else sa * gmp.expm1(x)
    if flow == "log_sigmoid":
        return min(x, m(0)) - gmp.log1p(gmp.exp(-abs(x)))
    if flow == "selu_backward":
        negative = x <= 0 if closed else x < 0
        return g * ((sa * gmp.exp(x) if true else x + sa) if negative else s)
    if flow == "log_sigmoid_backward":
        return g / (1 + gmp.exp(x))
    xs, gs = [m(float(v)) for v in row[-1]], [m(float(v)) for v in row[0]]
    if flow == "softmax_backward" and not true:
        return x * (g - sum((a * b for a, b in zip(xs, gs, strict=True)), m(0)))
    if flow == "log_softmax_backward" and not true:
        return g - gmp.exp(x) * sum(gs, m(0))
    top = max(xs)
    es = [gmp.exp(v - top) for v in xs]
    total = sum(es, m(0))
    if flow == "softmax":
        return es[at] / total
    if flow == "log_softmax":
        return (x - top) - gmp.log(total)
    if flow == "log_softmax_backward":
        return g - es[at] / total * sum(gs, m(0))
    return es[at] / total * (g - sum((e * b for e, b in zip(es, gs, strict=True)), m(0)) / total)


def widen(a: NDArray[Any], rows: bool) -> NDArray[Any]:
    """Blocks as the golden functions want them: (n,) or (rows, r)."""
    return a.reshape(-1, a.shape[-1]) if rows else a.reshape(-1)
