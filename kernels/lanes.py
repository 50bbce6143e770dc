"""Loops over vectors of eight FLOAT that are written out: for what LLVM does not make of a loop over elements.

They need no scratch memory between a result and its tensor, since all of a vector is read before it is written (`out` may be an input), and
their stores can bypass the caches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import address, inline, intrinsic, offset
from .flows import Kind
from .lane_memory import Memory, Table, in_order
from .lane_values import FLOATS, I32, INTS, LANES, Constants, Lanes
from .loops import body_of
from .machine import cgutils, no_inline

__all__ = ["FLOATS", "INTS", "LANES", "Constants", "Lanes", "Memory", "direct", "fold64", "groups", "mapped", "saturated"]


def groups(builder: Any, n: Any) -> Any:
    return builder.lshr(n, ir.Constant(n.type, LANES.bit_length() - 1))


Step = Callable[..., Lanes]


def saturated(x: Lanes, k: Constants, largest: float) -> Lanes:
    """x before a rounding that saturates at `largest`; k has it, its negative and 0."""
    x = x.choose("==", x, x, k(0.0))
    x = x.choose(">", k(largest), k(largest), x)
    return x.choose("<", k(-largest), k(-largest), x)


def _loop(name: str, kind: Kind, step: Step, constants: Sequence[float], stream: bool) -> Any:
    limits = (0.0, kind.largest, -kind.largest) if kind.saturate else ()

    def typed(typingctx: Any, out: Any, a: Any, b: Any, c: Any, s: Any, n: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            out, *inputs = (Memory(builder, p, kind.dtype) for p in args[:4])
            operands: list[Memory | Table] = [inputs[0], Table(builder, args[3], args[2], kind.dtype)] if kind.table else [*inputs]
            k = Constants(builder, (*constants, *limits))
            none = ir.Constant(FLOATS, ir.Undefined)
            first = builder.insert_element(none, args[4], ir.Constant(I32, 0))
            scalar = Lanes(builder, builder.shuffle_vector(first, none, ir.Constant(INTS, None)))

            def result(*values: Lanes) -> Lanes:
                found = step(k, *values, *([scalar] if not kind.table else []))
                return saturated(found, k, kind.largest) if kind.saturate else found

            count = groups(builder, args[5])
            done = ir.Constant(count.type, 0)
            if kind.dtype != "FLOAT":
                pairs = builder.lshr(count, ir.Constant(count.type, 1))
                done = builder.shl(pairs, ir.Constant(count.type, 1))
                with cgutils.for_range(builder, pairs) as loop:
                    low, high = zip(*(p.pair(loop.index) for p in operands), strict=True)
                    out.put_pair(loop.index, result(*low), result(*high), stream, kind.plus_zero)
            with cgutils.for_range_slice(builder, done, count, ir.Constant(count.type, 1)) as (index, _):
                out.put(index, result(*(p[index] for p in operands)), stream, kind.plus_zero)
            return context.get_dummy_value()

        return types.void(*[types.voidptr] * 4, types.float32, types.int64), codegen

    typed.__name__ = name
    return intrinsic(typed)


def mapped(name: str, kind: Kind, step: Step, constants: Sequence[float]) -> Any:
    """run(out, a, b, c, s, n, stream): out[i] = step(k, a[i], b[i], c[i], s), n a multiple of LANES; k(x) is one of the constants.

    With kind.table it is step(k, a[i], c[pattern of b[i]]). `out` may be a, b or c; what `step` does not use is not read. With `stream` the
    stores bypass the caches if `out` starts a line.
    """
    here, past = _loop(name + "_here", kind, step, constants, False), _loop(name + "_past", kind, step, constants, True)

    @inline
    def run(out, a, b, c, s, n, stream):  # type: ignore[no-untyped-def]
        if stream and address(out) & 63 == 0:
            past(out, a, b, c, s, n)
        else:
            here(out, a, b, c, s, n)

    return run


def fold64(name: str, dtype: str, start: float, step: Callable[[Lanes, Lanes, Lanes], Lanes]) -> Any:
    """fold(to, a, b, n): to[j] = step(... step(step(start, a[j], b[j]), a[64 + j], b[64 + j]) ...), 64 FLOAT, n a multiple of 64.

    In order, in registers: LLVM would keep the 64 in memory, where each step waits for the last one's store.
    """

    def typed(typingctx: Any, to: Any, a: Any, b: Any, n: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            left, right = Memory(builder, args[1], dtype), Memory(builder, args[2], dtype)
            totals = [cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [start] * LANES)) for _ in range(64 // LANES)]
            each = len(totals) if dtype == "FLOAT" else len(totals) // 2
            with cgutils.for_range(builder, builder.lshr(args[3], ir.Constant(args[3].type, 6))) as loop:
                first = builder.mul(loop.index, ir.Constant(loop.index.type, each))
                operands: list[tuple[Lanes, Lanes]] = []
                for k in range(each):
                    at = builder.add(first, ir.Constant(first.type, k))
                    if dtype == "FLOAT":
                        operands.append((left[at], right[at]))
                    else:
                        operands += zip(left.pair(at), right.pair(at), strict=True)
                for total, (x, y) in zip(totals, operands, strict=True):
                    builder.store(step(Lanes(builder, builder.load(total, typ=FLOATS)), x, y).value, total)
            found = [builder.load(total, typ=FLOATS) for total in totals]
            if dtype != "FLOAT":
                found = [half for k in range(0, len(found), 2) for half in in_order(builder, dtype, found[k], found[k + 1])]
            out = Memory(builder, args[0])
            for k, value in enumerate(found):
                out.put(ir.Constant(args[3].type, k), Lanes(builder, value))
            return context.get_dummy_value()

        return types.void(*[types.voidptr] * 3, types.int64), codegen

    typed.__name__ = name
    return intrinsic(typed)


def direct(name: str, fast: Any, plain: Any, size: int = 4) -> Any:
    """tile(out, in0, in1, table, n, stream): `fast`, which has the same arguments, does whole vectors, the tile `plain` the rest.

    size: bytes of an element of each tensor.
    """

    def left_over(out, in0, in1, table, n):  # type: ignore[no-untyped-def]
        no_inline()
        plain(out, in0, in1, table, n)

    rest = body_of(name + "_rest", left_over)

    @inline
    def tile(out, in0, in1, table, n, stream):  # type: ignore[no-untyped-def]
        whole = n & ~(LANES - 1)
        fast(out, in0, in1, table, whole, stream)
        if whole != n:
            at = size * whole
            rest(offset(out, at), offset(in0, at), offset(in1, at), table, n - whole)

    return tile
