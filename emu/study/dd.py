"""Double-double arithmetic on arrays: about 2^-100 of relative error from pairs of float64, without MPFR.

A value is an unevaluated sum hi + lo with |lo| <= ulp(hi) / 2. Sums and products are the error-free transformations of
Knuth and Dekker; exp reduces by 64ths of ln 2 and adds a Taylor polynomial. Bounds are stated with each function and
held against MPFR by the tests. Only finite values of ordinary size are meant to come here (about 2^-900 to 2^900):
the caller treats infinities and NaN apart.
"""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

F64 = NDArray[np.float64]

#: Relative error of exp, and of log1p: several times what a count of the roundings gives.
EXP_BOUND = 2.0**-96
LOG1P_BOUND = 2.0**-90
#: Relative error of one addition (of the result), multiplication or division.
STEP_BOUND = 2.0**-101


class DD(NamedTuple):
    """hi + lo, arrays of one shape."""

    hi: F64
    lo: F64

    def __neg__(self) -> DD:
        return DD(-self.hi, -self.lo)


def two_sum(a: F64, b: F64) -> DD:
    """a + b exactly (Knuth)."""
    s = a + b
    t = s - a
    return DD(s, (a - (s - t)) + (b - t))


def _quick(a: F64, b: F64) -> DD:
    """a + b exactly, for |a| >= |b| (Dekker)."""
    s = a + b
    return DD(s, b - (s - a))


def _split(a: F64) -> tuple[F64, F64]:
    t = a * 134217729.0  # 2^27 + 1
    high = t - (t - a)
    return high, a - high


def two_prod(a: F64, b: F64) -> DD:
    """a * b exactly (Dekker; NumPy has no fused multiply-add)."""
    p = a * b
    ah, al = _split(a)
    bh, bl = _split(b)
    return DD(p, ((ah * bh - p) + ah * bl + al * bh) + al * bl)


def of(a: F64) -> DD:
    """A float64 as a pair."""
    return DD(a, np.zeros_like(a))


def add(a: DD, b: DD) -> DD:
    """a + b, relative error 2^-103 of the result even under cancellation (accurate form)."""
    s, t = two_sum(a.hi, b.hi), two_sum(a.lo, b.lo)
    u = _quick(s.hi, s.lo + t.hi)
    return _quick(u.hi, u.lo + t.lo)


def mul(a: DD, b: DD) -> DD:
    """a * b, relative error below 2^-101."""
    p = two_prod(a.hi, b.hi)
    return _quick(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi))


def scale(a: DD, b: F64) -> DD:
    """a * b for a float64 b."""
    p = two_prod(a.hi, b)
    return _quick(p.hi, p.lo + a.lo * b)


def div(a: DD, b: DD) -> DD:
    """a / b, relative error below 2^-100: two quotients and their remainders."""
    q = a.hi / b.hi
    r = add(a, -scale(b, q))
    q2 = r.hi / b.hi
    r = add(r, -scale(b, q2))
    head = _quick(q, q2)
    return _quick(head.hi, head.lo + r.hi / b.hi)


def pair(x: Fraction) -> tuple[float, float]:
    """The pair nearest to an exact constant."""
    hi = x.numerator / x.denominator
    rest = x - Fraction(hi)
    return hi, rest.numerator / rest.denominator


def constant(x: Fraction, like: F64) -> DD:
    hi, lo = pair(x)
    return DD(np.full_like(like, hi), np.full_like(like, lo))


@cache
def _tables() -> tuple[F64, F64, tuple[float, float, float], tuple[tuple[float, float], ...]]:
    """2^(j/64) as pairs, ln2/64 in three parts whose products with small integers are exact, and 1/n!."""
    with localcontext() as context:
        context.prec = 80
        ln2 = Decimal(2).ln()
        powers = [pair(Fraction((ln2 * j / 64).exp())) for j in range(64)]
        step = Fraction(ln2) / 64
    first = Fraction(int(step * 2**39), 2**39)
    second = Fraction(int((step - first) * 2**75), 2**75)
    parts = (float(first), float(second), float(step - first - second))
    factorial, inverses = 1, []
    for n in range(1, 6):
        factorial *= n
        inverses.append(pair(Fraction(1, factorial)))
    return np.array([p[0] for p in powers]), np.array([p[1] for p in powers]), parts, tuple(inverses)


def _reduced(x: DD) -> tuple[NDArray[np.int64], DD]:
    """x = k * ln2/64 + r with |r| at most about ln2/128; returns k and e^r - 1."""
    _, _, (l1, l2, l3), inverses = _tables()
    kf = np.rint(x.hi * (1.0 / (l1 + l2)))
    r0 = two_sum(x.hi - kf * l1, -(kf * l2))
    r = _quick(r0.hi, r0.lo + (x.lo - kf * l3))
    h = r.hi
    # Terms from r^6/6! on are below 2^-54 of 1: one float64 each is enough.
    tail = h * (1 / 720 + h * (1 / 5040 + h * (1 / 40320 + h * (1 / 362880 + h * (1 / 3628800 + h / 39916800)))))
    s = two_sum(np.full_like(h, inverses[4][0]), tail)
    p = DD(s.hi, s.lo + inverses[4][1])
    for hi, lo in reversed(inverses[:4]):
        p = mul(p, r)
        s = two_sum(np.full_like(h, hi), p.hi)
        p = _quick(s.hi, s.lo + (p.lo + lo))
    return kf.astype(np.int64), mul(p, r)


def _assemble(k: NDArray[np.int64], p: DD) -> tuple[DD, F64]:
    """2^(k/64) * (1 + p) without its power of two, and the power of two."""
    high, low, _, _ = _tables()
    j = k & 63
    t = DD(high[j], low[j])
    power = (((k >> 6) + 1023) << 52).view(np.float64)
    return add(t, mul(t, p)), power


def exp(x: DD) -> DD:
    """e^x, relative error below EXP_BOUND for |x| <= 530.

    Beyond, the exponent is held at ±530: a value of the right sign that no dtype but DOUBLE tells from 0 or infinity.
    """
    x = DD(np.clip(x.hi, -530.0, 530.0), np.where(np.abs(x.hi) > 530.0, 0.0, x.lo))
    k, p = _reduced(x)
    m, power = _assemble(k, p)
    return DD(m.hi * power, m.lo * power)


def expm1(x: DD) -> DD:
    """e^x - 1, relative error below 2^-86: no cancellation where |x| < ln2/128."""
    x = DD(np.clip(x.hi, -530.0, 530.0), np.where(np.abs(x.hi) > 530.0, 0.0, x.lo))
    k, p = _reduced(x)
    m, power = _assemble(k, p)
    full = add(DD(m.hi * power, m.lo * power), of(np.full_like(m.hi, -1.0)))
    small = k == 0
    return DD(np.where(small, p.hi, full.hi), np.where(small, p.lo, full.lo))


def log1p(u: DD) -> DD:
    """ln(1 + u) for u >= 0, relative error below LOG1P_BOUND: a series in u/(2+u) for small u, one Newton step else."""
    one = of(np.ones_like(u.hi))
    w = add(one, u)
    start = of(-np.log1p(u.hi))
    newton = add(-start, add(mul(w, exp(start)), -one))
    s = div(u, add(w, one))
    q = mul(s, s)
    h = q.hi
    tail = h * (1 / 13 + h * (1 / 15 + h * (1 / 17 + h * (1 / 19 + h * (1 / 21 + h / 23)))))
    t = two_sum(np.full_like(h, pair(Fraction(1, 11))[0]), tail)
    p = DD(t.hi, t.lo + pair(Fraction(1, 11))[1])
    for n in (9, 7, 5, 3, 1):
        p = add(mul(p, q), constant(Fraction(1, n), h))
    series = mul(scale(s, np.full_like(h, 2.0)), p)
    small = u.hi < 0.0625
    return DD(np.where(small, series.hi, newton.hi), np.where(small, series.lo, newton.lo))


def row_sum(x: DD) -> DD:
    """The sum along the last axis, kept with length 1, by halving; relative error of each addition 2^-103."""
    while x.hi.shape[-1] > 1:
        n = x.hi.shape[-1]
        half = n // 2
        folded = add(DD(x.hi[..., :half], x.lo[..., :half]), DD(x.hi[..., half : 2 * half], x.lo[..., half : 2 * half]))
        if n % 2:
            folded = DD(np.concatenate([folded.hi, x.hi[..., -1:]], -1), np.concatenate([folded.lo, x.lo[..., -1:]], -1))
        x = folded
    return x
