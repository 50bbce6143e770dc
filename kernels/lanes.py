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
from .loops import body_of
from .machine import cgutils, no_inline

LANES = 8
_I32 = ir.IntType(32)
FLOATS, INTS = ir.VectorType(ir.FloatType(), LANES), ir.VectorType(_I32, LANES)
_HALVES = ir.VectorType(ir.HalfType(), LANES)


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
        """Rounded to FLOAT16, and FLOAT again."""
        return self._of(self.builder.fpext(self.builder.fptrunc(self.value, _HALVES), FLOATS))

    def entry(self, index: Any) -> Lanes:
        """Lane i becomes lane index[i] of self, index[i] < LANES. LLVM makes one permutation of this where the CPU has it."""
        b = self.builder
        value = ir.Constant(FLOATS, ir.Undefined)
        for lane in range(LANES):
            at = ir.Constant(_I32, lane)
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


class Memory:
    """An array of a float dtype at an address while code is generated, taken by eight and widened to FLOAT, which is exact."""

    def __init__(self, builder: Any, address: Any, dtype: str = "FLOAT") -> None:
        self.builder, self.dtype = builder, dtype
        item = {"FLOAT": ir.FloatType(), "BF16": ir.IntType(16), "FLOAT16": ir.HalfType()}[dtype]
        self.vector = ir.VectorType(item, LANES)
        self.address = builder.bitcast(address, self.vector.as_pointer())

    def _at(self, index: Any) -> Any:
        return self.builder.gep(self.address, [index], source_etype=self.vector)

    def __getitem__(self, index: Any) -> Lanes:
        b = self.builder
        value = b.load(self._at(index), align=4 if self.dtype == "FLOAT" else 2, typ=self.vector)
        if self.dtype == "FLOAT16":
            value = b.fpext(value, FLOATS)
        elif self.dtype == "BF16":
            value = b.bitcast(b.shl(b.zext(value, INTS), ir.Constant(INTS, [16] * LANES)), FLOATS)
        return Lanes(b, value)

    def put(self, index: Any, lanes: Lanes, stream: bool = False, plus_zero: bool = False) -> None:
        """Rounded once; BF16 as formats.bf16_of_wide. With `stream` past the caches: the address is a multiple of the vector's size."""
        b, value = self.builder, lanes.value
        if self.dtype == "FLOAT16":
            value = b.fptrunc(value, self.vector)
            if plus_zero:
                shorts = ir.VectorType(ir.IntType(16), LANES)
                bits, zero = b.bitcast(value, shorts), ir.Constant(shorts, None)
                value = b.bitcast(b.select(b.icmp_signed("==", bits, ir.Constant(shorts, [-0x8000] * LANES)), zero, bits), self.vector)
        elif self.dtype == "BF16":
            bits, sixteen = lanes.bits(), ir.Constant(INTS, [16] * LANES)
            odd = b.and_(b.lshr(bits, sixteen), ir.Constant(INTS, [1] * LANES))
            rounded = b.add(b.add(bits, ir.Constant(INTS, [0x7FFF] * LANES)), odd)
            value = b.trunc(b.lshr(rounded, sixteen), self.vector)
        size = 4 if self.dtype == "FLOAT" else 2
        stored = b.store(value, self._at(index), align=size * (LANES if stream else 1))
        if stream:
            stored.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(_I32, 1)]))


class Table:
    """FLOAT of a table of 65,536, by 16-bit patterns at an address, taken by eight.

    Two loads of the patterns and eight of the table: AVX2's gather is slower on the CPUs that we know.
    """

    def __init__(self, builder: Any, table: Any, patterns: Any) -> None:
        self.builder, self.table = builder, builder.bitcast(table, ir.FloatType().as_pointer())
        self.patterns = builder.bitcast(patterns, ir.IntType(64).as_pointer())

    def __getitem__(self, index: Any) -> Lanes:
        b, i64 = self.builder, ir.IntType(64)
        value = ir.Constant(FLOATS, ir.Undefined)
        for half in range(2):
            at = b.add(b.shl(index, ir.Constant(index.type, 1)), ir.Constant(index.type, half))
            four = b.load(b.gep(self.patterns, [at], source_etype=i64), align=2, typ=i64)
            for lane in range(4):
                pattern = b.and_(b.lshr(four, ir.Constant(i64, 16 * lane)), ir.Constant(i64, 0xFFFF))
                found = b.load(b.gep(self.table, [pattern], source_etype=ir.FloatType()), align=4, typ=ir.FloatType())
                value = b.insert_element(value, found, ir.Constant(_I32, 4 * half + lane))
        return Lanes(b, value)


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
            operands: list[Memory | Table] = [inputs[0], Table(builder, args[3], args[2])] if kind.table else [*inputs]
            k = Constants(builder, (*constants, *limits))
            none = ir.Constant(FLOATS, ir.Undefined)
            first = builder.insert_element(none, args[4], ir.Constant(_I32, 0))
            scalar = Lanes(builder, builder.shuffle_vector(first, none, ir.Constant(INTS, None)))
            with cgutils.for_range(builder, groups(builder, args[5])) as loop:
                result = step(k, *(p[loop.index] for p in operands), *([scalar] if not kind.table else []))
                out.put(loop.index, saturated(result, k, kind.largest) if kind.saturate else result, stream, kind.plus_zero)
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
            vectors = 64 // LANES
            totals = [cgutils.alloca_once_value(builder, ir.Constant(FLOATS, [start] * LANES)) for _ in range(vectors)]
            with cgutils.for_range(builder, builder.lshr(args[3], ir.Constant(args[3].type, 6))) as loop:
                first = builder.mul(loop.index, ir.Constant(loop.index.type, vectors))
                for k, total in enumerate(totals):
                    at = builder.add(first, ir.Constant(first.type, k))
                    so_far = Lanes(builder, builder.load(total, typ=FLOATS))
                    builder.store(step(so_far, left[at], right[at]).value, total)
            out = Memory(builder, args[0])
            for k, total in enumerate(totals):
                out.put(ir.Constant(args[3].type, k), Lanes(builder, builder.load(total, typ=FLOATS)))
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
