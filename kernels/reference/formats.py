"""Number formats as integers: bit patterns to exact values and back.

A value is taken apart into sign, integer mantissa and power of two, so nothing here depends on the host's floating-
point unit, its rounding mode or its flush-to-zero bits. Every conversion rounds once, from the exact value.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

Rounding = Literal["RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "NONE"]
ROUNDINGS: tuple[Rounding, ...] = ("RINT", "FLOOR", "CEIL", "ROUND", "TRUNC", "ODD", "NONE")


class Format(NamedTuple):
    """A binary interchange format: one sign bit, `exponent` exponent bits, `fraction` stored fraction bits."""

    name: str
    exponent: int
    fraction: int

    @property
    def bits(self) -> int:
        """Width of the pattern."""
        return 1 + self.exponent + self.fraction

    @property
    def inf(self) -> int:
        """Pattern of +inf."""
        return ((1 << self.exponent) - 1) << self.fraction

    @property
    def max(self) -> int:
        """Pattern of the largest finite value."""
        return self.inf - 1

    @property
    def nan(self) -> int:
        """The NaN that this reference writes: positive, quiet, payload 0. Any NaN equals any NaN."""
        return self.inf | (1 << (self.fraction - 1))

    @property
    def sign(self) -> int:
        """Pattern of -0.0, which is the sign bit."""
        return 1 << (self.bits - 1)

    @property
    def emax(self) -> int:
        """Exponent of the largest binade: 15 for FLOAT16, 127 for BF16 and FLOAT, 1023 for DOUBLE."""
        return (1 << (self.exponent - 1)) - 1

    @property
    def quantum(self) -> int:
        """Exponent of the smallest subnormal: -24, -133, -149, -1074."""
        return 1 - self.emax - self.fraction


FLOAT16 = Format("FLOAT16", 5, 10)
BF16 = Format("BF16", 8, 7)
FLOAT = Format("FLOAT", 8, 23)
DOUBLE = Format("DOUBLE", 11, 52)
FORMATS = {f.name: f for f in (FLOAT16, BF16, FLOAT, DOUBLE)}

# Name -> (smallest, largest) of the integer dtypes.
INTEGERS = {f"INT{n}": (-(1 << (n - 1)), (1 << (n - 1)) - 1) for n in (8, 16, 32, 64)} | {
    f"UINT{n}": (0, (1 << n) - 1) for n in (8, 16, 32, 64)
}


class Exact(NamedTuple):
    """An exact value: (-1)**sign * mant * 2**exp, or an infinity, or a NaN. A zero has mant 0 and keeps its sign."""

    kind: Literal["finite", "inf", "nan"]
    sign: int = 0
    mant: int = 0
    exp: int = 0


NAN = Exact("nan")


def is_nan(fmt: Format, bits: int) -> bool:
    """True if the pattern is a NaN of any payload and sign."""
    return bits & (fmt.sign - 1) > fmt.inf


def decode(fmt: Format, bits: int) -> Exact:
    """Return the exact value of a pattern. Nothing is lost but the payload and the sign of a NaN."""
    sign = bits >> (fmt.bits - 1)
    field = (bits & (fmt.sign - 1)) >> fmt.fraction
    fraction = bits & ((1 << fmt.fraction) - 1)
    if field == (1 << fmt.exponent) - 1:
        return NAN if fraction else Exact("inf", sign)
    if field == 0:
        return Exact("finite", sign, fraction, fmt.quantum)
    return Exact("finite", sign, fraction | (1 << fmt.fraction), fmt.quantum + field - 1)


def _round_mantissa(sign: int, mant: int, shift: int, mode: Rounding) -> int:
    """Return mant / 2**shift rounded to an integer; `sign` matters to FLOOR and CEIL."""
    if shift <= 0:
        return mant << -shift
    kept, rest = mant >> shift, mant & ((1 << shift) - 1)
    if rest == 0:
        return kept
    half = 1 << (shift - 1)
    if mode in ("RINT", "NONE"):
        return kept + (rest > half or (rest == half and kept & 1 == 1))
    if mode == "ROUND":
        return kept + (rest >= half)
    if mode == "FLOOR":
        return kept + sign
    if mode == "CEIL":
        return kept + 1 - sign
    return kept | 1 if mode == "ODD" else kept


def encode(fmt: Format, x: Exact, mode: Rounding = "RINT", saturate: bool = False) -> int:
    """Round an exact value once and return its pattern; subnormal results are kept.

    `saturate` False: overflow gives an infinity of the sign, in every rounding mode; a NaN stays a NaN.
    `saturate` True: overflow and infinities give the largest finite value of the sign, a NaN gives +0.
    A zero result has the sign of the value.
    """
    if x.kind == "nan":
        return 0 if saturate else fmt.nan
    top = fmt.max if saturate else fmt.inf
    sign = fmt.sign if x.sign else 0
    if x.kind == "inf":
        return sign | top
    if x.mant == 0:
        return sign
    leading = x.exp + x.mant.bit_length() - 1
    lsb = max(leading - fmt.fraction, fmt.quantum)
    # A carry out of the mantissa lands in the exponent field, which is what the next binade needs.
    field = (lsb - fmt.quantum) << fmt.fraction
    rounded = field + _round_mantissa(x.sign, x.mant, lsb - x.exp, mode)
    return sign | (top if rounded >= fmt.inf else rounded)


def convert(src: Format, dst: Format, bits: int, mode: Rounding = "RINT", saturate: bool = False) -> int:
    """Convert a pattern of `src` to `dst` with one rounding; see `encode` for NaN, infinities and overflow."""
    return encode(dst, decode(src, bits), mode, saturate)


def from_int(fmt: Format, value: int, mode: Rounding = "RINT", saturate: bool = False) -> int:
    """Convert an integer to a format with one rounding; 0 gives +0."""
    return encode(fmt, Exact("finite", int(value < 0), abs(value), 0), mode, saturate)


def to_integral(x: Exact, mode: Rounding) -> int:
    """Round a finite exact value to an integer."""
    magnitude = _round_mantissa(x.sign, x.mant, -x.exp, mode)
    return -magnitude if x.sign else magnitude


def to_int(fmt: Format, bits: int, low: int, high: int, mode: Rounding) -> int:
    """Convert to an integer of [low, high]: out-of-range values and infinities clamp, a NaN gives 0."""
    x = decode(fmt, bits)
    if x.kind == "nan":
        return 0
    if x.kind == "inf":
        return low if x.sign else high
    return min(max(to_integral(x, mode), low), high)


def int_rounding(arch: str) -> Rounding:
    """Rounding of float to integer: to nearest even on dav_3510, toward zero on every other architecture."""
    return "RINT" if arch == "dav_3510" else "TRUNC"


def saturates(fmt: Format, arch: str, saturate: bool) -> bool:
    """True if results in `fmt` saturate under the stream's overflow mode.

    FLOAT16 does on every architecture that has the mode, BF16 only on dav_2201, FLOAT and DOUBLE never.
    """
    return saturate and (fmt is FLOAT16 or (fmt is BF16 and arch == "dav_2201"))


def cast(src: Format, dst: str, bits: int, arch: str, saturate: bool) -> int:
    """Convert a float result to an `out` of aclDataType name `dst`; return the pattern of `out`.

    DOUBLE is exact. COMPLEX64 and COMPLEX128 carry the real part in the low half and +0 in the high half. FLOAT16,
    BF16 and FLOAT round once. Integers follow the architecture's rule (a negative result is returned as two's
    complement); BOOL is 0 for ±0 and 1 for all else, NaN included. The same dtype is a copy. Raises LookupError for
    any other target.
    """
    if dst == src.name:
        return bits
    if dst in FORMATS:
        fmt = FORMATS[dst]
        return convert(src, fmt, bits, "RINT", saturates(fmt, arch, saturate))
    if dst in ("COMPLEX64", "COMPLEX128"):
        return convert(src, FLOAT if dst == "COMPLEX64" else DOUBLE, bits)
    if dst == "BOOL":
        return int(bits & (src.sign - 1) != 0)
    if dst in INTEGERS:
        low, high = INTEGERS[dst]
        return to_int(src, bits, low, high, int_rounding(arch)) & ((1 << (high - low).bit_length()) - 1)
    targets = (*FORMATS, "COMPLEX64", "COMPLEX128", *INTEGERS, "BOOL")
    raise LookupError(f"no cast from {src.name} to {dst}; known targets: {', '.join(targets)}")


def to_float(fmt: Format, bits: int) -> float:
    """Return the value as a Python float, exactly; NaN loses its payload."""
    x = decode(fmt, bits)
    if x.kind == "nan":
        return math.nan
    magnitude = math.inf if x.kind == "inf" else math.ldexp(x.mant, x.exp)
    return -magnitude if x.sign else magnitude


def decimal(fmt: Format, bits: int) -> str:
    """Return the shortest decimal that names the value as a DOUBLE, or inf, -inf, nan."""
    return repr(to_float(fmt, bits))
