"""Lines that are formatted at once: their numbers, column by column, and the bytes that come of them."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from emu.timeline import events, kinds
from emu.timeline.lines import Maker, Template

#: Times in ns. Of a call: begin simulated, begin wall, end simulated, end wall; of a task: begin simulated, end simulated, begin wall, end
#: wall.
Times = tuple[int, int, int, int]
NOTHING = (0, 0, 0, 0)
_pack = struct.Struct("8q").pack
#: Lines that are formatted in one go: NumPy's own code is cold when it begins. And how many at once: what belongs to them should fit into
#: the second cache.
BLOCK = 4096
PART = 1024


class Block:
    """Lines to come: templates, and for each the times of its call and of its task. ``zero`` is (simulated, wall) ns at the beginning."""

    def __init__(self, file: events.File, simulated: bool, zero: tuple[int, int]) -> None:
        self._file = file
        self._simulated = simulated
        self._zero = zero
        self._maker = Maker()
        self._order: list[Template] = []
        #: Their times: column by column, and those of single lines with their places.
        self._times = np.zeros((8, BLOCK), np.int64)
        self._single = bytearray()
        self._places: list[int] = []
        self._connections = 0
        #: Where the next host call of a thread may be drawn.
        self._drawn: dict[int, int] = {}

    @property
    def room(self) -> int:
        """How many lines it takes until it is full."""
        return BLOCK - len(self._order)

    def add(self, template: Template, call: Times = NOTHING, task: Times = NOTHING) -> None:
        """One line; there may be a few more than a block's."""
        self._places.append(len(self._order))
        self._order.append(template)
        self._single += _pack(*call, *task)

    def add_all(self, templates: list[Template]) -> NDArray[np.int64]:
        """Lines for which there is room; their times are to be filled in, a row each for the eight of call and task."""
        begin = len(self._order)
        self._order += templates
        return self._times[:, begin : len(self._order)]

    def flush(self) -> None:
        """Write all lines."""
        order = self._order
        if not order:
            return
        count = len(order)
        got = self._times[:, :count]
        if self._places:
            if count > BLOCK:
                got = np.concatenate((got, np.zeros((8, count - BLOCK), np.int64)), axis=1)
            got[:, self._places] = np.frombuffer(bytes(self._single), np.int64).reshape(-1, 8).T
            self._places.clear()
            self._single.clear()
        for begin in range(0, count, PART):
            self._part(order[begin : begin + PART], got[:, begin : begin + PART])
        order.clear()

    def _part(self, order: list[Template], got: NDArray[np.int64]) -> None:
        templates = list(dict.fromkeys(order))
        for k, template in enumerate(templates):
            template.code = k
        codes = np.array([template.code for template in order]) if len(templates) > 1 else np.zeros(len(order), np.int64)
        values = self._values(got, templates, codes)
        self._file.write(self._maker.render(templates, codes, values))

    def _values(self, got: NDArray[np.int64], templates: list[Template], codes: NDArray[np.int64]) -> NDArray[np.int64]:
        """What lines can show, a row for each column."""
        sim0, wall0 = self._zero
        b_sim, b_wall, e_sim, e_wall, t_sim, u_sim, t_wall, u_wall = got
        values = self._maker.room("values", np.int64, kinds.COLUMNS, got.shape[1])
        if self._simulated:
            begin, end, zero, end_of_call = b_sim, e_sim, sim0, (e_wall, b_wall, 7)
            device = (t_sim, u_sim, sim0), (t_wall, u_wall, wall0)
            np.subtract(b_wall, wall0, out=values[6])
        else:
            begin, end, zero, end_of_call = b_wall, e_wall, wall0, (e_sim, b_sim, 6)
            device = (t_wall, u_wall, wall0), (t_sim, u_sim, sim0)
            values[7] = 0
        later, earlier, column = end_of_call
        np.subtract(later, earlier, out=values[column])
        for k, (start, stop, origin) in zip((2, 10), device, strict=True):
            np.subtract(start, origin, out=values[k])
            np.subtract(stop, start, out=values[k + 1])
        np.subtract(begin, zero, out=values[0])
        np.subtract(b_sim, sim0, out=values[5])
        for k in (1, 8, 9):
            values[k] = 0
        for thread in sorted({template.thread for template in templates} - {0}):
            at, calls = _where([template.thread == thread for template in templates], [template.call for template in templates], codes)
            drawn, values[1, at] = self._draw(thread, begin[at], end[at], calls)
            values[0, at] = drawn - zero
        for row in dict.fromkeys(template.stream for template in templates if template.stream is not None):
            mine = [template.stream is row for template in templates]
            at, ones = _where(mine, mine, codes)
            values[8, at] = row.tasks + np.cumsum(ones)
            values[9, at] = 1
            row.tasks += len(ones)
        values[9] = np.cumsum(values[9]) + self._connections
        self._connections = int(values[9, -1])
        np.clip(values[0], values[2], values[2] + values[3], out=values[4])
        return values

    def _draw(
        self, thread: int, begin: NDArray[np.int64], end: NDArray[np.int64], calls: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where calls of one thread are drawn, and how long: none before the one ahead of it ends, each at least LEAST_NS.

        A call ends at max(end of the one before + 1, begin + 1, end): less the number of calls so far, a running maximum.
        """
        so_far = np.cumsum(calls)
        ends = np.where(calls > 0, np.maximum(begin + events.LEAST_NS, end) - so_far * events.LEAST_NS, 0)
        best = np.maximum.accumulate(np.concatenate(([self._drawn.get(thread, 0)], ends)))
        stop = best[1:] + so_far * events.LEAST_NS
        start = np.maximum(best[:-1] + (so_far - calls) * events.LEAST_NS, begin)
        self._drawn[thread] = int(stop[-1])
        return start, stop - start


def _where(wanted: list[bool], flags: list[bool], codes: NDArray[np.int64]) -> tuple[slice | NDArray[np.intp], NDArray[np.int64]]:
    """The lines of the templates that are wanted, and a flag of each one's template as 0 or 1."""
    of_each = np.array(flags, np.int64)
    if all(wanted):
        return slice(None), of_each[codes]
    at = np.flatnonzero(np.array(wanted)[codes])
    return at, of_each[codes[at]]
