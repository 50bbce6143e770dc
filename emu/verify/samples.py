"""Inputs, as bit patterns: directed values that find the classic errors, and random ones."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from emu_kernels.reference.arrays import BITS_DTYPE
from numpy.typing import NDArray

Bits = NDArray[Any]

# FLOAT: where exp overflows, underflows and becomes subnormal, where the sigmoid's derivative must not become 0, the zeros of
# y + SA, the double-rounding trap of BF16, the hardest inputs of exp and log, and the NaNs that a careless conversion turns
# into infinities.
_FLOAT_POINTS = (
    *(88.0, 88.375, 88.72283, 88.72284, 88.73, 89.0, 87.33654, 87.33655, 103.97208, 103.97209, 104.0, 17.32868),
    *(6.25, 16.75, 50.0, 87.0, 100.0, 1.0, 0.5, 2.0, 3.0, 1e38, 3.4e38, 65504.0, 65519.99, 65520.0, 65536.0, 2.0**-24),
    *(1.7580993, 1.7580994, 1.7578125, 1.050701, 1.0507010, 1.00390625, 1.0039063, 2.0**-25, 1.5 * 2.0**-25, 2.0**-14),
    *(2.0**-133, 2.0**-134, 1.5 * 2.0**-134, 3.3895314e38, 3.3961775e38, 3.4028e38),
)
_FLOAT_PATTERNS = (0x7F800001, 0x7FFFFFFF, 0xFF800001, 0x7F80FFFF, 0x7FC00000, 0xC16912CD, 0x4C5D65A5, 0x65D890D3)


def _around(patterns: Bits) -> Bits:
    """Each pattern, its two neighbours and the negatives of all; the ends wrap, which still gives patterns."""
    one = patterns.dtype.type(1)
    sign = patterns.dtype.type(1 << (patterns.dtype.itemsize * 8 - 1))
    near = np.concatenate([patterns, patterns + one, patterns - one])
    return np.unique(np.concatenate([near, near ^ sign]))


@cache
def directed(dtype: str) -> Bits:
    """Return all patterns of an 8 or 16-bit dtype, else edges of binades and of ranges, specials and ties."""
    if dtype in ("FLOAT16", "BF16"):
        return np.arange(1 << 16, dtype=np.uint16)
    if dtype == "INT8":
        return np.arange(-128, 128, dtype=np.int8)
    if dtype == "INT32":
        powers = [1 << k for k in range(31)]
        points = [s * p + d for p in (*powers, 65520, 65504, 2049, 16777217) for s in (1, -1) for d in (-1, 0, 1)]
        return np.unique(np.array([*points, 0, 2**31 - 1, -(2**31)], np.int64).clip(-(2**31), 2**31 - 1)).astype(np.int32)
    if dtype == "DOUBLE":
        points64 = np.array([0.0, 1.0, 700.0, 709.78, 745.1, 1e-310, 5e-324, 2.5, np.inf, 1e300], np.float64)
        return _around(np.concatenate([points64.view(np.uint64), np.array([0x7FF0000000000001], np.uint64)]))
    binades = np.arange(256, dtype=np.uint32) << np.uint32(23)
    points32 = np.array(_FLOAT_POINTS, np.float32).view(np.uint32)
    return _around(np.concatenate([binades, points32, np.array(_FLOAT_PATTERNS, np.uint32)]))


def random(dtype: str, shape: int | tuple[int, ...], rng: np.random.Generator) -> Bits:
    """Return random patterns: half are uniform over all patterns, half are normal values of a random scale."""
    n = int(np.prod(shape))
    kind = np.dtype(BITS_DTYPE[dtype])
    bits = rng.integers(0, 1 << (8 * kind.itemsize), n, dtype=np.uint64 if kind.itemsize == 8 else np.int64)
    out = bits.astype(np.dtype(f"u{kind.itemsize}")).view(kind)
    if dtype == "INT32":
        out[::2] >>= rng.integers(0, 31, out[::2].size).astype(np.int32)
    elif dtype != "INT8":
        scale = 2.0 ** rng.integers(-6, 5)
        out[::2] = values(dtype, rng.standard_normal(out[::2].size) * scale)
    return out.reshape(shape)


def values(dtype: str, x: NDArray[np.float64]) -> Bits:
    """Return patterns near given values; how they round does not matter, for they are inputs."""
    if dtype == "DOUBLE":
        return x.view(np.uint64)
    narrow = x.astype(np.float32)
    if dtype == "FLOAT16":
        with np.errstate(over="ignore"):
            return narrow.astype(np.float16).view(np.uint16)
    bits: Bits = narrow.view(np.uint32)
    return (bits >> np.uint32(16)).astype(np.uint16) if dtype == "BF16" else bits


_ROW_KINDS = 8


def row_block(dtype: str, r: int, columns: int, inputs: int, seed: int) -> tuple[Bits, ...]:
    """Return `inputs` arrays (r, columns) whose columns take turns.

    They are normal, softmax, wide, special, tiny, any; and two whose sum depends on its order in the leading bits, which a rounding to 16
    bits does not hide: of large values that cancel, and, for a sum of exponentials, of a one with terms of half its last bit.
    """
    rng = np.random.default_rng(seed)
    arrays = []
    for which in range(inputs):
        columns_of = []
        for c in range(columns):
            kind = (c + seed) % _ROW_KINDS
            x = rng.standard_normal(r)
            if kind == 1 and which == 1:
                x = np.exp(x) / np.exp(x).sum()
            elif kind == 2:
                x *= 2.0 ** rng.integers(-12, 8, r)
            elif kind == 4:
                x *= 2.0**-20
            elif kind == 6:
                x = np.ones(r) if which else _cancelling(x, rng)
            elif kind == 7:
                x -= 16.6  # exp gives 2**-24
                x[rng.integers(r)] = 0.0
            column = random(dtype, r, rng) if kind == 5 else values(dtype, x)
            if kind == 3:
                specials = values(dtype, np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, 6e4, -1e5, 1e-7]))
                column[rng.integers(r)] = specials[rng.integers(specials.size)]
            columns_of.append(column)
        arrays.append(np.stack(columns_of, axis=1))
    return tuple(arrays)


def _cancelling(x: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Small values with pairs of 2**15 and -2**15 in a quarter of the places, beside which the small ones lose their last bits."""
    x = x * 2.0**-6
    places = rng.permutation(x.size)[: (x.size + 4) // 8 * 2]
    x[places] = 2.0**15
    x[places[::2]] *= -1
    return x
