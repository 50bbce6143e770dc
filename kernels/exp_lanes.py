"""exp(-|x|) of FLOAT on eight lanes at a time, without DOUBLE: faster, and it knows where it cannot tell.

The estimate is a sum of two FLOAT, s + low. Where both ends of its error interval round to the same FLOAT, that is exp,
correctly rounded; elsewhere exp is computed again in DOUBLE. With x = (8k + j) * ln2/8 + r, |r| <= ln2/16,

    exp(x) = 2^k * H[j] * exp(log(2^(j/8) / H[j])) * exp(r)        H[j]: the FLOAT nearest 2^(j/8)

The logarithm is about 2^-25. r = fma(n, -C1, x) is exact: a multiple of 2^-28 below 2^-4, or x itself; what C1 lacks of ln2/8
joins the logarithm. r + r²/2 is kept as h + hl, its product with H[j] as s + low; only what is below 2^-16 rounds as usual.

The error bound was measured at every x of [LIMIT, 0]; the tests compare the outcome at every one with exp by DOUBLE.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import address, inline, intrinsic, load, offset, scratch, store
from .flows import Kind
from .lanes import FLOATS, INTS, LANES, Constants, Lanes, Memory, groups, mapped
from .loops import body_of
from .machine import cgutils, no_inline

#: 1.5 * 2^23: x + MAGIC has the integer nearest x in its low bits.
MAGIC = 1.5 * 2.0**23
PER_LN2 = float.fromhex("0x1.715476p+3")  # 8/ln2
C1, C2 = float.fromhex("0x1.62e430p-4"), float.fromhex("-0x1.05c610p-32")  # ln2/8 as a sum
H = tuple(
    float.fromhex(c)
    for c in (
        "0x1p+0", "0x1.172b84p+0", "0x1.306fep+0", "0x1.4bfdaep+0", "0x1.6a09e6p+0", "0x1.8ace54p+0", "0x1.ae89fap+0",
        "0x1.d5818ep+0",
    )
)  # fmt: skip
#: H[j] with j taken off the three leading bits of the fraction.
H_LESS_J = tuple(float((np.array(h, np.float32).view(np.uint32) - np.uint32(j << 20)).view(np.float32)) for j, h in enumerate(H))
#: The estimate is between 6.4e-12 of its value too small and 5.0e-12 too large; D makes it ABOVE larger.
ABOVE, WIDTH = 6.5e-12, float(np.float32(1.2e-11))
D = tuple(
    float(np.float32(float.fromhex(c) + ABOVE))
    for c in (
        "0x0p+0", "-0x1.9c0c22p-27", "0x1.125002p-25", "-0x1.0a3552p-25", "0x1.26055cp-26", "0x1.67a1cap-28",
        "-0x1.f9c306p-27", "-0x1.a5217cp-28",
    )
)  # fmt: skip
#: (exp(r) - 1 - r - r²/2) / (r³/2), error 2^-40 of exp(r).
P3, P4, P5 = (2.0 * float.fromhex(c) for c in ("0x1.555556p-3", "0x1.555a3ap-5", "0x1.11160ep-7"))
#: Down to here no part of the estimate is subnormal.
LIMIT = -70.0
#: Masks, as the FLOAT of their bits: the sign, and the low bits that number a lane.
SIGN, INDEX = -0.0, (LANES - 1) * 2.0**-149


def _reduce(x: Lanes, c: Constants) -> tuple[Lanes, Lanes, Lanes]:
    """(r, head, rest) of LIMIT <= x <= 0: head = 2^k * H[j], rest is the logarithm that joins r."""
    b = x.builder
    t = x.fma(c(PER_LN2), c(MAGIC))
    n, index = t - c(MAGIC), b.and_(t.bits(), c(INDEX).bits())
    r = n.fma(c(-C1), x)
    # 2^k * H[j]. The shift moves k to the exponent and j into the fraction: H_LESS_J has it subtracted.
    scale = b.shl(t.bits(), ir.Constant(INTS, [20] * LANES))
    head = Lanes(b, b.bitcast(b.add(c(H_LESS_J).entry(index).bits(), scale), FLOATS))
    return r, head, n.fma(c(-C2), c(D).entry(index))


def _exp(r: Lanes, head: Lanes, rest: Lanes, c: Constants) -> tuple[Lanes, Lanes]:
    """Two FLOAT between which exp(x) lies; NaNs give two NaNs."""
    half = r * c(0.5)
    h = half.fma(r, r)
    hl = half.fma(r, r - h)
    q = (half * r * r).fma(c(P5).fma(r, c(P4)).fma(r, c(P3)), hl)
    s = head.fma(h, head)
    low = head.fma(q, s.fma(rest, head.fma(h, head - s)))
    return s + low, s + head.fma(c(-WIDTH), low)


def _two_loops(
    builder: Any, n: Any, to: Memory, source: Memory, heads: Memory, rests: Memory, beside: Callable[[Any, Constants], None] | None = None
) -> Any:
    """What `exp_lanes` says; `beside` is emitted in the first loop, and may use the constant 1.

    Two loops: the core keeps the results of all operations between the first and the last unfinished one, and of two short chains of
    dependent operations these are fewer than of a long one.
    """
    b, none = builder, ir.Constant(INTS, None)
    farthest, doubtful = cgutils.alloca_once_value(b, none), cgutils.alloca_once_value(b, none)
    c = Constants(b, (SIGN, PER_LN2, MAGIC, -C1, -C2, H_LESS_J, D, INDEX, *((1.0,) if beside else ())))
    with cgutils.for_range(b, groups(b, n)) as loop:
        if beside:
            beside(loop.index, c)
        x = Lanes(b, b.bitcast(b.or_(source[loop.index].bits(), c(SIGN).bits()), FLOATS))
        for memory, lanes in zip((to, heads, rests), _reduce(x, c), strict=True):
            memory.put(loop.index, lanes)
        # Of negative numbers the one farthest from 0 has the largest bits; those of a NaN are larger still.
        largest, bits = b.load(farthest, typ=INTS), x.bits()
        b.store(b.select(b.icmp_unsigned(">", bits, largest), bits, largest), farthest)
    c = Constants(b, (0.5, P5, P4, P3, -WIDTH))
    with cgutils.for_range(b, groups(b, n)) as loop:
        high, low = _exp(to[loop.index], heads[loop.index], rests[loop.index], c)
        to.put(loop.index, high)
        b.store(b.or_(b.load(doubtful, typ=INTS), b.xor(high.bits(), low.bits())), doubtful)
    far = b.icmp_unsigned(">", b.load(farthest, typ=INTS), Constants(b, (LIMIT,))(LIMIT).bits())
    wrong = b.icmp_signed("!=", b.or_(b.load(doubtful, typ=INTS), b.sext(far, INTS)), none)
    return b.zext(b.bitcast(wrong, ir.IntType(LANES)), ir.IntType(64))


@intrinsic
def exp_lanes(typingctx: Any, out: Any, x: Any, heads: Any, rests: Any, n: Any) -> Any:
    """out[i] = exp(-|x[i]|) for i < n, a multiple of LANES; heads and rests are scratch memory of n FLOAT.

    Not 0 if one may be wrong: too near a tie, below LIMIT or NaN.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        to, source, heads, rests = (Memory(builder, p) for p in args[:4])
        return _two_loops(builder, args[4], to, source, heads, rests)

    return types.int64(*[types.voidptr] * 4, types.int64), codegen


def _ahead(steps: str, stream: bool) -> Any:
    """ahead(to, x, heads, rests, out, e, x0, g0, n): exp_lanes(to, x, heads, rests, n), and out[i] = f(x0[i]) * g0[i] of e = exp(-|x0|).

    So the results of one tile are formed beside the first half of the next one's exp, which divides nothing.
    """

    def typed(typingctx: Any, to: Any, x: Any, heads: Any, rests: Any, out: Any, e: Any, x0: Any, g0: Any, n: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to, source, heads, rests, out, e, x0, g0 = (Memory(builder, p) for p in args[:8])

            def results(at: Any, c: Constants) -> None:
                out.put(at, _STEPS[steps](c, e[at], x0[at], g0[at]), stream)

            return _two_loops(builder, args[8], to, source, heads, rests, results)

        return types.int64(*[types.voidptr] * 8, types.int64), codegen

    typed.__name__ = f"ahead_{steps}_{'past' if stream else 'here'}"
    return intrinsic(typed)


def _z(c: Constants, e: Lanes, x: Lanes, g: Lanes, *_: Lanes) -> Lanes:
    z = e / (e + c(1.0))
    return x.if_sign(c(1.0) - z, z) * g


def _select(c: Constants, e: Lanes, x: Lanes, g: Lanes, *_: Lanes) -> Lanes:
    return x.if_sign(c(1.0), e) / (e + c(1.0)) * g


#: f(x) * g of e = exp(-|x|).
_STEPS = {"z": _z, "select": _select}


def factor_times(steps: str, again: Any, most: int) -> Any:
    """tile(out, g, x, table, n, stream): out[i] = f(x[i]) * g[i], n a multiple of LANES; `steps` is "z" or "select".

    `again(e, x, n)` gives the exp(-|x|) of n <= most elements that exp_lanes cannot settle: one tile of 128 in 55, and where something is
    below LIMIT or NaN. Where subnormals are flushed, `again` does it: f is not subnormal if e is not.
    """
    last = mapped(f"log_sigmoid_{steps}", Kind(), _STEPS[steps], (1.0,))
    here, past = _ahead(steps, False), _ahead(steps, True)
    first, second, heads, rests = (scratch(4 * most) for _ in range(4))

    @inline
    def exp(e, x, n):  # type: ignore[no-untyped-def]
        if exp_lanes(e, x, heads(), rests(), n) != 0:
            again(e, x, n)

    @inline
    def tile(out, g, x, table, n, stream):  # type: ignore[no-untyped-def]
        done, e, free = 0, first(), second()
        past_caches = stream and address(out) & 63 == 0
        size = min(n, most)
        exp(e, x, size)
        while n - done >= 2 * most:
            x0, x1, g0, to = offset(x, 4 * done), offset(x, 4 * (done + most)), offset(g, 4 * done), offset(out, 4 * done)
            if past_caches:
                open_ = past(free, x1, heads(), rests(), to, e, x0, g0, most)
            else:
                open_ = here(free, x1, heads(), rests(), to, e, x0, g0, most)
            if open_ != 0:
                again(free, x1, most)
            e, free = free, e
            done += most
        last(offset(out, 4 * done), e, offset(x, 4 * done), offset(g, 4 * done), np.float32(0.0), size, stream)
        done += size
        if done < n:
            rest = offset(x, 4 * done)
            exp(e, rest, n - done)
            last(offset(out, 4 * done), e, rest, offset(g, 4 * done), np.float32(0.0), n - done, stream)

    return tile


def exps(name: str, exp_tile: Any, most: int) -> Any:
    """tile(e, d, n): e[i] = exp(d[i]) for n <= most; e and d do not overlap. By lanes where no d is above 0, else, and where they cannot
    settle it, by exp_tile(e, n), which works in place."""
    get, put, bits = load["f32"], store["f32"], load["i32"]
    heads, rests = scratch(4 * most), scratch(4 * most)

    def plain(e, d, n):  # type: ignore[no-untyped-def]
        no_inline()
        for i in range(n):
            put(e, i, get(d, i))
        exp_tile(e, n)

    again = body_of(name + "_again", plain)

    @inline
    def tile(e, d, n):  # type: ignore[no-untyped-def]
        above = np.int32(0)  # as integers, which LLVM takes the maximum of by vectors
        for i in range(n):
            above = max(above, bits(d, i))
        if above > 0 or n & (LANES - 1) != 0 or exp_lanes(e, d, heads(), rests(), n) != 0:
            again(e, d, n)

    return tile
