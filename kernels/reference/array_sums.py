"""The sums of rows, and the fused step, on arrays: the last axis is reduced.

Every addition of the fixed orders is one float32 addition over all rows at once; `last` chooses the order, not the
axis. The fused step of dav_3510 is exact in float64 with its error term, rounded to odd, then rounded once to FLOAT.
"""

from __future__ import annotations

import numpy as np
from emu_kernels.assumptions import chosen
from emu_kernels.reference.arrays import F32
from emu_kernels.reference.sums import LANES, floor_power, power_below
from emu_kernels.variant import Variant
from numpy.typing import NDArray


def fma(a: F32, b: F32, c: F32) -> F32:
    """a * b + c with one rounding. The product of two FLOAT is exact in float64; TwoSum gives the error of the sum."""
    product, addend = a.astype(np.float64) * b.astype(np.float64), c.astype(np.float64)
    total = product + addend
    back = total - product
    error = (product - (total - back)) + (addend - back)
    bits = total.view(np.int64)
    # Odd: the last bit is set if anything was cut, so the second rounding cannot see a false tie.
    even = (error != 0) & np.isfinite(total) & np.isfinite(error) & (bits & 1 == 0)
    outward = (error > 0) == (total > 0)
    odd: NDArray[np.float64] = np.where(even, np.where(outward, bits + 1, bits - 1), bits).view(np.float64)
    return odd.astype(np.float32)


def _neighbours(x: F32) -> F32:
    while x.shape[-1] > 1:
        x = x[..., 0::2] + x[..., 1::2]
    return x[..., 0]


def _padded(x: F32, n: int) -> F32:
    return np.concatenate([x, np.zeros((*x.shape[:-1], n - x.shape[-1]), np.float32)], axis=-1)


def _onto(head: F32, tail: F32) -> F32:
    n = tail.shape[-1]
    return np.concatenate([head[..., :n] + tail, head[..., n:]], axis=-1)


def _halving(x: F32) -> F32:
    power = floor_power(x.shape[-1])
    x = _onto(x[..., :power], x[..., power:])
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        x = x[..., :half] + x[..., half:]
    return x[..., 0]


def _fold(x: F32) -> F32:
    n = x.shape[-1]
    if n <= LANES:
        return _neighbours(_padded(x, LANES))
    if n <= 2 * LANES:
        return _neighbours(_onto(x[..., :LANES], x[..., LANES:]))
    kept = power_below(-(-n // LANES)) * LANES
    folded = _onto(x[..., :kept], x[..., kept:])
    return _fold(_neighbours(folded.reshape(*folded.shape[:-1], kept // LANES, LANES)))


def _block(x: F32) -> F32:
    power = floor_power(x.shape[-1])
    x = _onto(x[..., :power], x[..., power:])
    vectors = x.reshape(*x.shape[:-1], power // LANES, LANES)
    while vectors.shape[-2] >= 16:
        groups = vectors.reshape(*vectors.shape[:-2], vectors.shape[-2] // 16, 16, LANES)
        vectors = _halve(groups)
    return _neighbours(_halve(vectors))


def _halve(vectors: F32) -> F32:
    while vectors.shape[-2] > 1:
        half = vectors.shape[-2] // 2
        vectors = vectors[..., :half, :] + vectors[..., half:, :]
    return vectors[..., 0, :]


def _blocks_folded(x: F32, length: int) -> F32:
    """Return (rows, blocks, length'), block j + B already on block j."""
    n = x.shape[-1]
    blocks = -(-n // length)
    if blocks == 1:
        return x[..., None, :]
    kept = power_below(blocks)
    folded = _onto(x[..., : kept * length], x[..., kept * length :])
    return folded.reshape(*x.shape[:-1], kept, length)


def lanes64_array(x: F32) -> F32:
    lanes = np.zeros((*x.shape[:-1], LANES), np.float32)
    for k in range(0, x.shape[-1], LANES):
        part = x[..., k : k + LANES]
        lanes[..., : part.shape[-1]] += part
    return _neighbours(lanes)


def _sequential(x: F32) -> F32:
    total = np.zeros(x.shape[:-1], np.float32)
    for k in range(x.shape[-1]):
        total = total + x[..., k]
    return total


def row_sum_array(x: F32, v: Variant, last: bool) -> F32:
    """Array form of `sums.row_sum`: the sum of each row, shape (rows, 1)."""
    return _row_sum(x, v, last)[..., None]


def _row_sum(x: F32, v: Variant, last: bool) -> F32:
    n, wide = x.shape[-1], v.dtype == "FLOAT"
    if n == 1:
        return x[..., 0]
    if v.arch != "dav_3510":
        order = chosen(v.assume, "tbe_row_order" if last else "tbe_col_order")
        return lanes64_array(x) if order == "lanes64" else _sequential(x)
    if last:
        if n <= (8 if wide else 16):
            return _halving(x)
        if n <= (10512 if wide else 16384):
            return _fold(x)
        return _neighbours(_block(_blocks_folded(x, 10464 if wide else 15712)))
    if n <= (165 if wide else 123):
        return _halving(x)
    return _neighbours(_halving(_blocks_folded(x, 128)))
