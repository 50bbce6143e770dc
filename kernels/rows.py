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

import math
from typing import Any

from .bits import address, inline, offset, pointer, scratch
from .flows import Kind, RowPlan
from .loops import STREAM_BYTES, TILE_BYTES, body_of, copy_tile, guarded
from .machine import converts_half, no_inline, prefetch, store_fence
from .reduce import LAST_LIMITS
from .row_parts import Parts
from .row_sums import KEPT, by_vectors, row_sum

#: Longest row whose successor is prefetched, in bytes.
PREFETCH_ROW = 64 << 10


def _by_tile(parts: Parts) -> Any:
    """put(out, a, b, m, s, n, stream, tile): n results, by way of the scratch memory `tile`."""
    results, size = parts.results, parts.size

    @inline
    def put(out, a, b, m, s, n, stream, tile):  # type: ignore[no-untyped-def]
        results(tile, a, b, m, s, n)
        copy_tile(out, tile, n * size, stream)

    return put


def _by_vectors(name: str, plan: RowPlan, parts: Parts) -> Any:
    """The same straight to `out`; what is left over after the last vector goes by way of `tile`."""
    from .lanes import LANES, mapped  # only a compiler can use them, and this file is also run without one

    assert plan.vectors is not None
    rest, size, step = _by_tile(parts), parts.size, plan.vectors[1]
    vectors = mapped(name + "_last", Kind(plan.dtype, plan.saturate), lambda c, a, b, _, s: step(a, b, s), ())

    @inline
    def put(out, a, b, m, s, n, stream, tile):  # type: ignore[no-untyped-def]
        whole = n & ~(LANES - 1)
        vectors(out, a, b, b, s, whole, stream)
        if whole != n:
            at = size * whole
            rest(offset(out, at), offset(a, at), offset(b, at), m, s, n - whole, False, tile)

    return put


def _maximum(name: str, plan: RowPlan, parts: Parts) -> Any:
    """row_maximum(a, r, lanes): of 64 lanes first, then of these in order; `lanes` is scratch memory."""
    read, larger, size, get, put = parts.read, parts.larger, parts.size, parts.orders.get, parts.orders.put
    if plan.exponent is None or (plan.dtype == "FLOAT16" and not converts_half()):

        @inline
        def lanes_maximum(lanes, a, b, n):  # type: ignore[no-untyped-def]
            for j in range(64):
                put(lanes, j, read(a, j))
            for k in range(64, n, 64):
                p = offset(a, k * size)
                for j in range(64):
                    put(lanes, j, larger(read(p, j), get(lanes, j)))

    else:
        from .lanes import fold64  # only a compiler can use it, and this file is also run without one

        lanes_maximum = fold64(name + "_max", plan.dtype, -math.inf, lambda so_far, a, _: a.larger(so_far))

    @inline
    def row_maximum(a, r, lanes):  # type: ignore[no-untyped-def]
        if r < 64:
            m = read(a, 0)
            for k in range(1, r):
                m = larger(read(a, k), m)
            return m
        whole = r & ~63
        lanes_maximum(lanes, a, a, whole)
        m = get(lanes, 0)
        for j in range(1, 64):
            m = larger(get(lanes, j), m)
        for j in range(whole, r):
            m = larger(read(a, j), m)
        return m

    return row_maximum


def along_last(name: str, plan: RowPlan) -> Any:
    """args = [out, in0[, in1], outer, r, 1, whole]; the range is rows. whole: 0, or the bytes of the result of which this is a part."""
    parts = Parts(name, plan)
    orders, order, maximum, inputs = parts.orders, plan.order, plan.maximum, plan.inputs
    size, wide, line, zero = parts.size, orders.size, orders.line, orders.zero
    prepare, finish, keeps, kept = parts.prepare, parts.finish, parts.keeps, parts.kept
    h_limit, f_limit, unit = LAST_LIMITS[size]
    tile_memory, lanes_memory = scratch(TILE_BYTES), scratch(128 * wide)
    # Whole lines, and a row of 16 items for the short halving.
    row_memory = scratch((f_limit + 64) // 64 * line if order == "tree" else KEPT * wide if keeps else line)
    row_maximum = _maximum(name, plan, parts) if maximum else inline(lambda a, r, lanes: zero)
    sum_of_row = row_sum(name, plan, parts, h_limit, f_limit, unit)
    put_results = _by_vectors(name, plan, parts) if by_vectors(plan) else _by_tile(parts)
    full = TILE_BYTES // size
    r_at = inputs + 2

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
            s = finish(sum_of_row(a, b, m, r, x, lanes))
            i = 0
            while i < r:
                n = min(full - ((address(o) + i * size) & 63) // size, r - i)
                if stream and row_bytes <= PREFETCH_ROW:
                    for line in range(0, TILE_BYTES, 64):
                        prefetch(a, ahead + i * size + line)
                        if inputs == 2:
                            prefetch(b, ahead + i * size + line)
                if keeps and 1 < r <= KEPT:
                    kept(tile, offset(x, i * wide), s, n)
                    copy_tile(offset(o, i * size), tile, n * size, stream)
                else:
                    put_results(offset(o, i * size), offset(a, i * size), offset(b, i * size), m, s, n, stream, tile)
                i += n
        if stream and whole == 0:
            store_fence()

    return guarded(body_of(name + "_body", body))
