"""aclnnSelu and aclnnSeluBackward. The gradient is taken from the operator's *result* y, not from its input."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bits import bits_of_f32, f32_of_bits, inline, load, store
from ..catalog import chosen, flushes
from ..elementary import Elementary
from ..formats import half_codecs, int_writer, reader, reader_int32_through_half, round_half, saturate_half, writer
from ..variant import Variant
from . import Kind, Plan

F = np.float32
I8 = np.int8
I32 = np.int32
U16 = np.uint16
U32 = np.uint32
#: Added and taken off again it rounds a small FLOAT to an integer, ties to even.
ROUND = F(1.5 * 2.0**23)
#: lambda, lambda·alpha and alpha of SELU, each rounded to FLOAT, and the first two to FLOAT16.
S = F(1.0507009873554804934193349852946)
SA = F(1.7580993408473768599402175208123)
ALPHA = F(1.6732632423543772848170429916717)
S_HALF = F(1.05078125)
SA_HALF = F(1.7578125)
S_HALF_BITS = U16(0x3C34)


def _binary_tile(read: Any, step: Any, write: Any) -> Any:
    @inline
    def tile(out, gs, ys, table, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            write(out, i, step(read(gs, i), read(ys, i)))

    return tile


def _unary_tile(read: Any, step: Any, write: Any) -> Any:
    @inline
    def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            write(out, i, step(read(xs, i)))

    return tile


# In the steps of selu_backward the factor of g is selected before the product: (y<0 ? b : 0) + (y<0 ? 0 : c) with
# b = g*a and c = g*S has the bits of g*(y<0 ? a : S) + 0, with one product less. The addition of +0 stays: it turns
# -0.0 into +0.0, as the sum of the two selected halves does.


@inline
def _step_lt(g, y):  # type: ignore[no-untyped-def]
    return g * (y + SA if y < F(0.0) else S) + F(0.0)


@inline
def _step_le(g, y):  # type: ignore[no-untyped-def]
    return g * (y + SA if y <= F(0.0) else S)


@inline
def _step_document(g, y):  # type: ignore[no-untyped-def]
    return g * (y / S + ALPHA) if y < F(0.0) else g


def _lanes(steps: str, dtype: str, saturate: bool, plain: Any) -> Any:
    """The tile of `Plan.direct`: what is left over at the end is done by the tile `plain`."""
    from ..lanes import direct, mapped, saturated  # here: only a compiler can use them, and the flow is also read without one

    half = steps == "lt_half"
    scale, scale_alpha, alpha = (float(c) for c in ((S_HALF, SA_HALF, ALPHA) if half else (S, SA, ALPHA)))
    kind = Kind(dtype, saturate, plus_zero=half)

    def step(k: Any, g: Any, y: Any, _: Any, s: Any) -> Any:
        if steps == "document":
            return y.choose("<", k(0.0), g * (y / k(scale) + k(alpha)), g)
        a = y + k(scale_alpha)
        if half:
            a = (saturated(a, k, kind.largest) if saturate else a).rounded_to_half()  # for y < 0 that is 0, infinite or 2^-10 at least
        product = g * y.choose("<=" if steps == "le" else "<", k(0.0), a, k(scale))
        return product + k(0.0) if steps == "lt" else product

    name = "_".join(("selu_backward", steps, dtype, "sat" if saturate else "inf"))
    run = mapped(name, kind, step, (0.0, scale, scale_alpha, alpha))

    @inline
    def fast(out, gs, ys, table, n, stream):  # type: ignore[no-untyped-def]
        run(out, gs, ys, ys, F(0.0), n, stream)

    return direct(name, fast, plain, 4 if dtype == "FLOAT" else 2)


def _tile_half(saturate: bool) -> Any:
    """The steps with y < 0 in FLOAT16: every step rounds."""
    widen, half = half_codecs()
    get, put = load["u16"], store["u16"]

    @inline
    def narrow(x):  # type: ignore[no-untyped-def]
        return half(saturate_half(x)) if saturate else half(x)

    @inline
    def tile(out, gs, ys, table, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            y = get(ys, i)
            a = narrow(widen(y) + SA_HALF)
            # y < 0 on the bits (0x8001 to 0xFC00): the selection stays in 16-bit lanes.
            factor = a if U16(y - U16(0x8001)) <= U16(0x7BFF) else S_HALF_BITS
            h = narrow(widen(get(gs, i)) * widen(factor))
            # The final addition of +0, on the bits: it is exact but for -0.0.
            put(out, i, U16(0) if h == U16(0x8000) else h)

    return tile


def _step_half() -> Any:
    """The same on INT8, where nothing overflows."""
    rounded = round_half(False)

    @inline
    def step(g, y):  # type: ignore[no-untyped-def]
        a = rounded(y + SA_HALF)
        return rounded(g * (a if y < F(0.0) else S_HALF)) + F(0.0)

    return step


@inline
def _step_int8(g, y):  # type: ignore[no-untyped-def]
    """_step_half up to the truncation, without rounding to FLOAT16: exact for all 65,536 pairs.

    y + SA in units of 2^-8 leaves 14 of 16, so FLOAT16, whose unit is 4 to 16 of them from 16 on, always rounds it away from
    zero, by 2: SA is 1.75 there. The product is exact, and adding half of FLOAT16's unit makes it reach the next
    integer exactly where rounding would (a tie there goes to the integer, which is even).
    """
    shift = F(1.75) if y <= F(-18.0) else SA_HALF
    product = g * (y + shift if y < F(0.0) else S_HALF)
    return f32_of_bits(bits_of_f32(product) + U32(0x1000))


def _writer_int8(mode: str, through_half: bool) -> Any:
    """What formats.int_writer writes for a FLOAT of moderate size (the steps stay below 2^15), in 32-bit lanes."""
    put = store["i8"]
    half = round_half(False)

    @inline
    def write(p, i, x):  # type: ignore[no-untyped-def]
        if through_half:
            x = half(x)
        if mode == "rint":
            x = (x + ROUND) - ROUND
        t = I32(x)
        t = t if t > I32(-128) else I32(-128)
        put(p, i, I8(t if t < I32(127) else I32(127)))

    return write


def selu_backward(v: Variant) -> Plan:
    """(gradOutput g, result y) -> gradInput.

    dav_1001, 2002, 2201, 3002: y < 0 ? g*(y + SA) : g*S, then + 0; FLOAT16 and INT8 round every step to FLOAT16.
    dav_3510: y <= 0 takes the first branch, FLOAT16 computes in FLOAT, integers come and go through FLOAT16.
    A NaN in y takes the second branch and is lost; a NaN or an infinity in g propagates up to the final rounding.
    """
    wide = v.arch == "dav_3510"
    floating = v.dtype in ("FLOAT", "FLOAT16", "BF16")
    saturate = v.saturate and v.dtype in ("FLOAT16", "BF16")
    s32 = chosen(v.assume, "s32_f32_mode") if v.dtype == "INT32" else "rint"
    to_int = "trunc"
    if v.numerics == "document":
        steps = "document"
    elif wide:
        steps = "le"
        to_int = "rint"
    else:
        steps = "lt_half" if v.dtype in ("FLOAT16", "INT8") else "lt"
    through_half = steps == "le" and v.dtype in ("INT8", "INT32")
    if through_half or steps == "lt_half":
        s32 = "rint"

    def make() -> Any:
        if steps == "lt_half" and v.dtype == "FLOAT16":
            return _tile_half(saturate)
        step = {"document": _step_document, "le": _step_le, "lt": _step_lt}.get(steps) or _step_half()
        integer = v.dtype in ("INT8", "INT32")
        write = int_writer(v.dtype, to_int, through_half) if integer else writer(v.dtype, saturate)
        int32_half = through_half and v.dtype == "INT32"
        read = reader_int32_through_half() if int32_half else reader(v.dtype, s32)
        return _binary_tile(read, step, write)

    def host() -> Any:
        if floating:
            return _lanes(steps, v.dtype, saturate, make())
        step = {"document": _step_document, "le": _step_le, "lt_half": _step_int8}[steps]
        return _binary_tile(reader("INT8"), step, _writer_int8(to_int, through_half))

    key = (steps, v.dtype, "sat" if saturate else "inf", to_int if v.dtype in ("INT8", "INT32") else "", s32)
    return Plan(key, (v.dtype, v.dtype), v.dtype, make, host=host if floating or v.dtype == "INT8" else None, direct=floating)


def _step_forward(exp: Any) -> Any:
    @inline
    def step(x):  # type: ignore[no-untyped-def]
        return S * x if x > F(0.0) else SA * (exp(x) - F(1.0))

    return step


def _step_forward_int32(exp: Any) -> Any:
    @inline
    def step(x):  # type: ignore[no-untyped-def]
        negative = x if x < F(0.0) else F(0.0)
        positive = x if x > F(0.0) else F(0.0)
        return SA * (exp(negative) - F(1.0)) + S * positive

    return step


def _tile_forward_int8(exp: Any) -> Any:
    get = load["i8"]
    put = store["i8"]

    @inline
    def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            x = F(get(xs, i))
            negative = x if x < F(0.0) else F(0.0)
            positive = x if x > F(0.0) else F(0.0)
            # Truncation rounds a value <= 0 up.
            up = F(I32(SA * (exp(negative) - F(1.0))))
            put(out, i, np.int8(I32(up + S * positive)))

    return tile


def selu(v: Variant) -> Plan:
    """x > 0 ? S*x : SA*(exp(x) - 1) in FLOAT, one rounding per operation; NaN gives NaN, -inf gives -SA.

    INT32 adds both halves and narrows; INT8 rounds the negative half up to an integer, truncates the sum and keeps its
    low 8 bits (127 -> -123) [assumed off dav_2201: selu_int8].
    """
    saturate = v.saturate and v.dtype in ("FLOAT16", "BF16")
    flush = flushes(v)
    to_int = ("rint" if v.arch == "dav_3510" else "trunc") if v.dtype == "INT32" else ""
    s32 = chosen(v.assume, "s32_f32_mode") if v.dtype == "INT32" else "rint"

    def make() -> Any:
        exp = Elementary(flush).exp
        if v.dtype == "INT8":
            return _tile_forward_int8(exp)
        if v.dtype == "INT32":
            return _unary_tile(reader("INT32", s32), _step_forward_int32(exp), int_writer("INT32", to_int, False))
        return _unary_tile(reader(v.dtype), _step_forward(exp), writer(v.dtype, saturate))

    key = (v.dtype, "sat" if saturate else "inf", "ftz" if flush else "sub", to_int, s32)
    return Plan(key, (v.dtype,), v.dtype, make)
