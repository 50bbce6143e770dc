"""The helpers of the simulated cores: threads that wait for a launch, and take blocks of it, without Python and its GIL.

A helper looks for work for a bounded time after each launch before it sleeps: waking it takes 50 µs and more. Blocks are claimed with an
atomic counter, by the caller too, so a helper that comes late or not at all costs nothing but its share.
"""

from __future__ import annotations

import ctypes
import threading
from typing import Any

from emu.runtime.crew_native import DONE, HELPER_WORDS, HELPERS, LIBC, SEMAPHORE, STOP, functions
from emu.runtime.threads import RuntimeThread

#: How long a helper without work, or a caller whose helpers are at their last blocks, looks before it sleeps.
SPIN_NS = 100_000


class Crew:
    """At most ``most`` helpers and the words that they share with the one launch that has them."""

    def __init__(self, most: int, spin_ns: int = SPIN_NS) -> None:
        words = HELPERS + most * HELPER_WORDS
        self._memory = (ctypes.c_int64 * (words + 8))()
        base = ctypes.addressof(self._memory)
        self._shared = base + -base % 64
        self._help, self._wake, self._launch = functions()
        self._spin_ns = spin_ns
        self._semaphore(DONE)
        #: The helpers' threads, and their numbers for the system: 0 until one has started.
        self.threads: list[RuntimeThread] = []
        self.tids: list[int] = []

    def _semaphore(self, word: int) -> None:
        if LIBC.sem_init(ctypes.c_void_p(self._shared + 8 * word), 0, 0):
            raise OSError("sem_init failed")

    def grow(self, count: int) -> None:
        """Have ``count`` helpers."""
        while len(self.threads) < count:
            number = len(self.threads)
            self._semaphore(HELPERS + number * HELPER_WORDS + SEMAPHORE)
            self.tids.append(0)
            thread = RuntimeThread(lambda k=number: self._serve(k), f"emu-core-{number + 1}")  # type: ignore[misc]
            self.threads.append(thread)
            thread.start()

    def _serve(self, number: int) -> None:
        self.tids[number] = threading.get_native_id()
        self._help(self._shared, self._shared + 8 * (HELPERS + number * HELPER_WORDS), self._spin_ns)

    def launch(self, kernel: int, args: Any, total: int, block: int, helpers: int) -> None:
        """Run [0, total) in blocks; wakes ``helpers`` of the threads. One launch at a time."""
        self._launch(self._shared, kernel, args, total, block, helpers, self._spin_ns)

    def close(self) -> None:
        """End the helpers; no launch may be under way."""
        ctypes.c_int64.from_address(self._shared + 8 * STOP).value = 1
        self._wake(self._shared, len(self.threads))
