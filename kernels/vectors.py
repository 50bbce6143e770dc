"""Explicit vectors for kernels: lines of 64 bytes and sums over 64 items, where a loop would not do."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import CARRIERS, intrinsic

_LINE = ir.VectorType(ir.IntType(32), 16)


def _store_line(nontemporal: bool, align: int, name: str) -> Any:
    """Copy 64 bytes from src to dst as vectors."""

    def typed(typingctx: Any, dst: Any, src: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            line = builder.load(builder.bitcast(args[1], _LINE.as_pointer()), align=1, typ=_LINE)
            st = builder.store(line, builder.bitcast(args[0], _LINE.as_pointer()), align=align)
            if nontemporal:
                st.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            return context.get_dummy_value()

        return types.void(types.voidptr, types.voidptr), codegen

    typed.__name__ = name
    return intrinsic(typed)


copy_line = _store_line(False, 1, "copy_line")
#: dst must be 64-byte aligned. Bypasses the caches; end the kernel with `store_fence`.
stream_line = _store_line(True, 64, "stream_line")


def _lanes(kind: str) -> tuple[Any, Any, Any]:
    """Carrier type, its LLVM type and the type of 64 of them."""
    ty = CARRIERS[kind]
    llty = ir.DoubleType() if kind == "f64" else ir.FloatType()
    return ty, llty, ir.VectorType(llty, 64)


def _vector(builder: Any, p: Any, vector: Any) -> Any:
    return builder.bitcast(p, vector.as_pointer())


def add64(kind: str) -> Any:
    """add(x, y): x[i] += y[i] for i < 64, as vectors.

    Sums over scratch memory use this rather than a loop: LLVM 20's loop vectoriser marks the two sides of such a loop as
    never overlapping, and the mark outlives the surrounding loop once that is unrolled (x[0:4] += x[4:8], then
    x[0:2] += x[2:4] read stale values).
    """
    vector = _lanes(kind)[2]

    @intrinsic
    def add(typingctx: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = _vector(builder, args[0], vector)
            a = builder.load(to, align=4, typ=vector)
            b = builder.load(_vector(builder, args[1], vector), align=4, typ=vector)
            builder.store(builder.fadd(a, b), to, align=4)
            return context.get_dummy_value()

        return types.void(types.voidptr, types.voidptr), codegen

    return add


def fill64(kind: str) -> Any:
    """fill(x, value): x[i] = value for i < 64."""
    ty, llty, vector = _lanes(kind)

    @intrinsic
    def fill(typingctx: Any, x: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one = ir.VectorType(llty, 1)
            first = builder.insert_element(ir.Constant(one, ir.Undefined), args[1], ir.Constant(ir.IntType(32), 0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            lanes = builder.shuffle_vector(first, ir.Constant(one, ir.Undefined), mask)
            builder.store(lanes, _vector(builder, args[0], vector), align=4)
            return context.get_dummy_value()

        return types.void(types.voidptr, ty), codegen

    return fill


def sum_pairs(kind: str, count: int, neighbours: bool) -> Any:
    """total(x): the sum of count values (a power of two) by halving their number until one is left.

    neighbours: v[i] = v[2i] + v[2i+1]; otherwise v[i] = v[i] + v[i + half].
    """
    ty, llty, _ = _lanes(kind)
    i32 = ir.IntType(32)

    @intrinsic
    def total(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(llty, count)
            v, n = builder.load(_vector(builder, args[0], vector), align=4, typ=vector), count
            while n > 1:
                half = n // 2
                left = [2 * i for i in range(half)] if neighbours else list(range(half))
                right = [2 * i + 1 for i in range(half)] if neighbours else list(range(half, n))
                mask = ir.VectorType(i32, half)
                none = ir.Constant(ir.VectorType(llty, n), ir.Undefined)
                a = builder.shuffle_vector(v, none, ir.Constant(mask, left))
                b = builder.shuffle_vector(v, none, ir.Constant(mask, right))
                v, n = builder.fadd(a, b), half
            return builder.extract_element(v, ir.Constant(i32, 0))

        return ty(types.voidptr), codegen

    return total
