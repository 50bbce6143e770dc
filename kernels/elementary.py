"""exp, log, log1p and tanh of FLOAT, correctly rounded (nearest even) for every input; they vectorise.

Each works in DOUBLE with an error far below half an ulp of FLOAT and rounds once at the end, so subnormal results are
right as well. Inputs whose exact result lies too near a tie for one DOUBLE are patched by value. "Correctly rounded for
every input" is a statement about these very operations in this order: after any change, run the exhaustive tests.

How it was established, in tests/numerics/test_kernels_elementary.py: exp at all 2^32 inputs and log at all positive ones
against the C library's DOUBLE functions, trusted to 64 ulp only, with MPFR deciding what lies nearer a tie than that; of
the negative inputs and NaNs of log every 257th. log1p and tanh went through every input once in the same way; the tests
keep every 251st and all within 2^-50 of a tie. On dav_3510 the same values are flushed after the rounding, and inputs
before; the tests compare exp's flushed and unflushed form at every result around 2^-126.

exp(-inf) = +0, exp(+inf) = +inf, log(±0) = -inf, log(x < 0) = NaN, log1p(±0) = ±0, tanh(±0) = ±0; NaN gives NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import bits_of_f32, bits_of_f64, constant, f32_of_bits, f64_of_bits, fabs32, fabs64, fma64, inline, load, scratch, store

F = np.float32
D = np.float64
U32 = np.uint32
U64 = np.uint64
I64 = np.int64

INF = F(np.inf)
NAN = F(np.nan)

#: x + MAGIC has the integer nearest x in its low bits: rounding without a conversion (AVX2 has none for 64 bits).
MAGIC = D(1.5 * 2.0**52)
LOG2E = D(float.fromhex("0x1.71547652b82fep+0"))
#: ln 2 in two parts; k * LN2H is exact for the k that occur.
LN2H = D(float.fromhex("0x1.62e42fef80000p-1"))
LN2L = D(float.fromhex("0x1.1cf79abc9e3b4p-36"))

#: exp(r) on |r| <= ln2/2, fitted at Chebyshev nodes with the first two coefficients exact; error 2^-49.6.
EXP = tuple(
    float.fromhex(c)
    for c in (
        "0x1.0p-1", "0x1.5555555553b7dp-3", "0x1.5555555554cb8p-5", "0x1.1111111c4601dp-7", "0x1.6c16c1738eecdp-10",
        "0x1.a019adab1f2acp-13", "0x1.a019c9aa8e719p-16", "0x1.72c721e47f62cp-19", "0x1.288039f276faap-22",
    )
)  # fmt: skip
#: (exp(r) - 1 - r - r²/2) / r³ on the same interval; error 2^-55.
T3, T4, T5, T6, T7, T8, T9, T10, T11, T12 = (
    D(float.fromhex(c))
    for c in (
        "0x1.5555555555556p-3", "0x1.5555555555555p-5", "0x1.11111111109b3p-7", "0x1.6c16c16c167e1p-10",
        "0x1.a01a01a7c41d5p-13", "0x1.a01a01a47b054p-16", "0x1.71de0dae63bb3p-19", "0x1.27e4e1f48534fp-22",
        "0x1.af38a9b0ec855p-26", "0x1.1f66df7fca49fp-29",
    )
)  # fmt: skip
#: (atanh(s)/s - 1)/s² as a polynomial in s², for s = (m-1)/(m+1), m in [sqrt(1/2), sqrt(2)]; log error 2^-57.
L0, L1, L2, L3, L4, L5, L6 = (
    D(float.fromhex(c))
    for c in (
        "0x1.5555555555558p-2", "0x1.99999999952d7p-3", "0x1.2492492df281ap-3", "0x1.c71c62e3f11e6p-4",
        "0x1.7462b51cb66b1p-4", "0x1.39fe51a7c18f9p-4", "0x1.2b5900de53b32p-4",
    )
)  # fmt: skip


_HIGH, _LOW, _ONE = constant(89.0), constant(-104.0), constant(1.0)
_MAGIC, _LOG2E, _LN2H, _LN2L = constant(MAGIC), constant(LOG2E), constant(LN2H), constant(LN2L)
_E2, _E3, _E4, _E5, _E6, _E7, _E8, _E9, _E10 = (constant(c) for c in EXP)


@inline
def _exp_reduce(x):  # type: ignore[no-untyped-def]
    """(t, r) with exp(x) = 2^k * exp(r); k is t - MAGIC, |r| <= ln2/2."""
    d = D(x)
    # Beyond these the result is inf or 0 whatever x is; the comparisons let a NaN through.
    d = _HIGH() if _HIGH() < d else d
    d = _LOW() if _LOW() > d else d
    t = fma64(d, _LOG2E(), _MAGIC())
    k = t - _MAGIC()
    return t, fma64(-k, _LN2L(), fma64(-k, _LN2H(), d))


@inline
def _exp_finish(t, r):  # type: ignore[no-untyped-def]
    # 1 + r + r²*(...) by powers of r², for a short chain of dependent operations.
    z = r * r
    low = fma64(fma64(_E5(), r, _E4()), z, fma64(_E3(), r, _E2()))
    high = fma64(fma64(_E10(), z, fma64(_E9(), r, _E8())), z, fma64(_E7(), r, _E6()))
    p = fma64(z, fma64(high, z * z, low), r) + _ONE()
    # 2^k goes straight into the exponent: exp stays far inside the range of DOUBLE.
    return F(f64_of_bits(bits_of_f64(p) + (bits_of_f64(t) << U64(52))))


@inline
def exp32(x):  # type: ignore[no-untyped-def]
    """exp of a FLOAT, correctly rounded, subnormal results kept."""
    t, r = _exp_reduce(x)
    return _exp_finish(t, r)


#: Most elements that exp_tile takes.
EXP_TILE = 128
_reduced_t, _reduced_r = scratch(8 * EXP_TILE), scratch(8 * EXP_TILE)
_get, _put, _get64, _put64 = load["f32"], store["f32"], load["f64"], store["f64"]


@inline
def exp_tile(x, n):  # type: ignore[no-untyped-def]
    """exp32 of x[i] in place for i < n, in two loops.

    The two short chains of dependent operations keep more elements in flight than one long chain: a third faster.
    """
    ts, rs = _reduced_t(), _reduced_r()
    for i in range(n):
        t, r = _exp_reduce(_get(x, i))
        _put64(ts, i, t)
        _put64(rs, i, r)
    for i in range(n):
        _put(x, i, _exp_finish(_get64(ts, i), _get64(rs, i)))


@inline
def _split(w):  # type: ignore[no-untyped-def]
    """w > 0 as 2^k * m with m in [sqrt(1/2), sqrt(2)); (k, m)."""
    b = bits_of_f64(w)
    # The exponent that w/sqrt(1/2) has, as an integer in the low bits of a DOUBLE: no int-to-double conversion.
    e = (b - U64(0x3FE6A09E667F3BCD)) >> U64(52)
    # e is k modulo 4096; adding 2048 first keeps it positive.
    e = (e + U64(2048)) & U64(4095)
    k = f64_of_bits(e | U64(0x4330000000000000)) - D(2.0**52 + 2048.0)
    m = f64_of_bits(b - ((e - U64(2048)) << U64(52)))
    return k, m


@inline
def _log_of(k, f, m1):  # type: ignore[no-untyped-def]
    """k*ln2 + log(1 + f) in DOUBLE; m1 = f + 2."""
    s = f / m1
    z = s * s
    p = fma64(L6, z, L5)
    p = fma64(p, z, L4)
    p = fma64(p, z, L3)
    p = fma64(p, z, L2)
    p = fma64(p, z, L1)
    p = fma64(p, z, L0)
    s2 = s + s
    return fma64(k, LN2H, s2) + fma64(k, LN2L, s2 * z * p)


@inline
def log32(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a FLOAT, correctly rounded, subnormal inputs taken at their value."""
    k, m = _split(D(x))
    y = F(_log_of(k, m - D(1.0), m + D(1.0)))
    # Two results lie within 2^-54 of a tie.
    b = bits_of_f32(x)
    y = f32_of_bits(U32(0x418F034B)) if b == U32(0x4C5D65A5) else y
    y = f32_of_bits(U32(0x4254D1F9)) if b == U32(0x65D890D3) else y
    y = x if x == INF else y
    y = -INF if x == F(0.0) else y
    return y if x >= F(0.0) else NAN


@inline
def log1p32(x):  # type: ignore[no-untyped-def]
    """log(1 + x) of a FLOAT, correctly rounded. -1 gives -inf, less gives NaN, ±0 stays."""
    d = D(x)
    w = d + D(1.0)
    k, m = _split(w)
    # Without scaling, f is x itself: 1 + x would lose the small ones.
    f = d if k == D(0.0) else m - D(1.0)
    y = F(_log_of(k, f, f + D(2.0)))
    # Seven results lie within 2^-53 of a tie.
    b = bits_of_f32(x)
    y = f32_of_bits(U32(0x353FFFFF)) if b == U32(0x35400003) else y
    y = f32_of_bits(U32(0x370FFFF3)) if b == U32(0x3710001B) else y
    y = f32_of_bits(U32(0x3ECDEEE1)) if b == U32(0x3EFD81AD) else y
    y = f32_of_bits(U32(0x4254D1F9)) if b == U32(0x65D890D3) else y
    y = f32_of_bits(U32(0xB5400001)) if b == U32(0xB53FFFFD) else y
    y = f32_of_bits(U32(0xB710000D)) if b == U32(0xB70FFFE5) else y
    y = f32_of_bits(U32(0xBB0EF0A5)) if b == U32(0xBB0EC8C4) else y
    y = x if x == INF else y
    y = -INF if x == F(-1.0) else y
    y = x if x == F(0.0) else y
    return y if x >= F(-1.0) else NAN


@inline
def tanh32(x):  # type: ignore[no-untyped-def]
    """Hyperbolic tangent of a FLOAT, correctly rounded; ±0 stays, ±inf gives ±1."""
    a = fabs64(D(x))
    a = D(10.0) if a > D(10.0) else a
    a = a + a
    t = fma64(a, LOG2E, MAGIC)
    k = t - MAGIC
    r = fma64(-k, LN2L, fma64(-k, LN2H, a))
    p = fma64(T12, r, T11)
    p = fma64(p, r, T10)
    p = fma64(p, r, T9)
    p = fma64(p, r, T8)
    p = fma64(p, r, T7)
    p = fma64(p, r, T6)
    p = fma64(p, r, T5)
    p = fma64(p, r, T4)
    p = fma64(p, r, T3)
    # q = exp(r) - 1, then e = exp(2a) - 1 = 2^k*q + (2^k - 1): nothing cancels as k >= 0.
    r2 = r * r
    q = r + fma64(r2, D(0.5), r2 * r * p)
    scale = f64_of_bits((bits_of_f64(t) + U64(1023)) << U64(52))
    e = fma64(scale, q, scale - D(1.0))
    y = fabs32(F(e / (e + D(2.0))))
    y = f32_of_bits(bits_of_f32(y) | (bits_of_f32(x) & U32(0x80000000)))
    return y if x == x else NAN


@inline
def flush32(x):  # type: ignore[no-untyped-def]
    """A subnormal FLOAT as zero of the same sign; everything else as it is."""
    b = bits_of_f32(x)
    small = b & U32(0x7F800000) == U32(0)
    return f32_of_bits(b & U32(0x80000000) if small else b)


@inline
def flush_positive(x):  # type: ignore[no-untyped-def]
    """flush32 for an x without a sign: half the work."""
    return F(0.0) if x < F(2.0**-126) else x


@inline
def div32(a, b):  # type: ignore[no-untyped-def]
    """FLOAT division, one rounding, subnormals kept."""
    return a / b


def _flushed1(function: Any) -> Any:
    @inline
    def flushed(x):  # type: ignore[no-untyped-def]
        return flush32(function(flush32(x)))

    return flushed


@inline
def exp32_flush(x):  # type: ignore[no-untyped-def]
    """exp with subnormal results written as +0. (A subnormal input gives 1 either way.)"""
    return flush_positive(exp32(x))


@inline
def log32_flush(x):  # type: ignore[no-untyped-def]
    """log with subnormal inputs read as ±0, which gives -inf. (No result is subnormal.)"""
    return log32(flush32(x))


@inline
def div32_flush(a, b):  # type: ignore[no-untyped-def]
    """Division with subnormal operands read as, and a subnormal quotient written as, zero of the same sign."""
    return flush32(flush32(a) / flush32(b))


@inline
def exp_tile_flush(x, n):  # type: ignore[no-untyped-def]
    """exp_tile with subnormal results written as +0."""
    ts, rs = _reduced_t(), _reduced_r()
    for i in range(n):
        t, r = _exp_reduce(_get(x, i))
        _put64(ts, i, t)
        _put64(rs, i, r)
    for i in range(n):
        _put(x, i, flush_positive(_exp_finish(_get64(ts, i), _get64(rs, i))))


class Elementary:
    """The functions of one subnormal rule: exp, log, log1p, tanh (FLOAT -> FLOAT), div; exp over a tile."""

    def __init__(self, flush: bool) -> None:
        self.exp = exp32_flush if flush else exp32
        self.exp_tile = exp_tile_flush if flush else exp_tile
        self.log = log32_flush if flush else log32
        self.log1p = _flushed1(log1p32) if flush else log1p32
        self.tanh = _flushed1(tanh32) if flush else tanh32
        self.div = div32_flush if flush else div32
