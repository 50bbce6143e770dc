"""Sums whose order is part of the result.

Each function takes an `Arith` and a list of patterns and returns one pattern; every addition is rounded. T, H, F, K
and N are the building blocks of the reduction on dav_3510; the other architectures add into accumulators.
"""

from __future__ import annotations

from emu_kernels.assumptions import chosen
from emu_kernels.reference.arith import Arith

LANES = 64  # FLOAT elements in one vector register of 256 bytes


def floor_power(n: int) -> int:
    """Largest power of two that is at most n, for n of at least 1."""
    return 1 << (n.bit_length() - 1)


def power_below(n: int) -> int:
    """Largest power of two less than n; 1 for n = 1, where there is nothing to fold."""
    return floor_power(max(n - 1, 1))


def _add(f: Arith, a: int, b: int) -> int:
    """a + b as a step of the trace, unless one of them is a zero: padding and a fresh accumulator are."""
    out = f.add(a, b)
    if f.trace is not None and f.abs(a) != 0 and f.abs(b) != 0:
        digits = f.fmt.bits // 4
        f.note(f"sum: 0x{a:0{digits}x} + 0x{b:0{digits}x}", out)
    return out


def neighbours(f: Arith, x: list[int]) -> int:
    """N: add neighbours, x[i] = x[2i] + x[2i+1], until one of a power-of-two number of items is left."""
    while len(x) > 1:
        x = [_add(f, x[i], x[i + 1]) for i in range(0, len(x), 2)]
    return x[0]


def register(f: Arith, x: list[int]) -> int:
    """T: pad up to 64 items with +0 to 64 lanes, then add neighbours six times."""
    return neighbours(f, x + [0] * (LANES - len(x)))


def onto(f: Arith, head: list[int], tail: list[int]) -> list[int]:
    """Add `tail` onto the leading items of `head`; the other items stay as they are."""
    return [_add(f, a, b) for a, b in zip(head, tail, strict=False)] + head[len(tail) :]


def halving(f: Arith, x: list[int]) -> int:
    """H: fold what exceeds a power of two onto the head, then add upper halves onto lower until one item is left."""
    power = floor_power(len(x))
    x = onto(f, x[:power], x[power:])
    while len(x) > 1:
        half = len(x) // 2
        x = onto(f, x[:half], x[half:])
    return x[0]


def fold(f: Arith, x: list[int]) -> int:
    """F: fold blocks of 64 onto the leading power of two of blocks, reduce each in a register, and fold the results."""
    if len(x) <= LANES:
        return register(f, x)
    if len(x) <= 2 * LANES:
        return register(f, onto(f, x[:LANES], x[LANES:]))
    blocks = [x[i : i + LANES] for i in range(0, len(x), LANES)]
    kept = power_below(len(blocks))
    for j, block in enumerate(blocks[kept:]):
        blocks[j] = onto(f, blocks[j], block)
    return fold(f, [register(f, block) for block in blocks[:kept]])


def block(f: Arith, x: list[int]) -> int:
    """K: one block of a large row; its length must be at least 64.

    The tail goes onto the leading power of two; 16 vectors at a time fold to one at distances 8, 4, 2, 1 while at
    least 16 are left; the rest is halved, and the last vector is reduced in a register.
    """
    power = floor_power(len(x))
    x = onto(f, x[:power], x[power:])
    vectors = [x[i : i + LANES] for i in range(0, power, LANES)]
    while len(vectors) >= 16:
        vectors = [_halve(f, vectors[i : i + 16]) for i in range(0, len(vectors), 16)]
    return register(f, _halve(f, vectors))


def _halve(f: Arith, vectors: list[list[int]]) -> list[int]:
    """Add the upper half of the vectors onto the lower, lane by lane, until one is left."""
    while len(vectors) > 1:
        half = len(vectors) // 2
        vectors = [onto(f, vectors[i], vectors[i + half]) for i in range(half)]
    return vectors[0]


def sequential(f: Arith, x: list[int]) -> int:
    """Column order: one accumulator that starts at +0, in increasing index."""
    total = 0
    for item in x:
        total = _add(f, total, item)
    return total


def lanes64(f: Arith, x: list[int]) -> int:
    """Row order: element k goes onto accumulator k mod 64 of 64 that start at +0; then T."""
    lanes = [0] * LANES
    for k, item in enumerate(x):
        lanes[k % LANES] = _add(f, lanes[k % LANES], item)
    return register(f, lanes)


def _blocks_folded(f: Arith, x: list[int], length: int) -> list[list[int]]:
    """Cut into blocks; add block j + B onto block j, B being the largest power of two below the number of blocks."""
    blocks = [x[i : i + length] for i in range(0, len(x), length)]
    kept = power_below(len(blocks))
    for j, upper in enumerate(blocks[kept:]):
        blocks[j] = onto(f, blocks[j], upper)
    return blocks[:kept]


def _sum_3510(f: Arith, x: list[int], last: bool, wide: bool) -> int:
    """The reduction of dav_3510; `wide` says that the inputs are FLOAT (or DOUBLE), not of 16 bits."""
    n = len(x)
    if last:
        if n <= (8 if wide else 16):
            return halving(f, x)
        if n <= (10512 if wide else 16384):
            return fold(f, x)
        return neighbours(f, [block(f, b) for b in _blocks_folded(f, x, 10464 if wide else 15712)])
    if n <= (165 if wide else 123):
        return halving(f, x)
    return neighbours(f, [halving(f, b) for b in _blocks_folded(f, x, 128)])


def row_sum(f: Arith, x: list[int], last: bool, name: str | None = None) -> int:
    """Sum one row or column in the order of the variant's architecture; one item is its own sum, -0.0 included.

    `last`: the product of the dimensions after the reduced one is 1. The order depends on the input dtype of the
    variant.
    """
    v = f.v
    if len(x) == 1:
        return f.note(name, x[0])
    if v.arch == "dav_3510":
        return f.note(name, _sum_3510(f, x, last, v.dtype in ("FLOAT", "DOUBLE")))
    order = chosen(v.assume, "tbe_row_order" if last else "tbe_col_order")
    return f.note(name, lanes64(f, x) if order == "lanes64" else sequential(f, x))
