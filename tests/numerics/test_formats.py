"""Every conversion of the reference against something that it shares no code with."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import gmpy2
import ml_dtypes
import numpy as np
import pytest
from emu_kernels.reference import formats
from emu_kernels.reference.formats import BF16, DOUBLE, FLOAT, FLOAT16, ROUNDINGS, Exact, Format, Rounding

PATTERNS = range(1 << 16)


def name(parameter: object) -> str:
    """Short test ids."""
    return str(getattr(parameter, "name", getattr(parameter, "__name__", parameter)))


SPECIAL_FLOATS = (
    *(0x00000000, 0x80000000, 0x00000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0xFF800000),
    *(0x7F800001, 0x7FFFFFFF, 0xFF800001, 0xFFFFFFFF, 0x7F80FFFF, 0x7FC00000),
)


@cache
def exact(fmt: Format, bits: int) -> Fraction | None:
    """Decode by the definition of the format, in rationals; None for infinities and NaN."""
    field = bits >> fmt.fraction & ((1 << fmt.exponent) - 1)
    if field == (1 << fmt.exponent) - 1:
        return None
    bias = (1 << (fmt.exponent - 1)) - 1
    whole = Fraction(bits & ((1 << fmt.fraction) - 1), 1 << fmt.fraction) + (field > 0)
    value = whole * Fraction(2) ** (max(field, 1) - bias)
    return -value if bits >> (fmt.bits - 1) else value


@pytest.mark.parametrize(("fmt", "dtype"), [(FLOAT16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=name)
def test_decode_every_pattern(fmt: Format, dtype: type) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    with np.errstate(invalid="ignore"):  # ml_dtypes raises the flag for its NaNs
        theirs = bits.view(dtype).astype(np.float64)
    ours = np.array([formats.to_float(fmt, b) for b in PATTERNS])
    assert np.array_equal(theirs, ours, equal_nan=True)
    assert np.array_equal(np.signbit(theirs[~np.isnan(theirs)]), np.signbit(ours[~np.isnan(ours)]))
    assert int(np.isnan(ours).sum()) == 2 * ((1 << fmt.fraction) - 1)
    for b in range(0, 1 << 16, 7):
        x = formats.decode(fmt, b)
        value = exact(fmt, b)
        assert (x.kind == "finite") == (value is not None)
        if value is not None:
            assert (1 - 2 * x.sign) * x.mant * Fraction(2) ** x.exp == value


@cache
def widened(fmt: Format) -> list[int]:
    """FLOAT patterns of every pattern of a 16-bit format."""
    return [formats.convert(fmt, FLOAT, b) for b in PATTERNS]


@pytest.mark.parametrize("fmt", [FLOAT16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("saturate", [False, True])
def test_every_pattern_survives_widening_and_narrowing(fmt: Format, mode: Rounding, saturate: bool) -> None:
    """A value of the format is not changed by any rounding mode; saturation replaces infinities and NaN only."""
    for b, wide in enumerate(widened(fmt)):
        back = formats.convert(FLOAT, fmt, wide, mode, saturate)
        if formats.is_nan(fmt, b):
            assert back == 0 if saturate else formats.is_nan(fmt, back)
        elif b & 0x7FFF == fmt.inf and saturate:
            assert back == (b & 0x8000 | fmt.max)
        else:
            assert back == b


def boundaries(fmt: Format) -> list[int]:
    """FLOAT patterns around every 37th rounding boundary of a 16-bit format: a value, its midpoint, and their neighbours."""
    shift = 23 - fmt.fraction
    base = np.array([formats.convert(fmt, FLOAT, b) for b in range(0, fmt.inf + 1, 37)], np.uint32)
    half = np.uint32(1 << (shift - 1))
    near = np.concatenate([base, base + np.uint32(1), base - np.uint32(1), base + half, base + half + np.uint32(1), base - half])
    return [int(b) for b in np.unique(np.concatenate([near, near | np.uint32(0x80000000)]))] + list(SPECIAL_FLOATS)


@cache
def magnitudes(fmt: Format) -> np.ndarray:
    """All finite magnitudes in order, and the first that overflows."""
    return np.array([float(exact(fmt, b) or 0) for b in range(fmt.inf)] + [2.0 ** (fmt.emax + 1)])


@cache
def sources_of(src: Format, dst: Format) -> tuple[list[int], np.ndarray]:
    """Patterns and values to narrow: every pattern of 16 bits; of FLOAT the neighbourhood of every boundary tried."""
    cases = boundaries(dst) if src is FLOAT else list(PATTERNS)
    return cases, np.array([formats.to_float(src, b) for b in cases])


def by_definition(fmt: Format, sources: np.ndarray, mode: Rounding, saturate: bool) -> np.ndarray:
    """Narrowed patterns of float64 values that hold FLOAT values, from the two neighbours in a table of the format.

    Overflow means that the rounded value, were exponents unlimited, exceeds the largest finite value. NaN gives `fmt.nan`.
    """
    table = magnitudes(fmt)
    negative, a = np.signbit(sources), np.abs(np.nan_to_num(sources, nan=0.0))
    low = np.searchsorted(table[:-1], a, side="right") - 1
    # Both are exact: a and its lower neighbour differ by less than one step.
    rest, half = a - table[low], (table[low + 1] - table[low]) / 2
    odd = low & 1 == 1
    up = {
        "RINT": (rest > half) | ((rest == half) & odd),
        "ROUND": rest >= half,
        "FLOOR": (rest > 0) & negative,
        "CEIL": (rest > 0) & ~negative,
        "TRUNC": np.zeros_like(odd),
        "ODD": (rest > 0) & ~odd,
    }["RINT" if mode == "NONE" else mode]
    rounded = np.where(a >= table[-1], fmt.inf, low + up)
    if saturate:
        rounded = np.minimum(rounded, fmt.max)
    signed = rounded | np.where(negative, fmt.sign, 0)
    return np.where(np.isnan(sources), 0 if saturate else fmt.nan, signed)


@pytest.mark.parametrize("mode", ROUNDINGS)
@pytest.mark.parametrize("saturate", [False, True])
@pytest.mark.parametrize(("src", "dst"), [(FLOAT, FLOAT16), (FLOAT, BF16), (BF16, FLOAT16), (FLOAT16, BF16)], ids=name)
def test_narrowing_by_definition(src: Format, dst: Format, mode: Rounding, saturate: bool) -> None:
    cases, sources = sources_of(src, dst)
    want = by_definition(dst, sources, mode, saturate)
    got = np.array([formats.convert(src, dst, b, mode, saturate) for b in cases])
    assert np.flatnonzero(got != want).tolist() == []


@pytest.mark.parametrize(("fmt", "dtype"), [(FLOAT16, np.float16), (BF16, ml_dtypes.bfloat16)], ids=name)
def test_narrowing_to_nearest_against_numpy_and_ml_dtypes(fmt: Format, dtype: type) -> None:
    sources = np.array(boundaries(fmt), np.uint32)
    with np.errstate(over="ignore", invalid="ignore"):
        theirs = sources.view(np.float32).astype(dtype).view(np.uint16)
    for source, their in zip(sources.tolist(), theirs.tolist(), strict=True):
        got = formats.convert(FLOAT, fmt, source)
        assert got == their or (formats.is_nan(fmt, got) and formats.is_nan(fmt, their)), hex(source)


MPFR_MODES: dict[Rounding, int] = {
    "RINT": gmpy2.RoundToNearest,
    "FLOOR": gmpy2.RoundDown,
    "CEIL": gmpy2.RoundUp,
    "TRUNC": gmpy2.RoundToZero,
}


@pytest.mark.parametrize("mode", MPFR_MODES)
@pytest.mark.parametrize("fmt", [FLOAT16, BF16, FLOAT], ids=lambda f: f.name)
def test_narrowing_from_double_against_mpfr(fmt: Format, mode: Rounding) -> None:
    """MPFR emulates the format, subnormals included. Overflow is left out: there the modes are ours, not IEEE's."""
    rng = np.random.default_rng(5)
    exponents = rng.integers(-fmt.emax - fmt.fraction - 3, fmt.emax, 4000)
    values = np.ldexp(rng.uniform(1, 2, 4000), exponents) * rng.choice([-1, 1], 4000)
    # MPFR counts exponents for a mantissa in [1/2, 1).
    context = gmpy2.context(precision=fmt.fraction + 1, round=MPFR_MODES[mode], emax=fmt.emax + 1, emin=fmt.quantum + 1, subnormalize=True)
    for value in values.tolist():
        with gmpy2.context(context):
            want = float(gmpy2.mpfr(value))
        bits = int(np.float64(value).view(np.uint64))
        got = formats.to_float(fmt, formats.convert(DOUBLE, fmt, bits, mode))
        assert got == want, (value.hex(), mode)


def test_double_rounding_traps() -> None:
    """Through FLOAT these would land on the tie and go to even; from DOUBLE directly they go up."""
    for value, fmt, want in (
        (1 + 2**-8 + 2**-40, BF16, 1.0078125),
        (1 + 2**-11 + 2**-40, FLOAT16, 1 + 2**-10),
        (2**-25 * (1 + 2**-40), FLOAT16, 2**-24),
        (1 + 2**-24 + 2**-52, FLOAT, 1 + 2**-23),
    ):
        bits = int(np.float64(value).view(np.uint64))
        assert formats.to_float(fmt, formats.convert(DOUBLE, fmt, bits)) == want
    once = formats.convert(DOUBLE, FLOAT, int(np.float64(1 + 2**-8 + 2**-40).view(np.uint64)))
    assert formats.to_float(BF16, formats.convert(FLOAT, BF16, once)) == 1.0


@pytest.mark.parametrize("bits", [0x7F800001, 0x7FFFFFFF, 0xFF800001, 0x7F80FFFF, 0xFFFFFFFF])
def test_nan_never_becomes_an_infinity(bits: int) -> None:
    for fmt in (BF16, FLOAT16):
        for mode in ROUNDINGS:
            assert formats.is_nan(fmt, formats.convert(FLOAT, fmt, bits, mode))
            assert formats.convert(FLOAT, fmt, bits, mode, saturate=True) == 0


def test_published_limits() -> None:
    assert [f.max for f in (FLOAT16, BF16, FLOAT)] == [0x7BFF, 0x7F7F, 0x7F7FFFFF]
    assert formats.to_float(FLOAT16, FLOAT16.max) == 65504.0
    assert [formats.to_float(f, 1) for f in (FLOAT16, BF16, FLOAT, DOUBLE)] == [2.0**-24, 2.0**-133, 2.0**-149, 5e-324]
    assert formats.convert(FLOAT, FLOAT16, 0x477FEFFF) == 0x7BFF  # just below 65520
    assert formats.convert(FLOAT, FLOAT16, 0x477FF000) == 0x7C00  # 65520 is the tie to 65536
    assert formats.convert(FLOAT, FLOAT16, 0x477FF000, saturate=True) == 0x7BFF


def test_integers_to_float() -> None:
    for value in range(-128, 128):
        assert formats.to_float(FLOAT16, formats.from_int(FLOAT16, value)) == value
    rng = np.random.default_rng(3)
    values = rng.integers(-(2**31), 2**31, 20000) >> rng.integers(0, 31, 20000)
    wanted = values.astype(np.int32).astype(np.float32).view(np.uint32)
    for value, want in zip(values.tolist(), wanted.tolist(), strict=True):
        assert formats.from_int(FLOAT, value) == want
    for value, inf_nan, saturated in ((65519, 0x7BFF, 0x7BFF), (65520, 0x7C00, 0x7BFF), (-(2**31), 0xFC00, 0xFBFF)):
        assert formats.from_int(FLOAT16, value) == inf_nan
        assert formats.from_int(FLOAT16, value, saturate=True) == saturated
    assert [formats.to_float(FLOAT16, formats.from_int(FLOAT16, v)) for v in (2049, 2051)] == [2048, 2052]


@pytest.mark.parametrize("fmt", [FLOAT16, BF16], ids=lambda f: f.name)
@pytest.mark.parametrize("target", ["INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"])
def test_every_pattern_to_integers(fmt: Format, target: str) -> None:
    low, high = formats.INTEGERS[target]
    for b in PATTERNS:
        value = exact(fmt, b)
        x = formats.decode(fmt, b)
        limit = 0 if x.kind == "nan" else low if x.sign else high
        for mode, rounded in (
            ("TRUNC", None if value is None else int(value)),
            ("RINT", None if value is None else round(value)),
            ("FLOOR", None if value is None else math.floor(value)),
            ("CEIL", None if value is None else math.ceil(value)),
            ("ROUND", None if value is None else int(abs(value) + Fraction(1, 2)) * (-1 if value < 0 else 1)),
            ("ODD", None if value is None else math.floor(value) | (value != math.floor(value))),
        ):
            want = limit if rounded is None else min(max(rounded, low), high)
            assert formats.to_int(fmt, b, low, high, mode) == want  # type: ignore[arg-type]


def test_casts_of_results() -> None:
    minus = formats.from_int(FLOAT16, -3)
    assert formats.cast(FLOAT16, "INT32", minus, "dav_2201", False) == 2**32 - 3
    assert formats.cast(FLOAT16, "UINT8", minus, "dav_2201", False) == 0
    assert formats.cast(FLOAT16, "COMPLEX64", minus, "dav_2201", False) == 0xC0400000
    assert [formats.cast(FLOAT16, "BOOL", b, "dav_2201", False) for b in (0, 0x8000, 1, 0x7E00)] == [0, 0, 1, 1]
    half = 0x4100  # 2.5
    assert formats.cast(FLOAT16, "INT8", half, "dav_2201", False) == 2
    assert formats.cast(FLOAT16, "INT8", half + 1, "dav_3510", False) == 3
    assert formats.cast(FLOAT, "BF16", 0x7F800000, "dav_2201", True) == 0x7F7F
    assert formats.cast(DOUBLE, "FLOAT", 0x7FE0000000000000, "dav_2201", True) == 0x7F800000  # FLOAT never saturates
    with pytest.raises(LookupError, match="known targets: FLOAT16, BF16"):
        formats.cast(FLOAT, "STRING", 0, "dav_2201", False)


def test_round_to_odd_makes_a_second_rounding_innocuous() -> None:
    rng = np.random.default_rng(8)
    for value in np.ldexp(rng.uniform(1, 2, 3000), rng.integers(-20, 15, 3000)).tolist():
        bits = int(np.float64(value).view(np.uint64))
        odd = formats.convert(DOUBLE, FLOAT, bits, "ODD")
        assert formats.convert(FLOAT, FLOAT16, odd) == formats.convert(DOUBLE, FLOAT16, bits)


def test_encode_keeps_the_sign_of_zero() -> None:
    assert formats.encode(FLOAT16, Exact("finite", 1, 0, 0)) == 0x8000
    assert formats.encode(FLOAT16, Exact("finite", 1, 1, -200)) == 0x8000
