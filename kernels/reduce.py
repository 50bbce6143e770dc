"""Sums in a fixed order over scratch memory: the orders of the NPU's reductions.

The order decides the last bits, so it must not depend on threads, CPU or strides. With v[i] the items:
    T  padded with +0 to 64 lanes, then neighbours are added, six times
    H  P = largest power of two <= n; the tail is added onto the head, then halves onto halves
    F  T for n <= 64; tail onto head and T for n <= 128; else blocks of 64, of which those past the largest power of two
       below their number are added onto the first ones, each block by T, and F of the results
    K  for one size only: tail onto head as in H, 128 vectors of 64 lanes folded by 16s and then halved, T of the last
    N  neighbours, over a power of two of items

Padding with -0.0 changes no sum (x + -0.0 is x, for +0 and -0 as well), so a tail is padded with it to full lines.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import inline, load, offset, store
from .vectors import add64, fill64, sum_pairs

#: Thresholds of dav_3510 along the last dim by bytes per element: H up to the first, F up to the second, K on blocks of
#: the third beyond. DOUBLE has those of FLOAT [assumed: softmax_f64].
LAST_LIMITS = {4: (8, 10512, 10464), 8: (8, 10512, 10464), 2: (16, 16384, 15712)}
#: ... and along any other dim: H up to this many rows, blocks of 128 rows beyond [assumed: wide_tile].
COLUMN_LIMIT = {4: 165, 8: 165, 2: 123}
COLUMN_BLOCK = 128
#: N runs through one partial sum per bit of the number of items.
LEVELS = 40


@inline
def below(n):  # type: ignore[no-untyped-def]
    """Largest power of two < n (n > 1)."""
    p = 1
    while p * 2 < n:
        p *= 2
    return p


@inline
def up_to(n):  # type: ignore[no-untyped-def]
    """Largest power of two <= n."""
    p = 1
    while p * 2 <= n:
        p *= 2
    return p


class Orders:
    """The orders for one element type ("f32" or "f64"). x is scratch of whole 64-item lines and is overwritten."""

    def __init__(self, kind: str) -> None:
        self.get = get = load[kind]
        self.put = put = store[kind]
        self.size = size = 8 if kind == "f64" else 4
        self.zero = zero = np.float64(0.0) if kind == "f64" else np.float32(0.0)
        minus_zero = -zero
        self.add = add = add64(kind)
        self.fill = fill64(kind)
        self.register = register = sum_pairs(kind, 64, True)
        halve16 = sum_pairs(kind, 16, False)
        line = 64 * size
        self.line = line

        @inline
        def pad(x, n, to, value):  # type: ignore[no-untyped-def]
            for i in range(n, to):
                put(x, i, value)

        @inline
        def halving16(x, n):  # type: ignore[no-untyped-def]
            """H for n <= 16."""
            pad(x, n, 16, minus_zero)
            return halve16(x)

        @inline
        def short_fold(x, n):  # type: ignore[no-untyped-def]
            """F for n <= 128."""
            if n > 64:
                pad(x, n, 128, minus_zero)
                add(x, offset(x, line))
            else:
                pad(x, n, 64, zero)
            return register(x)

        @inline
        def fold(x, n, sums):  # type: ignore[no-untyped-def]
            """F for n <= 16384; sums is scratch of 128 items."""
            if n <= 128:
                return short_fold(x, n)
            blocks = (n + 63) >> 6
            pad(x, n, blocks << 6, minus_zero)
            f = below(blocks)
            for j in range(blocks - f):
                add(offset(x, j * line), offset(x, (f + j) * line))
            for j in range(f):
                put(sums, j, register(offset(x, j * line)))
            # At most 256 blocks, so at most 128 sums: one more step ends it.
            return short_fold(sums, f)

        @inline
        def large_block(x, n):  # type: ignore[no-untyped-def]
            """K for 8192 <= n < 16384."""
            lines = (n + 63) >> 6
            pad(x, n, lines << 6, minus_zero)
            for j in range(lines - 128):
                add(offset(x, j * line), offset(x, (128 + j) * line))
            for j in range(8):
                base = offset(x, 16 * j * line)
                for i in range(8):
                    add(offset(base, i * line), offset(base, (i + 8) * line))
                for i in range(4):
                    add(offset(base, i * line), offset(base, (i + 4) * line))
                for i in range(2):
                    add(offset(base, i * line), offset(base, (i + 2) * line))
                add(base, offset(base, line))
            for i in range(4):
                add(offset(x, 16 * i * line), offset(x, 16 * (i + 4) * line))
            for i in range(2):
                add(offset(x, 16 * i * line), offset(x, 16 * (i + 2) * line))
            add(x, offset(x, 16 * line))
            return register(x)

        @inline
        def push(stack, j, x):  # type: ignore[no-untyped-def]
            """N, item j of a power of two of items that arrive in order: merge while the left neighbour is complete."""
            level = 0
            while (j >> level) & 1:
                x = get(stack, level) + x
                level += 1
            put(stack, level, x)

        self.pad: Any = pad
        self.halving16: Any = halving16
        self.fold: Any = fold
        self.large_block: Any = large_block
        self.push: Any = push
