"""exp and log of DOUBLE for Softmax and LogSoftmax, in double-double arithmetic.

Both carry an error of about 2^-95 of the result and round once: at most 0.5 + 2^-40 ulp, so a result is correctly
rounded unless the exact value lies nearer than that to a tie. Subnormals are kept. NaN gives NaN; exp(-inf) = +0;
log(±0) = -inf, log(x < 0) = NaN.
"""

from __future__ import annotations

import numpy as np

from .bits import bits_of_f64, f64_of_bits, fma64, inline
from .elementary import LOG2E, MAGIC

D = np.float64
U64 = np.uint64
I64 = np.int64

#: ln 2 in three parts; the first two have 32 bits, so that their products with k are exact.
LN2A = D(float.fromhex("0x1.62e42fee00000p-1"))
LN2B = D(float.fromhex("0x1.a39ef35600000p-33"))
LN2C = D(float.fromhex("0x1.93c7673007e5fp-65"))
SQRT_HALF = U64(0x3FE6A09E667F3BCD)


@inline
def two_sum(a, b):  # type: ignore[no-untyped-def]
    """a + b exactly, as (rounded sum, error)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


@inline
def quick_sum(a, b):  # type: ignore[no-untyped-def]
    """two_sum for |a| >= |b|."""
    s = a + b
    return s, b - (s - a)


@inline
def dd_add(ah, al, bh, bl):  # type: ignore[no-untyped-def]
    s, e = two_sum(ah, bh)
    t, f = two_sum(al, bl)
    s, e = quick_sum(s, e + t)
    return quick_sum(s, e + f)


@inline
def dd_mul(ah, al, bh, bl):  # type: ignore[no-untyped-def]
    p = ah * bh
    e = fma64(ah, bh, -p) + (ah * bl + al * bh)
    return quick_sum(p, e)


@inline
def exp64(x):  # type: ignore[no-untyped-def]
    """exp of a DOUBLE: at most 0.5 + 2^-40 ulp, subnormal results included."""
    if x != x:
        return x
    x = D(710.0) if x > D(710.0) else x
    x = D(-746.0) if x < D(-746.0) else x
    k = fma64(x, LOG2E, MAGIC) - MAGIC
    # x - k*LN2A is exact; the rest goes into a second DOUBLE.
    h, e = two_sum(fma64(-k, LN2A, x), -k * LN2B)
    h, e = quick_sum(h, e - k * LN2C)
    # exp(r) - 1 = ((exp(r/256) - 1) + 1)^256 - 1: a short series, then eight squarings of 1 + v as v*v + 2*v.
    sh, sl = h * D(2.0**-8), e * D(2.0**-8)
    tail = D(1.0 / 120.0) + sh * (D(1.0 / 720.0) + sh * (D(1.0 / 5040.0) + sh * (D(1.0 / 40320.0) + sh * D(1.0 / 362880.0))))
    ph, pl = D(0.0), D(0.0)
    ph, pl = dd_mul(sh, sl, tail, D(0.0))
    for n in (24.0, 6.0, 2.0, 1.0):
        c = D(1.0) / n
        ph, pl = dd_add(c, fma64(-c, n, D(1.0)) / n, ph, pl)
        ph, pl = dd_mul(sh, sl, ph, pl)
    for _ in range(8):
        qh, ql = dd_mul(ph, pl, ph, pl)
        ph, pl = dd_add(ph + ph, pl + pl, qh, ql)
    h, e = dd_add(D(1.0), D(0.0), ph, pl)
    if k >= D(-1021.0):
        # Two factors: 2^1024 is no DOUBLE.
        half = I64(k) >> 1
        one = f64_of_bits(U64(half + 1023) << U64(52))
        two = f64_of_bits(U64(I64(k) - half + 1023) << U64(52))
        return h * one * two
    # Subnormal result: its bits are the integer nearest (h + e) * 2^(k + 1074).
    scale = f64_of_bits(U64(I64(k) + 1074 + 1023) << U64(52))
    v = h * scale
    n = v
    if v < D(2.0**52):
        n = (v + D(2.0**52)) - D(2.0**52)
        rest = v - n
        if rest == D(0.5) and e > D(0.0):
            n += D(1.0)
        if rest == D(-0.5) and e < D(0.0):
            n -= D(1.0)
    return f64_of_bits(U64(n))


@inline
def log64(x):  # type: ignore[no-untyped-def]
    """Natural logarithm of a DOUBLE: at most 0.5 + 2^-40 ulp."""
    if not x > D(0.0):
        return D(-np.inf) if x == D(0.0) else D(np.nan)
    if x == D(np.inf):
        return x
    k = I64(0)
    if x < D(2.0**-1022):
        x *= D(2.0**54)
        k = I64(-54)
    b = bits_of_f64(x)
    shift = I64(b - SQRT_HALF) >> 52
    k += shift
    m = f64_of_bits(b - (U64(shift) << U64(52)))
    # log m = 2*atanh(s), s = (m - 1)/(m + 1).
    f = m - D(1.0)
    ch, cl = two_sum(m, D(1.0))
    q = f / ch
    sh, sl = quick_sum(q, fma64(-q, cl, fma64(-q, ch, f)) / ch)
    zh, zl = dd_mul(sh, sl, sh, sl)
    tail = D(0.0)
    for i in range(21, 10, -1):
        tail = tail * zh + D(1.0) / D(2 * i + 1)
    ph, pl = tail, D(0.0)
    for i in range(10, -1, -1):
        n = D(2 * i + 1)
        c = D(1.0) / n
        ph, pl = dd_mul(ph, pl, zh, zl)
        ph, pl = dd_add(c, fma64(-c, n, D(1.0)) / n, ph, pl)
    ph, pl = dd_mul(ph, pl, sh + sh, sl + sl)
    d = D(k)
    h, e = two_sum(d * LN2A, ph)
    h, e2 = two_sum(h, d * LN2B)
    return h + (e + e2 + (d * LN2C + pl))


@inline
def div64(a, b):  # type: ignore[no-untyped-def]
    """DOUBLE division, one rounding."""
    return a / b
