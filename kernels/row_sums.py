"""The sum of a row in each of the orders that `reduce` names: row_sum(a, b, m, r, x, lanes), with scratch memory x and lanes."""

from __future__ import annotations

from typing import Any

from .bits import inline, offset, scratch
from .flows import RowPlan
from .machine import converts_half
from .reduce import LEVELS, below
from .row_parts import Parts

#: A row of at most so many elements keeps the exp of each in x, for the result.
KEPT = 4096


def row_sum(name: str, plan: RowPlan, parts: Parts, h_limit: int, f_limit: int, unit: int) -> Any:
    """The row_sum of a plan. `h_limit`, `f_limit`, `unit`: of the trees."""
    if plan.order == "tree":
        return _tree(parts, h_limit, f_limit, unit)
    if plan.order == "sequential":
        return _sequential(parts)
    if by_vectors(plan):
        assert plan.vectors is not None
        return _light_lanes64(parts, _groups_by_vectors(name, plan.dtype, plan.vectors[0]))
    return _heavy_lanes64(parts) if parts.heavy else _light_lanes64(parts, _groups(parts))


def by_vectors(plan: RowPlan) -> bool:
    """Whether the plan's steps can be written out as vectors for the CPU that Numba compiles for."""
    return plan.vectors is not None and (plan.dtype != "FLOAT16" or converts_half())


def _heavy_lanes64(parts: Parts) -> Any:
    """64 accumulators that start at +0, element k onto accumulator k mod 64, then T."""
    orders, size, terms, keeps = parts.orders, parts.size, parts.terms, parts.keeps
    get, add, fill, register, pad, zero, wide = orders.get, orders.add, orders.fill, orders.register, orders.pad, orders.zero, orders.size

    @inline
    def row_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            terms(x, a, b, m, 1)
            return get(x, 0)
        fill(lanes, zero)
        step = wide if keeps and r <= KEPT else 0
        for k in range(0, r, 64):
            n = min(64, r - k)
            to = offset(x, k * step)
            terms(to, offset(a, k * size), offset(b, k * size), m, n)
            pad(to, n, 64, -zero)
            add(lanes, to)
        return register(lanes)

    return row_sum


def _light_lanes64(parts: Parts, groups: Any) -> Any:
    """The same where a term costs little; groups(lanes, a, b, m, n) sums n elements, a multiple of 64."""
    orders, size, term, read, read_b = parts.orders, parts.size, parts.term, parts.read, parts.read_b
    get, put, register = orders.get, orders.put, orders.register

    @inline
    def row_sum(a, b, m, r, x, lanes):  # type: ignore[no-untyped-def]
        if r == 1:
            return term(read(a, 0), read_b(b, 0), m)
        whole = r & ~63
        groups(lanes, a, b, m, whole)
        p, q = offset(a, whole * size), offset(b, whole * size)
        for j in range(r - whole):
            put(lanes, j, get(lanes, j) + term(read(p, j), read_b(q, j), m))
        return register(lanes)

    return row_sum


def _groups(parts: Parts) -> Any:
    """`groups` by loops over elements."""
    orders, size, term, read, read_b = parts.orders, parts.size, parts.term, parts.read, parts.read_b
    get, put, fill, zero = orders.get, orders.put, orders.fill, orders.zero

    @inline
    def groups(lanes, a, b, m, n):  # type: ignore[no-untyped-def]
        fill(lanes, zero)
        for k in range(0, n, 64):
            p, q = offset(a, k * size), offset(b, k * size)
            for j in range(64):
                put(lanes, j, get(lanes, j) + term(read(p, j), read_b(q, j), m))

    return groups


def _groups_by_vectors(name: str, dtype: str, step: Any) -> Any:
    """`groups` in registers."""
    from .lanes import fold64

    sums = fold64(name + "_sum", dtype, 0.0, lambda total, a, b: total + step(a, b))

    @inline
    def groups(lanes, a, b, m, n):  # type: ignore[no-untyped-def]
        sums(lanes, a, b, n)

    return groups


def _sequential(parts: Parts) -> Any:
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
