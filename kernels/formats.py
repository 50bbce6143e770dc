"""Number formats: how a kernel reads an element as a FLOAT and writes a FLOAT back.

Reading is exact for FLOAT, FLOAT16, BF16 and INT8. Writing rounds once, to nearest with ties to even.

Overflow modes of a FLOAT16 or BF16 result: INF/NAN keeps infinities and NaN; saturation writes ±max for an infinity or
an overflow and +0 for a NaN. FLOAT never saturates. A NaN stays a NaN in INF/NAN mode (its payload is not defined): the
BF16 conversion of 0x7F800001 must not become an infinity, nor that of 0x7FFFFFFF a negative zero.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .bits import bits_of_f32, f32_of_bits, f32_of_half_hw, fabs64, half_of_f32_hw, inline, load, store
from .machine import converts_half

F = np.float32
D = np.float64
U16 = np.uint16
U32 = np.uint32
I64 = np.int64

#: The NumPy type of a carrier, callable in a kernel as a conversion.
CARRIER_TYPES: dict[str, Any] = {
    "f64": np.float64, "f32": np.float32, "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
}  # fmt: skip


class Format(NamedTuple):
    """One dtype: its aclDataType name, bytes per element and the carrier that moves it (a key of bits.load)."""

    name: str
    size: int
    carrier: str


FORMATS = {
    f.name: f
    for f in (
        Format("DOUBLE", 8, "f64"),
        Format("FLOAT", 4, "f32"),
        Format("FLOAT16", 2, "u16"),
        Format("BF16", 2, "u16"),
        Format("INT8", 1, "i8"),
        Format("INT16", 2, "i16"),
        Format("INT32", 4, "i32"),
        Format("INT64", 8, "i64"),
        Format("UINT8", 1, "u8"),
        Format("UINT16", 2, "u16"),
        Format("UINT32", 4, "u32"),
        Format("UINT64", 8, "u64"),
        Format("BOOL", 1, "u8"),
        Format("COMPLEX64", 8, "f32"),
        Format("COMPLEX128", 16, "f64"),
    )
}


# --- FLOAT16 -------------------------------------------------------------------------------------------------------


@inline
def f32_of_half_int(h):  # type: ignore[no-untyped-def]
    """FLOAT16 bits -> FLOAT without a hardware conversion. Exact."""
    m = U32(h)
    # The exponent and fraction moved to FLOAT's place are 2^112 too small; the product is exact, subnormals included.
    x = f32_of_bits((m & U32(0x7FFF)) << U32(13)) * F(2.0**112)
    b = bits_of_f32(x)
    b = b | U32(0x7F800000) if m & U32(0x7C00) == U32(0x7C00) else b
    return f32_of_bits(b | ((m & U32(0x8000)) << U32(16)))


@inline
def half_of_f32_int(x):  # type: ignore[no-untyped-def]
    """FLOAT -> FLOAT16 bits, nearest even, without a hardware conversion."""
    b = bits_of_f32(x)
    sign = (b >> U32(16)) & U32(0x8000)
    a = b & U32(0x7FFFFFFF)
    normal = (a + U32(0xFFF) + ((a >> U32(13)) & U32(1)) - U32(0x38000000)) >> U32(13)
    # 0.5 has the last place of the smallest subnormal: the addition rounds as the format does.
    tiny = bits_of_f32(f32_of_bits(a) + F(0.5)) - U32(0x3F000000)
    r = tiny if a < U32(0x38800000) else normal
    r = U32(0x7C00) if a >= U32(0x477FF000) else r
    r = U32(0x7E00) if a > U32(0x7F800000) else r
    return U16(r | sign)


def half_codecs() -> tuple[Any, Any]:
    """(FLOAT16 bits -> FLOAT, FLOAT -> FLOAT16 bits) for the CPU that Numba compiles for."""
    if converts_half():
        return f32_of_half_hw, half_of_f32_hw
    return f32_of_half_int, half_of_f32_int


@inline
def saturate_half(x):  # type: ignore[no-untyped-def]
    """Saturation before a FLOAT -> FLOAT16 rounding: NaN -> +0, beyond ±65504 -> ±65504."""
    x = x if x == x else F(0.0)
    x = x if x < F(65504.0) else F(65504.0)
    return x if x > F(-65504.0) else F(-65504.0)


# --- BF16 ----------------------------------------------------------------------------------------------------------


@inline
def f32_of_bf16(h):  # type: ignore[no-untyped-def]
    """BF16 bits -> FLOAT. Exact."""
    return f32_of_bits(U32(h) << U32(16))


@inline
def bf16_of_f32(x):  # type: ignore[no-untyped-def]
    """FLOAT -> BF16 bits, nearest even; NaN stays NaN."""
    b = bits_of_f32(x)
    r = (b + U32(0x7FFF) + ((b >> U32(16)) & U32(1))) >> U32(16)
    return U16(r if x == x else U32(0x7FC0))


@inline
def bf16_of_wide(x):  # type: ignore[no-untyped-def]
    """bf16_of_f32 for an x whose NaNs have clear low 16 bits: the rounding then cannot carry out of a NaN.

    That holds for arithmetic on values that were BF16: a NaN is one of the operands or the CPU's default NaN.
    """
    b = bits_of_f32(x)
    return U16((b + U32(0x7FFF) + ((b >> U32(16)) & U32(1))) >> U32(16))


@inline
def bf16_of_f32_saturating(x):  # type: ignore[no-untyped-def]
    """FLOAT -> BF16 bits, nearest even; ±max for an infinity or an overflow, +0 for a NaN."""
    b = bits_of_f32(x)
    r = (b + U32(0x7FFF) + ((b >> U32(16)) & U32(1))) >> U32(16)
    r = (r & U32(0x8000)) | U32(0x7F7F) if r & U32(0x7FFF) >= U32(0x7F80) else r
    return U16(r if x == x else U32(0))


# --- readers and writers -------------------------------------------------------------------------------------------


def round_half(saturate: bool) -> Any:
    """A function FLOAT -> FLOAT that rounds to FLOAT16 and comes back: one step of native FLOAT16 arithmetic."""
    widen, narrow = half_codecs()
    if saturate:

        @inline
        def rounded(x):  # type: ignore[no-untyped-def]
            return widen(narrow(saturate_half(x)))

    else:

        @inline
        def rounded(x):  # type: ignore[no-untyped-def]
            return widen(narrow(x))

    return rounded


def reader(dtype: str, s32: str = "rint") -> Any:
    """read(p, i): element i as a FLOAT (DOUBLE for DOUBLE). Exact, except that INT32 rounds to nearest even.

    s32="trunc" rounds INT32 toward zero instead [assumed: s32_f32_mode].
    """
    get = load[FORMATS[dtype].carrier]
    if dtype in ("FLOAT", "DOUBLE"):
        return get
    if dtype == "FLOAT16":
        widen = half_codecs()[0]
    elif dtype == "BF16":
        widen = f32_of_bf16
    elif dtype == "INT32" and s32 == "trunc":
        widen = _f32_of_int32_trunc
    else:
        widen = F

    @inline
    def read(p, i):  # type: ignore[no-untyped-def]
        return widen(get(p, i))

    return read


@inline
def _f32_of_int32_trunc(v):  # type: ignore[no-untyped-def]
    exact = D(v)
    x = F(exact)
    too_far = fabs64(D(x)) > fabs64(exact)
    return f32_of_bits(bits_of_f32(x) - (U32(1) if too_far else U32(0)))


def reader_int32_through_half() -> Any:
    """read(p, i): INT32 -> FLOAT16 -> FLOAT; from 65,520 on an infinity.

    Going through FLOAT rounds once only: it is exact up to 2^24, and FLOAT16 ends far below.
    """
    get = load["i32"]
    widen, narrow = half_codecs()

    @inline
    def read(p, i):  # type: ignore[no-untyped-def]
        return widen(narrow(F(get(p, i))))

    return read


def writer(dtype: str, saturate: bool) -> Any:
    """write(p, i, x): x rounded once to FLOAT16 or BF16, or stored as it is (FLOAT, DOUBLE).

    For BF16, x must come from arithmetic on BF16 values (see bf16_of_wide).
    """
    put = store[FORMATS[dtype].carrier]
    if dtype in ("FLOAT", "DOUBLE"):
        return put
    if dtype == "BF16":
        narrow = bf16_of_f32_saturating if saturate else bf16_of_wide
    elif dtype == "FLOAT16":
        half = half_codecs()[1]
        if saturate:

            @inline
            def narrow(x):  # type: ignore[no-untyped-def]
                return half(saturate_half(x))

        else:
            narrow = half
    else:
        raise KeyError(dtype)

    @inline
    def write(p, i, x):  # type: ignore[no-untyped-def]
        put(p, i, narrow(x))

    return write


@inline
def int64_of_f64(x, low, high):  # type: ignore[no-untyped-def]
    """An integral DOUBLE as an integer clamped to [low, high]; NaN gives 0."""
    big = x >= D(2.0**63)
    small = x < D(-(2.0**63))
    r = I64(D(0.0) if big or small or x != x else x)
    r = I64(0x7FFFFFFFFFFFFFFF) if big else r
    r = I64(-0x8000000000000000) if small else r
    r = low if r < low else r
    return high if r > high else r


@inline
def round_f64(x):  # type: ignore[no-untyped-def]
    """A DOUBLE rounded to an integer, ties to even. (From 2^52 on every DOUBLE is one.)"""
    magic = D(2.0**52) if x >= D(0.0) else D(-(2.0**52))
    return (x + magic) - magic if fabs64(x) < D(2.0**52) else x


@inline
def trunc_f64(x):  # type: ignore[no-untyped-def]
    """A DOUBLE rounded to an integer toward zero."""
    r = round_f64(x)
    over = fabs64(r) > fabs64(x)
    step = D(1.0) if x >= D(0.0) else D(-1.0)
    return r - step if over else r


INT_RANGES = {
    "INT8": (-(2**7), 2**7 - 1),
    "INT16": (-(2**15), 2**15 - 1),
    "INT32": (-(2**31), 2**31 - 1),
    "INT64": (-(2**63), 2**63 - 1),
    "UINT8": (0, 2**8 - 1),
    "UINT16": (0, 2**16 - 1),
    "UINT32": (0, 2**32 - 1),
}


def int_writer(dtype: str, mode: str, through_half: bool) -> Any:
    """write(p, i, x): FLOAT or DOUBLE x to an integer dtype; clamps, NaN gives 0.

    mode: "trunc" toward zero, "rint" to nearest even. through_half: x goes through FLOAT16 (nearest even) first.
    """
    fmt = FORMATS[dtype]
    low, high = (I64(b) for b in INT_RANGES[dtype])
    put, cast = store[fmt.carrier], CARRIER_TYPES[fmt.carrier]
    integral = trunc_f64 if mode == "trunc" else round_f64
    half = round_half(False)

    if through_half:

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, cast(int64_of_f64(integral(D(half(x))), low, high)))

    else:

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, cast(int64_of_f64(integral(D(x)), low, high)))

    return write
