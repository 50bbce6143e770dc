"""Casts between dtypes."""

from __future__ import annotations

from typing import Any

import numpy as np

from .bits import bits_of_f32, f32_of_bits, fabs64, inline, load, pointer, store
from .formats import (
    CARRIER_TYPES,
    FORMATS,
    INT_RANGES,
    bf16_of_f32,
    bf16_of_f32_saturating,
    half_codecs,
    int_writer,
    reader,
    round_f64,
    saturate_half,
    trunc_f64,
)
from .loops import body_of, guarded
from .machine import no_inline
from .variant import ARCHS, UnknownKernelError, Variant

F = np.float32
D = np.float64
U8 = np.uint8
U32 = np.uint32
U64 = np.uint64
I64 = np.int64

#: What can be cast: all of it is exact in DOUBLE.
SOURCES = ("DOUBLE", "FLOAT", "FLOAT16", "BF16", "INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32", "BOOL")
TARGETS = tuple(FORMATS)


def cast_key(src: str, dst: str, v: Variant) -> tuple[str, str, str, str]:
    """What decides the bits of a cast: source, target, overflow mode, rounding to integers."""
    if src not in SOURCES:
        raise UnknownKernelError(f"no cast from {src}; known: {', '.join(SOURCES)}")
    if dst not in TARGETS:
        raise UnknownKernelError(f"no cast to {dst}; known: {', '.join(TARGETS)}")
    if v.arch not in ARCHS:
        raise UnknownKernelError(f"no architecture {v.arch!r}; known: {', '.join(ARCHS)}")
    mode = "sat" if v.saturate and dst in ("FLOAT16", "BF16") else "inf"
    to_int = ("rint" if v.arch == "dav_3510" else "trunc") if dst.lstrip("U") in INT_RANGES else ""
    return src, dst, mode, to_int


@inline
def odd_f32_of_f64(x):  # type: ignore[no-untyped-def]
    """DOUBLE -> FLOAT rounded to odd: a following rounding to 16 bits is then as good as one rounding of x."""
    y = F(x)
    b = bits_of_f32(y)
    inexact = (D(y) != x) & (x == x)
    even = b & U32(1) == U32(0)
    # Of the two neighbours of an inexact x one is odd: if y is the even one, step toward x.
    step = U32(0xFFFFFFFF) if fabs64(D(y)) > fabs64(x) else U32(1)
    return f32_of_bits(b + step if inexact & even else b)


@inline
def uint64_of_f64(x):  # type: ignore[no-untyped-def]
    """An integral DOUBLE as UINT64, clamped; NaN gives 0."""
    big = x >= D(2.0**64)
    r = U64(D(0.0) if big or not x > D(0.0) else x)
    return U64(0xFFFFFFFFFFFFFFFF) if big else r


def _writer(dst: str, mode: str, to_int: str) -> Any:
    """write(p, i, x) of a DOUBLE x."""
    put = store[FORMATS[dst].carrier]
    if dst in ("FLOAT16", "BF16"):
        half = half_codecs()[1]
        narrow = {
            ("BF16", "inf"): bf16_of_f32, ("BF16", "sat"): bf16_of_f32_saturating, ("FLOAT16", "inf"): half,
        }.get((dst, mode))  # fmt: skip
        if narrow is None:

            @inline
            def narrow(x):  # type: ignore[no-untyped-def]
                return half(saturate_half(x))

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, narrow(odd_f32_of_f64(x)))

    elif dst in ("COMPLEX64", "COMPLEX128"):
        real = CARRIER_TYPES[FORMATS[dst].carrier]

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, 2 * i, real(x))
            put(p, 2 * i + 1, real(0.0))

    elif dst == "BOOL":

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, U8(0) if x == D(0.0) else U8(1))

    elif dst == "UINT64":
        integral = trunc_f64 if to_int == "trunc" else round_f64

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, uint64_of_f64(integral(x)))

    elif dst in INT_RANGES:
        write = int_writer(dst, to_int, False)
    else:
        real = CARRIER_TYPES[FORMATS[dst].carrier]

        @inline
        def write(p, i, x):  # type: ignore[no-untyped-def]
            put(p, i, real(x))

    return write


def cast(name: str, src: str, dst: str, mode: str, to_int: str) -> Any:
    """The kernel of one conversion; every source value goes through DOUBLE, exactly, and is rounded once.

    To FLOAT16 and BF16 with the overflow mode, to FLOAT without; to integers toward zero or (dav_3510) to nearest even,
    clamped, NaN 0; to BOOL 0 for ±0, else 1 (NaN too); to complex with imaginary +0.
    """
    floating = src in ("FLOAT", "FLOAT16", "BF16", "DOUBLE")
    read = reader(src) if floating else load[FORMATS[src].carrier]
    write = _writer(dst, mode, to_int)

    def body(args, start, stop):  # type: ignore[no-untyped-def]
        no_inline()
        out, in0 = pointer(args[0]), pointer(args[1])
        for i in range(start, stop):
            write(out, i, D(read(in0, i)))

    return guarded(body_of(name + "_body", body))
