"""Bit casts and raw memory for kernels. With `vectors` and `machine` the only code that speaks LLVM.

Every function here is usable inside a kernel only. None of them rounds (but fma, once), traps or touches a value on its
way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]
from numba import extending, types

#: Untyped on purpose: in a kernel the first parameter of an intrinsic is not passed.
intrinsic: Callable[[Callable[..., Any]], Any] = extending.intrinsic

#: Every helper is forced into its caller: a call in a loop would stop LLVM from vectorising it.
#: error_model="numpy": a division by zero gives inf or NaN instead of a Python exception.
inline: Callable[[Callable[..., Any]], Callable[..., Any]] = extending.register_jitable(
    forceinline=True, error_model="numpy", boundscheck=False, _nrt=False
)

I8P = ir.IntType(8).as_pointer()


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
        return builder.inttoptr(args[0], I8P)

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


def element(builder: Any, p: Any, i: Any, llty: Any) -> Any:
    return builder.gep(builder.bitcast(p, llty.as_pointer()), [i], source_etype=llty)


def _load(ty: Any, name: str) -> Any:
    def typed(typingctx: Any, p: Any, i: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            llty = context.get_value_type(ty)
            # Alignment 1: tensors may start at any address; on the CPUs we know it costs nothing.
            return builder.load(element(builder, args[0], args[1], llty), align=1, typ=llty)

        return ty(types.voidptr, types.int64), codegen

    typed.__name__ = name
    return intrinsic(typed)


def _store(ty: Any, name: str) -> Any:
    def typed(typingctx: Any, p: Any, i: Any, x: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            llty = context.get_value_type(ty)
            builder.store(args[2], element(builder, args[0], args[1], llty), align=1)
            return context.get_dummy_value()

        return types.void(types.voidptr, types.int64, ty), codegen

    typed.__name__ = name
    return intrinsic(typed)


#: load[type](p, i) reads element i of the array of that type at p; store[type](p, i, x) writes it.
CARRIERS = {
    "f64": types.float64, "f32": types.float32, "u8": types.uint8, "u16": types.uint16, "u32": types.uint32,
    "u64": types.uint64, "i8": types.int8, "i16": types.int16, "i32": types.int32, "i64": types.int64,
}  # fmt: skip
load = {key: _load(ty, "load_" + key) for key, ty in CARRIERS.items()}
store = {key: _store(ty, "store_" + key) for key, ty in CARRIERS.items()}


def scratch(nbytes: int) -> Any:
    """A function that gives nbytes of the kernel's stack, 64-byte aligned, one block per call site and call."""

    @intrinsic
    def scratch_(typingctx: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            with builder.goto_entry_block():
                block = builder.alloca(ir.ArrayType(ir.IntType(8), nbytes))
                block.align = 64
            return builder.bitcast(block, I8P)

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
