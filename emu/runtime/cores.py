"""The simulated cores: a launch is split into blocks that persistent host threads run beside the caller."""

from __future__ import annotations

import ctypes
import os
import threading
from functools import cache
from typing import Any

from emu import config
from emu.runtime.crew import SPIN_NS, Crew

#: void kernel(int64_t *args, int64_t start, int64_t stop); ctypes releases the GIL around each call.
PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
#: The same with the GIL kept, for launches so small that giving it away costs more than they do.
_HOLDING = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
#: A launch of at most its grain divided by this keeps the GIL: a grain is some 100 µs of work.
TINY = 64
#: Block borders are multiples of this, except the end: no two threads write one cache line.
BLOCK = 64
#: A launch of so many preferred blocks has blocks of that size; a smaller one is cut into SHARES blocks for each thread.
MANY = 8
SHARES = 4
#: A launch of fewer grains wakes nobody (a helper that is awake takes part): waking costs as much as it saves.
WAKING = 8

_kernels: dict[int, Any] = {}
_holding: dict[int, Any] = {}
_getcpu = ctypes.PyDLL(None).sched_getcpu


class Cores:
    """A pool of ``threads`` - 1 helpers plus the caller. One launch uses it at a time; another one meanwhile runs in place."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._busy = threading.Lock()
        self._cpus = os.sched_getaffinity(0)
        self._away_from = -1
        # With more threads than CPUs one that looks for work takes the CPU from one that has some.
        self._crew = Crew(max(threads - 1, 0), SPIN_NS if threads <= len(self._cpus) else 0)

    def run(self, kernel: int, args: Any, total: int, grain: int, block: int = 0, border: int = BLOCK) -> bool:
        """Run [0, total) of the kernel at address ``kernel`` on at most ``threads`` threads, in blocks as :func:`run` says; False when it
        is not split: too small, or another stream's launch has the helpers (or this is a launch inside a launch)."""
        grain = max(grain, 1)
        parts = min(self.threads, total // grain)
        if parts < 2 or not self._busy.acquire(False):
            return False
        try:
            if block and total >= MANY * block:
                size = block
            elif block:
                size = max(-(-total // (parts * SHARES)), grain // SHARES)
            else:
                size = -(-total // parts)
            size = -(-size // border) * border
            if len(self._crew.threads) < parts - 1:
                self._crew.grow(parts - 1)
            self._place()
            self._crew.launch(kernel, args, total, size, parts - 1 if total >= WAKING * grain else 0)
        finally:
            self._busy.release()
        return True

    def _place(self) -> None:
        """Keep the helpers off the caller's CPU.

        After some idleness Linux puts a woken helper on the caller's own CPU and leaves it there for the length of a launch. The
        caller's own affinity is the user's business and stays.
        """
        cpu = _getcpu()
        if cpu == self._away_from or len(self._cpus) < 2:
            return
        others = self._cpus - {cpu}
        tids = self._crew.tids
        try:
            for tid in tids:
                if tid:
                    os.sched_setaffinity(tid, others)
        except OSError:  # a container may forbid it: slower, not wrong
            pass
        self._away_from = cpu if all(tids) else -1

    def close(self) -> None:
        """End the helpers, after the launch that has them."""
        with self._busy:
            self._crew.close()
            self._crew = Crew(0)


_cores: Cores | None = None


def run(kernel_address: int, args: Any, total: int, grain: int, block: int = 0, border: int = BLOCK) -> None:
    """Run the native kernel over [0, total) on the simulated cores.

    ``args`` is a ctypes array of c_int64 that the caller keeps alive. ``grain``: fewest units that are worth a thread. ``block``: units
    of a block in a large launch, 0 = one block for each thread. Block borders are multiples of ``border`` units. In place when total <=
    grain, with one thread, or while another launch has the cores: never a deadlock. Whoever is free takes the next block. The GIL is
    released meanwhile, except for the few microseconds of a tiny launch.
    """
    global _cores
    if total * TINY <= grain:
        kernel = _holding.get(kernel_address)
        if kernel is None:
            kernel = _holding[kernel_address] = _HOLDING(kernel_address)
        kernel(args, 0, total)
        return
    if total > grain:
        if _cores is None:
            _cores = Cores(config.current().threads)
            _watch_forks()
        if _cores.run(kernel_address, args, total, grain, block, border):
            return
    kernel = _kernels.get(kernel_address)
    if kernel is None:
        kernel = _kernels[kernel_address] = PROTOTYPE(kernel_address)
    kernel(args, 0, total)


def _renew(new: config.Config) -> None:
    global _cores
    if _cores is not None and _cores.threads != new.threads:
        _cores.close()
        _cores = None


@cache
def _watch_forks() -> None:
    """Once: launches need no device (:mod:`emu.ops`), so nobody else may look after forks."""
    os.register_at_fork(after_in_child=_forget_after_fork)


def _forget_after_fork() -> None:
    """In a forked child no helper exists."""
    global _cores
    _cores = None


config.on_change(then=_renew)
