"""The table that people make of a timeline by hand: time by operator, busy and idle share of each stream, the longest gaps and why."""

from __future__ import annotations

from collections import defaultdict
from typing import NamedTuple

from emu.timeline.events import CANN, HARDWARE
from emu.timeline.reader import Event, Trace

#: Gaps shorter than this are rounding, in µs.
LEAST_GAP = 0.0015


class OpTime(NamedTuple):
    """One operator (or kind of copy) on the device. Times in µs, ``share`` of the busy time of all streams."""

    name: str
    times: int
    total: float
    mean: float
    longest: float
    share: float


class StreamTime(NamedTuple):
    """One stream between the first and the last device task of the trace. Times in µs; busy + waiting + idle = the whole."""

    stream: str
    tasks: int
    busy: float
    waiting: float
    idle: float


class Gap(NamedTuple):
    """A stretch in which a stream ran nothing before its next task. ``waited_for`` says what it needed."""

    stream: str
    begin: float
    length: float
    before: str
    waited_for: str


class Summary(NamedTuple):
    """``clock``: "simulated" or "wall", that of every figure here. ``span``: first begin to last end of a device task, in µs."""

    clock: str
    span: float
    operators: list[OpTime]
    streams: list[StreamTime]
    gaps: list[Gap]


def _works(e: Event) -> bool:
    return e["cat"] in ("kernel", "copy") and not e["args"].get("failed")


def _name(pid: int, tid: int) -> str:
    return f"stream {tid}" if pid == HARDWARE else f"device {pid - HARDWARE} stream {tid}"


def summarise(trace: Trace, gaps: int = 10) -> Summary:
    """The summary with the ``gaps`` longest gaps; empty lists for a trace without device tasks. A task that failed did not run."""
    work = [e for e in trace.slices() if e["pid"] >= HARDWARE and _works(e)]
    if not work:
        return Summary(trace.clock, 0.0, [], [], [])
    first, last = min(e["ts"] for e in work), max(e["ts"] + e["dur"] for e in work)
    span = last - first
    streams = []
    found: list[_Stretch] = []
    for row in trace.device_rows():
        slices = sorted(trace.slices(*row), key=lambda e: (e["ts"], e["dur"]))
        waits = [e for e in slices if e["name"] == "event wait"]
        tasks = [e for e in slices if _works(e)]
        busy = sum(e["dur"] for e in tasks)
        waiting = sum(max(0.0, min(e["ts"] + e["dur"], last) - max(e["ts"], first)) for e in waits)
        streams.append(StreamTime(_name(*row), len(tasks), busy, waiting, max(0.0, span - busy - waiting)))
        found += _stretches(_name(*row), tasks, waits, first)
    total = sum(e["dur"] for e in work)
    times: defaultdict[str, list[float]] = defaultdict(list)
    for e in work:
        times[e["name"]].append(e["dur"])
    operators = [
        OpTime(name, len(t), sum(t), sum(t) / len(t), max(t), sum(t) / total if total else 0.0) for name, t in times.items()
    ]  # fmt: skip
    operators.sort(key=lambda o: (-o.total, o.name))
    found.sort(key=lambda s: (-s.length, s.begin, s.stream))
    return Summary(trace.clock, span, operators, streams, _explained(trace, found[:gaps]))


class _Stretch(NamedTuple):
    """A gap before ``task``; ``waits`` are all of its stream."""

    stream: str
    begin: float
    length: float
    task: Event
    waits: list[Event]


def _stretches(stream: str, tasks: list[Event], waits: list[Event], first: float) -> list[_Stretch]:
    found = []
    end = first
    for task in tasks:
        length = task["ts"] - end
        if length > LEAST_GAP:
            found.append(_Stretch(stream, end, length, task, waits))
        end = max(end, task["ts"] + task["dur"])
    return found


def _explained(trace: Trace, stretches: list[_Stretch]) -> list[Gap]:
    issued = {e["id"]: e for e in trace.events if e["ph"] == "s"}
    calls = sorted(trace.slices(CANN), key=lambda e: e["ts"])
    found = []
    for stream, begin, length, task, waits in stretches:
        inside = [w for w in waits if w["ts"] + w["dur"] > begin + LEAST_GAP and w["ts"] < task["ts"] and w["dur"] > LEAST_GAP]
        found.append(Gap(stream, begin, length, task["name"], _reason(task, begin, inside, issued, calls)))
    return found


def _reason(task: Event, end: float, waits: list[Event], issued: dict[int, Event], calls: list[Event]) -> str:
    """What held ``task`` up: the last event wait in the gap, if it lasted until the task began, else the host."""
    if waits:
        last = waits[-1]
        if last["ts"] + last["dur"] >= task["ts"] - LEAST_GAP:
            args = last["args"]
            return "an event of " + _name(HARDWARE + args["waited_for_device"], args["waited_for_stream"])
    start = issued.get(task["args"]["connection_id"])
    if start is None:
        return "the host"
    mine = [c for c in calls if c["tid"] == start["tid"] and c["ts"] < task["ts"] and c["ts"] + c["dur"] > end]
    longest = max(mine, key=lambda c: min(c["ts"] + c["dur"], task["ts"]) - max(c["ts"], end), default=None)
    if longest is None or longest["dur"] <= LEAST_GAP:
        return f"the host (thread {start['tid']})"
    return f"the host (thread {start['tid']}, longest in {longest['name']})"
