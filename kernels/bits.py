"""Bit casts, raw memory and machine state for kernels: the only code that speaks LLVM.

Every function here is usable inside a kernel only. None of them rounds, traps or touches a value on its way.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import extending, types
from numba.core import cgutils as _cgutils
from numba.core.registry import cpu_target

#: Untyped on purpose: in a kernel the first parameter of an intrinsic is not passed.
intrinsic: Callable[[Callable[..., Any]], Any] = extending.intrinsic
cgutils: Any = _cgutils

#: Every helper is forced into its caller: a call in a loop would stop LLVM from vectorising it.
#: error_model="numpy": a division by zero gives inf or NaN instead of a Python exception.
inline: Callable[[Callable[..., Any]], Callable[..., Any]] = extending.register_jitable(
    forceinline=True, error_model="numpy", boundscheck=False, _nrt=False
)

_I8P = ir.IntType(8).as_pointer()


def _bitcast(src: Any, dst: Any, name: str) -> Any:
    """Reinterpret the bits of a `src` as a `dst` of the same size."""

    def typed(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = context.cast(builder, args[0], signature.args[0], src)
            return builder.bitcast(value, context.get_value_type(dst))

        return dst(src), codegen

    typed.__name__ = name
    return intrinsic(typed)


bits_of_f32 = _bitcast(types.float32, types.uint32, "bits_of_f32")
f32_of_bits = _bitcast(types.uint32, types.float32, "f32_of_bits")
bits_of_f64 = _bitcast(types.float64, types.uint64, "bits_of_f64")
f64_of_bits = _bitcast(types.uint64, types.float64, "f64_of_bits")


@intrinsic
def f32_of_half_hw(typingctx: Any, h: Any) -> Any:
    """FLOAT16 bits -> FLOAT by the CPU's own conversion. Needs one (see formats.hardware_half)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.fpext(builder.bitcast(args[0], ir.HalfType()), ir.FloatType())

    return types.float32(types.uint16), codegen


@intrinsic
def half_of_f32_hw(typingctx: Any, x: Any) -> Any:
    """FLOAT -> FLOAT16 bits, nearest even, by the CPU's own conversion."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.bitcast(builder.fptrunc(args[0], ir.HalfType()), ir.IntType(16))

    return types.uint16(types.float32), codegen


def _fma(ty: Any, name: str) -> Any:
    def typed(typingctx: Any, a: Any, b: Any, c: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.fma(*args)

        return ty(ty, ty, ty), codegen

    typed.__name__ = name
    return intrinsic(typed)


fma32 = _fma(types.float32, "fma32")
fma64 = _fma(types.float64, "fma64")


def _unary(op: str, ty: Any, name: str) -> Any:
    def typed(typingctx: Any, a: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            fn = builder.module.declare_intrinsic(op, [context.get_value_type(ty)])
            return builder.call(fn, args)

        return ty(ty), codegen

    typed.__name__ = name
    return intrinsic(typed)


fabs32 = _unary("llvm.fabs", types.float32, "fabs32")
fabs64 = _unary("llvm.fabs", types.float64, "fabs64")


@intrinsic
def pointer(typingctx: Any, address: Any) -> Any:
    """An address as a pointer. Convert once, outside the loop: LLVM follows pointers, not sums of integers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], _I8P)

    return types.voidptr(types.int64), codegen


@intrinsic
def offset(typingctx: Any, p: Any, nbytes: Any) -> Any:
    """p + nbytes."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.gep(args[0], [args[1]], source_etype=ir.IntType(8))

    return types.voidptr(types.voidptr, types.int64), codegen


@intrinsic
def address(typingctx: Any, p: Any) -> Any:
    """A pointer as an address."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ptrtoint(args[0], ir.IntType(64))

    return types.int64(types.voidptr), codegen


def _element(builder: Any, p: Any, i: Any, llty: Any) -> Any:
    return builder.gep(builder.bitcast(p, llty.as_pointer()), [i], source_etype=llty)


def _load(ty: Any, name: str) -> Any:
    def typed(typingctx: Any, p: Any, i: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            llty = context.get_value_type(ty)
            # Alignment 1: tensors may start at any address; on the CPUs we know it costs nothing.
            return builder.load(_element(builder, args[0], args[1], llty), align=1, typ=llty)

        return ty(types.voidptr, types.int64), codegen

    typed.__name__ = name
    return intrinsic(typed)


def _store(ty: Any, name: str) -> Any:
    def typed(typingctx: Any, p: Any, i: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            llty = context.get_value_type(ty)
            builder.store(args[2], _element(builder, args[0], args[1], llty), align=1)
            return context.get_dummy_value()

        return types.void(types.voidptr, types.int64, ty), codegen

    typed.__name__ = name
    return intrinsic(typed)


#: load[type](p, i) reads element i of the array of that type at p; store[type](p, i, x) writes it.
_CARRIERS = {
    "f64": types.float64, "f32": types.float32, "u8": types.uint8, "u16": types.uint16, "u32": types.uint32,
    "u64": types.uint64, "i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64,
}  # fmt: skip
load = {key: _load(ty, "load_" + key) for key, ty in _CARRIERS.items()}
store = {key: _store(ty, "store_" + key) for key, ty in _CARRIERS.items()}

_LINE = ir.VectorType(ir.IntType(32), 16)


def _store_line(nontemporal: bool, align: int, name: str) -> Any:
    """Copy 64 bytes from src to dst as vectors."""

    def typed(typingctx: Any, dst: Any, src: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            line = builder.load(builder.bitcast(args[1], _LINE.as_pointer()), align=1, typ=_LINE)
            st = builder.store(line, builder.bitcast(args[0], _LINE.as_pointer()), align=align)
            if nontemporal:
                st.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))
            return context.get_dummy_value()

        return types.void(types.voidptr, types.voidptr), codegen

    typed.__name__ = name
    return intrinsic(typed)


copy_line = _store_line(False, 1, "copy_line")
#: dst must be 64-byte aligned. Bypasses the caches; end the kernel with `store_fence`.
stream_line = _store_line(True, 64, "stream_line")


@intrinsic
def store_fence(typingctx: Any) -> Any:
    """Order streaming stores before everything that follows."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        if _x86(context):
            fn = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), []), "llvm.x86.sse.sfence")
            builder.call(fn, [])
        else:
            builder.fence("release")
        return context.get_dummy_value()

    return types.void(), codegen


@intrinsic
def prefetch(typingctx: Any, p: Any, nbytes: Any) -> Any:
    """Ask for the line at p + nbytes (it may be outside of any mapping)."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        fn = builder.module.declare_intrinsic("llvm.prefetch", [_I8P], ir.FunctionType(ir.VoidType(), [_I8P, i32, i32, i32]))
        where = builder.gep(args[0], [args[1]], source_etype=ir.IntType(8))
        builder.call(fn, [where, ir.Constant(i32, 0), ir.Constant(i32, 2), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(types.voidptr, types.int64), codegen


def scratch(nbytes: int) -> Any:
    """A function that gives nbytes of the kernel's stack, 64-byte aligned, one block per call site and call."""

    @intrinsic
    def scratch_(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            with builder.goto_entry_block():
                block = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
                block.align = 64
            return builder.bitcast(block, _I8P)

        return types.voidptr(), codegen

    return scratch_


def constant(value: float, kind: str = "f64") -> Any:
    """A DOUBLE ("f64") or FLOAT ("f32") constant that LLVM loads from memory: `c()` in a kernel.

    A constant that LLVM knows is fetched again, by a 64-bit address, in every round of a loop. One of weak linkage it must
    load, and it keeps the loaded vector in a register or as a memory operand: exp gains a third.
    """
    ty, llty = (types.float64, ir.DoubleType()) if kind == "f64" else (types.float32, ir.FloatType())
    name = f"emu_constant_{kind}_" + value.hex().replace("-", "m").replace("+", "p").replace(".", "_")

    @intrinsic
    def get(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            module = builder.module
            where = module.globals.get(name)
            if where is None:
                where = ir.GlobalVariable(module, llty, name)
                where.initializer = ir.Constant(llty, value)
                where.linkage = "weak"
                where.global_constant = True
            return builder.load(where, typ=llty)

        return ty(), codegen

    return get


@intrinsic
def look_up_4(typingctx: Any, out: Any, table: Any, patterns: Any) -> Any:
    """out[i] = table[patterns[i]] for i < 4: FLOAT from a table, by 16-bit patterns.

    One load of the patterns and four of the table, without AVX2's gather, which is slower on the CPUs that we know.
    """

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, i64 = ir.IntType(32), ir.IntType(64)
        four = builder.load(builder.bitcast(args[2], i64.as_pointer()), align=1, typ=i64)
        for lane in range(4):
            index = builder.and_(builder.lshr(four, ir.Constant(i64, 16 * lane)), ir.Constant(i64, 0xFFFF))
            value = builder.load(_element(builder, args[1], index, i32), align=4, typ=i32)
            where = _element(builder, args[0], ir.Constant(i64, lane), i32)
            builder.store(value, where, align=4)
        return context.get_dummy_value()

    return types.void(types.voidptr, types.voidptr, types.voidptr), codegen


def _lanes(kind: str) -> tuple[Any, Any, Any]:
    """Carrier type, its LLVM type and the type of 64 of them."""
    ty = _CARRIERS[kind]
    llty = ir.DoubleType() if kind == "f64" else ir.FloatType()
    return ty, llty, ir.VectorType(llty, 64)


def _vector(builder: Any, p: Any, vector: Any) -> Any:
    return builder.bitcast(p, vector.as_pointer())


def add64(kind: str) -> Any:
    """add(x, y): x[i] += y[i] for i < 64, as vectors.

    Sums over scratch memory use this rather than a loop: LLVM 20's loop vectoriser marks the two sides of such a loop as
    never overlapping, and the mark outlives the surrounding loop once that is unrolled (x[0:4] += x[4:8], then
    x[0:2] += x[2:4] read stale values).
    """
    vector = _lanes(kind)[2]

    @intrinsic
    def add(typingctx: Any, x: Any, y: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = _vector(builder, args[0], vector)
            a = builder.load(to, align=4, typ=vector)
            b = builder.load(_vector(builder, args[1], vector), align=4, typ=vector)
            builder.store(builder.fadd(a, b), to, align=4)
            return context.get_dummy_value()

        return types.void(types.voidptr, types.voidptr), codegen

    return add


def fill64(kind: str) -> Any:
    """fill(x, value): x[i] = value for i < 64."""
    ty, llty, vector = _lanes(kind)

    @intrinsic
    def fill(typingctx: Any, x: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            one = ir.VectorType(llty, 1)
            first = builder.insert_element(ir.Constant(one, ir.Undefined), args[1], ir.Constant(ir.IntType(32), 0))
            mask = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
            lanes = builder.shuffle_vector(first, ir.Constant(one, ir.Undefined), mask)
            builder.store(lanes, _vector(builder, args[0], vector), align=4)
            return context.get_dummy_value()

        return types.void(types.voidptr, ty), codegen

    return fill


def sum_pairs(kind: str, count: int, neighbours: bool) -> Any:
    """total(x): the sum of count values (a power of two) by halving their number until one is left.

    neighbours: v[i] = v[2i] + v[2i+1]; otherwise v[i] = v[i] + v[i + half].
    """
    ty, llty, _ = _lanes(kind)
    i32 = ir.IntType(32)

    @intrinsic
    def total(typingctx: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            vector = ir.VectorType(llty, count)
            v, n = builder.load(_vector(builder, args[0], vector), align=4, typ=vector), count
            while n > 1:
                half = n // 2
                left = [2 * i for i in range(half)] if neighbours else list(range(half))
                right = [2 * i + 1 for i in range(half)] if neighbours else list(range(half, n))
                mask = ir.VectorType(i32, half)
                none = ir.Constant(ir.VectorType(llty, n), ir.Undefined)
                a = builder.shuffle_vector(v, none, ir.Constant(mask, left))
                b = builder.shuffle_vector(v, none, ir.Constant(mask, right))
                v, n = builder.fadd(a, b), half
            return builder.extract_element(v, ir.Constant(i32, 0))

        return ty(types.voidptr), codegen

    return total


@intrinsic
def no_inline(typingctx: Any) -> Any:
    """Keep the function that calls this out of its callers."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.function.attributes.add("noinline")
        return context.get_dummy_value()

    return types.void(), codegen


def _x86(context: Any) -> bool:
    return "x86" in str(context.codegen()._llvm_module.triple)


@intrinsic
def float_mode_enter(typingctx: Any) -> Any:
    """Set rounding to nearest, subnormals kept, traps masked; returns the caller's mode for float_mode_leave."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32, i64 = ir.IntType(32), ir.IntType(64)
        if _x86(context):
            old, new = cgutils.alloca_once(builder, i32), cgutils.alloca_once(builder, i32)
            get = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_I8P]), "llvm.x86.sse.stmxcsr")
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_I8P]), "llvm.x86.sse.ldmxcsr")
            builder.call(get, [builder.bitcast(old, _I8P)])
            builder.store(ir.Constant(i32, 0x1F80), new)
            builder.call(put, [builder.bitcast(new, _I8P)])
            return builder.zext(builder.load(old, typ=i32), i64)
        get = cgutils.get_or_insert_function(builder.module, ir.FunctionType(i64, []), "llvm.aarch64.get.fpcr")
        put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [i64]), "llvm.aarch64.set.fpcr")
        mode = builder.call(get, [])
        builder.call(put, [ir.Constant(i64, 0)])
        return mode

    return types.int64(), codegen


@intrinsic
def float_mode_leave(typingctx: Any, mode: Any) -> Any:
    """Give the caller its own floating-point mode back."""

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        i32 = ir.IntType(32)
        if _x86(context):
            slot = cgutils.alloca_once(builder, i32)
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [_I8P]), "llvm.x86.sse.ldmxcsr")
            builder.store(builder.trunc(args[0], i32), slot)
            builder.call(put, [builder.bitcast(slot, _I8P)])
        else:
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [ir.IntType(64)]), "llvm.aarch64.set.fpcr")
            builder.call(put, [args[0]])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


@lru_cache(maxsize=8)
def _compiles_half_inline(triple: str, cpu: str, features: str) -> bool:
    machine = binding.Target.from_triple(triple).create_target_machine(cpu=cpu, features=features)
    source = f"""target triple = "{triple}"
define float @widen(i16 %b) {{
  %h = bitcast i16 %b to half
  %x = fpext half %h to float
  ret float %x
}}
define i16 @narrow(float %x) {{
  %h = fptrunc float %x to half
  %b = bitcast half %h to i16
  ret i16 %b
}}"""
    assembly = machine.emit_assembly(binding.parse_assembly(source))
    return "extendhfsf2" not in assembly and "truncsfhf2" not in assembly


def converts_half() -> bool:
    """Whether the CPU that Numba compiles for converts FLOAT16 itself.

    Where it does not, LLVM calls a library function that the process may lack, and aborts. So LLVM is asked for the
    assembly first: that also covers CPU names and feature lists given by NUMBA_CPU_NAME and NUMBA_CPU_FEATURES.
    """
    triple, cpu, features = cpu_target.target_context.codegen().magic_tuple()
    return _compiles_half_inline(str(triple), str(cpu), str(features))
