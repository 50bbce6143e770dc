"""Formats as a study sees them: values of bit patterns, order, ulp, and one rounding from a double-double."""

from __future__ import annotations

from typing import Any

import numpy as np
from emu_kernels.reference.formats import FORMATS, INTEGERS
from numpy.typing import NDArray

from emu.study.dd import DD, F64

Bits = NDArray[Any]

BITS: dict[str, Any] = {
    "FLOAT16": np.uint16, "BF16": np.uint16, "FLOAT": np.uint32, "DOUBLE": np.uint64, "INT8": np.int8, "INT32": np.int32,
}  # fmt: skip

_OTHER_NAMES = {
    "FP16": "FLOAT16", "HALF": "FLOAT16", "FLOAT32": "FLOAT", "FP32": "FLOAT", "FLOAT64": "DOUBLE", "FP64": "DOUBLE", "BFLOAT16": "BF16",
}  # fmt: skip


def dtype_named(text: str) -> str:
    """The aclDataType that a text means, in either case and by its other names, as fp16; an unknown one in upper case."""
    return _OTHER_NAMES.get(text.upper(), text.upper())


def is_float(dtype: str) -> bool:
    return dtype in FORMATS


def values(dtype: str, bits: Bits) -> F64:
    """The values of patterns (of integers: themselves), exactly."""
    narrow: NDArray[Any] = bits
    if dtype == "FLOAT16":
        narrow = bits.view(np.float16)
    elif dtype == "BF16":
        narrow = (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif dtype == "FLOAT":
        narrow = bits.view(np.float32)
    elif dtype == "DOUBLE":
        narrow = bits.view(np.float64)
    with np.errstate(invalid="ignore"):  # a signalling NaN
        out: F64 = narrow.astype(np.float64)
    return out


def ordinals(dtype: str, bits: Bits) -> NDArray[np.int64]:
    """Consecutive numbers of consecutive values: negative for negative values, 0 for both zeros. NaN lie beyond inf."""
    if not is_float(dtype):
        return bits.astype(np.int64)
    fmt = FORMATS[dtype]
    magnitude = (bits & bits.dtype.type(fmt.sign - 1)).astype(np.int64)
    out: NDArray[np.int64] = np.where(bits & bits.dtype.type(fmt.sign), -magnitude, magnitude)
    return out


def quantum(dtype: str, x: F64) -> NDArray[np.int64]:
    """log2 of the distance between neighbours of the dtype in the binade of x; that of the subnormals below.

    This is the ulp of Goldberg's definition, taken at the reference value; integers: 0.
    """
    if not is_float(dtype):
        return np.zeros(x.shape, np.int64)
    fmt = FORMATS[dtype]
    _, exponent = np.frexp(x)
    return np.where(x == 0, fmt.quantum, np.maximum(exponent.astype(np.int64) - 1 - fmt.fraction, fmt.quantum))


def from_values(dtype: str, x: F64) -> Bits:
    """Patterns of values rounded once to the dtype, ties to even; integers: nearest, clamped, NaN 0."""
    if dtype == "DOUBLE":
        return x.view(np.uint64)
    if dtype == "FLOAT":
        with np.errstate(over="ignore", invalid="ignore"):
            return x.astype(np.float32).view(np.uint32)
    bits, _ = round_pair(dtype, DD(x, np.zeros_like(x)), np.zeros_like(x))
    return bits


def _pattern(dtype: str, x: F64) -> Bits:
    """Patterns of float64 values that the dtype holds exactly, or that overflow to an infinity."""
    with np.errstate(over="ignore", invalid="ignore"):
        if dtype == "FLOAT16":
            return x.astype(np.float16).view(np.uint16)
        if dtype == "DOUBLE":
            return x.view(np.uint64)
        single: Bits = x.astype(np.float32).view(np.uint32)
    if dtype == "FLOAT":
        return single
    half: Bits = np.where(np.isnan(x), np.uint32(0x7FC0), single >> np.uint32(16)).astype(np.uint16)
    return half


def round_pair(dtype: str, x: DD, bound: F64, truncate: bool = False) -> tuple[Bits, NDArray[np.intp]]:
    """Patterns of hi + lo rounded once, ties to even, overflow to infinity; and the places (flat) whose distance to a
    boundary of the rounding is within `bound`, the absolute error of hi + lo: there a better value has to decide.

    Integers round to nearest even, or toward zero with `truncate`, and clamp; NaN gives 0. DOUBLE takes hi, which is
    the float64 nearest to the pair.
    """
    if dtype == "DOUBLE":
        return x.hi.view(np.uint64), np.zeros(0, np.intp)
    finite = np.isfinite(x.hi)
    with np.errstate(all="ignore"):
        q = quantum(dtype, np.where(finite, x.hi, 0.0)).astype(np.int32)
        scaled, low = np.ldexp(x.hi, -q), np.ldexp(x.lo, -q)
        n = np.rint(scaled)
        rest = scaled - n
        toward = np.where(rest < 0, -1.0, 1.0)
        # rint saw hi alone. Past the tie with lo: the next integer. Exactly at it: rint's even choice is the answer.
        beyond = (np.abs(rest) - 0.5) + toward * low
        n = np.where(beyond > 0, n + toward, n)
        if truncate and not is_float(dtype):
            over = np.where(scaled < 0, n - scaled, scaled - n) + np.where(scaled < 0, -low, low)
            n = np.where(over < 0, n - np.sign(scaled), n)
            beyond = (scaled - np.rint(scaled)) + low
        doubtful = finite & (np.abs(beyond) <= np.ldexp(bound, -q)) & (bound > 0)
        value = np.where(finite, np.copysign(np.ldexp(n, q), x.hi), x.hi)
    places = np.flatnonzero(doubtful)
    if not is_float(dtype):
        low_end, high_end = INTEGERS[dtype]
        return np.nan_to_num(np.clip(value, low_end, high_end), nan=0.0).astype(BITS[dtype]), places
    return _pattern(dtype, value), places
