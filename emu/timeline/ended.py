"""What the device reports of tasks, by their numbers."""

from __future__ import annotations

import struct
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

#: The simulated end of a task that will never run.
DROPPED = -1
#: Numbers of a report: the task's, wall ns of its begin and end, simulated ns of its end.
REPORT = 4
#: Tasks for which there is room at first.
ROOM = 2048
_RUN, _TAKEN = 1, 2
T = TypeVar("T", bound=np.generic)


class Ended:
    """A table with a row for each task queued since ``first`` that is not written yet: the host's notes come in one order, the device's
    reports in another."""

    def __init__(self, first: int) -> None:
        #: The number of the task of row 0.
        self._base = first
        self._times: NDArray[np.int64] = np.zeros((ROOM, REPORT - 1), np.int64)
        self._state: NDArray[np.uint8] = np.zeros(ROOM, np.uint8)
        #: How many have run (or never will) and are not taken.
        self.count = 0

    def add(self, reports: list[int]) -> None:
        """Move what there is from ``reports``; another thread may add to its end meanwhile."""
        size = len(reports)
        if not size:
            return
        got = packed(reports[:size], REPORT)
        del reports[:size]
        if int(got[:, 0].min()) < self._base:  # queued before
            got = got[got[:, 0] >= self._base]
        at = self._rows(got[:, 0])
        self._times[at] = got[:, 1:]
        self._state[at] = _RUN
        self.count += len(got)

    def of(self, numbers: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which of these tasks have run; wall ns of begin and end, simulated ns of the end (DROPPED: it never will) of each."""
        at = self._rows(numbers)
        return self._state[at] == _RUN, self._times[at]

    def one(self, number: int) -> tuple[int, int, int] | None:
        """As :meth:`of` for one task; None when it has not run. It is taken then."""
        at = number - self._base
        if not 0 <= at < len(self._state) or self._state[at] != _RUN:
            return None
        self._state[at] = _TAKEN
        self.count -= 1
        begin, end, sim = self._times[at].tolist()
        return begin, end, sim

    def take(self, numbers: NDArray[np.int64], run: int) -> None:
        """Nobody asks for these tasks again, of which ``run`` have run."""
        at = self._rows(numbers)  # first: it may make a new table
        self._state[at] = _TAKEN
        self.count -= run

    def _rows(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows of these tasks; room is made when there is none."""
        top = int(numbers.max(initial=0)) - self._base
        if top >= len(self._state):
            free = int(np.argmax(self._state != _TAKEN)) if self._state[-1] != _TAKEN else len(self._state)
            self._base += free
            size = max(ROOM, 2 * (top + 1 - free))
            self._times = _resized(self._times[free:], size)
            self._state = _resized(self._state[free:], size)
        return numbers - self._base


def packed(numbers: list[int], width: int) -> NDArray[np.int64]:
    """Rows of so many numbers; NumPy alone takes several times as long."""
    return np.frombuffer(struct.pack(f"{len(numbers)}q", *numbers), np.int64).reshape(-1, width)


def _resized(rows: NDArray[T], size: int) -> NDArray[T]:
    out: NDArray[T] = np.zeros((size, *rows.shape[1:]), rows.dtype)
    out[: len(rows)] = rows[:size]
    return out
