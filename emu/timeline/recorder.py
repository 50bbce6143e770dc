"""The hook that writes a timeline while a program runs.

A task's line is written when it has run, in the order in which the host queued the tasks: so the file of a program does not depend on the
schedule. What waits in memory is what waits in the queues.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import config
from emu.runtime import clock, hooks
from emu.runtime.gates import Gate, Record, Wait
from emu.timeline import events

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: Lines that are collected before they are written.
CHUNK = 1024

# One queued task: a list, because it is made at every launch.
STATE, STREAM, TASK, NUMBER, TASK_ID, THREAD, ISSUED, ISSUED_WALL, BEGIN, END, BEGIN_WALL, END_WALL, CALLED, ABOUT = range(14)
WAITING, DONE, DROPPED = range(3)
Entry = list[Any]

#: Host calls that queue something and report nothing else: their names in the CANN layer.
_CALLS = {
    "memcpy": "aclrtMemcpyAsync",
    "memset": "aclrtMemsetAsync",
    "event record": "aclrtRecordEvent",
    "event wait": "aclrtStreamWaitEvent",
}
_TASK_TYPES = {"memcpy": "MEMCPY_ASYNC", "memset": "MEMSET_ASYNC", "event record": "EVENT_RECORD", "event wait": "EVENT_WAIT"}


class Recorder(hooks.Hooks):
    """Writes ``path`` from :meth:`start` to :meth:`stop`. ``on`` is the clock of ts and dur, "simulated" or "wall"."""

    def __init__(self, path: str | Path, on: str | None = None) -> None:
        settings = config.current()
        self.clock = settings.clock if on is None else on
        if self.clock not in ("simulated", "wall"):
            raise ValueError(f"clock must be simulated or wall, not {on!r}")
        self.path = Path(path)
        self._settings = settings
        self._simulated = self.clock == "simulated"
        self._pending: deque[Entry | tuple[Any, ...]] = deque()
        self._queues: dict[Stream, deque[Entry]] = {}
        self._numbers = count(1)
        self._task_ids: dict[Stream, count[int]] = {}
        self._threads: dict[int, int] = {}
        #: By a cost's identity, which holds as long as the cost is kept here as well; by name where there is none.
        self._heads: dict[str | int, tuple[Any, str]] = {}
        self._rows: set[tuple[int, int]] = set()
        #: Where the next host call of a thread may be drawn, and where a stream's last item ended on the wall clock.
        self._drawn: dict[int, int] = {}
        self._last_wall: dict[Stream, int] = {}
        self._lock = threading.Lock()
        self._file: events.File | None = None
        self._sim0 = self._wall0 = 0

    # -- start and stop --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the file and listen. OSError when it cannot be written."""
        from emu import __version__

        s = self._settings
        about = {
            "emulated": True, "tool": f"aclnn-emu {__version__}", "clock": self.clock, "soc": s.soc, "host": s.host,
            "note": f"EMULATED {s.soc}: ts and dur are {self.clock} time in µs; a host call without time is drawn 1 ns long",
        }  # fmt: skip
        self._file = events.File(self.path, about)
        self._sim0, self._wall0 = clock.now()
        hooks.install(self)

    def stop(self) -> None:
        """Stop listening; write what has run. What is still queued is left out: synchronise before."""
        hooks.remove(self)
        for entry in self._pending:
            if type(entry) is list and entry[STATE] == WAITING:
                entry[STATE] = DROPPED
        self._flush()
        with self._lock:
            if self._file is not None:
                self._file.close()
                self._file = None

    # -- what the runtime reports ----------------------------------------------------------------------------------------

    def _thread(self) -> int:
        me = threading.get_ident()
        number = self._threads.get(me)
        if number is None:
            number = self._threads.setdefault(me, len(self._threads) + 1)
        return number

    def enqueued(self, stream: Stream, task: Any) -> None:
        called = True
        if isinstance(task, Gate):
            if not isinstance(task, (Record, Wait)):
                return
            called = False
        elif task.name in _CALLS:
            called = False
        mine = self._queues.get(stream)
        if mine is None:
            mine = self._queues.setdefault(stream, deque())
            self._task_ids[stream] = count(1)
        entry = [
            WAITING, stream, task, next(self._numbers), next(self._task_ids[stream]), self._thread(), task.issued_ns,
            time.perf_counter_ns(), 0, 0, 0, 0, called, "",
        ]  # fmt: skip
        mine.append(entry)
        self._pending.append(entry)

    def _entry(self, stream: Stream, task: Any) -> Entry | None:
        """The entry of a task that has run; those before it in its stream were passed over."""
        mine = self._queues.get(stream)
        while mine:
            entry = mine.popleft()
            if entry[TASK] is task:
                return entry
            if any(other[TASK] is task for other in mine):
                entry[STATE] = DROPPED
                continue
            mine.appendleft(entry)
            return None
        return None

    def launched(self, stream: Stream, task: Any) -> None:
        self._last_wall[stream] = time.perf_counter_ns()

    def finished(self, stream: Stream, task: Any) -> None:
        entry = self._entry(stream, task)
        if entry is None:
            return
        entry[END] = end = stream.sim_ns
        entry[BEGIN] = end - getattr(task, "cost_ns", 0)
        entry[BEGIN_WALL] = self._last_wall.get(stream, 0)
        entry[END_WALL] = self._last_wall[stream] = time.perf_counter_ns()
        entry[STATE] = DONE
        if len(self._pending) >= CHUNK:
            self._flush()

    def recorded(self, stream: Stream, record: Any) -> None:
        self._passed(stream, record, record.sim_ns)

    def waited(self, stream: Stream, record: Any) -> None:
        mine = self._queues.get(stream)
        wait = next((e[TASK] for e in mine if isinstance(e[TASK], Wait) and e[TASK].record is record), None) if mine else None
        if wait is not None:
            self._passed(
                stream,
                wait,
                wait.since_ns,
                f',"waited_for_stream":{record.stream.id},"waited_for_device":{record.stream.context.device.index}',
            )

    def _passed(self, stream: Stream, gate: Any, since: int, about: str = "") -> None:
        entry = self._entry(stream, gate)
        if entry is None:
            return
        entry[BEGIN], entry[END], entry[ABOUT] = since, stream.sim_ns, about
        entry[END_WALL] = time.perf_counter_ns()
        entry[BEGIN_WALL] = self._last_wall.get(stream, entry[END_WALL]) if isinstance(gate, Wait) else entry[END_WALL]
        self._last_wall[stream] = entry[END_WALL]
        entry[STATE] = DONE
        if len(self._pending) >= CHUNK:
            self._flush()

    def called(self, name: str, began: tuple[int, int]) -> None:
        self._pending.append(("call", self._thread(), name, *began, clock.host.ns, time.perf_counter_ns()))
        if len(self._pending) >= CHUNK:
            self._flush()

    def allocated(self, memory: Any, block: Any) -> None:
        self._pending.append(("memory", block.device, memory.used, *clock.now()))

    freed = allocated

    def destroyed(self, obj: Any) -> None:
        for entry in self._queues.pop(obj, ()):
            entry[STATE] = DROPPED

    # -- writing ---------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write what is finished, up to the first task that is not."""
        if not self._lock.acquire(False):
            return
        try:
            if self._file is None:
                return
            pending = self._pending
            lines: list[str] = []
            while pending:
                entry = pending[0]
                if type(entry) is tuple:
                    self._other(entry, lines)
                elif entry[STATE] == WAITING:
                    break
                elif entry[STATE] == DONE:
                    self._task(entry, lines)
                pending.popleft()
            self._file.write(lines)
        finally:
            self._lock.release()

    def _task(self, entry: Entry, lines: list[str]) -> None:
        _, stream, task, number, task_id, thread, issued, issued_wall, begin, end, begin_wall, end_wall, called, about = entry
        device = stream.context.device.index
        pid, tid = events.HARDWARE + device, stream.id
        if (pid, tid) not in self._rows:
            self._row(pid, tid, f"Stream {tid}", lines)
        sim0, wall0 = self._sim0, self._wall0
        sim_ts, sim_dur = (begin - sim0) / 1000, (end - begin) / 1000
        wall_ts, wall_dur = (begin_wall - wall0) / 1000, (end_wall - begin_wall) / 1000
        if self._simulated:
            ts, dur, issue = sim_ts, sim_dur, (issued - sim0) / 1000
            drawn = issued - clock.issue_ns if called else issued
            start = max(self._drawn.get(thread, 0), drawn)
            host_ts = (start - sim0) / 1000
        else:
            ts, dur, issue = wall_ts, wall_dur, (issued_wall - wall0) / 1000
            start, host_ts = issued_wall, issue
        name = task.name
        if not called:
            self._call(thread, _CALLS[name], start, issued, issued, issued_wall, issued_wall, lines)
        cost = getattr(task, "cost", None)
        kept = self._heads.get(name if cost is None else id(cost))
        text = kept[1] if kept is not None else self._head(name, task, cost, stream)
        lines.append(
            events.SLICE
            % (text, tid, task_id, number, issue, sim_ts, sim_dur, wall_ts, wall_dur, about, pid, tid, ts, dur)
        )  # fmt: skip
        if dur > 0 and name not in ("event record", "event wait"):
            lines.append(events.FLOW % (number, thread, host_ts, number, pid, tid, ts))

    def _head(self, name: str, task: Any, cost: Any, stream: Stream) -> str:
        args: dict[str, Any] = {
            "Task Type": _TASK_TYPES.get(name, "AI_VECTOR_CORE" if stream.context.device.profile.vector_cores else "AI_CORE")
        }
        if cost is not None:
            args |= {
                "Block Dim": cost.block_dim, "read bytes": cost.traffic.read, "written bytes": cost.traffic.written, "binds": cost.binds,
            }  # fmt: skip
        elif name == "memcpy":
            args["bytes"] = task.nbytes * task.height
        elif name == "memset":
            args["bytes"] = task.count * len(task.pattern)
        category = "sync" if name.startswith("event") else "kernel" if cost is not None else "copy"
        text = events.head(name, category, args)
        if name not in ("memcpy", "memset"):  # the sizes of copies vary without end
            self._heads[name if cost is None else id(cost)] = cost, text
        return text

    def _call(self, thread: int, name: str, start: int, b_sim: int, e_sim: int, b_wall: int, e_wall: int, lines: list[str]) -> None:
        """A slice of the CANN layer from ``start`` on the trace's clock."""
        if (events.CANN, thread) not in self._rows:
            self._row(events.CANN, thread, f"Thread {thread}", lines)
        zero = self._sim0 if self._simulated else self._wall0
        end = max(start + events.LEAST_NS, e_sim if self._simulated else e_wall)
        self._drawn[thread] = end
        sim, wall = self._sim0, self._wall0
        lines.append(
            events.CALL
            % (
                dumps(name), (b_sim - sim) / 1000, (e_sim - b_sim) / 1000, (b_wall - wall) / 1000, (e_wall - b_wall) / 1000, thread,
                (start - zero) / 1000, (end - start) / 1000,
            )
        )  # fmt: skip

    def _other(self, entry: tuple[Any, ...], lines: list[str]) -> None:
        if entry[0] == "call":
            _, thread, name, b_sim, b_wall, e_sim, e_wall = entry
            start = max(self._drawn.get(thread, 0), b_sim) if self._simulated else b_wall
            self._call(thread, name, start, b_sim, e_sim, b_wall, e_wall, lines)
            return
        _, device, used, sim, wall = entry
        pid = events.HARDWARE + device
        if (pid, 0) not in self._rows:
            self._row(pid, 0, "Stream 0", lines)
        lines.append(events.COUNTER % (used, pid, (sim - self._sim0 if self._simulated else wall - self._wall0) / 1000))

    def _row(self, pid: int, tid: int, name: str, lines: list[str]) -> None:
        if not any(known == pid for known, _ in self._rows):
            label = f"EMULATED {self._settings.soc}, {self.clock} time"
            device = pid - events.HARDWARE
            layer = "CANN" if pid == events.CANN else "Ascend Hardware" if device == 0 else f"Ascend Hardware {device}"
            lines.append(events.layer(pid, layer, label, pid))
        self._rows.add((pid, tid))
        lines.append(events.row(pid, tid, name))


@contextmanager
def trace(path: str | Path, clock: str | None = None) -> Iterator[Recorder]:
    """``with emu.trace("out.json"):`` writes the timeline of what is queued and run inside.

    ``clock`` is "simulated" or "wall" for ts and dur; None takes the Config's. Work that is still queued at the end is left out:
    synchronise before. OSError when the file cannot be written.
    """
    recorder = Recorder(path, clock)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()


_started: Recorder | None = None


def from_environment() -> None:
    """EMU_TRACE=PATH: trace the whole process, from its first device to its end."""
    global _started
    path = os.environ.get("EMU_TRACE")
    if not path or _started is not None:
        return
    import atexit

    _started = Recorder(path)
    _started.start()
    atexit.register(_finish, os.getpid())


def _finish(pid: int) -> None:
    global _started
    if _started is not None and pid == os.getpid():
        _started.stop()
        _started = None
