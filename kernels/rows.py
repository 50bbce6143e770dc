"""Kernels over the rows or columns of contiguous (outer, r, inner) tensors.

A flow gives four scalar functions:
    prepare(m)          what the maximum m of a row is turned into (only with `maximum`)
    term(a, b, m)       what is summed over the row
    finish(s)           what the sum is turned into
    last_step(a, b, m, s)  one element of the result
`b` is 0 for a flow of one input and `m` is 0 for a flow without a maximum. Everything that a row's result depends on is
read before the first of its elements is written, so `out` may be one of the inputs.
"""

from __future__ import annotations

from typing import Any

from .bits import address, inline, no_inline, offset, pointer, scratch, store_fence
from .formats import FORMATS, reader, writer
from .loops import STREAM_BYTES, TILE_BYTES, body_of, copy_tile, guarded
from .reduce import COLUMN_BLOCK, COLUMN_LIMIT, LAST_LIMITS, LEVELS, Orders, below, up_to

#: Columns that one pass over the rows works on.
COLUMNS = 128


class _Parts:
    """What both templates need of a flow."""

    def __init__(self, inputs: int, dtype: str, saturate: bool) -> None:
        self.size = FORMATS[dtype].size
        self.kind = "f64" if dtype == "DOUBLE" else "f32"
        self.orders = Orders(self.kind)
        self.read = read = reader(dtype)
        self.write = writer(dtype, saturate)
        zero = self.orders.zero
        if inputs == 2:
            self.read_b = read
        else:

            @inline
            def absent(p, i):  # type: ignore[no-untyped-def]
                return zero

            self.read_b = absent

        @inline
        def larger(x, m):  # type: ignore[no-untyped-def]
            # A NaN stays the maximum, wherever it stands: x > m is false for a NaN m.
            return x if (x > m) | (x != x) else m

        self.larger = larger


def along_last(name: str, inputs: int, dtype: str, saturate: bool, order: str, maximum: bool, scalars: Any) -> Any:
    """args = [out, in0[, in1], outer, r, 1]; the range is rows."""
    parts = _Parts(inputs, dtype, saturate)
    prepare, term, finish, last_step = scalars
    size, orders, read, read_b, write, larger = (
        parts.size, parts.orders, parts.read, parts.read_b, parts.write, parts.larger
    )  # fmt: skip
    get, put, zero = orders.get, orders.put, orders.zero
    register, halving, fold, large_block, push = (
        orders.register, orders.halving, orders.fold, orders.large_block, orders.push
    )  # fmt: skip
    h_limit, f_limit, unit = LAST_LIMITS[size]
    tile_memory, lanes_memory = scratch(TILE_BYTES), scratch(64 * orders.size)
    row_memory = scratch((f_limit if order == "tree" else 1) * orders.size)
    level_memory = scratch(LEVELS * orders.size)
    full = TILE_BYTES // size
    r_at = inputs + 2

    @inline
    def row_maximum(a, r, lanes):  # type: ignore[no-untyped-def]
        if r < 64:
            m = read(a, 0)
            for k in range(1, r):
                m = larger(read(a, k), m)
            return m
        for j in range(64):
            put(lanes, j, read(a, j))
        k = 64
        while k + 64 <= r:
            p = offset(a, k * size)
            for j in range(64):
                put(lanes, j, larger(read(p, j), get(lanes, j)))
            k += 64
        p = offset(a, k * size)
        for j in range(r - k):
            put(lanes, j, larger(read(p, j), get(lanes, j)))
        m = get(lanes, 0)
        for j in range(1, 64):
            m = larger(get(lanes, j), m)
        return m

    @inline
    def fill(x, a, b, m, n):  # type: ignore[no-untyped-def]
        for k in range(n):
            put(x, k, term(read(a, k), read_b(b, k), m))

    if order == "lanes64":

        @inline
        def row_sum(a, b, m, r, x, levels):  # type: ignore[no-untyped-def]
            if r == 1:
                return term(read(a, 0), read_b(b, 0), m)
            for j in range(64):
                put(x, j, zero)
            k = 0
            while k + 64 <= r:
                p, q = offset(a, k * size), offset(b, k * size)
                for j in range(64):
                    put(x, j, get(x, j) + term(read(p, j), read_b(q, j), m))
                k += 64
            p, q = offset(a, k * size), offset(b, k * size)
            for j in range(r - k):
                put(x, j, get(x, j) + term(read(p, j), read_b(q, j), m))
            return register(x)

    elif order == "sequential":

        @inline
        def row_sum(a, b, m, r, x, levels):  # type: ignore[no-untyped-def]
            if r == 1:
                return term(read(a, 0), read_b(b, 0), m)
            s = zero
            for k in range(r):
                s += term(read(a, k), read_b(b, k), m)
            return s

    else:

        @inline
        def row_sum(a, b, m, r, x, levels):  # type: ignore[no-untyped-def]
            if r <= f_limit:
                fill(x, a, b, m, r)
                return halving(x, r) if r <= h_limit else fold(x, r)
            blocks = (r + unit - 1) // unit
            half = below(blocks)
            s = zero
            for j in range(half):
                at = j * unit
                fill(x, offset(a, at * size), offset(b, at * size), m, unit)
                at = (j + half) * unit
                p, q = offset(a, at * size), offset(b, at * size)
                for k in range(min(unit, r - at)):
                    put(x, k, get(x, k) + term(read(p, k), read_b(q, k), m))
                push(levels, j, large_block(x, unit))
            level = 0
            while (half >> level) > 1:
                level += 1
            s = get(levels, level)
            return s

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[inputs])
        r = args[r_at]
        tile, lanes, levels = tile_memory(), lanes_memory(), level_memory()
        x = row_memory() if order == "tree" else lanes
        stream = (stop - start) * r * size >= STREAM_BYTES
        for row in range(start, stop):
            a, b, o = (
                offset(in0, row * r * size), offset(in1, row * r * size), offset(out, row * r * size)
            )  # fmt: skip
            m = prepare(row_maximum(a, r, lanes)) if maximum else zero
            s = finish(row_sum(a, b, m, r, x, levels))
            i = 0
            while i < r:
                n = min(full - ((address(o) + i * size) & 63) // size, r - i)
                p, q = offset(a, i * size), offset(b, i * size)
                if n == full:
                    for j in range(full):
                        write(tile, j, last_step(read(p, j), read_b(q, j), m, s))
                else:
                    for j in range(n):
                        write(tile, j, last_step(read(p, j), read_b(q, j), m, s))
                copy_tile(offset(o, i * size), tile, n * size, stream)
                i += n
        if stream:
            store_fence()

    return guarded(body_of(name, body))


def along_other(name: str, inputs: int, dtype: str, saturate: bool, order: str, maximum: bool, scalars: Any) -> Any:
    """args = [out, in0[, in1], outer, r, inner]; the range is columns of outer*inner."""
    parts = _Parts(inputs, dtype, saturate)
    prepare, term, finish, last_step = scalars
    size, orders, read, read_b, write, larger = (
        parts.size, parts.orders, parts.read, parts.read_b, parts.write, parts.larger
    )  # fmt: skip
    get, put, zero, wide = orders.get, orders.put, orders.zero, orders.size
    limit = COLUMN_LIMIT[size]
    rows_held = {"sequential": 1, "lanes64": 64, "tree": COLUMN_BLOCK}[order]
    sum_memory = scratch(rows_held * COLUMNS * wide)
    maximum_memory = scratch(COLUMNS * wide)
    level_memory = scratch((LEVELS if order == "tree" else 1) * COLUMNS * wide)
    tile_memory = scratch(COLUMNS * size)
    line = COLUMNS * wide
    r_at = inputs + 2

    @inline
    def fill(x, a, b, ms, w):  # type: ignore[no-untyped-def]
        for c in range(w):
            put(x, c, term(read(a, c), read_b(b, c), get(ms, c)))

    @inline
    def accumulate(x, a, b, ms, w):  # type: ignore[no-untyped-def]
        for c in range(w):
            put(x, c, get(x, c) + term(read(a, c), read_b(b, c), get(ms, c)))

    @inline
    def add_line(x, y, w):  # type: ignore[no-untyped-def]
        for c in range(w):
            put(x, c, get(x, c) + get(y, c))

    @inline
    def halve(x, n, w):  # type: ignore[no-untyped-def]
        # H over lines that hold a power of two of rows.
        h = n >> 1
        while h > 0:
            for i in range(h):
                add_line(offset(x, i * line), offset(x, (i + h) * line), w)
            h >>= 1

    if order == "sequential":

        @inline
        def column_sum(a, b, ms, r, pitch, w, x, levels):  # type: ignore[no-untyped-def]
            for c in range(w):
                put(x, c, zero)
            for k in range(r):
                accumulate(x, offset(a, k * pitch), offset(b, k * pitch), ms, w)

    elif order == "lanes64":

        @inline
        def column_sum(a, b, ms, r, pitch, w, x, levels):  # type: ignore[no-untyped-def]
            for j in range(64):
                for c in range(w):
                    put(offset(x, j * line), c, zero)
            for k in range(r):
                accumulate(offset(x, (k & 63) * line), offset(a, k * pitch), offset(b, k * pitch), ms, w)
            h = 32
            while h > 0:
                for i in range(h):
                    one, two, to = offset(x, 2 * i * line), offset(x, (2 * i + 1) * line), offset(x, i * line)
                    for c in range(w):
                        put(to, c, get(one, c) + get(two, c))
                h >>= 1

    else:

        @inline
        def column_sum(a, b, ms, r, pitch, w, x, levels):  # type: ignore[no-untyped-def]
            if r <= limit or r <= COLUMN_BLOCK:
                # One halving. A 16-bit column of 124 to 128 rows is a single block of 128, which is H as well.
                p = up_to(r)
                for k in range(p):
                    fill(offset(x, k * line), offset(a, k * pitch), offset(b, k * pitch), ms, w)
                for k in range(p, r):
                    accumulate(offset(x, (k - p) * line), offset(a, k * pitch), offset(b, k * pitch), ms, w)
                halve(x, p, w)
                return
            blocks = (r + COLUMN_BLOCK - 1) // COLUMN_BLOCK
            half = below(blocks)
            for j in range(half):
                for k in range(COLUMN_BLOCK):
                    at = (j * COLUMN_BLOCK + k) * pitch
                    fill(offset(x, k * line), offset(a, at), offset(b, at), ms, w)
                first = (j + half) * COLUMN_BLOCK
                for k in range(min(COLUMN_BLOCK, r - first)):
                    at = (first + k) * pitch
                    accumulate(offset(x, k * line), offset(a, at), offset(b, at), ms, w)
                halve(x, COLUMN_BLOCK, w)
                level = 0
                while (j >> level) & 1:
                    add_line(x, offset(levels, level * line), w)
                    level += 1
                for c in range(w):
                    put(offset(levels, level * line), c, get(x, c))

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[inputs])
        r, inner = args[r_at], args[r_at + 1]
        pitch = inner * size
        x, ms, levels, tile = sum_memory(), maximum_memory(), level_memory(), tile_memory()
        stream = (stop - start) * r * size >= STREAM_BYTES
        for c in range(COLUMNS):
            put(ms, c, zero)
        column = start
        while column < stop:
            i = column % inner
            w = min(COLUMNS, min(inner - i, stop - column))
            at = (column // inner * r * inner + i) * size
            a, b, o = offset(in0, at), offset(in1, at), offset(out, at)
            if maximum:
                for c in range(w):
                    put(ms, c, read(a, c))
                for k in range(1, r):
                    p = offset(a, k * pitch)
                    for c in range(w):
                        put(ms, c, larger(read(p, c), get(ms, c)))
                for c in range(w):
                    put(ms, c, prepare(get(ms, c)))
            if r == 1:
                fill(x, a, b, ms, w)
            else:
                column_sum(a, b, ms, r, pitch, w, x, levels)
            for c in range(w):
                put(x, c, finish(get(x, c)))
            for k in range(r):
                p, q = offset(a, k * pitch), offset(b, k * pitch)
                for c in range(w):
                    write(tile, c, last_step(read(p, c), read_b(q, c), get(ms, c), get(x, c)))
                copy_tile(offset(o, k * pitch), tile, w * size, stream)
            column += w
        if stream:
            store_fence()

    return guarded(body_of(name, body))
