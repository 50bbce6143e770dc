"""Rounding an exact value once to a dtype: the double-double decides unless it lies too near a tie; there MPFR does."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from emu.study import dd, numbers
from emu.study.dd import DD, F64
from emu.study.exact import GELU_CUBE, SCALE, SCALE_ALPHA, Golden
from emu.study.numbers import Bits


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
    precision = 400
    while True:
        v = value(precision)
        ratio = Fraction(*(int(part) for part in v.as_integer_ratio()))
        hi, lo = dd.pair(ratio)
        # Relative to the value; and to what may have cancelled in it, sums and products of values below 2^130.
        slack = (
            2.0**-1060 if precision >= 1600 else abs(hi) * 2.0 ** max(-1000.0, 100.0 - precision) + 2.0 ** max(-1060.0, 150.0 - precision)
        )
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
    if flow == "exp":
        return gmp.exp(x)
    if flow == "sigmoid":
        return 1 / (1 + gmp.exp(-x))
    if flow == "gelu":
        cube = m(GELU_CUBE.numerator) / m(GELU_CUBE.denominator) * x * x * x
        return x / (1 + gmp.exp(-2 * gmp.sqrt(2 / gmp.const_pi()) * (x + cube)))
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
