"""The machine's own limit: a loop that only streams. It reads the same inputs, adds, and writes the same bytes.

Written in LLVM's language, apart from the kernels that it judges: 64-byte vectors, integer additions (any bits are good), outputs of
:data:`STREAM_BYTES` and more written past the caches. Two threads are two workers, each on a CPU of its own.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from contextlib import suppress
from functools import cache
from typing import Any

import numpy as np

from bench.arena import Arena

#: Bytes of output from which the stores bypass the caches.
STREAM_BYTES = 8 << 20
#: How many bytes ahead the streaming loop may ask for its inputs (0: it leaves that to the CPU); :func:`tune` takes the best.
AHEADS = (0, 2048, 8192)
#: One turn of the loop writes this much; what is left over at the end is not written.
UNIT = 256
_LINE = 64

_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
_engines: list[Any] = []


def source(inputs: int, stream: bool, ahead: int) -> str:
    """void limit(out, in0, in1, start, stop) over units of UNIT bytes, as LLVM text."""
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
define void @limit(ptr %out, ptr %in0, ptr %in1, i64 %start, i64 %stop) {{
entry:
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
def function(inputs: int, stream: bool, ahead: int) -> Any:
    """The compiled loop; ctypes releases the GIL around it."""
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
    return _FUNCTION(engine.get_function_address("limit"))


_ahead = 0


def tune(arena: Arena, nbytes: int = 64 << 20, rounds: int = 9) -> int:
    """Measure the loop with each of AHEADS, in turns, and use the fastest from now on; returns it."""
    global _ahead
    arena.reset()
    out, in0, in1 = (arena.empty((nbytes,), np.uint8) for _ in range(3))
    for array in (out, in0, in1):
        array.fill(1)
    taken: dict[int, list[float]] = {ahead: [] for ahead in AHEADS}
    for _ in range(rounds):
        for ahead, times in taken.items():
            call = function(2, True, ahead)
            start = time.perf_counter()
            call(out.ctypes.data, in0.ctypes.data, in1.ctypes.data, 0, nbytes // UNIT)
            times.append(time.perf_counter() - start)
    _ahead = min(AHEADS, key=lambda ahead: sorted(taken[ahead])[rounds // 3])
    return _ahead


class _Worker:
    """A thread on one CPU that runs what it is handed."""

    def __init__(self, cpu: int) -> None:
        self.go, self.done = threading.Lock(), threading.Lock()
        self.go.acquire()
        self.done.acquire()
        self.job: tuple[Any, tuple[int, ...]] | None = None
        self._cpu = cpu
        threading.Thread(target=self._serve, name=f"bench-limit-{cpu}", daemon=True).start()

    def _serve(self) -> None:
        with suppress(OSError):  # not permitted: the scheduler decides
            os.sched_setaffinity(threading.get_native_id(), {self._cpu})
        while True:
            self.go.acquire()
            if self.job is None:
                return
            call, args = self.job
            call(*args)
            self.done.release()


@cache
def _workers(count: int) -> list[_Worker]:
    cpus = sorted(os.sched_getaffinity(0))
    return [_Worker(cpus[i % len(cpus)]) for i in range(count)]


class Limit:
    """The loop over given tensors of equal size, on ``threads`` threads; with one thread the caller runs it.

    ``inputs`` and ``out`` are addresses of at least ``nbytes`` bytes, multiples of 64.
    """

    def __init__(self, out: int, inputs: list[int], nbytes: int, threads: int) -> None:
        self._call = function(len(inputs), nbytes >= STREAM_BYTES, _ahead)
        units = nbytes // UNIT
        size = -(-units // threads)
        self._jobs = [(out, inputs[0], inputs[-1], low, min(low + size, units)) for low in range(0, units, size)]

    def run(self, times: int) -> None:
        """Run it ``times`` times in a row."""
        call, jobs = self._call, self._jobs
        if len(jobs) < 2:
            for _ in range(times):
                for job in jobs:
                    call(*job)
            return
        workers = _workers(len(jobs))
        for _ in range(times):
            for worker, job in zip(workers, jobs, strict=True):
                worker.job = (call, job)
                worker.go.release()
            for worker in workers:
                worker.done.acquire()
