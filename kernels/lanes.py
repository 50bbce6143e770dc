"""exp(-|x|) of FLOAT on eight lanes at a time, without DOUBLE: faster, and it knows where it cannot tell.

The estimate is a sum of two FLOAT, s + low. Where both ends of its error interval round to the same FLOAT, that is exp,
correctly rounded; elsewhere exp is computed again in DOUBLE. With x = (8k + j) * ln2/8 + r, |r| <= ln2/16,

    exp(x) = 2^k * H[j] * exp(log(2^(j/8) / H[j])) * exp(r)        H[j]: the FLOAT nearest 2^(j/8)

The logarithm is about 2^-25. r = fma(n, -C1, x) is exact: a multiple of 2^-28 below 2^-4, or x itself; what C1 lacks of ln2/8
joins the logarithm. r + r²/2 is kept as h + hl, its product with H[j] as s + low; only what is below 2^-16 rounds as usual.

The error bound was measured at every x of [LIMIT, 0]; the tests compare the outcome at every one with exp by DOUBLE.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types

from .bits import fabs32, inline, intrinsic, load, store
from .loops import body_of
from .machine import cgutils, no_inline

LANES = 8
_I32 = ir.IntType(32)
_FLOATS, _INTS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(_I32, LANES)

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


class Lanes:
    """Eight FLOAT while the code of a kernel is generated: every operator emits the instruction of its name."""

    def __init__(self, builder: Any, value: Any) -> None:
        self.builder, self.value = builder, value

    def _of(self, value: Any) -> Lanes:
        return Lanes(self.builder, value)

    def __add__(self, other: Lanes) -> Lanes:
        return self._of(self.builder.fadd(self.value, other.value))

    def __sub__(self, other: Lanes) -> Lanes:
        return self._of(self.builder.fsub(self.value, other.value))

    def __mul__(self, other: Lanes) -> Lanes:
        return self._of(self.builder.fmul(self.value, other.value))

    def fma(self, factor: Lanes, term: Lanes) -> Lanes:
        """self * factor + term, rounded once."""
        kind = ir.FunctionType(_FLOATS, [_FLOATS] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fma.v{LANES}f32")
        return self._of(self.builder.call(fma, [self.value, factor.value, term.value]))

    def bits(self) -> Any:
        return self.builder.bitcast(self.value, _INTS)

    def entry(self, index: Any) -> Lanes:
        """Lane i becomes lane index[i] % 8 of self. LLVM makes one permutation of this where the CPU has it."""
        b = self.builder
        index = b.and_(index, _constant(b, INDEX).bits())
        value = ir.Constant(_FLOATS, ir.Undefined)
        for lane in range(LANES):
            at = ir.Constant(_I32, lane)
            value = b.insert_element(value, b.extract_element(self.value, b.extract_element(index, at)), at)
        return self._of(value)


def _constant(builder: Any, values: float | Sequence[float]) -> Lanes:
    """Constant lanes. Of weak linkage, as bits.constant explains."""
    lanes = list(values) if isinstance(values, Sequence) else [values] * LANES
    name = "emu_lanes_" + "_".join(v.hex() for v in dict.fromkeys(lanes)).replace("-", "m").replace("+", "p").replace(".", "_")
    where = builder.module.globals.get(name)
    if where is None:
        where = ir.GlobalVariable(builder.module, _FLOATS, name)
        where.initializer = ir.Constant(_FLOATS, lanes)
        where.linkage, where.global_constant, where.align = "weak", True, 32
    return Lanes(builder, builder.load(where, typ=_FLOATS, align=32))


def _exp(x: Lanes) -> tuple[Lanes, Lanes]:
    """Two FLOAT between which exp(x) lies for LIMIT <= x <= 0; a NaN gives two NaNs."""
    b = x.builder

    def c(value: float | Sequence[float]) -> Lanes:
        return _constant(b, value)

    t = x.fma(c(PER_LN2), c(MAGIC))
    n, index = t - c(MAGIC), t.bits()
    r = n.fma(c(-C1), x)
    # 2^k * H[j]. The shift moves k to the exponent and j into the fraction: H_LESS_J has it subtracted.
    scale = b.shl(index, ir.Constant(_INTS, [20] * LANES))
    head = Lanes(b, b.bitcast(b.add(c(H_LESS_J).entry(index).bits(), scale), _FLOATS))
    rest = n.fma(c(-C2), c(D).entry(index))
    half = r * c(0.5)
    h = half.fma(r, r)
    hl = half.fma(r, r - h)
    q = (half * r * r).fma(c(P5).fma(r, c(P4)).fma(r, c(P3)), hl)
    s = head.fma(h, head)
    low = head.fma(q, s.fma(rest, head.fma(h, head - s)))
    return s + low, s + head.fma(c(-WIDTH), low)


@intrinsic
def exp_lanes(typingctx: Any, out: Any, x: Any, n: Any) -> Any:
    """out[i] = exp(-|x[i]|) for i < n, a multiple of LANES; not 0 if one may be wrong: too near a tie, below LIMIT or NaN."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        b, none = builder, ir.Constant(_INTS, None)
        to, source = (b.bitcast(p, _FLOATS.as_pointer()) for p in args[:2])
        doubtful = cgutils.alloca_once_value(b, none)
        smallest = cgutils.alloca_once_value(b, ir.Constant(_FLOATS, None))
        with cgutils.for_range(b, b.lshr(args[2], ir.Constant(args[2].type, LANES.bit_length() - 1))) as loop:
            x = Lanes(b, b.load(b.gep(source, [loop.index], source_etype=_FLOATS), align=4, typ=_FLOATS))
            x = Lanes(b, b.bitcast(b.or_(x.bits(), _constant(b, SIGN).bits()), _FLOATS))
            high, low = _exp(x)
            b.store(high.value, b.gep(to, [loop.index], source_etype=_FLOATS), align=4)
            differ = b.sext(b.fcmp_unordered("!=", high.value, low.value), _INTS)
            b.store(b.or_(b.load(doubtful, typ=_INTS), differ), doubtful)
            least = b.load(smallest, typ=_FLOATS)
            b.store(b.select(b.fcmp_ordered("<", least, x.value), least, x.value), smallest)
        far = b.fcmp_unordered("<", b.load(smallest, typ=_FLOATS), _constant(b, LIMIT).value)
        wrong = b.icmp_signed("!=", b.or_(b.load(doubtful, typ=_INTS), b.sext(far, _INTS)), none)
        return b.zext(b.bitcast(wrong, ir.IntType(LANES)), ir.IntType(64))

    return types.int64(types.voidptr, types.voidptr, types.int64), codegen


def minus_magnitude(name: str, exp_tile: Any) -> Any:
    """tile(out, x, n): out[i] = exp(-|x[i]|), FLOAT, correctly rounded; out and x do not overlap.

    exp_tile(x, n) does it in place in DOUBLE. It is needed for one tile of 128 in 55, and where something is below LIMIT or
    NaN. `name` is unique, as loops.body_of explains.
    """
    get, put = load["f32"], store["f32"]

    def by_double(out, x, n):  # type: ignore[no-untyped-def]
        no_inline()  # it would take the registers of the fast loop
        for i in range(n):
            put(out, i, -fabs32(get(x, i)))
        exp_tile(out, n)

    again = body_of(name, by_double)

    @inline
    def tile(out, x, n):  # type: ignore[no-untyped-def]
        if n & (LANES - 1) != 0 or exp_lanes(out, x, n) != 0:
            again(out, x, n)

    return tile
