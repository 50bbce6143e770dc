"""Loading a trace, complete or cut off, and checking it against the event format."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from emu.timeline.events import CANN, HARDWARE

Event = dict[str, Any]
#: Letters of a name; the rest is cut off.
LETTERS = 100
#: Times of more µs than this, 30 years, are none.
_MOST = 1e15
#: What each kind of event must have beside its name.
_REQUIRED: dict[str, dict[str, type | tuple[type, ...]]] = {
    "X": {"ts": (int, float), "dur": (int, float), "pid": int, "tid": int, "cat": str, "args": dict},
    "M": {"pid": int, "args": dict},
    "C": {"ts": (int, float), "pid": int, "args": dict},
    "s": {"ts": (int, float), "pid": int, "tid": int, "id": int, "cat": str},
    "f": {"ts": (int, float), "pid": int, "tid": int, "id": int, "cat": str},
}
#: And what the args of a slice of a stream must have.
_TASK: dict[str, type | tuple[type, ...]] = {"connection_id": int}
_WAIT: dict[str, type | tuple[type, ...]] = {**_TASK, "waited_for_stream": int, "waited_for_device": int}


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
        if pid is not None and tid is not None:
            return self._rows.get((pid, tid), [])
        return [e for e in self.events if e["ph"] == "X" and pid in (None, e["pid"])]

    @cached_property
    def _rows(self) -> dict[tuple[int, int], list[Event]]:
        rows: defaultdict[tuple[int, int], list[Event]] = defaultdict(list)
        for e in self.slices():
            rows[e["pid"], e["tid"]].append(e)
        return dict(rows)

    def rows(self) -> list[tuple[int, int]]:
        """(layer, row) of every row with slices, in order."""
        return sorted(self._rows)

    def device_rows(self) -> list[tuple[int, int]]:
        """(layer, stream) of every stream with slices, in order."""
        return [row for row in self.rows() if row[0] >= HARDWARE]

    def host_rows(self) -> list[int]:
        """The host threads with slices."""
        return [tid for pid, tid in self.rows() if pid == CANN]


def load(path: str | Path) -> Trace:
    """Read a trace; long names are cut, and signs in them that cannot be shown become question marks.

    TraceError (a ValueError) for a file that is none; OSError when it cannot be read. What its events hold is not looked at:
    :func:`malformed`.
    """
    text = Path(path).read_text(encoding="utf-8-sig")
    complete = True
    try:
        raw = json.loads(text)
    except RecursionError:
        raise TraceError(f"{path} is nested too deeply for one") from None
    except ValueError:
        complete = False
        raw = _cut_off(text, path)
    if not isinstance(raw, dict) or not isinstance(raw.get("traceEvents"), list):
        raise TraceError(f"{path} is no trace: it has no list traceEvents")
    held = raw.get("otherData")
    given = held.items() if isinstance(held, dict) else ()
    about = {k: _shown(v) if isinstance(v, str) else v for k, v in given if isinstance(v, (str, bool))}
    clock = str(about.get("clock"))
    if clock not in ("simulated", "wall"):
        raise TraceError(f"{path} does not say whether its times are simulated or wall: it was not written by aclnn-emu")
    for e in raw["traceEvents"]:
        name = e.get("name") if isinstance(e, dict) else None
        if isinstance(name, str) and (len(name) > LETTERS or not name.isprintable()):
            e["name"] = _shown(name)
    return Trace(clock, about, raw["traceEvents"], complete)


def _shown(text: str) -> str:
    whole = "".join(c if c.isprintable() else "?" for c in text[: LETTERS + 1])
    return whole if len(whole) <= LETTERS else whole[:LETTERS] + "…"


def _cut_off(text: str, path: str | Path) -> Any:
    """A file whose process ended before it could write the end: every whole line counts."""
    whole = text[: text.rfind("\n")].rstrip().rstrip(",")
    for end in ("]}", ""):
        try:
            return json.loads(whole + end)
        except (ValueError, RecursionError):
            continue
    raise TraceError(f"{path} is no JSON, not even one that is cut off")


def malformed(trace: Trace) -> list[str]:
    """Events that are none of ours: of another kind, without a field or with one of another type, with a time that is none.

    Only a simulated time may be negative: that of a host thread whose clock is behind the one of the thread that began the trace.
    """
    found = []
    for n, e in enumerate(trace.events):
        kind = e.get("ph") if isinstance(e, dict) else None
        if not isinstance(kind, str) or kind not in _REQUIRED or not isinstance(e.get("name"), str):
            found.append(f"event {n}: unknown kind {str(kind)[:LETTERS]!r} or no name")
            continue
        wrong = _wrong(e, _REQUIRED[kind])
        if kind == "X" and not wrong and e["pid"] >= HARDWARE:
            wrong = [f"args.{k}" for k in _wrong(e["args"], _WAIT if e["name"] == "event wait" else _TASK)]
        if wrong:
            found.append(f"event {n} ({kind}): {', '.join(wrong)} missing or of the wrong type")
        elif not (abs(e.get("ts", 0)) <= _MOST and abs(e.get("dur", 0)) <= _MOST):
            found.append(f"event {n} ({kind}): ts or dur is no time")
        elif e.get("dur", 0) < 0 or (e.get("ts", 0) < 0 and trace.clock == "wall"):
            found.append(f"event {n} ({kind}): negative time")
    return found


def _wrong(values: Event, required: dict[str, type | tuple[type, ...]]) -> list[str]:
    """The fields that are missing, of another type, or integers that 64 bits do not hold."""
    found = []
    for key, kind in required.items():
        value = values.get(key)
        if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and kind is int and abs(value) >= 1 << 63):
            found.append(key)
    return found


def problems(trace: Trace) -> list[str]:
    """What breaks the event format; empty for a good trace.

    What :func:`malformed` finds, else: slices of a row that nest or follow each other, arrows that start and end inside a slice and go
    forward (in simulated time as far as the task is not over when its call is drawn), a name for each layer and row.
    """
    found = malformed(trace)
    if found:
        return found  # the other rules would stumble over these
    named: set[tuple[int, int]] = set()
    layers: set[int] = set()
    starts: dict[int, Event] = {}
    for n, e in enumerate(trace.events):
        kind = e["ph"]
        if e["name"] == "process_name":
            layers.add(e["pid"])
        elif e["name"] == "thread_name":
            named.add((e["pid"], e["tid"]))
        elif kind == "s":
            starts[e["id"]] = e
        elif kind == "f" and (e["id"] not in starts or (trace.clock == "wall" and starts[e["id"]]["ts"] > e["ts"] + 1e-9)):
            found.append(f"event {n}: arrow {e['id']} ends before it starts")
    for pid, tid in trace.rows():
        if pid not in layers or (pid, tid) not in named:
            found.append(f"row {tid} of layer {pid} has no name")
        found += _overlaps(trace.slices(pid, tid), f"row {tid} of layer {pid}")
    found += _loose_arrows(trace)
    return found


def _overlaps(slices: list[Event], where: str) -> list[str]:
    found = []
    end = -_MOST
    for e in sorted(slices, key=lambda e: (e["ts"], e["dur"])):
        if e["ts"] < end - 0.0015:
            found.append(f"{where}: {e['name']} at {e['ts']} begins before the slice ahead of it ends ({end})")
        end = max(end, e["ts"] + e["dur"])
    return found


def _loose_arrows(trace: Trace) -> list[str]:
    """Arrows whose ends lie in no slice."""
    from bisect import bisect_right

    rows: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
    for pid, tid in trace.rows():
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
