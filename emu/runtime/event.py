"""Events: named points in streams. An event holds its latest record; a wait is bound to the record that it was queued for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from emu.runtime import clock, handles, hooks
from emu.runtime.gates import Comes, Mark, Record, Wait
from emu.types import EventFlag

if TYPE_CHECKING:
    from emu.runtime.context import Context
    from emu.runtime.stream import Stream

#: What aclrtCreateEvent makes: timing and waiting.
PLAIN_FLAGS = int(EventFlag.SYNC | EventFlag.TIME_LINE)
ALL_FLAGS = 0x7B


class Event:
    """One event. ``ex`` (aclrtCreateEventExWithFlag) and ``plain`` (aclrtCreateEvent) differ in what they allow and in what a wait means
    before any record: nothing for an Ex event, an error for a plain one, a real wait for aclrtCreateEventWithFlag's."""

    __slots__ = ("_unbound", "_waits", "alive", "context", "ex", "flags", "handle", "id", "plain", "record")

    def __init__(self, context: Context, flags: int, *, ex: bool, plain: bool) -> None:
        self.context = context
        self.flags = flags
        self.ex = ex
        self.plain = plain
        self.record: Record | None = None
        self.alive = True
        self._unbound: list[tuple[Wait, Stream]] = []
        self._waits: list[tuple[Wait, Stream]] = []
        self.handle = handles.register(self)
        if hooks.active is not None:
            hooks.active.created(self)

    @property
    def waitable(self) -> bool:
        """True when a stream may wait for it."""
        return bool(self.flags & EventFlag.SYNC)

    @property
    def timed(self) -> bool:
        """True when its records carry a time."""
        return bool(self.flags & EventFlag.TIME_LINE)

    def record_on(self, stream: Stream) -> Record:
        """Queue a record; waits queued from now on are for this one."""
        record = Record(self, stream)
        self.record = record
        unbound, self._unbound = self._unbound, []
        for wait, _ in unbound:
            wait.record = record
        stream.enqueue(record)
        for _, waiting in unbound:
            waiting.resume()
        return record

    def wait_on(self, stream: Stream, timeout_s: float) -> None:
        """Queue a wait for the present record, or for the next one where there is none yet.

        Nothing is queued for a record that stands earlier in the same stream. A complete one holds nothing up either, but in simulated
        time the stream may be earlier than the record: an idle stream catches up at once.
        """
        record = self.record
        if record is not None and record.stream is stream:
            return
        wait = Wait(record, timeout_s)
        if record is not None and record.done:
            self._pass(stream, wait)
            return
        if record is None:
            self._unbound.append((wait, stream))
        self._waits = [(w, s) for w, s in self._waits if not w.done]
        self._waits.append((wait, stream))
        stream.enqueue(wait)

    def _pass(self, stream: Stream, wait: Wait) -> None:
        """A wait for a complete record."""
        if stream.queue or not stream.lock.acquire(False):
            stream.enqueue(wait)
            return
        try:
            wait.issued_ns = clock.host.ns
            hook = hooks.active
            if hook is not None:
                wait.number = next(hooks.numbers)
                hook.enqueued((stream, wait, clock.host.thread, clock.now()[1]))
            wait.poll(stream)
        finally:
            stream.lock.release()

    def reset_on(self, stream: Stream) -> None:
        """aclrtResetEvent: as if never recorded for what is queued from now on."""
        self.record = None
        stream.enqueue(Mark())

    def waits_done(self) -> bool:
        """True when no queued wait for it is outstanding."""
        return all(wait.done for wait, _ in self._waits)

    def waiting_streams(self) -> list[Stream]:
        """The streams with an outstanding wait for it."""
        return [stream for wait, stream in self._waits if not wait.done]

    def destroy(self) -> None:
        """Forget the handle; queued records and waits keep what they need. A wait for a record to come can never end now."""
        if not self.alive:
            return
        self.alive = False
        handles.release(self.handle)
        for wait, stream in self._unbound:
            wait.unrecorded = Comes.NEVER
            stream.resume()
        device = self.context.device
        with device.lock:
            device.event_count -= 1
        if hooks.active is not None:
            hooks.active.destroyed(self)


def create(context: Context, flags: int, *, ex: bool = False, plain: bool = False) -> Event | None:
    """A new event; None when the device has no more."""
    device = context.device
    with device.lock:
        if device.event_count >= device.profile.max_events:
            return None
        device.event_count += 1
    return Event(context, flags, ex=ex, plain=plain)
