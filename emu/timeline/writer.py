"""From what the recorder noted to events in the file: one template for each operator, stream and host thread.

A line is a host call with the task that it queued, its arrow included. Of a call with several tasks each but the last has a line before.
"""

from __future__ import annotations

import struct
from collections import deque
from itertools import chain, repeat
from operator import is_
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from emu.runtime.gates import Gate
from emu.timeline import events, kinds
from emu.timeline.lines import Maker, Template

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: The end of a task that will never run.
DROPPED = -1
#: Times in ns. Of a call: begin simulated, begin wall, end simulated, end wall; of a task: begin simulated, end simulated, begin wall, end
#: wall.
Times = tuple[int, int, int, int]
NOTHING = (0, 0, 0, 0)
_pack = struct.Struct("8q").pack
#: A task with its stream and times.
Work = tuple[Any, "Stream", Times]
#: Lines that are formatted at once.
BLOCK = 1024
#: Fewer launches than this are taken one by one.
FEW = 16
#: How many templates a stream keeps, and how many streams are kept whether they live or not.
KEPT = 1024


class Writer:
    """Writes what is finished to a file; one thread at a time may call it. ``zero`` is (simulated, wall) ns at the beginning."""

    def __init__(self, file: events.File, label: str, simulated: bool, zero: tuple[int, int]) -> None:
        self._file = file
        self._label = label
        self._simulated = simulated
        self._zero = zero
        self._maker = Maker()
        #: The block: templates and what was collected for them.
        self._order: list[Template] = []
        self._got = bytearray()
        #: What ``done`` said of tasks that are not written yet.
        self._ran: dict[Any, tuple[Any, ...]] = {}
        #: Templates of calls with one launch; a template keeps its cost.
        self._quick: dict[tuple[int, Stream, str, int], Template] = {}
        #: Host threads in the order of their first appearance.
        self._threads: dict[int, int] = {}
        self._rows: dict[Stream, kinds.Row] = {}
        self._named: set[tuple[int, int | None]] = {(events.CANN, None)}
        self._connections = 0
        #: Where the next host call of a thread may be drawn.
        self._drawn: dict[int, int] = {}
        #: Launches whose call has not returned yet, by thread: (task, stream, times).
        self._open: dict[int, list[Work]] = {}
        #: Templates of host calls without tasks and of counters.
        self._others: dict[Any, Template] = {}

    def write(self, pending: deque[Any], done: deque[Any], *, flush: bool = False, unfinished: bool = False) -> None:
        """Take what is at the head of ``pending``, up to the first task that has not run (``unfinished``: leave such tasks out), and write
        whole blocks (``flush``: all).

        ``pending`` has what :meth:`emu.runtime.hooks.Hooks.enqueued` and ``issued`` report, (thread, name, begin on both clocks, end, end
        wall) of other calls and (device, bytes in use, both clocks); ``done`` what ``finished`` reports, with DROPPED for the end of what
        never ran.
        """
        order, ran, take = self._order, self._ran, pending.popleft
        self._take_launches(pending, done)
        while pending:
            entry = take()
            kind = len(entry)
            if kind == 4 or kind == 8:
                stream, task, thread = entry[:3]
                if done and done[0][1] is task:
                    report = done.popleft()
                else:  # tasks do not run in the order in which they were queued
                    while done:
                        other = done.popleft()
                        ran[other[1]] = other
                    report = ran.pop(task, None)
                if report is None:
                    if unfinished or (isinstance(task, Gate) and type(task) not in kinds.QUEUED):  # nothing reports the end of such gates
                        continue
                    pending.appendleft(entry)
                    break
                if report[4] != DROPPED:
                    self._task(stream, task, thread, entry[3:], report)
            elif kind == 5:
                thread, name, began, sim, wall = entry
                self._call(self._open.pop(thread, []), thread, name, (*began, sim, wall))
            else:
                self._memory(*entry)
            if len(order) >= BLOCK:
                self._flush()
        if flush:
            self._flush()

    def finish(self) -> None:
        """Write the launches whose calls have not returned, and the end."""
        for thread, tasks in self._open.items():
            sim, _, wall, _ = tasks[0][2]
            self._call(tasks, thread, tasks[-1][0].name, (sim, wall, sim, wall))
        self._flush()
        self._file.close()

    def _task(self, stream: Stream, task: Any, thread: int, call: tuple[Any, ...], report: tuple[Any, ...]) -> None:
        """A task that has run. ``call``: what :meth:`Hooks.issued` says of the call, or the wall time of queueing alone."""
        _, _, begin_wall, end_wall, end = report
        if type(task) in kinds.QUEUED:
            begin, sim, queued = getattr(task, "since_ns", end - getattr(task, "cost_ns", 0)), task.issued_ns, call[0]
            self._call([(task, stream, (begin, end, begin_wall, end_wall))], thread, kinds.CALLS[task.name], (sim, queued, sim, queued))
            return
        cost = getattr(task, "cost", None)
        times = (end if cost is None else end - cost.ns, end, begin_wall, end_wall)
        if len(call) == 1:
            self._open.setdefault(thread, []).append((task, stream, times))
            return
        name, *took = call
        template = self._quick.get((id(cost), stream, name, thread))
        if template is None or cost is None:
            template = self._template(task, stream, thread, name, times)
            if len(self._quick) >= KEPT:
                self._quick.clear()
            self._quick[id(cost), stream, name, thread] = template
        self._order.append(template)
        self._got += _pack(*took, *times)

    def _take_launches(self, pending: deque[Any], done: deque[Any]) -> None:
        """:meth:`write` of what most of a trace consists of: the launches at the head, run in their order and alike others before."""
        count = min(len(pending), len(done))
        if count < FEW or self._ran:
            return
        noted = [take() for take in repeat(pending.popleft, count)]
        ran = [take() for take in repeat(done.popleft, count)]
        taken = self._launches(noted, ran)
        pending.extendleft(reversed(noted[taken:]))
        done.extendleft(reversed(ran[taken:]))
        if len(self._order) >= BLOCK:
            self._flush()

    def _launches(self, noted: list[Any], ran: list[Any]) -> int:
        """Column by column; how many it was."""
        lengths = bytes(map(len, noted))
        count = len(lengths) - len(lengths.lstrip(b"\x08"))
        if count < FEW:
            return 0
        streams, tasks, threads, names, begins, begin_walls, ends, end_walls = zip(*noted[:count], strict=True)
        _, done, task_begin_walls, task_end_walls, task_ends = zip(*ran[:count], strict=True)
        costs = [getattr(task, "cost", None) for task in tasks]
        if not all(map(is_, tasks, done)) or DROPPED in task_ends or None in costs:
            return 0
        templates = list(map(self._quick.get, zip(map(id, costs), streams, names, threads, strict=True)))
        if None in templates:
            return 0
        took = [cost.ns for cost in costs if cost is not None]
        columns = (begins, begin_walls, ends, end_walls, took, task_ends, task_begin_walls, task_end_walls)
        rows = np.frombuffer(struct.pack(f"{8 * count}q", *chain(*columns)), np.int64).reshape(8, count).T.copy()
        rows[:, 4] = rows[:, 5] - rows[:, 4]
        self._order += templates  # type: ignore[arg-type]  # none is None
        self._got += rows.tobytes()
        return count

    # -- a block ---------------------------------------------------------------------------------------------------------

    def _flush(self) -> None:
        order = self._order
        if not order:
            return
        got = np.frombuffer(bytes(self._got), np.int64).reshape(len(order), 8)
        templates = [order[0]]
        codes = None
        if order.count(order[0]) != len(order):
            templates = list(dict.fromkeys(order))
            for k, template in enumerate(templates):
                template.code = k
            codes = np.array([template.code for template in order])
        values = self._values(got.T.copy(), templates, codes)
        self._file.write(self._maker.render(templates, codes, values, kinds.FRACTIONS))
        order.clear()
        self._got.clear()
        if len(self._rows) > KEPT:
            self._rows = {stream: row for stream, row in self._rows.items() if stream.alive}

    def _values(self, got: NDArray[np.int64], templates: list[Template], codes: NDArray[np.intp] | None) -> NDArray[np.int64]:
        """What lines can show, a row for each column; ``codes`` None when there is one template."""
        sim0, wall0 = self._zero
        b_sim, b_wall, e_sim, e_wall, t_sim, u_sim, t_wall, u_wall = got
        values = np.zeros((kinds.COLUMNS, got.shape[1]), np.int64)
        if self._simulated:
            zero, begin, end = sim0, b_sim, e_sim
            columns = {2: t_sim - sim0, 3: u_sim - t_sim, 6: e_wall - b_wall, 9: t_wall - wall0, 10: u_wall - t_wall, 5: b_wall - wall0}
        else:
            zero, begin, end = wall0, b_wall, e_wall
            columns = {2: t_wall - wall0, 3: u_wall - t_wall, 9: t_sim - sim0, 10: u_sim - t_sim, 5: e_sim - b_sim}
        for k, column in columns.items():
            values[k] = column
        values[0] = begin - zero
        values[4] = b_sim - sim0
        for thread in sorted({template.thread for template in templates} - {0}):
            at, calls = _where(
                [template.thread == thread for template in templates], [template.call for template in templates], codes, len(begin)
            )
            start, values[1, at] = self._draw(thread, begin[at], end[at], calls)
            values[0, at] = start - zero
        for row in dict.fromkeys(template.stream for template in templates if template.stream is not None):
            mine = [template.stream is row for template in templates]
            at, ones = _where(mine, mine, codes, len(begin))
            values[7, at] = row.tasks + np.cumsum(ones)
            values[8, at] = 1
            row.tasks += len(ones)
        values[8] = np.cumsum(values[8]) + self._connections
        self._connections = int(values[8, -1])
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

    # -- templates -------------------------------------------------------------------------------------------------------

    def _add(self, template: Template, call: Times = NOTHING, task: Times = NOTHING) -> None:
        self._order.append(template)
        self._got += _pack(*call, *task)

    def _call(self, tasks: list[Work], thread: int, name: str, took: Times) -> None:
        """A slice of the CANN layer with its tasks."""
        if not tasks:
            template = self._others.get((thread, name))
            if template is None:
                number = self._number(thread)
                template = self._others[thread, name] = Template(kinds.host(self._simulated, number, name), thread=number, call=True)
            self._add(template, took)
        for k, (task, stream, times) in enumerate(tasks):
            last = k == len(tasks) - 1
            self._add(self._template(task, stream, thread, name if last else None, times), took, times)

    def _template(self, task: Any, stream: Stream, thread: int, name: str | None, times: Times) -> Template:
        """The template of a task, with the call ``name`` behind it."""
        row = self._rows.get(stream)
        if row is None:
            row = self._rows[stream] = kinds.Row(stream)
        begin, end, begin_wall, end_wall = times
        takes_time = end > begin if self._simulated else end_wall > begin_wall
        own, cost = task.name, getattr(task, "cost", None)
        nbytes = kinds.size(task) if own in ("memcpy", "memset") else None
        waited = task.record.stream if own == "event wait" else None
        key = id(cost), name, thread, own, nbytes, takes_time, waited
        template = row.templates.get(key)
        if template is None:
            number = self._number(thread)
            self._name(row.pid, row.tid, f"Stream {row.tid}")
            pieces = kinds.device(self._simulated, own, cost, nbytes, waited, row, number, takes_time)
            if name is not None:
                pieces += [",\n", *kinds.host(self._simulated, number, name)]
            if len(row.templates) >= KEPT:
                row.templates.clear()
            template = Template(pieces, thread=number, call=name is not None, stream=row, held=cost)  # held: its identity is in the key
            row.templates[key] = template
        return template

    def _memory(self, device: int, used: int, now: tuple[int, int]) -> None:
        template = self._others.get(device)
        if template is None:
            pid = events.HARDWARE + device
            self._layer(pid)
            template = self._others[device] = Template(events.counter(pid, kinds.OTHER, kinds.HOST))
        # In place of a task's begin on the other clock, which is shown from zero.
        sim0, wall0 = self._zero
        self._add(template, (*now, *now), (used + sim0, 0, used + wall0, 0))

    def _number(self, thread: int) -> int:
        """The thread's row in the CANN layer, named."""
        number = self._threads.setdefault(thread, len(self._threads) + 1)
        self._name(events.CANN, number, f"Thread {number}")
        return number

    def _layer(self, pid: int) -> None:
        if (pid, None) not in self._named:
            self._named.add((pid, None))
            self._add(Template(events.layer(pid, self._label)))

    def _name(self, pid: int, tid: int, name: str) -> None:
        self._layer(pid)
        if (pid, tid) not in self._named:
            self._named.add((pid, tid))
            self._add(Template(events.row(pid, tid, name)))


def _where(
    wanted: list[bool], flags: list[bool], codes: NDArray[np.intp] | None, count: int
) -> tuple[slice | NDArray[np.intp], NDArray[np.int64]]:
    """The lines of the templates that are wanted, and a flag of each one's template as 0 or 1."""
    if codes is None:
        return slice(None), np.full(count, flags[0], np.int64)
    at = np.flatnonzero(np.array(wanted)[codes])
    return at, np.array(flags, np.int64)[codes[at]]
