"""Kernels over the columns of contiguous (outer, r, inner) tensors: reductions along a dim that is not the last.

A block of columns is worked on at a time. Scratch holds lines of COLUMNS items; sums run over whole lines, also where a
block has fewer columns (the rest is never read). See `rows` for what a flow gives.
"""

from __future__ import annotations

from typing import Any

from .bits import inline, no_inline, offset, pointer, scratch, store_fence
from .flows import RowPlan
from .loops import STREAM_BYTES, body_of, copy_tile, guarded
from .reduce import COLUMN_BLOCK, COLUMN_LIMIT, LEVELS, below, up_to
from .rows import Parts

#: Columns that one pass over the rows works on.
COLUMNS = 128


def along_other(name: str, plan: RowPlan) -> Any:
    """args = [out, in0[, in1], outer, r, inner]; the range is columns of outer*inner."""
    parts = Parts(name, plan)
    orders, order, maximum, inputs = parts.orders, plan.order, plan.maximum, plan.inputs
    size, wide, get, put, zero = parts.size, orders.size, orders.get, orders.put, orders.zero
    read, read_b, write, larger, prepare, finish = (
        parts.read, parts.read_b, parts.write, parts.larger, parts.prepare, parts.finish
    )  # fmt: skip
    term, last_step, heavy = parts.term, parts.last_step, parts.heavy
    sum_memory = scratch({"sequential": 1, "lanes64": 64, "tree": COLUMN_BLOCK}[order] * COLUMNS * wide)
    maximum_memory = scratch(COLUMNS * wide)
    tile_memory = scratch(COLUMNS * size)
    column_sum = {"sequential": _sequential, "lanes64": _lanes64, "tree": _tree}[order]
    r_at = inputs + 2

    def term_line(x, a, b, ms, w, fresh):  # type: ignore[no-untyped-def]
        # One row's terms, stored to the line x or added onto it.
        if heavy:
            no_inline()
        if fresh:
            for c in range(w):
                put(x, c, term(read(a, c), read_b(b, c), get(ms, c)))
        else:
            for c in range(w):
                put(x, c, get(x, c) + term(read(a, c), read_b(b, c), get(ms, c)))

    def result_line(tile, a, b, ms, x, w):  # type: ignore[no-untyped-def]
        if heavy:
            no_inline()
        for c in range(w):
            write(tile, c, last_step(read(a, c), read_b(b, c), get(ms, c), get(x, c)))

    terms: Any = body_of(name + "_terms", term_line) if heavy else inline(term_line)
    results: Any = body_of(name + "_results", result_line) if heavy else inline(result_line)
    sums = column_sum(parts, terms)

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[inputs])
        r, inner = args[r_at], args[r_at + 1]
        pitch = inner * size
        x, ms, tile = sum_memory(), maximum_memory(), tile_memory()
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
                terms(x, a, b, ms, w, True)
            else:
                sums(x, a, b, ms, r, pitch, w)
            for c in range(w):
                put(x, c, finish(get(x, c)))
            for k in range(r):
                results(tile, offset(a, k * pitch), offset(b, k * pitch), ms, x, w)
                copy_tile(offset(o, k * pitch), tile, w * size, stream)
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
            # A 16-bit column of 124 to 128 rows is a single block [assumed: single_block]: that is H as well.
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
