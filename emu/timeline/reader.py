"""Loading a trace, complete or cut off, and checking it against the event format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from emu.timeline.events import CANN, HARDWARE

Event = dict[str, Any]
#: What each kind of event must have beside its name.
_REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "X": {"ts": (int, float), "dur": (int, float), "pid": int, "tid": int, "cat": str},
    "M": {"pid": int, "args": dict},
    "C": {"ts": (int, float), "pid": int, "args": dict},
    "s": {"ts": (int, float), "pid": int, "tid": int, "id": int, "cat": str},
    "f": {"ts": (int, float), "pid": int, "tid": int, "id": int, "cat": str},
}


class TraceError(ValueError):
    """A file that is no trace of ours; the text says what is wrong."""


@dataclass(frozen=True)
class Trace:
    """A loaded trace. ``clock`` is that of ts and dur; ``complete`` False when the file has no end."""

    clock: str
    about: dict[str, Any]
    events: list[Event]
    complete: bool

    def slices(self, pid: int | None = None, tid: int | None = None) -> list[Event]:
        """The X events, of one layer, or of one of its rows."""
        return [e for e in self.events if e["ph"] == "X" and pid in (None, e["pid"]) and tid in (None, e["tid"])]

    def device_rows(self) -> list[tuple[int, int]]:
        """(layer, stream) of every stream with slices, in order."""
        return sorted({(e["pid"], e["tid"]) for e in self.slices() if e["pid"] >= HARDWARE})

    def host_rows(self) -> list[int]:
        """The host threads with slices."""
        return sorted({e["tid"] for e in self.slices(CANN)})


def load(path: str | Path) -> Trace:
    """Read a trace. TraceError (a ValueError) for a file that is none; OSError when it cannot be read."""
    text = Path(path).read_text(encoding="utf-8")
    complete = True
    try:
        raw = json.loads(text)
    except ValueError:
        complete = False
        raw = _cut_off(text, path)
    if not isinstance(raw, dict) or not isinstance(raw.get("traceEvents"), list):
        raise TraceError(f"{path} is no trace: it has no list traceEvents")
    about = raw.get("otherData", {})
    if about.get("clock") not in ("simulated", "wall"):
        raise TraceError(f"{path} does not say whether its times are simulated or wall: it was not written by aclnn-emu")
    return Trace(about["clock"], about, raw["traceEvents"], complete)


def _cut_off(text: str, path: str | Path) -> Any:
    """A file whose process ended before it could write the end: every whole line counts."""
    whole = text[: text.rfind("\n")].rstrip().rstrip(",")
    for end in ("]}", ""):
        try:
            return json.loads(whole + end)
        except ValueError:
            continue
    raise TraceError(f"{path} is no JSON, not even one that is cut off")


def problems(trace: Trace) -> list[str]:
    """What breaks the event format; empty for a good trace.

    Kinds and types of fields, no negative time, slices of a row that nest or follow each other, arrows that start and end inside a slice
    and go forward (in simulated time as far as the task is not over when its call is drawn), a name for each layer and row.
    """
    found: list[str] = []
    named: set[tuple[int, int]] = set()
    layers: set[int] = set()
    starts: dict[int, Event] = {}
    for n, e in enumerate(trace.events):
        kind = e.get("ph")
        if kind not in _REQUIRED or not isinstance(e.get("name"), str):
            found.append(f"event {n}: unknown kind {kind!r} or no name")
            continue
        wrong = [k for k, t in _REQUIRED[kind].items() if not isinstance(e.get(k), t) or isinstance(e.get(k), bool)]
        if wrong:
            found.append(f"event {n} ({kind}): {', '.join(wrong)} missing or of the wrong type")
            continue
        if e.get("dur", 0) < 0 or e.get("ts", 0) < 0:
            found.append(f"event {n}: negative time")
        if e["name"] == "process_name":
            layers.add(e["pid"])
        elif e["name"] == "thread_name":
            named.add((e["pid"], e["tid"]))
        elif kind == "s":
            starts[e["id"]] = e
        elif kind == "f" and (e["id"] not in starts or (trace.clock == "wall" and starts[e["id"]]["ts"] > e["ts"] + 1e-9)):
            found.append(f"event {n}: arrow {e['id']} ends before it starts")
    if any("missing" in text or "unknown kind" in text for text in found):
        return found  # the other rules would stumble over these
    for pid, tid in {(e["pid"], e["tid"]) for e in trace.slices()}:
        if pid not in layers or (pid, tid) not in named:
            found.append(f"row {tid} of layer {pid} has no name")
        found += _overlaps(trace.slices(pid, tid), f"row {tid} of layer {pid}")
    found += _loose_arrows(trace)
    return found


def _overlaps(slices: list[Event], where: str) -> list[str]:
    found = []
    end = 0.0
    for e in sorted(slices, key=lambda e: (e["ts"], e["dur"])):
        if e["ts"] < end - 0.0015:
            found.append(f"{where}: {e['name']} at {e['ts']} begins before the slice ahead of it ends ({end})")
        end = max(end, e["ts"] + e["dur"])
    return found


def _loose_arrows(trace: Trace) -> list[str]:
    """Arrows whose ends lie in no slice."""
    from bisect import bisect_right

    rows: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
    for pid, tid in {(e["pid"], e["tid"]) for e in trace.slices()}:
        inside = sorted((e["ts"], e["ts"] + e["dur"]) for e in trace.slices(pid, tid) if e["dur"] > 0)
        rows[pid, tid] = [a for a, _ in inside], [b for _, b in inside]
    found = []
    for e in trace.events:
        if e["ph"] in ("s", "f"):
            begins, ends = rows.get((e["pid"], e["tid"]), ([], []))
            k = bisect_right(begins, e["ts"] + 0.0005) - 1
            if k < 0 or e["ts"] > ends[k] + 0.0005:
                found.append(f"arrow {e['id']} ({e['ph']}) at {e['ts']} lies in no slice")
    return found
