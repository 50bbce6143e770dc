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
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import config
from emu.runtime import clock, hooks
from emu.runtime.gates import Gate, Record, Wait
from emu.timeline import events

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: Tasks, calls and counters that are collected before they are written.
CHUNK = 256

# One queued task: a list, because one is made at every launch.
STATE, ROW, TASK, THREAD, ISSUED_WALL, BEGIN, END, BEGIN_WALL, END_WALL, ABOUT = range(10)
WAITING, DONE, DROPPED = range(3)
Entry = list[Any]

#: What the host calls to queue what is no launch, and what the device calls it.
_CALLS = {
    "memcpy": "aclrtMemcpyAsync",
    "memset": "aclrtMemsetAsync",
    "event record": "aclrtRecordEvent",
    "event wait": "aclrtStreamWaitEvent",
}
_TASK_TYPES = {"memcpy": "MEMCPY_ASYNC", "memset": "MEMSET_ASYNC", "event record": "EVENT_RECORD", "event wait": "EVENT_WAIT"}
_clock = time.perf_counter_ns
#: The last three digits of a number of ns as a fraction of µs: formatting floats would take most of the recorder's time.
_PARTS = [f".{k:03d}" for k in range(1000)]
_ARROW = ',\n{"ph":"s","name":"HostToDevice","cat":"HostToDevice","id":'


class _Row:
    """One stream: what waits in it, and what its lines begin with."""

    __slots__ = ("arrow", "core", "heads", "last_wall", "named", "pid", "queue", "tasks", "tid")

    def __init__(self, stream: Stream) -> None:
        device = stream.context.device
        self.pid = events.HARDWARE + device.index
        self.tid = stream.id
        self.arrow = f',"name":"HostToDevice","cat":"HostToDevice","pid":{self.pid},"tid":{self.tid},"ts":'
        self.core = "AI_VECTOR_CORE" if device.profile.vector_cores else "AI_CORE"
        self.queue: deque[Entry] = deque()
        #: Tasks written so far.
        self.tasks = 0
        #: Wall time at which its present task began, or its last one ended.
        self.last_wall = 0
        self.named = False
        #: By a cost's identity, which holds as long as the cost is kept here as well; by name where there is none.
        self.heads: dict[str | int, tuple[Any, str]] = {}


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
        #: In the order in which the host did things; written up to the first task that has not run.
        self._pending: deque[Entry | tuple[Any, ...]] = deque()
        self._ready = 0
        self._rows: dict[Stream, _Row] = {}
        self._numbers = count(1)
        self._threads = count(1)
        self._local = threading.local()
        self._named: set[tuple[int, int]] = set()
        #: Where the next host call of a thread may be drawn.
        self._drawn: dict[int, int] = {}
        self._lock = threading.Lock()
        self._file: events.File | None = None
        self._sim0 = self._wall0 = 0

    # -- start and stop --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the file and listen. OSError when it cannot be written."""
        from emu import __version__

        s = self._settings
        about = {
            "emulated": True,
            "tool": f"aclnn-emu {__version__}",
            "clock": self.clock,
            "soc": s.soc,
            "host": s.host,
            "note": f"EMULATED {s.soc}: ts and dur are {self.clock} time in µs; a host call without time is drawn 1 ns long",
        }
        self._file = events.File(self.path, about)
        self._sim0, self._wall0 = clock.now()
        hooks.install(self)

    def stop(self) -> None:
        """Stop listening; write what has run. What is still queued is left out: synchronise before."""
        hooks.remove(self)
        with self._lock:
            for entry in list(self._pending):  # a copy: a call that began before may still add to it
                if type(entry) is list and entry[STATE] == WAITING:
                    entry[STATE] = DROPPED
            if self._file is not None:
                self._write(self._file)
                self._file.close()
                self._file = None

    # -- what the runtime reports ----------------------------------------------------------------------------------------

    def _thread(self) -> int:
        """The number of the calling thread, in the order of first appearance."""
        try:
            number: int = self._local.number
        except AttributeError:
            number = self._local.number = next(self._threads)
        return number

    def enqueued(self, stream: Stream, task: Any) -> None:
        row = self._rows.get(stream)
        if row is None:
            row = self._rows.setdefault(stream, _Row(stream))
        if isinstance(task, Gate) and not isinstance(task, (Record, Wait)):
            return  # nothing would report its end
        entry = [WAITING, row, task, self._thread(), _clock(), 0, 0, 0, 0, ""]
        row.queue.append(entry)
        self._pending.append(entry)

    def launched(self, stream: Stream, task: Any) -> None:
        row = self._rows.get(stream)
        if row is not None:
            row.last_wall = _clock()

    def finished(self, stream: Stream, task: Any) -> None:
        entry = self._entry(stream, task)
        if entry is None:
            return
        row = entry[ROW]
        entry[END] = end = stream.sim_ns
        entry[BEGIN] = end - getattr(task, "cost_ns", 0)
        entry[BEGIN_WALL] = row.last_wall
        entry[END_WALL] = row.last_wall = _clock()
        self._done(entry)

    def _entry(self, stream: Stream, task: Any) -> Entry | None:
        """The entry of a task that has run; those before it in its stream were passed over. None: queued before the trace began."""
        row = self._rows.get(stream)
        if row is None or not row.queue:
            return None
        entry = row.queue.popleft()
        if entry[TASK] is task:
            return entry
        row.queue.appendleft(entry)
        if not any(other[TASK] is task for other in row.queue):
            return None
        while (entry := row.queue.popleft())[TASK] is not task:
            entry[STATE] = DROPPED
        return entry

    def _done(self, entry: Entry) -> None:
        entry[STATE] = DONE
        self._grown()

    def _grown(self) -> None:
        """One more task, call or counter can be written; write when they make a chunk, unless another thread does."""
        self._ready += 1
        if self._ready >= CHUNK and self._lock.acquire(False):
            try:
                if self._file is not None:
                    self._write(self._file)
            finally:
                self._lock.release()

    def recorded(self, stream: Stream, record: Any) -> None:
        entry = self._entry(stream, record)
        if entry is not None:
            entry[BEGIN] = entry[END] = record.sim_ns
            entry[BEGIN_WALL] = entry[END_WALL] = entry[ROW].last_wall = record.wall_ns
            self._done(entry)

    def waited(self, stream: Stream, record: Any) -> None:
        row = self._rows.get(stream)
        tasks: list[Any] = [e[TASK] for e in row.queue] if row is not None else []
        wait = next((task for task in tasks if isinstance(task, Wait) and task.record is record), None)
        entry = self._entry(stream, wait)
        if entry is not None and wait is not None:
            row = entry[ROW]
            entry[BEGIN], entry[END] = wait.since_ns, stream.sim_ns
            entry[END_WALL] = _clock()
            entry[BEGIN_WALL] = max(row.last_wall, entry[ISSUED_WALL])
            row.last_wall = entry[END_WALL]
            entry[ABOUT] = f',"waited_for_stream":{record.stream.id},"waited_for_device":{record.stream.context.device.index}'
            self._done(entry)

    def called(self, name: str, began: tuple[int, int]) -> None:
        self._pending.append(("call", self._thread(), name, *began, clock.host.ns, _clock()))
        self._grown()

    def allocated(self, memory: Any, block: Any) -> None:
        self._pending.append(("memory", block.device, memory.used, *clock.now()))
        self._grown()

    freed = allocated

    def destroyed(self, obj: Any) -> None:
        row = self._rows.pop(obj, None)
        for entry in row.queue if row is not None else ():
            entry[STATE] = DROPPED

    # -- writing ---------------------------------------------------------------------------------------------------------

    def _write(self, file: events.File) -> None:
        """Write what is finished, up to the first task that is not; call with the lock held."""
        self._ready = 0
        pending = self._pending
        lines: list[str] = []
        quick = self._simulated
        while pending:
            entry = pending[0]
            if type(entry) is list:
                state = entry[0]
                if state == WAITING:
                    break
                if state == DONE:
                    call = pending[1] if quick and len(pending) > 1 else None
                    if type(call) is tuple and call[1] == entry[3] and self._launch(entry, call, lines):
                        pending.popleft()
                    else:
                        self._task(entry, lines)
            elif entry[0] == "call":
                _, thread, name, b_sim, b_wall, e_sim, e_wall = entry
                self._call(thread, name, b_sim, b_wall, e_sim, e_wall, lines)
            else:
                self._memory(entry, lines)
            pending.popleft()
        file.write(lines)

    def _launch(self, entry: Entry, call: tuple[Any, ...], lines: list[str]) -> bool:
        """What most of a trace consists of: a launch of an operator, simulated, with the call that queued it, as :meth:`_task` and
        :meth:`_call` would write them. False where it is anything else."""
        _, row, task, thread, _, begin, end, begin_wall, end_wall, _ = entry
        kind, _, name, b_sim, b_wall, e_sim, e_wall = call if len(call) == 7 else ("", 0, "", 0, 0, 0, 0)
        kept = row.heads.get(id(getattr(task, "cost", None)))
        if kept is None or kind != "call" or (events.CANN, thread) not in self._named or not name.startswith("aclnn"):
            return False
        sim0, wall0 = self._sim0, self._wall0
        start = self._drawn.get(thread, 0)
        if start < b_sim:
            start = b_sim
        stop = start + events.LEAST_NS
        if stop < e_sim:
            stop = e_sim
        self._drawn[thread] = stop
        ts, dur, host, host_dur = begin - sim0, end - begin, start - sim0, stop - start
        host_took = "0.001" if host_dur == 1 else f"{host_dur // 1000}{_PARTS[host_dur % 1000]}"
        row.tasks += 1
        number = str(next(self._numbers))
        at = f"{ts // 1000}{_PARTS[ts % 1000]}"
        host_at = f"{host // 1000}{_PARTS[host % 1000]}"
        lines.append(
            f'{kept[1]}{row.tasks},"connection_id":{number},"wall_ns":{begin_wall - wall0},"wall_dur_ns":{end_wall - begin_wall}}},'
            f'"ts":{at},"dur":{dur // 1000}{_PARTS[dur % 1000]}}}{_ARROW}{number},"pid":1,"tid":{thread},"ts":{host_at}}},\n'
            f'{{"ph":"f","bp":"e","id":{number}{row.arrow}{at}}},\n'
            f'{{"ph":"X","name":"{name}","cat":"host","pid":1,"tid":{thread},"args":{{"sim_ns":{b_sim - sim0},"wall_ns":{b_wall - wall0},'
            f'"wall_dur_ns":{e_wall - b_wall}}},"ts":{host_at},"dur":{host_took}}}'
        )
        return True

    def _task(self, entry: Entry, lines: list[str]) -> None:
        _, row, task, thread, issued_wall, begin, end, begin_wall, end_wall, about = entry
        name = task.name
        cost = getattr(task, "cost", None)
        kept = row.heads.get(name if cost is None else id(cost))
        head = kept[1] if kept is not None else self._head(row, task, cost, lines)
        if name in _CALLS:
            self._call(thread, _CALLS[name], task.issued_ns, issued_wall, task.issued_ns, issued_wall, lines)
            host = self._drawn[thread] - events.LEAST_NS
        elif self._simulated:
            # The call that queued it is drawn next: from its beginning, or from where the one before ends.
            host = max(self._drawn.get(thread, 0), task.issued_ns - clock.issue_ns)
        else:
            host = issued_wall
        sim, sim_dur, wall, wall_dur = begin - self._sim0, end - begin, begin_wall - self._wall0, end_wall - begin_wall
        if self._simulated:
            ts, dur, host = sim, sim_dur, host - self._sim0
            other = f'"wall_ns":{wall},"wall_dur_ns":{wall_dur}'
        else:
            ts, dur, host = wall, wall_dur, host - self._wall0
            other = f'"sim_ns":{sim},"sim_dur_ns":{sim_dur}'
        row.tasks += 1
        number = next(self._numbers)
        at = f"{ts // 1000}{_PARTS[ts % 1000]}"
        line = f'{head}{row.tasks},"connection_id":{number},{other}{about}}},"ts":{at},"dur":{dur // 1000}{_PARTS[dur % 1000]}}}'
        if dur > 0 and name != "event wait":
            line += (
                f'{_ARROW}{number},"pid":1,"tid":{thread},"ts":{host // 1000}{_PARTS[host % 1000]}}},\n'
                f'{{"ph":"f","bp":"e","id":{number}{row.arrow}{at}}}'
            )
        lines.append(line)

    def _head(self, row: _Row, task: Any, cost: Any, lines: list[str]) -> str:
        if not row.named:
            row.named = True
            self._name(row.pid, row.tid, f"Stream {row.tid}", lines)
        name = task.name
        args: dict[str, Any] = {"Task Type": _TASK_TYPES.get(name, row.core)}
        category = "sync" if name.startswith("event") else "kernel"
        if cost is not None:
            args |= {
                "Block Dim": cost.block_dim,
                "read bytes": cost.traffic.read,
                "written bytes": cost.traffic.written,
                "binds": cost.binds,
            }
        elif name in ("memcpy", "memset"):  # their sizes vary without end: not kept
            args["bytes"] = task.nbytes * task.height if name == "memcpy" else task.count * len(task.pattern)
            return events.head(name, "copy", row.pid, row.tid, args)
        text = events.head(name, category, row.pid, row.tid, args)
        if len(row.heads) >= CHUNK:
            row.heads.clear()
        row.heads[name if cost is None else id(cost)] = cost, text
        return text

    def _call(self, thread: int, name: str, b_sim: int, b_wall: int, e_sim: int, e_wall: int, lines: list[str]) -> None:
        """A slice of the CANN layer, not before the last one of its thread has ended."""
        if (events.CANN, thread) not in self._named:
            self._name(events.CANN, thread, f"Thread {thread}", lines)
        sim, wall = b_sim - self._sim0, b_wall - self._wall0
        # The begin on both clocks: on the simulated one the call may be drawn later.
        if self._simulated:
            zero, begin, end, other = self._sim0, b_sim, e_sim, f'"sim_ns":{sim},"wall_ns":{wall},"wall_dur_ns":{e_wall - b_wall}'
        else:
            zero, begin, end, other = self._wall0, b_wall, e_wall, f'"sim_ns":{sim},"sim_dur_ns":{e_sim - b_sim}'
        start = max(self._drawn.get(thread, 0), begin)
        self._drawn[thread] = end = max(start + events.LEAST_NS, end)
        ts, dur = start - zero, end - start
        lines.append(
            f'{{"ph":"X","name":"{name}","cat":"host","pid":1,"tid":{thread},"args":{{{other}}},'
            f'"ts":{ts // 1000}{_PARTS[ts % 1000]},"dur":{dur // 1000}{_PARTS[dur % 1000]}}}'
        )

    def _memory(self, entry: Any, lines: list[str]) -> None:
        _, device, used, sim, wall = entry
        pid = events.HARDWARE + device
        if not any(known == pid for known, _ in self._named):
            self._name(pid, 0, "Stream 0", lines)
        ts = (sim - self._sim0 if self._simulated else wall - self._wall0) / 1000
        lines.append(f'{{"ph":"C","name":"HBM used","cat":"memory","args":{{"bytes":{used}}},"pid":{pid},"tid":0,"ts":{ts:.3f}}}')

    def _name(self, pid: int, tid: int, name: str, lines: list[str]) -> None:
        if not any(known == pid for known, _ in self._named):
            device = pid - events.HARDWARE
            layer = "CANN" if pid == events.CANN else "Ascend Hardware" if device == 0 else f"Ascend Hardware {device}"
            lines.append(events.layer(pid, layer, f"EMULATED {self._settings.soc}, {self.clock} time"))
        if (pid, tid) not in self._named:
            self._named.add((pid, tid))
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
    """EMU_TRACE=PATH: trace the whole process, from its first context to its end, but none of the processes that it starts."""
    global _started
    path = os.environ.pop("EMU_TRACE", "")
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
