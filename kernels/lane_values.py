"""Eight FLOAT at a time while the code of a kernel is generated: the values, and constants for a loop over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from .machine import cgutils

LANES = 8
I32 = ir.IntType(32)
FLOATS, INTS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(I32, LANES)
HALVES = ir.VectorType(ir.HalfType(), LANES)


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

    def __neg__(self) -> Lanes:
        return self._of(self.builder.fneg(self.value))

    def __truediv__(self, other: Lanes) -> Lanes:
        return self._of(self.builder.fdiv(self.value, other.value))

    def fma(self, factor: Lanes, term: Lanes) -> Lanes:
        """self * factor + term, rounded once."""
        kind = ir.FunctionType(FLOATS, [FLOATS] * 3)
        fma = cgutils.get_or_insert_function(self.builder.module, kind, f"llvm.fma.v{LANES}f32")
        return self._of(self.builder.call(fma, [self.value, factor.value, term.value]))

    def bits(self) -> Any:
        return self.builder.bitcast(self.value, INTS)

    def if_sign(self, then: Lanes, other: Lanes) -> Lanes:
        """`then` where the sign bit of self is set, `other` elsewhere."""
        negative = self.builder.icmp_signed("<", self.bits(), ir.Constant(INTS, None))
        return self._of(self.builder.select(negative, then.value, other.value))

    def choose(self, relation: str, bound: Lanes, then: Lanes, other: Lanes) -> Lanes:
        """`then` where `self relation bound` holds, false for a NaN, `other` elsewhere."""
        return self._of(self.builder.select(self.builder.fcmp_ordered(relation, self.value, bound.value), then.value, other.value))

    def larger(self, so_far: Lanes) -> Lanes:
        """The larger of both; a NaN stays, wherever it stands."""
        b, x, m = self.builder, self.value, so_far.value
        return self._of(b.select(b.or_(b.fcmp_ordered(">", x, m), b.fcmp_unordered("uno", x, x)), x, m))

    def rounded_to_half(self) -> Lanes:
        """Rounded to FLOAT16, of what is there 0 or infinite or a normal number: to 11 significant bits. A zero becomes +0.

        Two conversions would take as long as ten such operations.
        """
        b = self.builder
        power = b.and_(self.bits(), ir.Constant(INTS, [0x7F800000] * LANES))
        shift = self._of(b.bitcast(b.add(power, ir.Constant(INTS, [0x06C00000] * LANES)), FLOATS))  # 1.5 * 2^13 * that power of two
        return (self + shift) - shift

    def entry(self, index: Any) -> Lanes:
        """Lane i becomes lane index[i] of self, index[i] < LANES. LLVM makes one permutation of this where the CPU has it."""
        b = self.builder
        value = ir.Constant(FLOATS, ir.Undefined)
        for lane in range(LANES):
            at = ir.Constant(I32, lane)
            value = b.insert_element(value, b.extract_element(self.value, b.extract_element(index, at)), at)
        return self._of(value)


class Constants:
    """Constants as lanes, loaded before a loop and kept in registers in it.

    LLVM would load them before the outermost loop, keep all of them for all loops, and so fetch most from the stack in every round. It
    does not see through an empty piece of assembly.
    """

    def __init__(self, builder: Any, values: Sequence[float | tuple[float, ...]]) -> None:
        self.builder = builder
        self._lanes = {value: self._load(value) for value in values}

    def _load(self, value: float | tuple[float, ...]) -> Any:
        builder = self.builder
        lanes = value if isinstance(value, tuple) else (value,) * LANES
        name = "emu_lanes_" + "_".join(v.hex() for v in dict.fromkeys(lanes)).replace("-", "m").replace("+", "p").replace(".", "_")
        where = builder.module.globals.get(name)
        if where is None:
            where = ir.GlobalVariable(builder.module, FLOATS, name)
            where.initializer = ir.Constant(FLOATS, lanes)
            where.linkage, where.global_constant, where.align = "internal", True, 32
        hidden = builder.asm(ir.FunctionType(where.type, [where.type]), "", "=r,0", [where], True)
        return builder.load(hidden, typ=FLOATS, align=32)

    def __call__(self, value: float | tuple[float, ...]) -> Lanes:
        return Lanes(self.builder, self._lanes[value])
