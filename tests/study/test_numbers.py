"""One rounding from a pair, against the reference's integer arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from emu_kernels.reference.formats import FORMATS, Exact, encode, to_float
from hypothesis import given
from hypothesis import strategies as st

from emu.study import decide, exact, numbers
from emu.study.dd import DD

FLOATS = ("FLOAT16", "BF16", "FLOAT")


def _encode(dtype: str, value: Fraction, sign: int) -> int:
    shift = 1100
    scaled = abs(value) * 2**shift
    assert scaled.denominator == 1
    return encode(FORMATS[dtype], Exact("finite", sign, scaled.numerator, -shift))


@given(st.sampled_from(FLOATS), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 0.25, 0.5, 0.75]), st.sampled_from([0, 1, -1]))
def test_ties_and_their_neighbours(dtype: str, pattern: int, part: float, low: int) -> None:
    """hi anywhere between two neighbours, lo a hair to either side."""
    fmt = FORMATS[dtype]
    bits = pattern % (fmt.inf - 1)
    a, b = to_float(fmt, bits), to_float(fmt, bits + 1)
    hi = a + (b - a) * part
    lo = low * hi * 2.0**-60
    got, doubtful = numbers.round_pair(dtype, DD(np.array([hi]), np.array([lo])), np.array([0.0]))
    assert int(got[0]) == _encode(dtype, Fraction(hi) + Fraction(lo), 0)
    assert doubtful.size == 0
    negative, _ = numbers.round_pair(dtype, DD(np.array([-hi]), np.array([-lo])), np.array([0.0]))
    assert int(negative[0]) == int(got[0]) | fmt.sign


@pytest.mark.parametrize("dtype", FLOATS)
def test_overflow_specials_and_doubt(dtype: str) -> None:
    fmt = FORMATS[dtype]
    top = to_float(fmt, fmt.max)
    half = top + 2.0 ** (fmt.emax - fmt.fraction - 1)
    hi = np.array([np.inf, -np.inf, np.nan, half, half, -0.0])
    got, _ = numbers.round_pair(dtype, DD(hi, np.array([0, 0, 0, 0, -1e-9 * half * 2.0**-30, 0])), np.zeros(6))
    assert got[0] == fmt.inf
    assert got[1] == fmt.inf | fmt.sign
    assert got[2] & (fmt.sign - 1) > fmt.inf
    assert got[3] == fmt.inf
    assert got[4] == fmt.max
    assert got[5] == fmt.sign
    near = np.array([1.0 + 2.0 ** -(fmt.fraction + 1), 1.5])
    _, doubtful = numbers.round_pair(dtype, DD(near, np.zeros(2)), np.full(2, 2.0**-70))
    assert doubtful.tolist() == [0]


def test_truncation_to_integers_sees_the_low_part() -> None:
    hi, lo = np.array([3.0, 3.0, -3.0, -3.0, 2.7, -2.7, 400.0]), np.array([-1e-20, 1e-20, 1e-20, -1e-20, 0, 0, 0])
    got, _ = numbers.round_pair("INT8", DD(hi, lo), np.zeros(7), truncate=True)
    assert got.tolist() == [2, 3, -2, -3, 2, -2, 127]


@pytest.mark.parametrize("dtype", FLOATS)
def test_ordinals_count_values(dtype: str) -> None:
    fmt = FORMATS[dtype]
    kind = numbers.BITS[dtype]
    bits = np.array([0, fmt.sign, 1, fmt.sign | 1, fmt.inf], kind)
    assert numbers.ordinals(dtype, bits).tolist() == [0, 0, 1, -1, fmt.inf]
    assert numbers.quantum(dtype, np.array([1.0, 1.999, 0.0, -2.0])).tolist() == [
        -fmt.fraction,
        -fmt.fraction,
        fmt.quantum,
        1 - fmt.fraction,
    ]


FLOWS = tuple(exact._STORED)


@pytest.mark.parametrize("true", [False, True])
@pytest.mark.parametrize("flow", FLOWS)
def test_golden_is_within_its_bound_of_mpfr(flow: str, true: bool) -> None:
    import gmpy2

    rng = np.random.default_rng(0)
    x = np.float32(rng.standard_normal((60, 16)) * 2.0 ** rng.integers(-30, 3, (60, 1))).astype(np.float64)
    if flow in exact.ROWS and flow.endswith("backward") and not true:
        x = np.abs(x) / np.abs(x).sum(-1, keepdims=True) * (1 if flow.startswith("soft") else -20)
    g = np.float32(rng.standard_normal((60, 16))).astype(np.float64)
    arrays = (g, x) if flow.endswith("backward") else (x,)
    golden = exact.golden(flow, true, arrays, False)
    with gmpy2.context(precision=400):
        for r in range(60):
            for c in (0, 7):
                want = decide.mpfr(flow, true, tuple(a[r] for a in arrays), c, False)(400)
                error = abs(gmpy2.mpfr(float(golden.hi[r, c])) + gmpy2.mpfr(float(golden.lo[r, c])) - want)
                assert error <= golden.bound[r, c]


@pytest.mark.parametrize("true", [False, True])
def test_softmax_backward_where_one_product_outweighs_its_row(true: bool) -> None:
    """g_m - sum(y * g) cancels to far below its terms: the pair still decides alone, and rounds as MPFR does."""
    rng = np.random.default_rng(1)
    g = np.float32(rng.standard_normal((40, 16)) * 2.0 ** rng.integers(-100, 100, (40, 16))).astype(np.float64)
    x = np.float32(rng.standard_normal((40, 16)) * 2.0 ** rng.integers(3, 9, (40, 1))).astype(np.float64)
    if not true:
        x = np.float32(np.exp(x - x.max(-1, keepdims=True))).astype(np.float64)
        x[:10] = np.eye(16)[:10]
    golden = exact.golden("softmax_backward", true, (g, x), False)
    bits, decided = decide.rounded("FLOAT", golden, lambda i: pytest.fail("the pair is in doubt"))
    assert decided == 0
    for r in range(40):
        c = int(np.abs(x[r]).argmax()) if r % 2 else r % 16
        want = decide._decide("FLOAT", decide.mpfr("softmax_backward", true, (g[r], x[r]), c, False), False)
        assert (bits[r, c] == want) or (int(bits[r, c] | want) == 0x80000000)


def test_exact_zeros_have_their_sign() -> None:
    y, g = np.array([[1.0, 0.0, 0.0]]), np.array([[2.0, 1.0, 3.0]])
    assert np.signbit(exact.golden("softmax_backward", False, (g, y), False).hi).tolist() == [[False, True, False]]
    assert np.signbit(exact.golden("selu_backward", False, (-y[0], y[0]), False).hi).tolist() == [True, True, True]


def test_mpfr_decides_a_tie_that_the_pair_cannot() -> None:
    """A bound wide enough to doubt everything: the decided patterns are those of the narrow one."""
    x = np.linspace(-9, 9, 37)
    golden = exact.golden("log_sigmoid_backward", False, (np.ones(37), x), False)
    want, few = decide.rounded("FLOAT16", golden, lambda i: decide.mpfr("log_sigmoid_backward", False, (np.ones(37), x), i, False))
    wide = exact.Golden(golden.hi, golden.lo, np.full(37, 1.0))
    got, many = decide.rounded("FLOAT16", wide, lambda i: decide.mpfr("log_sigmoid_backward", False, (np.ones(37), x), i, False))
    assert many == 37 > few
    assert got.tolist() == want.tolist()


def test_exact_tie_goes_to_even() -> None:
    tie = np.array([2.0**-149 * 1.0])
    golden = exact.golden("log_sigmoid_backward", False, (tie, np.array([0.0])), False)
    got, decided = decide.rounded("FLOAT", golden, lambda i: decide.mpfr("log_sigmoid_backward", False, (tie, np.array([0.0])), i, False))
    assert decided == 1
    assert got.tolist() == [0]
