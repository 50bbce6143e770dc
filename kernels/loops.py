"""Elementwise loops over raw addresses.

A tile of inputs is read and computed into the stack, then copied out. The tile
- lets LLVM vectorise without asking whether the arrays overlap, so `out` may be one of the inputs,
- can leave by streaming stores, which overlap computing with memory traffic when the output is large.
A body and its tail run the same operations on every element, so a split of the range never changes a bit.
"""

from __future__ import annotations

from typing import Any

from .bits import (
    address,
    copy_line,
    float_mode_enter,
    float_mode_leave,
    inline,
    load,
    no_inline,
    offset,
    pointer,
    scratch,
    store,
    store_fence,
    stream_line,
)

#: Bytes of output per tile. Small, so that computing one tile overlaps with the stores of the one before.
TILE_BYTES = 512
#: Output bytes of one call from which the stores bypass the caches.
STREAM_BYTES = 8 << 20


@inline
def copy_bytes(dst, src, start, stop):  # type: ignore[no-untyped-def]
    """Copy bytes [start, stop) one by one (the ends that do not fill a line)."""
    get, put = load["u8"], store["u8"]
    for i in range(start, stop):
        put(dst, i, get(src, i))


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


def _named(body: Any, name: str) -> Any:
    # A body stays a function of its own in the machine code. Its symbol must be unique among all cached kernels:
    # the linker of the JIT takes the first of two equal names.
    body.__name__ = body.__qualname__ = name + "_body"
    return inline_not(body)


def inline_not(body: Any) -> Any:
    from numba.extending import register_jitable

    return register_jitable(error_model="numpy", boundscheck=False, _nrt=False)(body)


def elementwise(name: str, inputs: int, tile: Any, out_size: int, in_sizes: tuple[int, ...]) -> Any:
    """The Python function of an elementwise kernel of one or two inputs.

    tile(out, in0[, in1], n): computes n elements; see `flows`.
    """
    size = out_size
    size0 = in_sizes[0]
    size1 = in_sizes[-1]
    count = TILE_BYTES // max(out_size, 1)
    tile_memory = scratch(TILE_BYTES)

    if inputs == 2:

        def body2(args, start, stop):  # type: ignore[no-untyped-def]
            no_inline()
            out, in0, in1 = pointer(args[0]), pointer(args[1]), pointer(args[2])
            buffer = tile_memory()
            stream = (stop - start) * size >= STREAM_BYTES
            i = start
            while i < stop:
                # The first tile ends at a line of the output, so that all later ones can stream.
                n = count - (((address(out) + i * size) & 63) // size)
                n = min(n, stop - i)
                p0, p1 = offset(in0, i * size0), offset(in1, i * size1)
                if n == count:
                    tile(buffer, p0, p1, count)
                else:
                    tile(buffer, p0, p1, n)
                copy_tile(offset(out, i * size), buffer, n * size, stream)
                i += n
            if stream:
                store_fence()

        body = _named(body2, name)
    else:

        def body1(args, start, stop):  # type: ignore[no-untyped-def]
            no_inline()
            out, in0 = pointer(args[0]), pointer(args[1])
            buffer = tile_memory()
            stream = (stop - start) * size >= STREAM_BYTES
            i = start
            while i < stop:
                n = count - (((address(out) + i * size) & 63) // size)
                n = min(n, stop - i)
                p0 = offset(in0, i * size0)
                if n == count:
                    tile(buffer, p0, count)
                else:
                    tile(buffer, p0, n)
                copy_tile(offset(out, i * size), buffer, n * size, stream)
                i += n
            if stream:
                store_fence()

        body = _named(body1, name)

    def kernel(args, start, stop):  # type: ignore[no-untyped-def]
        mode = float_mode_enter()
        body(args, start, stop)
        float_mode_leave(mode)

    return kernel
