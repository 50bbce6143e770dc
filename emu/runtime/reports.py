"""Host functions and callbacks: the user's functions in a stream's order.

A host function runs on a thread of the runtime, never in a helping caller. A callback runs in the thread that subscribed to the stream,
inside its aclrtProcessReport.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from emu.runtime import clock, threads
from emu.runtime.gates import Comes, Gate
from emu.runtime.stream import Stream
from emu.status import Status

_INTERNAL = int(Status.ACL_ERROR_RT_INTERNAL_ERROR)


class _Inside(threading.local):
    active = False


_inside = _Inside()


def inside() -> bool:
    """True in a thread that runs a host function or a callback just now: it may not wait for a stream."""
    return _inside.active


def _call(stream: Stream, function: Callable[[], None], name: str) -> None:
    _inside.active = True
    try:
        function()
    except Exception as error:
        text = f"{name} on stream {stream.id} raised {type(error).__name__}: {error}"
        stream.context.record_fault(_INTERNAL, text, stream)
    finally:
        _inside.active = False


class HostFunction(Gate):
    """aclrtLaunchHostFunc: the stream goes on when the function has returned."""

    __slots__ = ("_function", "_started")
    name = "a host function"

    def __init__(self, function: Callable[[], None]) -> None:
        self.done = False
        self._function = function
        self._started = False

    def poll(self, stream: Stream) -> bool:
        if not self._started:
            self._started = True
            threads.pool.submit(lambda: self._serve(stream))
        return self.done

    def _serve(self, stream: Stream) -> None:
        # The thread is anyone's: its clock is that of this call alone.
        stream.reach(self.issued_ns)
        clock.host.ns = stream.sim_ns
        _call(stream, self._function, self.name)
        stream.reach(clock.host.ns)
        self.done = True
        stream.resume()


class Reports:
    """The callbacks that wait for one thread's aclrtProcessReport."""

    def __init__(self, thread: int) -> None:
        self.thread = thread
        self.streams: list[Stream] = []
        #: True when the thread has unsubscribed from its last stream: nobody will run what comes.
        self.closed = False
        self._arrived: queue.SimpleQueue[tuple[Stream, Callback]] = queue.SimpleQueue()

    def put(self, stream: Stream, callback: Callback) -> None:
        """A callback is due."""
        self._arrived.put((stream, callback))

    def forget(self, stream: Stream) -> None:
        """The stream is destroyed."""
        unsubscribe(self.thread, stream)

    def close(self) -> None:
        """Let the streams go on that wait for a callback of this thread."""
        self.closed = True
        while True:
            try:
                stream, callback = self._arrived.get_nowait()
            except queue.Empty:
                return
            callback.finish(stream)

    def process(self, seconds: float | None) -> bool:
        """Run the next callback in this thread; False when none arrived within ``seconds`` (None: wait for ever)."""
        for stream in list(self.streams):
            if stream.queue:
                stream.schedule.background(stream)
        try:
            stream, callback = self._arrived.get(timeout=seconds)
        except queue.Empty:
            return False
        clock.join(callback.sim_ns)
        _call(stream, callback.function, "a callback")
        callback.finish(stream)
        return True


class Callback(Gate):
    """aclrtLaunchCallback: delivered in stream order; with ``block`` the stream goes on when it has returned."""

    __slots__ = ("_block", "_reports", "_sent", "function", "sim_ns")
    name = "a callback"

    def __init__(self, function: Callable[[], None], block: bool, reports: Reports) -> None:
        self.done = False
        self.function = function
        self._block = block
        self._reports = reports
        self._sent = False
        #: Simulated time at which the stream came to it.
        self.sim_ns = 0

    def poll(self, stream: Stream) -> bool:
        if not self._sent:
            self._sent = True
            stream.reach(self.issued_ns)
            self.sim_ns = stream.sim_ns
            if self._reports.closed:
                self.done = True
            else:
                self._reports.put(stream, self)
        return self.done or not self._block

    def finish(self, stream: Stream) -> None:
        """It has returned."""
        if self._block:
            stream.reach(clock.host.ns)
        self.done = True
        stream.resume()

    def blocker(self) -> Stream | Comes:
        # The one thread that could run it is the one that asks, or is gone.
        thread = self._reports.thread
        return Comes.NEVER if thread == threading.get_ident() or not threads.exists(thread) else Comes.ITSELF

    def describe(self) -> str:
        return f"a callback that only thread {self._reports.thread} may run, which is this one or has ended"


_lock = threading.Lock()
_by_thread: dict[int, Reports] = {}
#: Threads that may subscribe.
MAX_THREADS = 1024


def subscribe(thread: int, stream: Stream) -> bool:
    """Deliver ``stream``'s callbacks to ``thread``; False when the stream has a subscriber already or there are too many threads."""
    with _lock:
        if stream.reports is not None or (thread not in _by_thread and len(_by_thread) >= MAX_THREADS):
            return False
        reports = _by_thread.setdefault(thread, Reports(thread))
        reports.streams.append(stream)
        stream.reports = reports
        return True


def unsubscribe(thread: int, stream: Stream) -> bool:
    """End it; False when ``thread`` is not ``stream``'s subscriber."""
    with _lock:
        reports = stream.reports
        if not isinstance(reports, Reports) or reports.thread != thread:
            return False
        stream.reports = None
        reports.streams.remove(stream)
        last = not reports.streams
        if last:
            del _by_thread[thread]
    if last:
        reports.close()
    return True


def of_thread(thread: int) -> Reports | None:
    """The reports of a thread that is subscribed to some stream."""
    return _by_thread.get(thread)
