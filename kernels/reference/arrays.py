"""Arithmetic on arrays with the same results as the scalar form, for sweeps over billions of inputs.

Why each operation is right: FLOAT add, sub, mul and div are NumPy's float32, which is the host's IEEE arithmetic. A
FLOAT16 step is a float32 operation rounded once more by integers, which is innocuous because 24 bits are at least 2 *
11 + 2. exp, log and log1p come from float64 with an error bound; where the bound straddles a rounding boundary, and
only there, the scalar form decides. A host that flushes subnormals or does not round to nearest is refused. Arguments
broadcast.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from emu_kernels.assumptions import chosen
from emu_kernels.reference.arith import Arith
from emu_kernels.reference.formats import BF16, FLOAT, FLOAT16, FORMATS, INTEGERS, convert, saturates
from emu_kernels.variant import Variant
from numpy.typing import NDArray

F32 = NDArray[np.float32]
Bits = NDArray[Any]

BITS_DTYPE: dict[str, type[np.generic]] = {
    "FLOAT16": np.uint16,
    "BF16": np.uint16,
    "FLOAT": np.uint32,
    "DOUBLE": np.uint64,
    "INT8": np.int8,
    "INT32": np.int32,
}


class HostError(RuntimeError):
    """The host's arithmetic is not IEEE at the moment."""


def check_host() -> None:
    """Raise HostError if the host flushes subnormals or does not round to nearest, ties to even."""
    tiny = np.array([2.0**-149, 2.0**-127], np.float32)
    # Two ties: rounding up changes the first sum, rounding down or toward zero the second.
    sums = np.array([1.0, 1.0], np.float32) + np.array([2.0**-24, 3 * 2.0**-24], np.float32)
    if (tiny * np.float32(1.0) == 0).any() or (sums != np.array([1.0, 1.0 + 2.0**-22], np.float32)).any():
        raise HostError("the host flushes subnormals or does not round to nearest: reset MXCSR (or FPCR) first")


@cache
def _half_values() -> F32:
    """The 65,536 values of FLOAT16 as float32, from the scalar conversion."""
    values: F32 = np.array([convert(FLOAT16, FLOAT, b) for b in range(1 << 16)], np.uint32).view(np.float32)
    return values


def widen(dtype: str, bits: Bits) -> F32:
    """Return FLOAT16, BF16 or FLOAT patterns as float32 values, exactly."""
    if dtype == "FLOAT16":
        values: F32 = _half_values()[bits]
        return values
    wide: Bits = bits.astype(np.uint32) << np.uint32(16) if dtype == "BF16" else bits
    out: F32 = wide.view(np.float32)
    return out


def _specials(magnitude: Bits, rounded: Bits, inf: int, saturate: bool) -> tuple[Bits, Bits]:
    """Apply the overflow rule to rounded magnitudes; return them and where the source was NaN."""
    top = inf - 1 if saturate else inf
    return np.where(rounded >= inf, np.uint32(top), rounded), magnitude > np.uint32(0x7F800000)


def to_half(x: F32, saturate: bool) -> Bits:
    """Round float32 values to FLOAT16 patterns, ties to even, subnormals kept; NaN gives 0x7E00, saturating +0."""
    u = np.ascontiguousarray(x).view(np.uint32)
    magnitude = u & np.uint32(0x7FFFFFFF)
    tie = (magnitude >> np.uint32(13)) & np.uint32(1)
    normal = ((magnitude + np.uint32(0xFFF) + tie) >> np.uint32(13)) - np.uint32(112 << 10)
    small = magnitude < np.uint32(0x38800000)  # 2**-14
    # Scaling by a power of two is exact, and rint rounds ties to even: the count of 2**-24 steps.
    steps = np.rint(np.where(small, magnitude, np.uint32(0)).view(np.float32) * np.float32(2.0**24)).astype(np.uint32)
    rounded, nan = _specials(magnitude, np.where(small, steps, normal), FLOAT16.inf, saturate)
    signed = rounded | ((u >> np.uint32(16)) & np.uint32(0x8000))
    out: Bits = np.where(nan, np.uint32(0 if saturate else FLOAT16.nan), signed).astype(np.uint16)
    return out


def to_bf16(x: F32, saturate: bool) -> Bits:
    """Round float32 values to BF16 patterns, ties to even, subnormals kept; NaN gives 0x7FC0, saturating +0."""
    u = np.ascontiguousarray(x).view(np.uint32)
    magnitude = u & np.uint32(0x7FFFFFFF)
    tie = (magnitude >> np.uint32(16)) & np.uint32(1)
    rounded, nan = _specials(magnitude, (magnitude + np.uint32(0x7FFF) + tie) >> np.uint32(16), BF16.inf, saturate)
    signed = rounded | ((u >> np.uint32(16)) & np.uint32(0x8000))
    out: Bits = np.where(nan, np.uint32(0 if saturate else BF16.nan), signed).astype(np.uint16)
    return out


def narrow(x: F32, v: Variant) -> Bits:
    """Round a FLOAT result to the variant's float dtype, with its overflow mode."""
    if v.dtype == "FLOAT":
        return np.ascontiguousarray(x).view(np.uint32)
    sat = saturates(FORMATS[v.dtype], v.arch, v.saturate)
    return to_half(x, sat) if v.dtype == "FLOAT16" else to_bf16(x, sat)


def to_integer(x: F32, v: Variant, rint: bool, dtype: str | None = None) -> Bits:
    """Round to INT8 or INT32, clamped; NaN gives 0."""
    low, high = INTEGERS[dtype or v.dtype]
    wide = x.astype(np.float64)
    whole = np.rint(wide) if rint else np.trunc(wide)
    out: Bits = np.nan_to_num(np.clip(whole, low, high), nan=0.0).astype(BITS_DTYPE[dtype or v.dtype])
    return out


def const(text: str) -> np.float32:
    """A decimal constant rounded once to FLOAT."""
    bits = Arith(FLOAT, Variant("dav_2201", "FLOAT", False)).const(text)
    value: np.float32 = np.uint32(bits).view(np.float32)
    return value


def flushed(x: F32, flush: bool) -> F32:
    """Replace subnormals by zeros of their sign."""
    return np.where(np.abs(x) < np.float32(2.0**-126), np.copysign(np.float32(0), x), x) if flush else x


def flushes(v: Variant) -> bool:
    """True if exp, log, log1p and div flush FLOAT subnormals on the variant's architecture."""
    return Arith(FLOAT, v).flush


def elementary(name: str, x: F32, v: Variant, flush: bool | None = None) -> F32:
    """Correctly rounded exp, log or log1p of float32 values, special values as the scalar form.

    float64 results are taken to be within 2**-48 of the truth, several times what NumPy states; values that round
    differently at the two ends of that interval go to the scalar form one by one.
    """
    flush = flushes(v) if flush is None else flush
    x = flushed(np.ascontiguousarray(x, np.float32), flush)
    with np.errstate(all="ignore"):
        wide = getattr(np, name)(x.astype(np.float64))
        low, high = (wide * (1.0 - 2.0**-48)).astype(np.float32), (wide * (1.0 + 2.0**-48)).astype(np.float32)
    doubtful = np.flatnonzero((low != high) & ~np.isnan(wide))
    if doubtful.size:
        exact = getattr(Arith(FLOAT, v, flush=False), name)
        patterns = [exact(int(b)) for b in x.ravel().view(np.uint32)[doubtful]]
        low.ravel()[doubtful] = np.array(patterns, np.uint32).view(np.float32)
    return flushed(low, flush)


def div(a: F32, b: F32, flush: bool) -> F32:
    """a / b, correctly rounded, with the flush of dav_3510 if asked."""
    return flushed(flushed(a, flush) / flushed(b, flush), flush)


def load(bits: Bits, v: Variant) -> F32:
    """Bring patterns of `v.dtype`, or its integers, into the compute format, as FLOAT values."""
    if v.dtype == "INT8":
        return bits.astype(np.float32)
    if v.dtype != "INT32":
        return widen(v.dtype, bits)
    if v.arch == "dav_3510" and v.numerics == "device":
        # Exact up to 2**24; beyond, FLOAT16 overflows in any case: one rounding.
        return widen("FLOAT16", to_half(bits.astype(np.float32), v.saturate))
    return from_int32(bits, v)


def from_int32(bits: Bits, v: Variant) -> F32:
    nearest = bits.astype(np.float32)
    if chosen(v.assume, "s32_f32_mode") == "rint":
        return nearest
    beyond = np.abs(nearest.astype(np.float64)) > np.abs(bits.astype(np.float64))
    return np.where(beyond, np.nextafter(nearest, np.float32(0)), nearest)
