"""Strided copies in blocks that fit in the caches: bits are moved, never touched.

A copy whose two sides run along different dims reads one item of every line that it touches, unless it goes through the
items block by block. Both sides of a block of 8 x 8 items are read and written as vectors.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import inline, intrinsic, load, offset, pointer, store
from .loops import body_of, guarded
from .machine import no_inline, prefetch

ITEM_SIZES = (1, 2, 4, 8, 16)
#: Bytes of every source line's run that a block of a turned copy reads before it moves on: two lines, which CPUs fetch in pairs.
RUN_BYTES = 128
#: Columns ahead of which a turned copy asks for its source.
AHEAD = 16


def _turn8(itemsize: int) -> Any:
    """turn(dst, dst_step, src, src_step): item j of line i of src becomes item i of line j of dst, 8 lines of 8 items; steps in bytes."""
    vector = ir.VectorType(ir.IntType(8 * itemsize), 8)
    i32 = ir.IntType(32)

    @intrinsic
    def turn(typingctx: Any, dst: Any, dst_step: Any, src: Any, src_step: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            def at(p: Any, step: Any, k: int) -> Any:
                where = builder.gep(p, [builder.mul(step, ir.Constant(ir.IntType(64), k))], source_etype=ir.IntType(8))
                return builder.bitcast(where, vector.as_pointer())

            def mix(a: Any, b: Any, order: list[int]) -> Any:
                return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(i32, 8), order))

            v = [builder.load(at(args[2], args[3], k), align=1, typ=vector) for k in range(8)]
            if itemsize == 4:
                # Shuffles within halves of 128 bits, then the halves: what AVX2 does in one instruction each.
                for low, high in (([0, 8, 1, 9, 4, 12, 5, 13], [2, 10, 3, 11, 6, 14, 7, 15]),):
                    v = [mix(v[k], v[k + 1], order) for k in range(0, 8, 2) for order in (low, high)]
                low, high = [0, 1, 8, 9, 4, 5, 12, 13], [2, 3, 10, 11, 6, 7, 14, 15]
                v = [mix(v[k + h], v[k + h + 2], order) for k in (0, 4) for h in (0, 1) for order in (low, high)]
                low, high = [0, 1, 2, 3, 8, 9, 10, 11], [4, 5, 6, 7, 12, 13, 14, 15]
                v = [mix(v[k], v[k + 4], order) for order in (low, high) for k in range(4)]
            else:
                low, high = [0, 8, 1, 9, 2, 10, 3, 11], [4, 12, 5, 13, 6, 14, 7, 15]
                for _ in range(3):
                    v = [mix(v[k], v[k + 4], order) for k in range(4) for order in (low, high)]
            for k in range(8):
                builder.store(v[k], at(args[0], args[1], k), align=1)
            return context.get_dummy_value()

        return types.void(types.voidptr, types.int64, types.voidptr, types.int64), codegen

    return turn


def strided_copy(name: str, itemsize: int) -> Any:
    """The kernel that moves items of one size between two strided arrays; args as in `build.strided_copy`.

    In row-major order wherever the destination may overlap itself: the order then decides what it holds.
    """
    key = {1: "u8", 2: "u16", 4: "u32", 8: "u64", 16: "u64"}[itemsize]
    get, put = load[key], store[key]
    run = RUN_BYTES // itemsize
    turns = itemsize <= 4
    turn8 = _turn8(itemsize if turns else 4)

    @inline
    def move(dst, src):  # type: ignore[no-untyped-def]
        put(dst, 0, get(src, 0))
        if itemsize == 16:
            put(dst, 1, get(src, 1))

    def line(p, q, n, to, frm):  # type: ignore[no-untyped-def]
        no_inline()
        if to == itemsize and frm == itemsize:
            for j in range(n):
                move(offset(p, j * itemsize), offset(q, j * itemsize))
        else:
            for j in range(n):
                move(offset(p, j * to), offset(q, j * frm))

    copy_line = body_of(name + "_line", line)

    def turned(dst, src, rows, cols, to_row, frm_col):  # type: ignore[no-untyped-def]
        # dst runs along columns, src along rows.
        no_inline()
        whole = cols & -8
        for a in range(0, rows, run):
            n = min(run, rows - a)
            full = n & -8
            p, q = offset(dst, a * to_row), offset(src, a * itemsize)
            for c in range(0, whole, 8):
                ahead = offset(q, (c + AHEAD) * frm_col)
                for k in range(8):
                    prefetch(ahead, k * frm_col)
                    prefetch(ahead, k * frm_col + (n - 1) * itemsize)
                for b in range(0, full, 8):
                    turn8(offset(p, b * to_row + c * itemsize), to_row, offset(q, c * frm_col + b * itemsize), frm_col)
            for b in range(n):
                first = whole if b < full else 0
                copy_line(
                    offset(p, b * to_row + first * itemsize), offset(q, first * frm_col + b * itemsize), cols - first, itemsize, frm_col
                )

    copy_turned = body_of(name + "_turned", turned)

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        dst, src, rank = pointer(args[0]), pointer(args[1]), args[2]
        if rank == 0:
            if start < stop:
                move(dst, src)
            return
        dims, to, frm = 3, 3 + rank, 3 + 2 * rank
        width, to_col, frm_col = args[dims + rank - 1], args[to + rank - 1], args[frm + rank - 1]
        height, to_row, frm_row = 1, 0, 0
        if rank > 1:
            height, to_row, frm_row = args[dims + rank - 2], args[to + rank - 2], args[frm + rank - 2]
        i = start
        while i < stop:
            # As many whole rows of the two innermost dims as there are, or a part of one row.
            row = i // width
            first = i - row * width
            n = min(width - first, stop - i)
            outer = row // height
            at = row - outer * height
            rows = 1 if n < width else min((stop - i) // width, height - at)
            t, f = first * to_col + at * to_row, first * frm_col + at * frm_row
            for k in range(rank - 3, -1, -1):
                d = args[dims + k]
                at = outer % d
                outer //= d
                t += at * args[to + k]
                f += at * args[frm + k]
            p, q = offset(dst, t), offset(src, f)
            if turns and rows >= 8 and n >= 8 and to_col == itemsize and frm_row == itemsize and abs(to_row) >= n * itemsize:
                copy_turned(p, q, rows, n, to_row, frm_col)
            elif turns and rows >= 8 and n >= 8 and to_row == itemsize and frm_col == itemsize and abs(to_col) >= rows * itemsize:
                copy_turned(p, q, n, rows, to_col, frm_row)
            else:
                for a in range(rows):
                    copy_line(offset(p, a * to_row), offset(q, a * frm_row), n, to_col, frm_col)
            i += rows * n

    return guarded(body_of(name + "_body", body))
