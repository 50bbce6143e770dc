"""The file: one JSON object whose list of events grows line by line, and the text of each event.

Layers as a profiler of the real stack shows them: "CANN" with one row for each host thread, "Ascend Hardware" for each device with one row
for each stream. ``ts`` and ``dur`` are microseconds on the clock that ``otherData.clock`` names; each slice's args carry both clocks.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, TextIO

#: Process numbers of the layers: the host, and device 0 (device k: HARDWARE + k).
CANN = 1
HARDWARE = 1000
#: A host call that takes no time is drawn this long, or no arrow could start in it.
LEAST_NS = 1

#: One line: X event of the device; its head is cached text. Times in µs.
SLICE = '%s"Stream Id":%d,"Task Id":%d,"connection_id":%d,"issued_us":%.3f,"sim_ts":%.3f,"sim_dur":%.3f,"wall_ts":%.3f,"wall_dur":%.3f%s},"pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f}'  # noqa: E501
FLOW = (
    '{"ph":"s","name":"HostToDevice","cat":"HostToDevice","id":%d,"pid":1,"tid":%d,"ts":%.3f},\n'
    '{"ph":"f","bp":"e","name":"HostToDevice","cat":"HostToDevice","id":%d,"pid":%d,"tid":%d,"ts":%.3f}'
)
CALL = '{"ph":"X","name":%s,"cat":"host","args":{"sim_ts":%.3f,"sim_dur":%.3f,"wall_ts":%.3f,"wall_dur":%.3f},"pid":1,"tid":%d,"ts":%.3f,"dur":%.3f}'  # noqa: E501
COUNTER = '{"ph":"C","name":"HBM used","cat":"memory","args":{"bytes":%d},"pid":%d,"tid":0,"ts":%.3f}'


def head(name: str, category: str, args: dict[str, Any]) -> str:
    """The part of a device slice that is the same for all launches of one kind: name, category and the first args."""
    inner = json.dumps(args)[1:-1]
    return '{"ph":"X","name":%s,"cat":"%s","args":{%s,' % (json.dumps(name), category, inner)


def layer(pid: int, name: str, label: str, order: int) -> str:
    """The names of a layer."""
    texts = []
    for key, args in (
        ("process_name", {"name": name}),
        ("process_labels", {"labels": label}),
        ("process_sort_index", {"sort_index": order}),
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
        self._file: TextIO = open(path, "w", encoding="utf-8")  # noqa: SIM115
        self._first = True
        self._file.write('{"displayTimeUnit":"ns","otherData":%s,"traceEvents":[\n' % json.dumps(about))

    def write(self, events: list[str]) -> None:
        """Add events; an entry may be several of them, joined by a comma and a line break."""
        if not events:
            return
        text = ",\n".join(events)
        self._file.write(text if self._first else ",\n" + text)
        self._first = False

    def flush(self) -> None:
        """Let readers see what is there."""
        self._file.flush()

    def close(self) -> None:
        """The end of the list and of the object."""
        self._file.write("\n]}\n")
        self._file.close()
