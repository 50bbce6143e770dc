"""Kernels over the rows or columns of contiguous (outer, r, inner) tensors.

A flow gives four scalar functions:
    prepare(m)             what the maximum m of a row is turned into (only with `maximum`)
    term(a, b, m)          what is summed over the row
    finish(s)              what the sum is turned into
    last_step(a, b, m, s)  one element of the result
`b` is 0 for a flow of one input and `m` is 0 for a flow without a maximum. Everything that a row's result depends on is
read before the first of its elements is written, so `out` may be one of the inputs.
"""

from __future__ import annotations

from typing import Any

from .bits import address, inline, offset, pointer, scratch
from .flows import RowPlan
from .formats import FORMATS, reader, writer
from .loops import STREAM_BYTES, TILE_BYTES, body_of, copy_tile, guarded
from .machine import converts_half, no_inline, prefetch, store_fence
from .reduce import LAST_LIMITS, LEVELS, Orders, below

#: Longest row whose successor is prefetched, in bytes.
PREFETCH_ROW = 64 << 10


class Parts:
    """What the templates need of a flow."""

    def __init__(self, name: str, plan: RowPlan) -> None:
        self.size = FORMATS[plan.dtype].size
        self.orders = orders = Orders("f64" if plan.dtype == "DOUBLE" else "f32")
        self.read = read = reader(plan.dtype)
        self.write = write = writer(plan.dtype, plan.saturate)
        prepare, term, finish, last_step = plan.scalars()
        self.prepare, self.finish, self.term = prepare, finish, term
        zero, put = orders.zero, orders.put
        if plan.inputs == 2:
            read_b = read
        else:

            @inline
            def read_b(p, i):  # type: ignore[no-untyped-def]
                return zero

        self.read_b = read_b

        @inline
        def larger(x, m):  # type: ignore[no-untyped-def]
            # A NaN stays the maximum, wherever it stands: x > m is false for a NaN m.
            return x if (x > m) | (x != x) else m

        self.larger = larger

        self.heavy = plan_heavy = plan.heavy

        # A flow with an exp keeps these loops as functions, so that its polynomial is compiled once for each.
        def terms(x, a, b, m, n):  # type: ignore[no-untyped-def]
            if plan_heavy:
                no_inline()
            for k in range(n):
                put(x, k, term(read(a, k), read_b(b, k), m))

        def results(tile, a, b, m, s, n):  # type: ignore[no-untyped-def]
            if plan_heavy:
                no_inline()
            for k in range(n):
                write(tile, k, last_step(read(a, k), read_b(b, k), m, s))

        self.terms: Any = body_of(name + "_terms", terms) if plan.heavy else inline(terms)
        self.results: Any = body_of(name + "_results", results) if plan.heavy else inline(results)
        self.last_step = last_step


def _by_tile(parts: Parts) -> Any:
    """put(out, a, b, m, s, n, stream, tile): n results, by way of the scratch memory `tile`."""
    results, size = parts.results, parts.size

    @inline
    def put(out, a, b, m, s, n, stream, tile):  # type: ignore[no-untyped-def]
        results(tile, a, b, m, s, n)
        copy_tile(out, tile, n * size, stream)

    return put


def _by_vectors(name: str, plan: RowPlan, parts: Parts, step: Any) -> Any:
    """The same straight to `out`; what is left over after the last vector goes by way of `tile`."""
    from .lanes import LANES, Kind, mapped  # only a compiler can use them, and this file is also run without one

    rest, size = _by_tile(parts), parts.size
    vectors = mapped(name + "_last", Kind(plan.dtype, plan.saturate), lambda c, a, b, _, s: step(a, b, s), ())

    @inline
    def put(out, a, b, m, s, n, stream, tile):  # type: ignore[no-untyped-def]
        whole = n & ~(LANES - 1)
        vectors(out, a, b, b, s, whole, stream)
        if whole != n:
            at = size * whole
            rest(offset(out, at), offset(a, at), offset(b, at), m, s, n - whole, False, tile)

    return put


def along_last(name: str, plan: RowPlan) -> Any:
    """args = [out, in0[, in1], outer, r, 1, whole]; the range is rows. whole: 0, or the bytes of the result of which this is a part."""
    parts = Parts(name, plan)
    orders, order, maximum, inputs = parts.orders, plan.order, plan.maximum, plan.inputs
    size, wide, line, get, put, zero = (
        parts.size, orders.size, orders.line, orders.get, orders.put, orders.zero
    )  # fmt: skip
    read, larger, prepare, finish = parts.read, parts.larger, parts.prepare, parts.finish
    h_limit, f_limit, unit = LAST_LIMITS[size]
    tile_memory, lanes_memory = scratch(TILE_BYTES), scratch(128 * wide)
    # Whole lines, and a row of 16 items for the short halving.
    row_memory = scratch((f_limit + 64) // 64 * line if order == "tree" else line)
    row_sum = {"lanes64": _lanes64, "sequential": _sequential, "tree": _tree}[order](parts, h_limit, f_limit, unit)
    put_results = _by_tile(parts)
    if plan.vectors and (plan.dtype != "FLOAT16" or converts_half()):
        vector_term, vector_step = plan.vectors
        put_results = _by_vectors(name, plan, parts, vector_step)
        if order == "lanes64":
            row_sum = _lanes64_by_vectors(name, plan.dtype, parts, vector_term)
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
        m = get(lanes, 0)
        for j in range(1, 64):
            m = larger(get(lanes, j), m)
        for j in range(k, r):
            m = larger(read(a, j), m)
        return m

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[inputs])
        r = args[r_at]
        tile, lanes, x = tile_memory(), lanes_memory(), row_memory()
        row_bytes = r * size
        whole = args[r_at + 2]
        stream = max(whole, (stop - start) * row_bytes) >= STREAM_BYTES
        # The next row comes in while this one goes out; a short one is too late for that, so the one after it.
        ahead = max(row_bytes, 2048)
        for row in range(start, stop):
            a, b, o = (
                offset(in0, row * r * size), offset(in1, row * r * size), offset(out, row * r * size)
            )  # fmt: skip
            m = prepare(row_maximum(a, r, lanes)) if maximum else zero
            s = finish(row_sum(a, b, m, r, x, lanes))
            i = 0
            while i < r:
                n = min(full - ((address(o) + i * size) & 63) // size, r - i)
                if stream and row_bytes <= PREFETCH_ROW:
                    for line in range(0, TILE_BYTES, 64):
                        prefetch(a, ahead + i * size + line)
                        if inputs == 2:
                            prefetch(b, ahead + i * size + line)
                put_results(offset(o, i * size), offset(a, i * size), offset(b, i * size), m, s, n, stream, tile)
                i += n
        if stream and whole == 0:
            store_fence()

    return guarded(body_of(name + "_body", body))


def _lanes64(parts: Parts, h_limit: int, f_limit: int, unit: int) -> Any:
    """64 accumulators that start at +0, element k onto accumulator k mod 64, then T."""
    orders, size, term, read, read_b, terms = (
        parts.orders, parts.size, parts.term, parts.read, parts.read_b, parts.terms
    )  # fmt: skip
    get, put, add, fill, register, pad, zero = (
        orders.get, orders.put, orders.add, orders.fill, orders.register, orders.pad, orders.zero
    )  # fmt: skip
    minus_zero = -zero

    @inline
    def heavy_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            terms(x, a, b, m, 1)
            return get(x, 0)
        fill(lanes, zero)
        for k in range(0, r, 64):
            n = min(64, r - k)
            terms(x, offset(a, k * size), offset(b, k * size), m, n)
            pad(x, n, 64, minus_zero)
            add(lanes, x)
        return register(lanes)

    @inline
    def light_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            return term(read(a, 0), read_b(b, 0), m)
        fill(lanes, zero)
        k = 0
        while k + 64 <= r:
            p, q = offset(a, k * size), offset(b, k * size)
            for j in range(64):
                put(lanes, j, get(lanes, j) + term(read(p, j), read_b(q, j), m))
            k += 64
        p, q = offset(a, k * size), offset(b, k * size)
        for j in range(r - k):
            put(lanes, j, get(lanes, j) + term(read(p, j), read_b(q, j), m))
        return register(lanes)

    return heavy_sum if parts.heavy else light_sum


def _lanes64_by_vectors(name: str, dtype: str, parts: Parts, step: Any) -> Any:
    """As `_lanes64` of a light term."""
    from .lanes import sums64

    orders, size, term, read, read_b = parts.orders, parts.size, parts.term, parts.read, parts.read_b
    get, put, register = orders.get, orders.put, orders.register
    sums = sums64(name + "_sum", dtype, step)

    @inline
    def row_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            return term(read(a, 0), read_b(b, 0), m)
        whole = r & ~63
        sums(lanes, a, b, whole)
        p, q = offset(a, whole * size), offset(b, whole * size)
        for j in range(r - whole):
            put(lanes, j, get(lanes, j) + term(read(p, j), read_b(q, j), m))
        return register(lanes)

    return row_sum


def _sequential(parts: Parts, h_limit: int, f_limit: int, unit: int) -> Any:
    """One accumulator that starts at +0, in increasing order [assumed: tbe_row_order=sequential]."""
    term, read, read_b, zero = parts.term, parts.read, parts.read_b, parts.orders.zero

    @inline
    def row_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            return term(read(a, 0), read_b(b, 0), m)
        s = zero
        for k in range(r):
            s += term(read(a, k), read_b(b, k), m)
        return s

    return row_sum


def _tree(parts: Parts, h_limit: int, f_limit: int, unit: int) -> Any:
    """The orders of dav_3510: H, F, or K on blocks of which the upper ones are added onto the lower ones, then N."""
    orders, size, terms = parts.orders, parts.size, parts.terms
    get, put, halving16, fold, large_block, push, wide = (
        orders.get, orders.put, orders.halving16, orders.fold, orders.large_block, orders.push, orders.size
    )  # fmt: skip
    level_memory, second_memory = scratch(LEVELS * wide), scratch(orders.line)

    @inline
    def row_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r <= f_limit:
            terms(x, a, b, m, r)
            return halving16(x, r) if r <= h_limit else fold(x, r, lanes)
        levels, second = level_memory(), second_memory()
        half = below((r + unit - 1) // unit)
        for j in range(half):
            at = j * unit
            terms(x, offset(a, at * size), offset(b, at * size), m, unit)
            at = (j + half) * unit
            stop = min(r, at + unit)
            to = x
            while at < stop:
                n = min(64, stop - at)
                terms(second, offset(a, at * size), offset(b, at * size), m, n)
                for i in range(n):
                    put(to, i, get(to, i) + get(second, i))
                to = offset(to, n * wide)
                at += n
            push(levels, j, large_block(x, unit))
        level = 0
        while (half >> level) > 1:
            level += 1
        return get(levels, level)

    return row_sum
