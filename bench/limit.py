"""The machine's own limit: a loop that only streams. It reads the same inputs, adds, and writes the same bytes.

Written in LLVM's language, apart from the kernels that it judges: 64-byte vectors, integer additions (any bits are good), outputs of
:data:`STREAM_BYTES` and more written past the caches. On two threads it runs on a pool as the emulator's own: a native helper takes blocks
beside the caller, and no Python is between a call and its first byte.
"""

from __future__ import annotations

import ctypes
import time
from functools import cache
from typing import Any

import numpy as np

from bench.arena import Arena
from emu.runtime.cores import PROTOTYPE, Cores

#: Bytes of output from which the stores bypass the caches.
STREAM_BYTES = 8 << 20
#: How many bytes ahead the streaming loop may ask for its inputs (0: it leaves that to the CPU); :func:`tune` takes the best.
AHEADS = (0, 2048, 8192)
#: One turn of the loop writes this much; what is left over at the end is not written.
UNIT = 256
_LINE = 64

#: Bytes of output in a block of a large call on several threads; a smaller call has some blocks for each thread.
_BLOCK = 2 << 20
_engines: list[Any] = []


def source(inputs: int, stream: bool, ahead: int) -> str:
    """void limit(int64_t {out, in0, in1}[], start, stop) over units of UNIT bytes, as LLVM text: a kernel's signature."""
    vector = "<8 x i64>"
    mark = ", !nontemporal !0" if stream else ""
    body = []
    for k in range(UNIT // _LINE):
        at = k * _LINE
        for i in range(inputs):
            body.append(f"%p{k}{i} = getelementptr i8, ptr %q{i}, i64 {at}")
            if stream and ahead:
                body.append(f"%f{k}{i} = getelementptr i8, ptr %q{i}, i64 {at + ahead}")
                body.append(f"call void @llvm.prefetch.p0(ptr %f{k}{i}, i32 0, i32 2, i32 1)")
            body.append(f"%v{k}{i} = load {vector}, ptr %p{k}{i}, align 64")
        if inputs == 2:
            body.append(f"%s{k} = add {vector} %v{k}0, %v{k}1")
        else:
            body.append(f"%s{k} = add {vector} %v{k}0, splat (i64 1)")
        body.append(f"%o{k} = getelementptr i8, ptr %q2, i64 {at}")
    body += [f"store {vector} %s{k}, ptr %o{k}, align 64{mark}" for k in range(UNIT // _LINE)]
    lines = "\n  ".join(body)
    return f"""
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
define void @limit(ptr %args, i64 %start, i64 %stop) {{
entry:
  %arg1 = getelementptr i64, ptr %args, i64 1
  %arg2 = getelementptr i64, ptr %args, i64 2
  %out = load ptr, ptr %args
  %in0 = load ptr, ptr %arg1
  %in1 = load ptr, ptr %arg2
  %any = icmp slt i64 %start, %stop
  br i1 %any, label %loop, label %end
loop:
  %i = phi i64 [ %start, %entry ], [ %next, %loop ]
  %byte = mul i64 %i, {UNIT}
  %q0 = getelementptr i8, ptr %in0, i64 %byte
  %q1 = getelementptr i8, ptr %in1, i64 %byte
  %q2 = getelementptr i8, ptr %out, i64 %byte
  {lines}
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %stop
  br i1 %more, label %loop, label %end
end:
  fence seq_cst
  ret void
}}
!0 = !{{i32 1}}
"""


@cache
def address(inputs: int, stream: bool, ahead: int) -> int:
    """Where the compiled loop is."""
    from llvmlite import binding  # type: ignore[import-untyped, unused-ignore]

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    module = binding.parse_assembly(source(inputs, stream, ahead))
    module.verify()
    features = binding.get_host_cpu_features().flatten()
    target = binding.Target.from_default_triple().create_target_machine(cpu=binding.get_host_cpu_name(), features=features, opt=3)
    engine = binding.create_mcjit_compiler(module, target)
    engine.finalize_object()
    _engines.append(engine)  # it owns the machine code
    return int(engine.get_function_address("limit"))


_ahead = 0


def tune(arena: Arena, nbytes: int = 64 << 20, rounds: int = 9) -> int:
    """Measure the loop with each of AHEADS, in turns, and use the fastest from now on; returns it."""
    global _ahead
    arena.reset()
    out, in0, in1 = (arena.empty((nbytes,), np.uint8) for _ in range(3))
    for array in (out, in0, in1):
        array.fill(1)
    args = (ctypes.c_int64 * 3)(*(a.ctypes.data for a in (out, in0, in1)))
    taken: dict[int, list[float]] = {ahead: [] for ahead in AHEADS}
    for _ in range(rounds):
        for ahead, times in taken.items():
            call = PROTOTYPE(address(2, True, ahead))
            start = time.perf_counter()
            call(args, 0, nbytes // UNIT)
            times.append(time.perf_counter() - start)
    _ahead = min(AHEADS, key=lambda ahead: sorted(taken[ahead])[rounds // 3])
    return _ahead


@cache
def _pool(threads: int) -> Cores:
    return Cores(threads)


class Limit:
    """The loop over given tensors of equal size, on ``threads`` threads; with one thread the caller runs it.

    ``inputs`` and ``out`` are addresses of at least ``nbytes`` bytes, multiples of 64.
    """

    def __init__(self, out: int, inputs: list[int], nbytes: int, threads: int) -> None:
        self._address = address(len(inputs), nbytes >= STREAM_BYTES, _ahead)
        self._call = PROTOTYPE(self._address)
        self._args = (ctypes.c_int64 * 3)(out, inputs[0], inputs[-1])
        self._units = nbytes // UNIT
        self._pool = _pool(threads) if threads > 1 else None

    def run(self, times: int) -> None:
        """Run it ``times`` times in a row."""
        call, pool, args, units = self._call, self._pool, self._args, self._units
        for _ in range(times):
            if pool is None or not pool.run(self._address, args, units, 1, _BLOCK // UNIT):
                call(args, 0, units)
