"""Arithmetic that is exact and then rounded once, on bit patterns.

Sums and products are exact in integers; a quotient is exact as far as rounding can tell; exp, log and log1p come from
MPFR as an interval that is narrowed until both ends round to the same pattern, so they are correctly rounded.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import NamedTuple

from emu_kernels.assumptions import chosen
from emu_kernels.reference.formats import (
    INTEGERS,
    NAN,
    Exact,
    Format,
    Rounding,
    decimal,
    decode,
    encode,
    from_int,
    int_rounding,
    is_nan,
    saturates,
    to_int,
    to_integral,
)
from emu_kernels.variant import Variant


class Step(NamedTuple):
    """One traced value: what was computed, its bit pattern, its decimal, and the format or dtype of the pattern."""

    name: str
    bits: int
    decimal: str
    format: str


Trace = list[Step]


def _mpfr() -> ModuleType:
    """Import gmpy2, which only exp, log and log1p need; it has no type information."""
    try:
        return import_module("gmpy2")
    except ImportError as error:
        raise ImportError("the reference's exp and log need gmpy2: pip install gmpy2") from error


def _align(a: Exact, b: Exact) -> tuple[int, int, int]:
    """Return two finite values as signed integers of a common exponent."""
    exp = min(a.exp, b.exp)
    left, right = a.mant << (a.exp - exp), b.mant << (b.exp - exp)
    return (-left if a.sign else left), (-right if b.sign else right), exp


def exact_add(a: Exact, b: Exact) -> Exact:
    """a + b. inf - inf is NaN; x - x is +0; only (-0) + (-0) is -0."""
    if a.kind == "nan" or b.kind == "nan" or (a.kind == b.kind == "inf" and a.sign != b.sign):
        return NAN
    if a.kind == "inf" or b.kind == "inf":
        return a if a.kind == "inf" else b
    left, right, exp = _align(a, b)
    total = left + right
    if total == 0:
        return Exact("finite", a.sign & b.sign if left == 0 else 0, 0, 0)
    return Exact("finite", int(total < 0), abs(total), exp)


def exact_mul(a: Exact, b: Exact) -> Exact:
    """a * b. 0 * inf is NaN; the sign of a zero is the product of the signs."""
    if a.kind == "nan" or b.kind == "nan":
        return NAN
    sign = a.sign ^ b.sign
    if a.kind == "inf" or b.kind == "inf":
        zero = (a.kind == "finite" and a.mant == 0) or (b.kind == "finite" and b.mant == 0)
        return NAN if zero else Exact("inf", sign)
    return Exact("finite", sign, a.mant * b.mant, a.exp + b.exp)


def odd_div(a: Exact, b: Exact, bits: int) -> Exact:
    """a / b cut to more than `bits` bits, with the last bit set if the rest is not zero: any later rounding is right.

    0/0 and inf/inf are NaN, x/0 is an infinity, x/inf a zero.
    """
    if a.kind == "nan" or b.kind == "nan" or a.kind == b.kind == "inf":
        return NAN
    sign = a.sign ^ b.sign
    if a.kind == "inf":
        return Exact("inf", sign)
    if b.kind == "inf":
        return Exact("finite", sign, 0, 0)
    if b.mant == 0:
        return NAN if a.mant == 0 else Exact("inf", sign)
    shift = bits + 2 + b.mant.bit_length()
    quotient, rest = divmod(a.mant << shift, b.mant)
    return Exact("finite", sign, quotient << 1 | int(rest != 0), a.exp - b.exp - shift - 1)


def _bounds(name: str, x: Exact, precision: int) -> tuple[Exact, Exact]:
    """Return an interval of `precision` bits around exp, log or log1p of a finite non-zero value."""
    gmpy2 = _mpfr()
    width = max(2, x.mant.bit_length())
    exact = gmpy2.context(precision=width)
    argument = gmpy2.mpfr(x.mant, width)
    argument = exact.mul_2exp(argument, x.exp) if x.exp >= 0 else exact.div_2exp(argument, -x.exp)
    if x.sign:
        argument = -argument
    ends = []
    for direction in (gmpy2.RoundDown, gmpy2.RoundUp):
        value = getattr(gmpy2.context(precision=precision, round=direction), name)(argument)
        mant, exp = value.as_mantissa_exp()
        ends.append(Exact("finite", int(mant < 0), abs(int(mant)), int(exp)))
    return ends[0], ends[1]


class Arith:
    """The operations of one compute format on one variant; every result is rounded once and may be traced.

    Under saturation each FLOAT16 result that would be an infinity or overflows is the largest finite value of its
    sign, and one that would be NaN is +0; an infinity among the operands is a real one. `name` labels the step in
    `trace`.
    """

    def __init__(self, fmt: Format, v: Variant, trace: Trace | None = None, flush: bool | None = None) -> None:
        """`flush` overrides the architecture's rule for subnormals in exp, log, log1p and div."""
        self.fmt, self.v, self.trace = fmt, v, trace
        self.saturate = saturates(fmt, v.arch, v.saturate)
        if flush is None:
            old = v.arch in ("dav_1001", "dav_2002", "dav_3002")
            flush = v.arch == "dav_3510" or (old and chosen(v.assume, "exp_subnormal") == "flushed")
        self.flush = flush and fmt.name == "FLOAT"

    def note(self, name: str | None, bits: int) -> int:
        """Record a step and return its bits."""
        if name is not None and self.trace is not None:
            self.trace.append(Step(name, bits, decimal(self.fmt, bits), self.fmt.name))
        return bits

    def const(self, text: str) -> int:
        """Round a decimal constant to the format: the text is taken as a ratio of integers, so it is rounded once."""
        whole, _, digits = text.partition(".")
        numerator = Exact("finite", 0, int(whole + digits), 0)
        return encode(self.fmt, odd_div(numerator, Exact("finite", 0, 10 ** len(digits), 0), self.fmt.bits))

    def _round(self, x: Exact, name: str | None) -> int:
        return self.note(name, encode(self.fmt, x, "RINT", self.saturate))

    def add(self, a: int, b: int, name: str | None = None) -> int:
        """a + b; subnormals are kept on every architecture."""
        return self._round(exact_add(decode(self.fmt, a), decode(self.fmt, b)), name)

    def neg(self, a: int) -> int:
        """-a: the sign bit is inverted, also of a zero and of a NaN. Not an arithmetic step: nothing saturates."""
        return a ^ self.fmt.sign

    def abs(self, a: int) -> int:
        """|a|: the sign bit is cleared."""
        return a & ~self.fmt.sign

    def sub(self, a: int, b: int, name: str | None = None) -> int:
        """a - b, which is a + (-b)."""
        return self.add(a, self.neg(b), name)

    def mul(self, a: int, b: int, name: str | None = None) -> int:
        """a * b; subnormals are kept on every architecture."""
        return self._round(exact_mul(decode(self.fmt, a), decode(self.fmt, b)), name)

    def fma(self, a: int, b: int, c: int, name: str | None = None) -> int:
        """a * b + c with one rounding."""
        product = exact_mul(decode(self.fmt, a), decode(self.fmt, b))
        return self._round(exact_add(product, decode(self.fmt, c)), name)

    def _flushed(self, bits: int) -> int:
        """Replace a subnormal by the zero of its sign where the architecture does."""
        subnormal = 0 < self.abs(bits) < 1 << self.fmt.fraction
        return bits & self.fmt.sign if self.flush and subnormal else bits

    def div(self, a: int, b: int, name: str | None = None) -> int:
        """a / b, correctly rounded; on dav_3510 subnormal operands and results in FLOAT are zeros of their sign."""
        x, y = decode(self.fmt, self._flushed(a)), decode(self.fmt, self._flushed(b))
        return self.note(name, self._flushed(encode(self.fmt, odd_div(x, y, self.fmt.bits), "RINT", self.saturate)))

    def _elementary(self, function: str, x: Exact) -> int:
        """Round a value that no finite number of bits holds: widen the interval's precision until both ends agree."""
        precision = self.fmt.fraction + 40
        while True:
            low, high = (encode(self.fmt, end) for end in _bounds(function, x, precision))
            if low == high:
                return low
            precision *= 2

    def _apply(self, special: Callable[[Exact], Exact | None], function: str, a: int, name: str | None) -> int:
        x = decode(self.fmt, self._flushed(a))
        known = NAN if x.kind == "nan" else special(x)
        bits = self._elementary(function, x) if known is None else encode(self.fmt, known)
        return self.note(name, self._flushed(bits))

    def exp(self, a: int, name: str | None = None) -> int:
        """e**a, correctly rounded: exp(±0) is 1, exp(-inf) +0, exp(+inf) +inf; overflow gives +inf."""

        def special(x: Exact) -> Exact | None:
            if x.kind == "inf":
                return Exact("finite", 0, 0, 0) if x.sign else x
            if x.mant == 0:
                return Exact("finite", 0, 1, 0)
            if x.exp + x.mant.bit_length() > self.fmt.exponent + 4:
                # |a| is at least 2**(exponent + 4), far past overflow and underflow: any value out there rounds alike.
                return Exact("finite", 0, 1, self.fmt.quantum - 9 if x.sign else self.fmt.emax + 9)
            return None

        return self._apply(special, "exp", a, name)

    def log(self, a: int, name: str | None = None) -> int:
        """ln(a), correctly rounded: log(±0) is -inf, log of a negative value NaN, log(1) +0, log(+inf) +inf."""

        def special(x: Exact) -> Exact | None:
            if x.kind == "finite" and x.mant == 0:
                return Exact("inf", 1)
            if x.sign:
                return NAN
            if x.kind == "inf":
                return x
            one = x.mant.bit_length() + x.exp == 1 and x.mant & (x.mant - 1) == 0
            return Exact("finite", 0, 0, 0) if one else None

        return self._apply(special, "log", a, name)

    def log1p(self, a: int, name: str | None = None) -> int:
        """ln(1 + a), correctly rounded: log1p(±0) is ±0, log1p(-1) -inf, below -1 NaN, log1p(+inf) +inf."""

        def special(x: Exact) -> Exact | None:
            if x.kind == "inf":
                return NAN if x.sign else x
            if x.mant == 0:
                return x
            above = exact_add(x, Exact("finite", 0, 1, 0))
            if above.mant == 0:
                return Exact("inf", 1)
            return NAN if above.sign else None

        return self._apply(special, "log1p", a, name)

    def lt(self, a: int, b: int) -> bool:
        """a < b: False if either is NaN; -0 equals +0."""
        x, y = decode(self.fmt, a), decode(self.fmt, b)
        if x.kind == "nan" or y.kind == "nan":
            return False
        return _key(x, y)[0] < _key(x, y)[1]

    def le(self, a: int, b: int) -> bool:
        """a <= b: False if either is NaN; -0 equals +0."""
        either = is_nan(self.fmt, a) or is_nan(self.fmt, b)
        return not either and not self.lt(b, a)

    def max(self, a: int, b: int) -> int:
        """The larger value, unchanged; a NaN operand is the result. Compare and select never saturate."""
        if is_nan(self.fmt, a):
            return a
        return b if is_nan(self.fmt, b) or self.lt(a, b) else a

    def min(self, a: int, b: int) -> int:
        """The smaller value, unchanged; a NaN operand is the result."""
        if is_nan(self.fmt, a):
            return a
        return b if is_nan(self.fmt, b) or self.lt(b, a) else a

    def ceil(self, a: int, name: str | None = None) -> int:
        """Round a finite value up to an integer; a zero result has the sign of a."""
        x = decode(self.fmt, a)
        return self._round(Exact("finite", x.sign, abs(to_integral(x, "CEIL")), 0), name)

    def from_format(self, src: Format, bits: int, name: str | None = None) -> int:
        """Convert a value of another format: exact when widening, else one RINT with the variant's overflow mode."""
        return self._round(decode(src, bits), name) if src is not self.fmt else self.note(name, bits)

    def from_int(self, value: int, name: str | None = None) -> int:
        """Convert an integer: INT8 is exact, INT32 rounds to nearest even and may overflow FLOAT16."""
        mode: Rounding = "RINT"
        if self.fmt.name == "FLOAT" and chosen(self.v.assume, "s32_f32_mode") == "trunc":
            mode = "TRUNC"
        return self.note(name, from_int(self.fmt, value, mode, self.saturate))

    def to_int(self, bits: int, dtype: str, name: str | None = None, mode: Rounding | None = None) -> int:
        """Convert to INT8 or INT32 by the architecture's rounding (`mode` overrides it), clamped; NaN gives 0."""
        low, high = INTEGERS[dtype]
        value = to_int(self.fmt, bits, low, high, mode or int_rounding(self.v.arch))
        if name is not None and self.trace is not None:
            self.trace.append(Step(name, value, str(value), dtype))
        return value


def _key(x: Exact, y: Exact) -> tuple[int, int]:
    """Return two integers that compare as the two values do."""
    if x.kind == "inf" or y.kind == "inf":
        return tuple((1 - 2 * e.sign) if e.kind == "inf" else 0 for e in (x, y))  # type: ignore[return-value]
    left, right, _ = _align(x, y)
    return left, right
