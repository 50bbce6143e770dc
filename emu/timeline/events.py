"""The file: one JSON object whose list of events grows line by line, and the fixed texts of the events.

Layers as a profiler of the real stack shows them: "CANN" with one row for each host thread, "Ascend Hardware" for each device with one row
for each stream. ``ts`` and ``dur`` are microseconds on the clock that ``otherData.clock`` names; each slice's args
carry the other clock in ns.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

#: Process numbers of the layers: the host, and device 0 (device k: HARDWARE + k).
CANN = 1
HARDWARE = 1000
#: A host call that takes no time is drawn this long, or no arrow could start in it.
LEAST_NS = 1


def head(name: str, category: str, pid: int, tid: int, args: dict[str, Any]) -> str:
    """The part of a device slice that is the same for all launches of one kind on one stream, up to its task number."""
    inner = json.dumps({**args, "Stream Id": tid}, separators=(",", ":"))[1:-1]
    return f'{{"ph":"X","name":{json.dumps(name)},"cat":"{category}","pid":{pid},"tid":{tid},"args":{{{inner},"Task Id":'


def layer(pid: int, name: str, label: str) -> str:
    """The names of a layer; layers are drawn in the order of their numbers."""
    texts = []
    for key, args in (
        ("process_name", {"name": name}),
        ("process_labels", {"labels": label}),
        ("process_sort_index", {"sort_index": pid}),
    ):
        texts.append(json.dumps({"ph": "M", "name": key, "pid": pid, "args": args}))
    return ",\n".join(texts)


def row(pid: int, tid: int, name: str) -> str:
    """The name of a row in a layer."""
    texts = []
    for key, args in (("thread_name", {"name": name}), ("thread_sort_index", {"sort_index": tid})):
        texts.append(json.dumps({"ph": "M", "name": key, "pid": pid, "tid": tid, "args": args}))
    return ",\n".join(texts)


class File:
    """A trace that grows. Nothing is kept in memory beyond the last chunk; a file without its end can still be read."""

    def __init__(self, path: str | Path, about: dict[str, Any]) -> None:
        self._file = open(path, "wb", buffering=0)  # noqa: SIM115  closed by close()
        self._first = True
        self._file.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[\n'.encode())

    def write(self, events: list[str]) -> None:
        """Add events; an entry may be several of them, joined by a comma and a line break."""
        if not events:
            return
        text = ",\n".join(events)
        self._file.write((text if self._first else ",\n" + text).encode())
        self._first = False

    def close(self) -> None:
        """The end of the list and of the object."""
        self._file.write(b"\n]}\n")
        self._file.close()
