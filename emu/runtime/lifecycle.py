"""The end of the process, and forks."""

from __future__ import annotations

import atexit
import os

from emu.runtime import context, device, pinned, threads, waiters


def _leave() -> None:
    """At exit: what runs now may finish within a second, what is queued is dropped. Nothing waits for a stream."""
    for schedule in {d.schedule for d in device.all_devices()}:
        schedule.close()


def _child() -> None:
    """In a forked child none of the parent's threads exists, and an open device stays the parent's alone."""
    threads.forget_after_fork()
    pinned.forget_after_fork()
    waiters.forget_after_fork()
    if device.forget_after_fork():
        context.mark_forked()


_watching = False


def watch() -> None:
    """Look after the end of the process and after forks, from the first device on."""
    global _watching
    if not _watching:
        _watching = True
        atexit.register(_leave)
        os.register_at_fork(after_in_child=_child)
