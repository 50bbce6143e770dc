"""The file: one JSON object whose list of events grows line by line, and the texts of the events.

Layers as a profiler of the real stack shows them: "CANN" with one row for each host thread, "Ascend Hardware" for each device with one row
for each stream. ``ts`` and ``dur`` are microseconds on the clock that ``otherData.clock`` names; each slice's args
carry the other clock in ns.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from contextlib import suppress
from pathlib import Path
from typing import Any

from emu.timeline.lines import Slot

#: Process numbers of the layers: the host, and device 0 (device k: HARDWARE + k).
CANN = 1
HARDWARE = 1000
#: A host call that takes no time is drawn this long, or no arrow could start in it.
LEAST_NS = 1
#: The text of an event, or of several: what is fixed, and places for numbers.
Pieces = list[str | Slot]


def slice_of(
    name: str, category: str, pid: int, tid: int, args: dict[str, Any], numbers: list[tuple[str, Slot]], ts: Slot, dur: Slot
) -> Pieces:
    """A complete event: ``args`` are fixed, ``numbers`` vary."""
    fixed = json.dumps(args, separators=(",", ":"))[1:-1]
    pieces: Pieces = [f'{{"ph":"X","name":{json.dumps(name)},"cat":"{category}","pid":{pid},"tid":{tid},"args":{{{fixed}']
    for k, (key, slot) in enumerate(numbers):
        pieces += [f'{"," if fixed or k else ""}"{key}":', slot]
    return [*pieces, '},"ts":', ts, ',"dur":', dur, "}"]


def arrow(number: Slot, thread: int, start: Slot, pid: int, tid: int, end: Slot) -> Pieces:
    """The flow from a host thread at ``start`` to the slice of a stream that begins at ``end``."""
    same = '"name":"HostToDevice","cat":"HostToDevice","id":'
    return [
        f'{{"ph":"s",{same}', number, f',"pid":{CANN},"tid":{thread},"ts":', start, "},\n",
        f'{{"ph":"f","bp":"e",{same}', number, f',"pid":{pid},"tid":{tid},"ts":', end, "}",
    ]  # fmt: skip


def counter(pid: int, used: Slot, ts: Slot) -> Pieces:
    """Bytes of device memory in use."""
    return ['{"ph":"C","name":"HBM used","cat":"memory","args":{"bytes":', used, f'}},"pid":{pid},"tid":0,"ts":', ts, "}"]


def _named(pid: int, tid: int | None, names: list[tuple[str, dict[str, Any]]]) -> Pieces:
    where = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return [",\n".join(json.dumps({"ph": "M", "name": key, **where, "args": args}) for key, args in names)]


def layer(pid: int, label: str) -> Pieces:
    """The names of a layer; layers are drawn in the order of their numbers."""
    device = pid - HARDWARE
    name = "CANN" if pid == CANN else "Ascend Hardware" if device == 0 else f"Ascend Hardware {device}"
    return _named(
        pid, None, [("process_name", {"name": name}), ("process_labels", {"labels": label}), ("process_sort_index", {"sort_index": pid})]
    )


def row(pid: int, tid: int, name: str) -> Pieces:
    """The name of a row in a layer."""
    return _named(pid, tid, [("thread_name", {"name": name}), ("thread_sort_index", {"sort_index": tid})])


def claim(path: str | Path) -> int:
    """A descriptor of the file to write, which is this one's alone until it is closed; what the file holds is not touched.

    OSError when no file can be written there, or when a trace is being written to it, by this process or another.
    """
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC, 0o666)  # or it would wait for a pipe's reader
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OSError(errno.EBUSY, "another trace is being written to this file", str(path)) from None
        except OSError:
            pass  # a file system without locks
    except OSError:
        os.close(fd)
        raise
    return fd


class File:
    """A trace that grows. Nothing is kept in memory; a file without its end can still be read. OSError when a write fails."""

    def __init__(self, path: str | Path, about: dict[str, Any], label: str) -> None:
        self._fd = claim(path)
        first = layer(CANN, label)[0]
        try:
            os.ftruncate(self._fd, 0)
            self.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n{first}'.encode())
        except OSError:
            self.leave()
            raise

    def write(self, events: bytes | memoryview) -> None:
        """Add events; each begins with a comma and a line break."""
        left = memoryview(events)
        while left:
            left = left[os.write(self._fd, left) :]

    def end(self) -> None:
        """The end of the list and of the object."""
        self.write(b"\n]}\n")
        with suppress(OSError):  # a forked child may hold the file open: closing does not free it then
            fcntl.flock(self._fd, fcntl.LOCK_UN)
        self.leave()

    def leave(self) -> None:
        """Write nothing more."""
        os.close(self._fd)
