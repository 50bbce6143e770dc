"""Sums in a fixed order over scratch memory: the orders of the NPU's reductions.

The order decides the last bits, so it must not depend on threads, CPU or strides. Names: T adds neighbours in 64 lanes,
H halves, F folds blocks of 64, K folds a large block, N adds neighbours over a power of two.

`Orders(kind)` holds them for FLOAT ("f32") or DOUBLE ("f64"). Scratch is overwritten.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import inline, load, offset, store

#: Thresholds of dav_3510 along the last dim: H up to the first, F up to the second, blocks of the third beyond.
#: DOUBLE has those of FLOAT [assumed: softmax_f64].
LAST_LIMITS = {4: (8, 10512, 10464), 8: (8, 10512, 10464), 2: (16, 16384, 15712)}
#: ... and along any other dim: H up to this many rows, blocks of 128 rows beyond [assumed: wide_tile].
COLUMN_LIMIT = {4: 165, 8: 165, 2: 123}
COLUMN_BLOCK = 128
#: A power of two of blocks is summed through one partial sum per bit.
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
    """The orders for one element type; each takes (pointer, count) and returns the sum."""

    def __init__(self, kind: str) -> None:
        self.get = get = load[kind]
        self.put = put = store[kind]
        self.size = size = 8 if kind == "f64" else 4
        self.zero = zero = np.float64(0.0) if kind == "f64" else np.float32(0.0)

        @inline
        def add(x, to, frm, n):  # type: ignore[no-untyped-def]
            # x[to + i] += x[frm + i] for i < n; the ranges do not overlap.
            for i in range(n):
                put(x, to + i, get(x, to + i) + get(x, frm + i))

        @inline
        def pairs(x, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                put(x, i, get(x, 2 * i) + get(x, 2 * i + 1))

        @inline
        def register(x):  # type: ignore[no-untyped-def]
            pairs(x, 32)
            pairs(x, 16)
            pairs(x, 8)
            pairs(x, 4)
            pairs(x, 2)
            return get(x, 0) + get(x, 1)

        @inline
        def padded(x, n):  # type: ignore[no-untyped-def]
            for i in range(n, 64):
                put(x, i, zero)
            return register(x)

        @inline
        def halving(x, n):  # type: ignore[no-untyped-def]
            p = up_to(n)
            add(x, 0, p, n - p)
            h = p >> 1
            while h > 0:
                add(x, 0, h, h)
                h >>= 1
            return get(x, 0)

        @inline
        def short_fold(x, n):  # type: ignore[no-untyped-def]
            # F for n <= 128.
            if n > 64:
                add(x, 0, 64, n - 64)
                return register(x)
            return padded(x, n)

        @inline
        def fold(x, n):  # type: ignore[no-untyped-def]
            if n <= 128:
                return short_fold(x, n)
            blocks = (n + 63) >> 6
            f = below(blocks)
            add(x, 0, f << 6, n - (f << 6))
            for j in range(f):
                # n <= 16384, so f <= 128: one more fold ends it. Slot j is never read again: j <= 64*j.
                put(x, j, register(offset(x, (j << 6) * size)))
            return short_fold(x, f)

        @inline
        def large_block(x, n):  # type: ignore[no-untyped-def]
            p = up_to(n)
            add(x, 0, p, n - p)
            v = p >> 6
            while v >= 16:
                for j in range(v >> 4):
                    base = offset(x, (j << 10) * size)
                    add(base, 0, 512, 512)
                    add(base, 0, 256, 256)
                    add(base, 0, 128, 128)
                    add(base, 0, 64, 64)
                    for i in range(64):
                        put(x, (j << 6) + i, get(base, i))
                v >>= 4
            h = v >> 1
            while h > 0:
                add(x, 0, h << 6, h << 6)
                h >>= 1
            return register(x)

        @inline
        def push(stack, j, x):  # type: ignore[no-untyped-def]
            # N over a power of two of values that arrive in order: merge as long as the left neighbour is complete.
            level = 0
            while (j >> level) & 1:
                x = get(stack, level) + x
                level += 1
            put(stack, level, x)

        self.add: Any = add
        self.register: Any = register
        self.halving: Any = halving
        self.fold: Any = fold
        self.large_block: Any = large_block
        self.push: Any = push
