"""The simulated cores: a launch is split into blocks that persistent host threads run beside the caller."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from typing import Any

from emu import config
from emu.runtime.threads import RuntimeThread

#: void kernel(int64_t *args, int64_t start, int64_t stop); ctypes releases the GIL around each call.
PROTOTYPE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
#: The same with the GIL kept, for launches so small that giving it away costs more than they do.
_HOLDING = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
#: A launch of at most its grain divided by this keeps the GIL: a grain is some 100 µs of work.
TINY = 64
#: Block borders are multiples of this, except the end.
BLOCK = 64

_kernels: dict[int, Any] = {}
_holding: dict[int, Any] = {}
_getcpu = ctypes.CDLL(None).sched_getcpu


class _Helper:
    """One core's thread. ``go`` hands it a job, ``done`` hands the caller the answer."""

    def __init__(self, number: int) -> None:
        self.go = threading.Lock()
        self.done = threading.Lock()
        self.go.acquire()
        self.done.acquire()
        self.job: tuple[Callable[..., None], Any, int, int] | None = None
        self.tid = 0
        RuntimeThread(self._serve, f"emu-core-{number}").start()

    def _serve(self) -> None:
        self.tid = threading.get_native_id()
        while True:
            self.go.acquire()
            job = self.job
            if job is None:
                return
            self.job = None
            kernel, args, start, stop = job
            kernel(args, start, stop)
            self.done.release()


class Cores:
    """A pool of ``threads`` - 1 helpers plus the caller. One launch uses it at a time; another one meanwhile runs in place."""

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._busy = threading.Lock()
        self._helpers: list[_Helper] = []
        self._cpus = os.sched_getaffinity(0)
        self._away_from = -1

    def run(self, kernel: Callable[..., None], args: Any, total: int, grain: int) -> None:
        """Run [0, total) in at most ``threads`` blocks of at least ``grain`` units."""
        parts = min(self.threads, total // max(grain, 1))
        # Not available: another stream's launch has the helpers (or this is a launch inside a launch).
        if parts < 2 or not self._busy.acquire(False):
            kernel(args, 0, total)
            return
        try:
            self._split(kernel, args, total, parts)
        finally:
            self._busy.release()

    def _split(self, kernel: Callable[..., None], args: Any, total: int, parts: int) -> None:
        size = -(-total // parts)
        size = -(-size // BLOCK) * BLOCK
        while len(self._helpers) < parts - 1:
            self._helpers.append(_Helper(len(self._helpers) + 1))
        self._place()
        used = []
        for helper, start in zip(self._helpers, range(size, total, size), strict=False):
            helper.job = (kernel, args, start, min(start + size, total))
            helper.go.release()
            used.append(helper)
        try:
            kernel(args, 0, min(size, total))
        finally:
            for helper in used:
                helper.done.acquire()

    def _place(self) -> None:
        """Keep the helpers off the caller's CPU.

        After some idleness Linux puts a woken helper on the caller's own CPU and leaves it there for the length of a launch. The
        caller's own affinity is the user's business and stays.
        """
        cpu = _getcpu()
        if cpu == self._away_from or len(self._cpus) < 2:
            return
        others = self._cpus - {cpu}
        try:
            for helper in self._helpers:
                if helper.tid:
                    os.sched_setaffinity(helper.tid, others)
        except OSError:  # a container may forbid it: slower, not wrong
            pass
        self._away_from = cpu if all(helper.tid for helper in self._helpers) else -1

    def close(self) -> None:
        """End the helpers, after the launch that has them."""
        with self._busy:
            for helper in self._helpers:
                helper.job = None
                helper.go.release()
            self._helpers = []


_cores: Cores | None = None


def run(kernel_address: int, args: Any, total: int, grain: int) -> None:
    """Run the native kernel over [0, total) on the simulated cores.

    ``args`` is a ctypes array of c_int64 that the caller keeps alive. Blocks are multiples of 64 units except the last; in place when
    total <= grain, with one thread, or while another launch has the cores: never a deadlock. The GIL is released meanwhile, except for
    the few microseconds of a tiny launch.
    """
    global _cores
    if total * TINY <= grain:
        kernel = _holding.get(kernel_address)
        if kernel is None:
            kernel = _holding[kernel_address] = _HOLDING(kernel_address)
        kernel(args, 0, total)
        return
    kernel = _kernels.get(kernel_address)
    if kernel is None:
        kernel = _kernels[kernel_address] = PROTOTYPE(kernel_address)
    if total <= grain:
        kernel(args, 0, total)
        return
    if _cores is None:
        _cores = Cores(config.current().threads)
    _cores.run(kernel, args, total, grain)


def _renew(new: config.Config) -> None:
    global _cores
    if _cores is not None and _cores.threads != new.threads:
        _cores.close()
        _cores = None


def forget_after_fork() -> None:
    """In a forked child no helper exists."""
    global _cores
    _cores = None


config.on_change(then=_renew)
