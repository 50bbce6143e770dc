"""The hook that writes a timeline while a program runs.

The hooks only note what happened; :mod:`emu.timeline.writer` makes events of it, a few thousand at a time. A task is written when it has
run, in the order in which the host queued the tasks: so the file of a program does not depend on the schedule. What waits in memory is
what waits in the queues, and one chunk.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emu import config
from emu.runtime import clock, hooks
from emu.runtime.gates import Gate, Record, Wait
from emu.timeline import events
from emu.timeline.ended import DROPPED
from emu.timeline.writer import NOTE, Writer

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: So many objects (NOTE for a launch) are collected before the writer takes them. What it has is written at least twice a second.
CHUNK = 1024 * NOTE
PAUSE_NS = 500_000_000

_clock = time.perf_counter_ns
_host = clock.host


class Recorder(hooks.Hooks):
    """Writes ``path`` from :meth:`start` to :meth:`stop`. ``on`` is the clock of ts and dur, "simulated" or "wall"."""

    def __init__(self, path: str | Path, on: str | None = None) -> None:
        settings = config.current()
        self.clock = settings.clock if on is None else on
        if self.clock not in ("simulated", "wall"):
            raise ValueError(f"clock must be simulated or wall, not {on!r}")
        self.path = Path(path)
        self._settings = settings
        #: In the order in which the host did things (see Writer.write); written up to the first task that has not run.
        self._pending: list[Any] = []
        #: What the device said of tasks that have run, four numbers each.
        self._reports: list[int] = []
        # No function of ours runs at these: they come at every launch. Of one that is issued its cost, names and numbers are kept: the task
        # with its arguments would not stay in the caches until it is written.
        self.issued = self._pending.extend  # type: ignore[assignment,method-assign]
        self.enqueued = self._pending.append  # type: ignore[assignment,method-assign]
        self.finished = self._reports.extend  # type: ignore[assignment,method-assign]
        #: The length of ``_pending`` and the wall time at which they are written next.
        self._next = CHUNK
        self.due = 0
        self._lock = threading.Lock()
        self._writer: Writer | None = None
        self._pid = os.getpid()
        #: Whether a write has failed: the file is not whole.
        self.lost = False

    # -- start and stop --------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Open the file and listen. OSError when it cannot be written, or another trace is being written to it."""
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
        label = f"EMULATED {s.soc}, {self.clock} time"
        file = events.File(self.path, about, label)
        self._writer = Writer(file, label, self.clock == "simulated", clock.now(), next(hooks.numbers))
        self._failed = self._writer.failed
        self.due = _clock() + PAUSE_NS
        hooks.install(self)

    def stop(self) -> None:
        """Stop listening; write what has run. Of what is still queued only the calls are written, and a line on stderr says so."""
        if os.getpid() != self._pid:
            self._leave()
            return
        with self._lock:
            writer, self._writer = self._writer, None
            if writer is None:
                return
            hooks.remove(self)
            try:
                writer.write(self._pending, self._reports, unfinished=True)
                writer.finish()
            except OSError as error:
                writer.leave()
                self._lost(error)
                return
        if writer.left_out:
            what = "1 task was" if writer.left_out == 1 else f"{writer.left_out} tasks were"
            clock.say(f"trace {self.path}: {what} still queued at its end and left out; synchronise before")

    def _lost(self, error: OSError) -> None:
        """The file cannot be written any more: that is no concern of the program's."""
        self.lost = True
        clock.say(f"trace {self.path}: {error.strerror}; the file has no end, and nothing more is traced")

    def _leave(self) -> None:
        """Listen no more and leave the file as it is. In a forked child it is the parent's."""
        writer, self._writer = self._writer, None
        if writer is not None:
            hooks.remove(self)
            writer.leave()
        self._pending.clear()
        self._reports.clear()

    # -- what the runtime reports: the ends of tasks to _reports, everything else to _pending --------------------------------

    def recorded(self, stream: Stream, record: Any) -> None:
        self._ended(record, record.wall_ns, record.wall_ns, record.sim_ns)

    def waited(self, stream: Stream, wait: Any) -> None:
        now = _clock()
        self._ended(wait, wait.since_wall_ns or now, now, stream.sim_ns)

    def failed(self, task: Any) -> None:
        self._failed.add(getattr(task, "number", 0))

    def dropped(self, stream: Stream, task: Any) -> None:
        if not isinstance(task, Gate) or isinstance(task, (Record, Wait)):
            self._ended(task, 0, 0, DROPPED)

    def _ended(self, task: Any, begin: int, end: int, sim: int) -> None:
        number = getattr(task, "number", 0)
        if number:  # or it was queued while nobody listened
            self._reports.extend((number, begin, end, sim))

    def tidy(self, now: int) -> None:
        if len(self._pending) >= self._next or now >= self.due:
            self._write(now, now >= self.due)

    def called(self, name: str, began: tuple[int, int]) -> None:
        now = _clock()
        self._pending.append((_host.thread, name, began, _host.ns, now))
        self.tidy(now)

    def allocated(self, memory: Any, block: Any) -> None:
        now = clock.now()
        self._pending.append((block.device, memory.used, now))
        if len(self._pending) >= self._next:
            self._write(now[1], now[1] >= self.due)

    freed = allocated

    def flush(self) -> None:
        """Write what can be written now."""
        self._write(_clock(), True)

    def _write(self, now: int, flush: bool) -> None:
        """Let the writer take what it can, unless another thread does. A failure is said, and never the program's."""
        if os.getpid() != self._pid:
            self._leave()
        elif self._lock.acquire(False):
            try:
                if self._writer is not None:
                    self._writer.write(self._pending, self._reports, flush=flush)
                left = len(self._pending)
                self._next = left + max(CHUNK, left // 2)  # what waits long is not looked at over and over
                if flush:
                    self.due = now + PAUSE_NS
            except OSError as error:
                self._leave()
                self._lost(error)
            finally:
                self._lock.release()


@contextmanager
def trace(path: str | Path, clock: str | None = None) -> Iterator[Recorder]:
    """``with emu.trace("out.json"):`` writes the timeline of what is queued and run inside.

    ``clock`` is "simulated" or "wall" for ts and dur; None takes the Config's. Work that is still queued at the end is left out, with a
    line on stderr: synchronise before. OSError when the file cannot be opened and begun, or when another trace is being written to it. A
    write that fails later is a line on stderr and ends the trace, not the program. A process that is forked inside is not traced.
    """
    recorder = Recorder(path, clock)
    recorder.start()
    try:
        yield recorder
    finally:
        recorder.stop()


_started: Recorder | None = None


def from_environment() -> None:
    """EMU_TRACE=PATH: trace the whole process, from its first context to its end, but none of the processes that it starts from then on.

    When that cannot be, a line on stderr says why, and the process runs untraced.
    """
    global _started
    path = os.environ.pop("EMU_TRACE", "")
    if not path or _started is not None:
        return
    import atexit

    _started = Recorder(path)
    try:
        _started.start()
    except OSError as error:
        _started.lost = True
        clock.say(f"EMU_TRACE={path}: {error.strerror}; nothing is traced")
    else:
        atexit.register(_started.stop)


def lost() -> bool:
    """Whether the trace that EMU_TRACE asks for could not be written so far."""
    if _started is not None:
        _started.flush()
    return _started is not None and _started.lost
