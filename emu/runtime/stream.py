"""Streams: queues of tasks that run in order."""

from __future__ import annotations

import threading
from collections import deque
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any, Protocol

from emu.runtime import clock, errors, handles, hooks
from emu.runtime.gates import Gate, Mark
from emu.runtime.waiters import notify
from emu.status import AclError, Status
from emu.types import StreamFlag

if TYPE_CHECKING:
    from emu.runtime.context import Context

_OTHER_CONTEXT = int(Status.ACL_ERROR_RT_STREAM_CONTEXT)
_BAD_HANDLE = int(Status.ACL_ERROR_RT_INVALID_HANDLE)
_ABORTED = int(Status.ACL_ERROR_RT_STREAM_ABORT)
_INTERNAL = int(Status.ACL_ERROR_RT_INTERNAL_ERROR)
_TIMEOUT = int(Status.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)

#: Streams that the host never waits for: a synchronisation returns 0 at once.
UNWAITED = int(StreamFlag.PERSISTENT | StreamFlag.CPU_SCHEDULE | StreamFlag.DEVICE_USE_ONLY)


class Task(Protocol):
    """One piece of work. ``run`` is called once, in stream order, by a worker or a helping caller."""

    #: Estimated nanoseconds: big work wakes the worker at once.
    work: int
    name: str
    #: When the host had issued it and what it costs (absent: nothing), both in simulated ns; set by enqueue.
    issued_ns: int
    #: Which of all tasks it is, from 1; set by enqueue while a hook listens.
    number: int

    def run(self) -> None:
        """Do it. An exception becomes the context's fault: an AclError with its code, anything else with 507000."""


class Stream:
    """One queue. ``lock`` is held while an item runs; the head stays in ``queue`` until it has run."""

    __slots__ = (
        "__weakref__", "aborted", "alive", "attributes", "context", "flags", "handle", "id", "listed", "lock", "priority", "queue",
        "reports", "saturate", "schedule", "sim_ns",
    )  # fmt: skip

    def __init__(self, context: Context, number: int, priority: int = 0, flags: int = 0) -> None:
        self.context = context
        self.id = number
        self.priority = priority
        self.flags = flags
        #: Overflow mode of the device when the stream was made: True = saturation, False = INF/NAN.
        self.saturate = context.device.saturate
        self.queue: deque[Task | Gate] = deque()
        #: Simulated time at which the last item that ran has ended.
        self.sim_ns = 0
        self.lock = threading.Lock()
        self.schedule = context.device.schedule
        #: True while the worker has the stream on its list.
        self.listed = False
        self.alive = True
        self.aborted = False
        self.attributes: dict[int, int] = {}
        #: The report queue of the thread that subscribed to this stream's callbacks.
        self.reports: Any = None
        self.handle = handles.register(self)

    # -- queueing --------------------------------------------------------------------------------------------------------

    def enqueue(self, task: Task | Gate) -> None:
        """Put ``task`` at the end and return; who runs it when is the schedule's choice."""
        task.issued_ns = clock.host.ns
        hook = hooks.active
        if hook is not None:
            task.number = next(hooks.numbers)
            hook.enqueued((self, task, clock.host.thread, perf_counter_ns()))
        self.queue.append(task)
        self.schedule.enqueued(self, task.work)

    def put(self, task: Task) -> None:
        """As :meth:`enqueue`, without a word to the hooks: the caller has one (:meth:`emu.runtime.hooks.Hooks.issued`)."""
        task.issued_ns = clock.host.ns
        task.number = next(hooks.numbers)
        self.queue.append(task)
        self.schedule.enqueued(self, task.work)

    def resume(self, *, inside: bool = False) -> None:
        """What the head was blocked by has come; ``inside`` = called under another stream's drain lock."""
        self.schedule.resumed(self, inside)

    def drain(self, stop: Gate | None, most: int) -> tuple[int, Gate | None]:
        """Run items until ``stop`` is done, ``most`` have run, or a gate blocks; call with the lock held.

        Returns how many ran, and the gate that blocks.
        """
        queue = self.queue
        count = 0
        while queue:
            if count == most or (stop is not None and stop.done):
                break
            task = queue[0]
            if isinstance(task, Gate):
                if not task.poll(self):
                    return count, task
            elif self.context.halted:
                self._pass_over(task)
            else:
                self._run(task)
            queue.popleft()
            count += 1
        return count, None

    def _run(self, task: Task) -> None:
        self.reach(task.issued_ns)
        self.sim_ns += getattr(task, "cost_ns", 0)
        hook = hooks.active
        began = 0
        try:
            if hook is not None:
                began = perf_counter_ns()
            task.run()
        except AclError as error:
            self._failed(task, hook, error.code, str(error))
        except Exception as error:
            self._failed(task, hook, _INTERNAL, f"{task.name} on stream {self.id}: {type(error).__name__}: {error}")
        except BaseException:  # KeyboardInterrupt: it must not run twice
            self.queue.popleft()
            if hook is not None:
                hook.dropped(self, task)
            raise
        if hook is not None:
            ended = perf_counter_ns()
            try:
                number = task.number
            except AttributeError:  # queued while nobody listened
                return
            hook.finished((number, began, ended, self.sim_ns))

    def _failed(self, task: Task, hook: hooks.Hooks | None, code: int, text: str) -> None:
        if hook is not None:
            hook.failed(task)
        self.context.record_fault(code, text, self)

    def reach(self, ns: int) -> None:
        """The stream is no earlier than ``ns`` now."""
        if ns > self.sim_ns:
            self.sim_ns = ns

    def _pass_over(self, task: Task | Gate) -> None:
        dropped = getattr(task, "drop", None)
        if dropped is not None:
            dropped(self)
        if hooks.active is not None:
            hooks.active.dropped(self, task)

    # -- waiting ---------------------------------------------------------------------------------------------------------

    @property
    def waited_for(self) -> bool:
        """False for the kinds of stream that the host never waits for."""
        return not self.flags & UNWAITED

    def idle(self) -> bool:
        """True when everything that was queued has run."""
        return not self.queue

    def synchronize(self) -> int:
        """Wait until all that was queued before now has run; 0, a deadlock's 507046, or what went wrong asynchronously."""
        hook = hooks.active
        began = clock.now() if hook is not None else None
        if self.queue:
            code = self._finish()
            if code:
                return code
        clock.join(self.sim_ns)
        if began is not None and hook is not None:
            hook.called("aclrtSynchronizeStream", began)
        if hooks.active is not None:
            hooks.active.synchronised(self)
        return self.outcome()

    def _finish(self) -> int:
        schedule = self.schedule
        if schedule.direct and self.lock.acquire(False):
            try:
                _, gate = self.drain(None, len(self.queue))
            finally:
                self.lock.release()
            notify()
            if gate is None:
                return 0
        mark = self.mark()
        return schedule.wait(self, mark)

    def mark(self) -> Mark:
        """Put a mark behind all that is queued."""
        mark = Mark()
        self.queue.append(mark)
        self.schedule.enqueued(self, 0)
        return mark

    def synchronize_limited(self, ms: int) -> int:
        """As :meth:`synchronize` for at most ``ms`` milliseconds, without helping; 507046 when they are over."""
        if self.queue and not self.schedule.wait_limited(self, self.mark(), ms / 1000):
            return errors.fail(_TIMEOUT, "EE1002", f"stream {self.id} has not finished within {ms} ms")
        clock.join(self.sim_ns)
        if hooks.active is not None:
            hooks.active.synchronised(self)
        return self.outcome()

    def outcome(self) -> int:
        """What a synchronisation that has waited returns: 0, the abort's 107023 or the context's fault."""
        if self.aborted:
            return errors.fail(_ABORTED, "EE1019", f"stream {self.id} was aborted")
        context = self.context
        if context.fault:
            return errors.fail(context.fault, "EZ2001", context.fault_text)
        return 0

    # -- end -------------------------------------------------------------------------------------------------------------

    def drop(self) -> None:
        """Forget all that is queued; what runs now is waited for."""
        with self.lock:
            while self.queue:
                self._pass_over(self.queue.popleft())
        notify()

    def abort(self) -> None:
        """aclrtStreamAbort: forget all that is queued; later synchronisations give 107023."""
        self.aborted = True
        self.drop()

    def destroy(self, *, wait: bool) -> None:
        """Forget the handle; the queue runs to its end before (``wait``) or is dropped. A deadlocked queue is dropped, too."""
        if not self.alive:
            return
        self.alive = False
        handles.release(self.handle)
        if wait and self.queue and self.waited_for:
            self._finish()
        self.drop()
        if self.reports is not None:
            self.reports.forget(self)
        self.context.forget(self)
        if hooks.active is not None:
            hooks.active.destroyed(self)

    def __repr__(self) -> str:
        return f"<stream {self.id} of device {self.context.device.index}>"


def resolve(handle: int, ctx: Context) -> Stream | int:
    """The stream of ``ctx`` behind ``handle`` (0 = the default stream), or a code with its message left behind.

    107003: it belongs to another context. 107017: no stream has this handle (destroyed, or never one).
    """
    if not handle:
        return ctx.default_stream
    stream = handles.lookup(handle, Stream)
    if stream is None:
        return bad_stream(handle)
    if stream.context is not ctx:
        device = stream.context.device
        owner = f"another context of device {device.index}" if device is ctx.device else f"device {device.index}"
        text = f"stream {stream.id} is not in the current context: it belongs to {owner}"
        return errors.fail(_OTHER_CONTEXT, "EE1010", text)
    return stream


def bad_stream(handle: int) -> int:
    """107017 for a handle that is no live stream."""
    return errors.fail(_BAD_HANDLE, "EE1017", f"{handle:#x} is no live stream: destroyed, or no stream at all")
