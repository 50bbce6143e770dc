"""Elementwise loops over raw addresses.

A tile of inputs is read and computed into the stack, then copied out. The tile
- lets LLVM vectorise without asking whether the arrays overlap, so `out` may be one of the inputs,
- can leave by streaming stores, which overlap computing with memory traffic when the output is large.
A body and its tail run the same operations on every element, so a split of the range never changes a bit.
"""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable

from .bits import address, inline, load, offset, pointer, scratch, store
from .formats import FORMATS
from .machine import float_mode_enter, float_mode_leave, no_inline, prefetch, store_fence
from .vectors import copy_line, stream_line

#: Bytes of output per tile. Small, so that computing one tile overlaps with the stores of the one before.
TILE_BYTES = 512
#: Bytes of output per tile of a plan that stores to the tensor itself, and whose inputs are not prefetched.
DIRECT_BYTES = 8192
#: Output bytes of one call, or of the whole that it is a part of, from which the stores bypass the caches.
STREAM_BYTES = 2 << 20


_load_byte, _store_byte = load["u8"], store["u8"]


@inline
def copy_tile(dst, src, nbytes, stream):  # type: ignore[no-untyped-def]
    """Copy a tile from the stack to dst, in lines where possible."""
    lines = nbytes >> 6
    if stream and address(dst) & 63 == 0:
        for i in range(lines):
            stream_line(offset(dst, i << 6), offset(src, i << 6))
    else:
        for i in range(lines):
            copy_line(offset(dst, i << 6), offset(src, i << 6))
    for i in range(lines << 6, nbytes):
        _store_byte(dst, i, _load_byte(src, i))


def body_of(name: str, body: Any) -> Any:
    """`body` as a function that a kernel calls between entering and leaving its floating-point mode.

    It stays a function of its own (LLVM knows nothing of the mode and could move arithmetic across the switch), under
    a symbol that is unique among all cached kernels: the linker of the JIT takes the first of two equal names.
    """
    body.__name__ = body.__qualname__ = name
    # forceinline is given because a callee would otherwise inherit it.
    return register_jitable(forceinline=False, error_model="numpy", boundscheck=False, _nrt=False)(body)


def guarded(body: Any) -> Any:
    """The kernel around a body: the caller's floating-point mode is set aside and restored."""

    def kernel(args, start, stop):  # type: ignore[no-untyped-def]
        mode = float_mode_enter()
        body(args, start, stop)
        float_mode_leave(mode)

    return kernel


def elementwise(name: str, tile: Any, inputs: tuple[str, ...], output: str, table: bool, direct: bool) -> Any:
    """The Python function of an elementwise kernel of one or two inputs.

    tile(out, in0[, in1], table, n) computes n elements, or, of two inputs, tile(out, in0, in1, table, n, stream) into the tensor itself
    (`direct`); args = [out, in0[, in1][, table], whole]. whole: 0, or the bytes of the result that this call computes a part of.
    """
    size = FORMATS[output].size
    size0, size1 = FORMATS[inputs[0]].size, FORMATS[inputs[-1]].size
    tile_memory = scratch(TILE_BYTES)
    table_at = 1 + len(inputs) if table else 0
    whole_at = 1 + len(inputs) + table
    # Two streams of 16-bit inputs outrun the CPU's own prefetching; wider ones do not gain.
    ahead = 2048 if size0 == 2 else 0
    full = (DIRECT_BYTES if direct and not ahead else TILE_BYTES) // size

    @inline
    def tile_length(out, i, left):  # type: ignore[no-untyped-def]
        # The first tile ends at a line of the output, so that all later ones can stream.
        n = full - ((address(out) + i * size) & 63) // size
        return min(n, left)

    if len(inputs) == 2:
        if direct:
            put_tile = tile
        else:

            @inline
            def put_tile(out, p0, p1, aux, n, stream):  # type: ignore[no-untyped-def]
                buffer = tile_memory()
                if n == full:  # a length that LLVM knows
                    tile(buffer, p0, p1, aux, full)
                else:
                    tile(buffer, p0, p1, aux, n)
                copy_tile(out, buffer, n * size, stream)

        def body(args, start, stop):  # type: ignore[no-untyped-def]
            no_inline()
            out, in0, in1, aux = pointer(args[0]), pointer(args[1]), pointer(args[2]), pointer(args[table_at])
            whole = args[whole_at]
            stream = max(whole, (stop - start) * size) >= STREAM_BYTES
            i = start
            while i < stop:
                n = tile_length(out, i, stop - i)
                to, p0, p1 = offset(out, i * size), offset(in0, i * size0), offset(in1, i * size1)
                if stream and ahead > 0:
                    for line in range(0, TILE_BYTES, 64):
                        prefetch(p0, ahead + line)
                        prefetch(p1, ahead + line)
                put_tile(to, p0, p1, aux, n, stream)
                i += n
            if stream and whole == 0:
                store_fence()

    else:

        def body(args, start, stop):  # type: ignore[no-untyped-def]
            no_inline()
            out, in0, aux = pointer(args[0]), pointer(args[1]), pointer(args[table_at])
            buffer = tile_memory()
            whole = args[whole_at]
            stream = max(whole, (stop - start) * size) >= STREAM_BYTES
            i = start
            while i < stop:
                n = tile_length(out, i, stop - i)
                p0 = offset(in0, i * size0)
                if n == full:
                    tile(buffer, p0, aux, full)
                else:
                    tile(buffer, p0, aux, n)
                copy_tile(offset(out, i * size), buffer, n * size, stream)
                i += n
            if stream and whole == 0:
                store_fence()

    return guarded(body_of(name + "_body", body))
