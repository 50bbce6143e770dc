"""Who runs a stream's queue, and when; and how a host thread waits. The mode here is async, the others are in modes.py.

A queue is drained under its stream's lock by whoever holds it: the enqueuing caller (eager), a worker thread or a caller in a wait
without limit (async), such a caller alone (lazy, shuffle). A timed wait only waits: the worker runs the stream meanwhile.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from emu.runtime import errors, waiters
from emu.runtime.gates import Comes, Gate
from emu.runtime.threads import RuntimeThread, strangers
from emu.runtime.waiters import notify
from emu.status import Status

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

_SYNC_TIMEOUT = int(Status.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)

#: Estimated nanoseconds of work from which an enqueue wakes the worker at once.
BIG_WORK = 50_000
#: How often the worker looks for work that nobody woke it for, in seconds: each look without any doubles the pause, up to the last. Each
#: look takes the GIL from the program for a moment. After so many looks with nothing queued at all it sleeps until woken.
POLL_S = 0.001
LONGEST_POLL_S = 0.008
POLLS_BEFORE_SLEEP = 20
#: How long a wait without limit stays in a queue that only another host thread could free, in seconds, before it is called a deadlock.
DEADLOCK_LIMIT_S = 30.0
#: How long such a wait sleeps before it looks at its queue again, whether something moved or not: device-side limits expire silently.
LOOK_AGAIN_S = 0.02


def advance(stream: Stream, stop: Gate | None = None, most: int = -1) -> bool:
    """Run what can run in ``stream``, up to ``stop``, else in the stream that it waits for, and so on; True when anything ran."""
    ran = False
    seen: list[Stream] = []
    while True:
        if not stream.lock.acquire(False):
            return ran
        try:
            count, gate = stream.drain(stop, most)
        finally:
            stream.lock.release()
        if count:  # not for a mere look: two waiting threads would wake each other for ever
            notify()
            ran = True
        if gate is None:
            # Whoever found the lock taken relies on us to see what it had put in before.
            if stop is None and most < 0 and stream.queue:
                continue
            return ran
        ahead = gate.blocker()
        if isinstance(ahead, Comes) or ahead in seen:
            return ran
        seen.append(stream)
        stop = getattr(gate, "record", None)
        stream = ahead


def deadlock(stream: Stream) -> tuple[str, bool] | None:
    """Why ``stream`` cannot advance: (text, True when no other host thread could help); None when something is under way."""
    seen: list[Stream] = []
    chain: list[str] = []
    while True:
        head = stream.queue[0] if stream.queue else None
        if stream.lock.locked() or not isinstance(head, Gate):
            return None
        if stream in seen:
            return "; ".join(chain) + f": a circle, back at stream {stream.id}", True
        ahead = head.blocker()
        if ahead is Comes.ITSELF or head.timeout_s:
            return None
        chain.append(f"stream {stream.id} stands at {head.describe()}")
        if isinstance(ahead, Comes):
            return "; ".join(chain), ahead is Comes.NEVER
        record = getattr(head, "record", None)
        if record is not None and record.done:
            return None
        seen.append(stream)
        stream = ahead


def advance_one(stream: Stream) -> bool:
    """Run the head of ``stream`` alone, if it can; True when it did."""
    if not stream.lock.acquire(False):
        return False
    try:
        count, _ = stream.drain(None, 1)
    finally:
        stream.lock.release()
    if count:
        notify()
    return count > 0


class Schedule:
    """The rules of one mode. This base class is ``async``: a worker thread, and callers that help."""

    #: A synchronising caller may drain its own stream first, without looking at others.
    direct = True

    def __init__(self) -> None:
        self.pending: deque[Stream] = deque()
        self.asleep = False
        self.closing = False
        self._gate = threading.Lock()
        self._gate.acquire()
        self._worker: RuntimeThread | None = None
        self._start = threading.Lock()

    def restart(self) -> None:
        """The first device is about to be opened."""

    # -- called by streams -----------------------------------------------------------------------------------------------

    def enqueued(self, stream: Stream, work: int) -> None:
        """Something was put on ``stream``."""
        if not stream.listed:
            stream.listed = True
            self.pending.append(stream)
        if work >= BIG_WORK or self.asleep or self._worker is None:
            self.wake()

    def resumed(self, stream: Stream, inside: bool) -> None:
        """What ``stream`` was blocked by has come; ``inside`` = called under another stream's drain lock."""
        self.background(stream)
        notify()

    def query(self, stream: Stream, goal: Gate | None = None) -> None:
        """The host asks how far ``stream`` is: it must get there in the end without a synchronisation."""
        self.background(stream)
        time.sleep(0)

    def background(self, stream: Stream) -> None:
        """Let the worker run ``stream``."""
        if not stream.listed:
            stream.listed = True
            self.pending.append(stream)
        self.wake()

    # -- waiting ---------------------------------------------------------------------------------------------------------

    def help(self, stream: Stream, goal: Gate) -> bool:
        """One attempt of a waiting caller to bring ``goal`` nearer; True when anything ran."""
        return advance(stream, goal)

    def wait(self, stream: Stream, goal: Gate) -> int:
        """Wait without limit, helping, until ``goal`` in ``stream`` is done; 507046 with a message on a deadlock."""
        while not goal.done and self.help(stream, goal):
            pass
        if goal.done:
            return 0
        since = time.monotonic()
        waiters.arrive()
        try:
            while not goal.done:
                version = waiters.version
                if self.help(stream, goal):
                    since = time.monotonic()
                    continue
                if goal.done:
                    break
                # In this order: a thread that ends after this line has left its records where deadlock() sees them.
                alone = not strangers()
                found = deadlock(stream)
                if found is not None:
                    text, sure = found
                    if sure or alone or time.monotonic() - since > DEADLOCK_LIMIT_S:
                        if goal.done:
                            break
                        return errors.fail(_SYNC_TIMEOUT, "EE1002", f"deadlock: {text}; a real device would hang here")
                waiters.sleep(version, LOOK_AGAIN_S)
        finally:
            waiters.leave()
        return 0

    def wait_limited(self, stream: Stream, goal: Gate, seconds: float) -> bool:
        """Wait at most ``seconds`` without helping; True when ``goal`` is done."""
        if goal.done:
            return True
        limit = time.monotonic() + seconds
        waiters.arrive()
        try:
            self.background(stream)
            while True:
                version = waiters.version
                left = limit - time.monotonic()
                if goal.done:
                    return True
                if left <= 0:
                    return False
                waiters.sleep(version, left)
        finally:
            waiters.leave()

    # -- the worker ------------------------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Make the worker look at once (start it if need be)."""
        if self._worker is None:
            with self._start:
                if self._worker is None and not self.closing:
                    self._worker = RuntimeThread(self._work, "emu-stream-worker")
                    self._worker.start()
        try:  # noqa: SIM105  contextlib.suppress costs a microsecond here
            self._gate.release()
        except RuntimeError:  # already woken
            pass

    def _serve(self, stream: Stream) -> bool:
        return advance(stream)

    def _work(self) -> None:
        empty = 0
        pause = POLL_S
        pending = self.pending
        while not self.closing:
            for _ in range(len(pending)):
                stream = pending.popleft()
                stream.listed = False
                while not self.closing and self._serve(stream):
                    pause = POLL_S
                if stream.queue and not stream.listed:
                    stream.listed = True
                    pending.append(stream)
                empty = 0
            if empty < POLLS_BEFORE_SLEEP:
                empty += 1
                pause = POLL_S if self._gate.acquire(timeout=pause) else min(2 * pause, LONGEST_POLL_S)
                continue
            self.asleep = True
            if not pending:
                self._gate.acquire()
            self.asleep = False
            empty = 0
            pause = POLL_S

    def close(self, seconds: float = 1.0) -> None:
        """Stop the worker; what it is running now is waited for at most ``seconds``."""
        self.closing = True
        worker, self._worker = self._worker, None
        if worker is not None:
            try:  # noqa: SIM105
                self._gate.release()
            except RuntimeError:
                pass
            worker.join(seconds)
