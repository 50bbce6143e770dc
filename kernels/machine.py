"""The machine around a kernel: floating-point mode, prefetching, fences, what the CPU can convert."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils as _cgutils
from numba.core.registry import cpu_target

from .bits import I8P, intrinsic

cgutils: Any = _cgutils


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
        fn = builder.module.declare_intrinsic("llvm.prefetch", [I8P], ir.FunctionType(ir.VoidType(), [I8P, i32, i32, i32]))
        where = builder.gep(args[0], [args[1]], source_etype=ir.IntType(8))
        builder.call(fn, [where, ir.Constant(i32, 0), ir.Constant(i32, 2), ir.Constant(i32, 1)])
        return context.get_dummy_value()

    return types.void(types.voidptr, types.int64), codegen


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
            get = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [I8P]), "llvm.x86.sse.stmxcsr")
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [I8P]), "llvm.x86.sse.ldmxcsr")
            builder.call(get, [builder.bitcast(old, I8P)])
            builder.store(ir.Constant(i32, 0x1F80), new)
            builder.call(put, [builder.bitcast(new, I8P)])
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
            put = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [I8P]), "llvm.x86.sse.ldmxcsr")
            builder.store(builder.trunc(args[0], i32), slot)
            builder.call(put, [builder.bitcast(slot, I8P)])
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
