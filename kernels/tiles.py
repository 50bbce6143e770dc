"""Another kernel, run on strided operands in tiles that stay in the caches.

An operand whose rows are dense is used where it is, row by row. One whose rows are not is gathered, a block of rows and
columns at a time, into a tile; the other kernel reads the tile. So no whole dense copy is ever written and read again.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import intrinsic, load, scratch, store
from .loops import body_of
from .machine import no_inline, store_fence

#: Most operands of the other kernel with its result, most words of its args, and most dims.
OPERANDS, WORDS, DIMS = 4, 16, 25
#: Where the fixed part of args ends.
FIXED = 10


@intrinsic
def _call(typingctx: Any, function: Any, args: Any, start: Any, stop: Any) -> Any:
    """Call the kernel at an address."""

    def codegen(context: Any, builder: Any, signature: Any, given: Any) -> Any:
        i64 = ir.IntType(64)
        kind = ir.FunctionType(ir.VoidType(), [i64.as_pointer(), i64, i64])
        fn = builder.inttoptr(given[0], kind.as_pointer())
        builder.call(fn, [builder.bitcast(given[1], i64.as_pointer()), given[2], given[3]])
        return context.get_dummy_value()

    return types.void(types.int64, types.voidptr, types.int64, types.int64), codegen


def tiles(name: str) -> Any:
    """The kernel that runs another kernel in tiles.

    args = [kernel, copy, itemsize, operands, unit, rows, columns, linear, words, rank,
            *addresses, *tiles, *dims, *dense, *strides, *rest]

    kernel: address of the other kernel, which takes [*operands, *rest], `words` words in all; operand 0 is its result. It
    computes `unit` elements per unit of its range. The range of this kernel is the same units, in row-major order of `dims`
    (rank >= 2). copy: address of the strided copy of `itemsize` bytes. addresses: of each operand's first element. tiles: 0
    for an operand used where it is, else memory as large as a dense copy; this call writes only the part of it that belongs to
    its own range. dense: byte strides of a dense array; strides: those of each operand, operand after operand. rows, columns:
    of a tile.
    linear = 0: the kernel is called for each row of a tile; operands without a tile have dense rows, and with unit > 1 columns
    is the last dim. linear = 1: it is called for each tile, a dense piece of the logical array; operands without a tile are dense.
    """
    get, put = load["i64"], store["i64"]
    inner_memory, row_memory, copy_memory = scratch(8 * WORDS), scratch(8 * OPERANDS), scratch(8 * (3 + 3 * DIMS))

    def linear_tiles(args, inner, first, last):  # type: ignore[no-untyped-def]
        no_inline()
        kernel, copy, itemsize, operands, unit, rank = args[0], args[1], args[2], args[3], args[4], args[9]
        length = args[5] * args[6]
        tile_at = FIXED + operands
        dims = tile_at + operands
        strides = dims + 2 * rank
        copied = copy_memory()
        put(copied, 2, rank)
        for d in range(2 * rank):
            put(copied, 3 + d, args[dims + d])
        i = first
        while i < last:
            n = min(length, last - i)
            for k in range(operands):
                tile = args[tile_at + k]
                if tile == 0:
                    put(inner, k, args[FIXED + k] + i * itemsize)
                else:
                    tile += first * itemsize
                    put(inner, k, tile)
                    put(copied, 0, tile - i * itemsize)
                    put(copied, 1, args[FIXED + k])
                    for d in range(rank):
                        put(copied, 3 + 2 * rank + d, args[strides + k * rank + d])
                    _call(copy, copied, i, i + n)
            _call(kernel, inner, 0, n // unit)
            i += n

    def row_tiles(args, inner, first, last):  # type: ignore[no-untyped-def]
        no_inline()
        kernel, copy, itemsize, operands, unit, rows, columns, rank = (
            args[0], args[1], args[2], args[3], args[4], args[5], args[6], args[9]
        )  # fmt: skip
        tile_at = FIXED + operands
        dims = tile_at + operands
        strides = dims + 2 * rank
        at_row, copied = row_memory(), copy_memory()
        put(copied, 2, 2)
        put(copied, 6, itemsize)
        width, height = args[dims + rank - 1], args[dims + rank - 2]
        # Lines of a tile an odd number of cache lines apart do not compete for the same places of the cache.
        step = (((columns * itemsize + 63) >> 6) | 1) << 6
        fits = rows * step <= (last - first) * itemsize
        i = first
        while i < last:
            row = i // width
            column = i - row * width
            n = min(width - column, last - i)
            outer = row // height
            at = row - outer * height
            high = 1 if n < width else min(rows, height - at, (last - i) // width)
            for k in range(operands):
                mine = strides + k * rank
                where, left = args[FIXED + k] + at * args[mine + rank - 2], outer
                for d in range(rank - 3, -1, -1):
                    size = args[dims + d]
                    where += (left % size) * args[mine + d]
                    left //= size
                put(at_row, k, where)
            for c in range(column, column + n, columns):
                m = min(columns, column + n - c)
                line = step if fits else m * itemsize
                put(copied, 3, high)
                put(copied, 4, m)
                put(copied, 5, line)
                for k in range(operands):
                    if args[tile_at + k] != 0:
                        mine = strides + k * rank + rank
                        put(copied, 0, args[tile_at + k] + first * itemsize)
                        put(copied, 1, get(at_row, k) + c * args[mine - 1])
                        put(copied, 7, args[mine - 2])
                        put(copied, 8, args[mine - 1])
                        _call(copy, copied, 0, high * m)
                for a in range(high):
                    for k in range(operands):
                        where = get(at_row, k) + a * args[strides + k * rank + rank - 2] + c * itemsize
                        if args[tile_at + k] != 0:
                            where = args[tile_at + k] + first * itemsize + a * line
                        put(inner, k, where)
                    _call(kernel, inner, 0, m // unit)
            i += high * n

    by_pieces, by_rows = body_of(name + "_linear", linear_tiles), body_of(name + "_rows", row_tiles)

    def kernel(args, start, stop):  # type: ignore[no-untyped-def]
        # The other kernels set the floating-point mode for themselves.
        operands, unit, words = args[3], args[4], args[8]
        inner = inner_memory()
        rest = FIXED + 2 * operands + (2 + operands) * args[9]
        for k in range(operands, words):
            put(inner, k, args[rest + k - operands])
        if args[7] != 0:
            by_pieces(args, inner, start * unit, stop * unit)
        else:
            by_rows(args, inner, start * unit, stop * unit)
        store_fence()

    return kernel
