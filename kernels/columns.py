"""Kernels over the columns of contiguous (outer, r, inner) tensors: reductions along a dim that is not the last.

A block of columns is worked on at a time: once over its rows for the sums, once for the results. With one accumulator a
column (`sequential`) a block is as wide as memory likes it: narrow enough for the second pass to find the rows in a
cache, or else whole rows, which come from memory twice but in order. The other orders hold lines of COLUMNS items in
scratch; their sums run over whole lines, also where a block has fewer columns (the rest is never read).
See `rows` for what a flow gives.
"""

from __future__ import annotations

from typing import Any

from .bits import address, inline, offset, pointer, scratch
from .flows import RowPlan
from .loops import STREAM_BYTES, body_of, copy_tile, guarded
from .machine import no_inline, store_fence
from .reduce import COLUMN_BLOCK, COLUMN_LIMIT, LEVELS, below, up_to
from .row_parts import Parts

#: Columns of a block whose sum needs many lines.
COLUMNS = 128
#: Columns of a block with one accumulator each: NARROW while the inputs of a block fit in CACHE_BYTES, else WIDE.
NARROW, WIDE = 2048, 16384
CACHE_BYTES = 6 << 20
#: Columns of a row that are computed before they are copied out.
TILE_COLUMNS = 512


def along_other(name: str, plan: RowPlan) -> Any:
    """args = [out, in0[, in1], outer, r, inner]; the range is columns of outer*inner."""
    parts = Parts(name, plan)
    orders, order, maximum, inputs = parts.orders, plan.order, plan.maximum, plan.inputs
    size, wide, get, put, zero = parts.size, orders.size, orders.get, orders.put, orders.zero
    read, read_b, write, larger, prepare, finish = (
        parts.read, parts.read_b, parts.write, parts.larger, parts.prepare, parts.finish
    )  # fmt: skip
    term, last_step, heavy = parts.term, parts.last_step, parts.heavy
    most = WIDE if order == "sequential" else COLUMNS
    lines = {"sequential": 1, "lanes64": 64, "tree": COLUMN_BLOCK}[order]
    sum_memory, maximum_memory = scratch(lines * most * wide), scratch((most if maximum else 1) * wide)
    tile_memory = scratch(TILE_COLUMNS * size)
    column_sum = {"sequential": _sequential, "lanes64": _lanes64, "tree": _tree}[order]
    r_at = inputs + 2

    @inline
    def maximum_of(ms, c):  # type: ignore[no-untyped-def]
        return get(ms, c) if maximum else zero

    def term_line(x, a, b, ms, w, fresh):  # type: ignore[no-untyped-def]
        # One row's terms, stored to the line x or added onto it.
        if heavy:
            no_inline()
        if fresh:
            for c in range(w):
                put(x, c, term(read(a, c), read_b(b, c), maximum_of(ms, c)))
        else:
            for c in range(w):
                put(x, c, get(x, c) + term(read(a, c), read_b(b, c), maximum_of(ms, c)))

    def result_tile(tile, a, b, ms, x, n):  # type: ignore[no-untyped-def]
        if heavy:
            no_inline()
        for c in range(n):
            write(tile, c, last_step(read(a, c), read_b(b, c), maximum_of(ms, c), get(x, c)))

    terms: Any = body_of(name + "_terms", term_line) if heavy else inline(term_line)
    results: Any = body_of(name + "_results", result_tile) if heavy else inline(result_tile)
    sums = column_sum(parts, terms)

    @inline
    def block_width(r):  # type: ignore[no-untyped-def]
        if order == "sequential":
            return NARROW if r * NARROW * size * inputs <= CACHE_BYTES else WIDE
        return COLUMNS

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[inputs])
        r, inner = args[r_at], args[r_at + 1]
        pitch = inner * size
        x, ms, tile = sum_memory(), maximum_memory(), tile_memory()
        stream = (stop - start) * r * size >= STREAM_BYTES
        width = block_width(r)
        column = start
        while column < stop:
            i = column % inner
            w = min(width, min(inner - i, stop - column))
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
                terms(x, a, b, ms, w, True)
            else:
                sums(x, a, b, ms, r, pitch, w)
            for c in range(w):
                put(x, c, finish(get(x, c)))
            for k in range(r):
                p, q, to = offset(a, k * pitch), offset(b, k * pitch), offset(o, k * pitch)
                c = 0
                while c < w:
                    # The first tile of a row ends at a line of the output, so that the others can stream.
                    n = min(TILE_COLUMNS - ((address(to) + c * size) & 63) // size, w - c)
                    by = c * wide
                    results(tile, offset(p, c * size), offset(q, c * size), offset(ms, by), offset(x, by), n)
                    copy_tile(offset(to, c * size), tile, n * size, stream)
                    c += n
            column += w
        if stream:
            store_fence()

    return guarded(body_of(name + "_body", body))


def _sequential(parts: Any, terms: Any) -> Any:
    """One accumulator that starts at +0, increasing k."""
    put, zero = parts.orders.put, parts.orders.zero

    @inline
    def sums(x, a, b, ms, r, pitch, w):  # type: ignore[no-untyped-def]
        for c in range(w):
            put(x, c, zero)
        for k in range(r):
            terms(x, offset(a, k * pitch), offset(b, k * pitch), ms, w, False)

    return sums


def _lines(parts: Any) -> tuple[Any, int]:
    """add(x, y): one line onto another; and the bytes of a line."""
    add, line = parts.orders.add, parts.orders.line
    steps = COLUMNS // 64

    @inline
    def add_line(x, y):  # type: ignore[no-untyped-def]
        for i in range(steps):
            add(offset(x, i * line), offset(y, i * line))

    return add_line, COLUMNS * parts.orders.size


def _lanes64(parts: Any, terms: Any) -> Any:
    """64 accumulators a column that start at +0, row k onto accumulator k mod 64, then T."""
    put, zero = parts.orders.put, parts.orders.zero
    add_line, line = _lines(parts)

    @inline
    def sums(x, a, b, ms, r, pitch, w):  # type: ignore[no-untyped-def]
        for c in range(64 * COLUMNS):
            put(x, c, zero)
        for k in range(r):
            terms(offset(x, (k & 63) * line), offset(a, k * pitch), offset(b, k * pitch), ms, w, False)
        # Neighbours: line i is added with line i + step, and the sum stays in the first of the two.
        step = 1
        while step < 64:
            for i in range(0, 64, 2 * step):
                add_line(offset(x, i * line), offset(x, (i + step) * line))
            step *= 2

    return sums


def _tree(parts: Any, terms: Any) -> Any:
    """The orders of dav_3510: H over few rows; else H over blocks of 128 rows, the upper onto the lower ones, and N."""
    limit = max(COLUMN_LIMIT[parts.size], COLUMN_BLOCK)
    add_line, line = _lines(parts)
    get, put = parts.orders.get, parts.orders.put
    level_memory = scratch(LEVELS * line)

    @inline
    def halve(x, p):  # type: ignore[no-untyped-def]
        h = p >> 1
        while h > 0:
            for i in range(h):
                add_line(offset(x, i * line), offset(x, (i + h) * line))
            h >>= 1

    @inline
    def sums(x, a, b, ms, r, pitch, w):  # type: ignore[no-untyped-def]
        if r <= limit:
            # A 16-bit column of 124 to 128 rows is a single block: that is H as well.
            p = up_to(r)
            for k in range(r):
                fresh = k < p
                to = offset(x, (k if fresh else k - p) * line)
                terms(to, offset(a, k * pitch), offset(b, k * pitch), ms, w, fresh)
            halve(x, p)
            return
        levels = level_memory()
        half = below((r + COLUMN_BLOCK - 1) // COLUMN_BLOCK)
        for j in range(half):
            for k in range(COLUMN_BLOCK):
                at = (j * COLUMN_BLOCK + k) * pitch
                terms(offset(x, k * line), offset(a, at), offset(b, at), ms, w, True)
            first = (j + half) * COLUMN_BLOCK
            for k in range(min(COLUMN_BLOCK, r - first)):
                at = (first + k) * pitch
                terms(offset(x, k * line), offset(a, at), offset(b, at), ms, w, False)
            halve(x, COLUMN_BLOCK)
            level = 0
            while (j >> level) & 1:
                add_line(x, offset(levels, level * line))
                level += 1
            for c in range(COLUMNS):
                put(offset(levels, level * line), c, get(x, c))

    return sums
