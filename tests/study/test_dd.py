"""Double-double: the transformations are exact, the functions within their stated bounds of MPFR."""

from __future__ import annotations

from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.study import dd

moderate = st.floats(-(2.0**200), 2.0**200, allow_subnormal=False).filter(lambda x: x == 0 or abs(x) > 2.0**-200)


def _exact(pair: dd.DD) -> Fraction:
    return Fraction(float(pair.hi[0])) + Fraction(float(pair.lo[0]))


@given(moderate, moderate)
def test_sum_and_product_lose_nothing(a: float, b: float) -> None:
    x, y = np.array([a]), np.array([b])
    assert _exact(dd.two_sum(x, y)) == Fraction(a) + Fraction(b)
    assert _exact(dd.two_prod(x, y)) == Fraction(a) * Fraction(b)


@given(moderate, moderate, moderate, moderate)
def test_steps_keep_their_bound(a: float, b: float, c: float, d: float) -> None:
    x, y = dd.two_sum(np.array([a]), np.array([b * 2.0**-60])), dd.two_sum(np.array([c]), np.array([d * 2.0**-60]))
    ex, ey = _exact(x), _exact(y)
    cases = [(dd.add(x, y), ex + ey), (dd.mul(x, y), ex * ey)]
    if ey:
        cases.append((dd.div(x, y), ex / ey))
    for got, want in cases:
        assert abs(_exact(got) - want) <= abs(want) * Fraction(dd.STEP_BOUND) * 2 + Fraction(2) ** -900


@pytest.mark.parametrize(
    ("function", "reference", "bound", "low", "high"),
    [
        (dd.exp, gmpy2.exp, dd.EXP_BOUND, -529.0, 529.0), (dd.expm1, gmpy2.expm1, 2.0**-86, -529.0, 529.0),
        (dd.log1p, gmpy2.log1p, dd.LOG1P_BOUND, 0.0, 1000.0),
    ],
)  # fmt: skip
def test_functions_keep_their_bound(function, reference, bound, low, high) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [
            rng.uniform(low, high, 1500),
            rng.uniform(max(low, -1.0), 1.0, 1500),
            rng.choice([1.0, -1.0], 500) * 2.0 ** rng.uniform(-140, 0, 500),
        ]
    )
    x = x[(x >= low) & (x != 0)]
    got = function(dd.of(x))
    with gmpy2.context(precision=300):
        for a, hi, lo in zip(x, got.hi, got.lo, strict=True):
            want = reference(gmpy2.mpfr(float(a)))
            assert abs(gmpy2.mpfr(float(hi)) + gmpy2.mpfr(float(lo)) - want) <= abs(want) * bound


def test_row_sum_survives_cancellation() -> None:
    x = np.array([[1e16, 1.0, -1e16, 2.0**-40, 3.0]])
    assert _exact(dd.DD(*(a.reshape(-1) for a in dd.row_sum(dd.of(x))))) == Fraction(4) + Fraction(2.0**-40)
