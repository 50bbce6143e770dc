"""The runtime's own host threads, and which other threads there are."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

#: True when host threads may exist that Python does not know (a C program over the C ABI).
foreign_host = False


class RuntimeThread(threading.Thread):
    """A thread of the runtime: daemon, so that it never keeps the process alive."""

    def __init__(self, run: Callable[[], None], name: str) -> None:
        super().__init__(target=run, name=name, daemon=True)


def strangers() -> bool:
    """True when another thread than this one and the runtime's own could still call the runtime."""
    if foreign_host:
        return True
    me = threading.current_thread()
    return any(t is not me and not isinstance(t, RuntimeThread) and t.is_alive() for t in threading.enumerate())


def exists(number: int) -> bool:
    """True unless the thread of that number (pthread_self, threading.get_ident) has surely ended."""
    return foreign_host or any(t.ident == number and t.is_alive() for t in threading.enumerate())


class HostPool:
    """Threads for host functions: a job never waits for another one, whatever that one does."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: deque[tuple[threading.Lock, list[Callable[[], None]]]] = deque()

    def submit(self, job: Callable[[], None]) -> None:
        """Run ``job`` on a thread of its own; ``job`` handles its own exceptions."""
        with self._lock:
            slot = self._idle.pop() if self._idle else None
        if slot is None:
            gate = threading.Lock()
            gate.acquire()
            RuntimeThread(lambda: self._serve(gate, [job]), "emu-host-function").start()
            return
        slot[1].append(job)
        slot[0].release()

    def _serve(self, gate: threading.Lock, jobs: list[Callable[[], None]]) -> None:
        while True:
            jobs.pop()()
            with self._lock:
                self._idle.append((gate, jobs))
            gate.acquire()


pool = HostPool()


def forget_after_fork() -> None:
    """In a forked child no thread of the parent exists."""
    global pool
    pool = HostPool()
