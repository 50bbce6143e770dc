"""What stands in a stream beside ordinary work: marks, event records, waits and host functions.

A gate is polled when it is the stream's head: it lets the stream pass, or blocks it. :meth:`Gate.blocker` says what it waits for, which
is all that helping callers and the deadlock detection need.
"""

from __future__ import annotations

import time
from enum import Enum
from typing import TYPE_CHECKING

from emu.runtime import hooks
from emu.runtime.waiters import notify
from emu.status import Status

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

_WAIT_TIMEOUT = int(Status.ACL_ERROR_RT_WAIT_TIMEOUT)


class Comes(Enum):
    """What a blocked gate waits for when that is no stream."""

    ITSELF = 0  # something outside the streams that is under way: a host function, a deadline
    MAYBE = 1  # another host thread may still bring it (a record that nobody has queued yet)
    NEVER = 2  # nothing can bring it


class Gate:
    """Base of everything in a queue that is no plain task. ``done`` turns True once and stays.

    ``issued_ns`` is the simulated time at which the host had queued it; gates take no simulated time themselves.
    """

    __slots__ = ("done", "issued_ns", "number")
    work = 0
    name = "gate"
    #: Seconds after which the device gives a wait up; 0 = never.
    timeout_s: float = 0.0
    issued_ns: int
    number: int

    def __init__(self) -> None:
        self.done = False
        self.issued_ns = 0

    def poll(self, stream: Stream) -> bool:
        """Called under the stream's drain lock when this is the head; True lets the stream pass."""
        self.done = True
        notify()
        return True

    def drop(self, stream: Stream) -> None:
        """The stream was aborted or destroyed before this was reached."""
        self.done = True

    def blocker(self) -> Stream | Comes:
        """What a blocked gate waits for."""
        return Comes.ITSELF

    def describe(self) -> str:
        """For the deadlock report."""
        return self.name


class Mark(Gate):
    """Passed when all that was queued before it has run: what every synchronisation waits for."""

    __slots__ = ()
    name = "mark"


class Record(Gate):
    """One aclrtRecordEvent. ``wall_ns`` and ``sim_ns`` are the time of its completion, real and simulated; ``blocked`` the streams that
    wait for it."""

    __slots__ = ("blocked", "event", "sim_ns", "stream", "wall_ns")
    name = "event record"

    def __init__(self, event: object, stream: Stream) -> None:
        self.done = False
        self.event = event
        self.stream = stream
        self.wall_ns = 0
        self.sim_ns = 0
        self.blocked: list[Stream] = []

    def poll(self, stream: Stream) -> bool:
        self.wall_ns = time.perf_counter_ns()
        stream.reach(self.issued_ns)
        self.sim_ns = stream.sim_ns
        self._complete()
        if hooks.active is not None:
            hooks.active.recorded(stream, self)
        return True

    def drop(self, stream: Stream) -> None:
        self.wall_ns = time.perf_counter_ns()
        self.sim_ns = stream.sim_ns
        self._complete()

    def _complete(self) -> None:
        # done first: a Wait puts its stream in `blocked` and then looks at `done` again, so one of the two sees the other.
        self.done = True
        notify()
        while self.blocked:
            self.blocked.pop().resume(inside=True)


class Wait(Gate):
    """One aclrtStreamWaitEvent, bound to the record that it was queued for, or to the next one of an event that has none."""

    __slots__ = ("deadline", "record", "since_ns", "since_wall_ns", "timeout_s", "unrecorded")
    name = "event wait"

    def __init__(self, record: Record | None, timeout_s: float) -> None:
        self.done = False
        self.record = record
        self.timeout_s = timeout_s
        self.deadline = 0.0
        #: Time from which the stream stood here, simulated and real; the latter only while somebody listens.
        self.since_ns = 0
        self.since_wall_ns = 0
        self.unrecorded = Comes.MAYBE

    def poll(self, stream: Stream) -> bool:
        record = self.record
        if hooks.active is not None and not self.since_wall_ns:
            self.since_wall_ns = time.perf_counter_ns()
        if record is not None:
            if not record.done:
                if stream not in record.blocked:
                    record.blocked.append(stream)
                if not record.done:
                    return self._late(stream)
            stream.reach(self.issued_ns)
            self.since_ns = stream.sim_ns
            stream.reach(record.sim_ns)
            if hooks.active is not None:
                hooks.active.waited(stream, self)
            self.done = True
            return True
        return self._late(stream)

    def _late(self, stream: Stream) -> bool:
        if not self.timeout_s:
            return False
        now = time.monotonic()
        if not self.deadline:
            self.deadline = now + self.timeout_s
        if now < self.deadline:
            return False
        text = f"stream {stream.id}: a wait for an event lasted longer than its {self.timeout_s:g} s"
        stream.context.record_fault(_WAIT_TIMEOUT, text, stream)
        self.done = True
        if hooks.active is not None:
            hooks.active.dropped(stream, self)
        return True

    def blocker(self) -> Stream | Comes:
        if self.record is None:
            return Comes.ITSELF if self.timeout_s else self.unrecorded
        return self.record.stream

    def describe(self) -> str:
        if self.record is None:
            gone = " that was destroyed" if self.unrecorded is Comes.NEVER else ""
            return f"a wait for an event{gone} that nothing queued records"
        return f"a wait for an event that stream {self.record.stream.id} records"
