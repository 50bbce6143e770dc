"""The schedules eager, lazy and shuffle:SEED: other legal answers to the question who runs a queue, and when."""

from __future__ import annotations

import random
from collections import deque
from typing import TYPE_CHECKING

from emu.runtime.gates import Gate
from emu.runtime.schedule import Schedule, advance, advance_one
from emu.runtime.waiters import notify

if TYPE_CHECKING:
    from emu.runtime.stream import Stream


class Eager(Schedule):
    """Everything runs where it is enqueued, as far as it can; a host function has the runtime's own thread and may come later."""

    direct = False

    def __init__(self) -> None:
        super().__init__()
        self._ready: deque[Stream] = deque()

    def enqueued(self, stream: Stream, work: int) -> None:
        self._ready.append(stream)
        self._run()

    def resumed(self, stream: Stream, inside: bool) -> None:
        self._ready.append(stream)
        if not inside:  # else the _run that drains the other stream comes by afterwards
            self._run()
        notify()

    def help(self, stream: Stream, goal: Gate) -> bool:
        ran = advance(stream, goal)
        self._run()
        return ran

    def query(self, stream: Stream, goal: Gate | None = None) -> None:
        self._ready.append(stream)
        self._run()

    def _serve(self, stream: Stream) -> bool:
        ran = advance(stream)
        self._run()
        return ran

    def _run(self) -> None:
        ready = self._ready
        while ready:
            try:
                stream = ready.popleft()
            except IndexError:
                return
            while advance(stream):
                pass


class Lazy(Schedule):
    """Everything runs at the latest legal moment: when a host thread waits for it."""

    def enqueued(self, stream: Stream, work: int) -> None:
        pass

    def resumed(self, stream: Stream, inside: bool) -> None:
        notify()

    def query(self, stream: Stream, goal: Gate | None = None) -> None:
        advance(stream, goal, 1)


class Shuffle(Schedule):
    """A random legal interleaving of the streams; the same seed and the same calls of one host thread give the same one."""

    direct = False

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._seed = seed
        self._random = random.Random(seed)
        self._streams: list[Stream] = []

    def restart(self) -> None:
        self._random = random.Random(self._seed)

    def enqueued(self, stream: Stream, work: int) -> None:
        if stream not in self._streams:
            self._streams.append(stream)
        for _ in range(self._random.randrange(3)):
            self._step()

    def resumed(self, stream: Stream, inside: bool) -> None:
        notify()

    def query(self, stream: Stream, goal: Gate | None = None) -> None:
        self._step()
        advance(stream, goal, 1)

    def help(self, stream: Stream, goal: Gate) -> bool:
        return self._step() or advance(stream, goal, 1)

    def _step(self) -> bool:
        """Run one item of a random stream that can."""
        streams = [s for s in self._streams if s.queue]
        self._streams = streams
        order = list(streams)
        self._random.shuffle(order)
        return any(advance_one(stream) for stream in order)


def make(text: str) -> Schedule:
    """The schedule that a Config names."""
    name, _, seed = text.partition(":")
    if name == "shuffle":
        return Shuffle(int(seed))
    return {"eager": Eager, "lazy": Lazy}.get(name, Schedule)()
