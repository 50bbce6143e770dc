"""From what the recorder noted to events in the file: one template for each operator, stream and host thread.

A line is a host call with the task that it queued, its arrow included. Of a call with several tasks each but the last has a line before.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from emu.runtime.gates import Gate
from emu.timeline import events, kinds
from emu.timeline.block import Block, Times
from emu.timeline.ended import DROPPED, Ended, packed
from emu.timeline.lines import Template

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: A task with its stream and times.
Work = tuple[Any, "Stream", Times]
#: Parts of what the host reports of a launch: five that tell its kind, its task's number and the times of its call.
NOTE = 10
#: How many templates a stream keeps, and how many streams are kept whether they live or not.
KEPT = 1024


class _Issued(NamedTuple):
    """What is known of a launch's task."""

    name: str
    number: int
    cost: Any


class Writer:
    """Writes what is finished to a file; one thread at a time may call it. ``zero`` is (simulated, wall) ns at the beginning."""

    def __init__(self, file: events.File, label: str, simulated: bool, zero: tuple[int, int], first: int) -> None:
        self._file = file
        self._label = label
        self._simulated = simulated
        self._zero = zero
        self._block = Block(file, simulated, zero)
        self._ended = Ended(first)
        #: Templates of calls with one launch, by (stream, identity of the cost, names and thread); a template keeps its cost.
        self._quick: dict[tuple[Stream, int, str, int, str], Template] = {}
        #: Host threads in the order of their first appearance.
        self._threads: dict[int, int] = {}
        self._rows: dict[Stream, kinds.Row] = {}
        self._named: set[tuple[int, int | None]] = {(events.CANN, None)}
        #: Launches whose call has not returned yet, by thread: (task, stream, times).
        self._open: dict[int, list[Work]] = {}
        #: Templates of host calls without tasks and of counters.
        self._others: dict[Any, Template] = {}
        #: Tasks that had not run when the trace ended.
        self.left_out = 0
        #: The numbers of tasks that failed, noted before they are reported as run.
        self.failed: set[int] = set()

    def write(self, pending: list[Any], reports: list[int], *, flush: bool = False, unfinished: bool = False) -> None:
        """Take what is at the head of ``pending``, up to the first task that has not run (``unfinished``: leave such tasks out), and write
        whole blocks (``flush``: all). Of a task that has not run or never will, the host's call is written. OSError of the file.

        ``pending`` has the ten parts of what :meth:`emu.runtime.hooks.Hooks.issued` reports, one by one; what ``enqueued`` reports;
        (thread, name, begin on both clocks, end, end wall) of other calls; (device, bytes in use, both clocks). ``reports``: see
        :class:`emu.timeline.ended.Ended`.
        """
        ended, block = self._ended, self._block
        ended.add(reports)
        at = 0
        try:
            while at < len(pending):
                entry = pending[at]
                if type(entry) is tuple:
                    stuck = not self._entry(entry, unfinished)
                    at += not stuck
                else:
                    taken = self._launches(
                        pending[at : at + NOTE * min(len(pending) if unfinished else ended.count, block.room)], unfinished
                    )
                    at += NOTE * taken
                    stuck = not taken
                if stuck:
                    break
                if block.room <= 0:
                    self._flush()
        finally:
            del pending[:at]
        if flush:
            self._flush()

    def finish(self) -> None:
        """Write the launches whose calls have not returned, and the end."""
        for thread, tasks in self._open.items():
            sim, _, wall, _ = tasks[0][2]
            self._call(tasks, thread, tasks[-1][0].name, (sim, wall, sim, wall))
        self._flush()
        self._file.end()

    def leave(self) -> None:
        """Write nothing more, not even what is waiting."""
        self._file.leave()

    def _flush(self) -> None:
        self._block.flush()
        if len(self._rows) > KEPT:
            self._rows = {stream: row for stream, row in self._rows.items() if stream.alive}

    # -- one by one ------------------------------------------------------------------------------------------------------

    def _entry(self, entry: tuple[Any, ...], unfinished: bool) -> bool:
        """What is no template; False when its task has not run."""
        kind = len(entry)
        if kind == 3:
            self._memory(*entry)
        elif kind == 5 and isinstance(entry[1], str):
            thread, name, began, sim, wall = entry
            self._call(self._open.pop(thread, []), thread, name, (*began, sim, wall))
        else:
            stream, task, thread = entry[:3]
            number = task.number
            if isinstance(task, Gate) and type(task) not in kinds.QUEUED:  # nothing reports the end of such gates
                self._ended.take(np.array([number]), 0)
                return True
            report = self._ended.one(number)
            if report is None:
                if not unfinished:
                    return False
                self.left_out += 1
            if report is None or report[2] == DROPPED:
                self._no_task(task, thread, entry[3:])
            else:
                self._task(stream, task, thread, entry[3:], report)
        return True

    def _no_task(self, task: Any, thread: int, call: tuple[Any, ...]) -> None:
        """The call of a task that has not run; a call that queues several is reported by itself."""
        if type(task) in kinds.QUEUED:
            self._call([], thread, kinds.CALLS[task.name], (task.issued_ns, call[0]) * 2)
        elif len(call) == 2:
            self._call([], thread, *call)

    def _task(self, stream: Stream, task: Any, thread: int, call: tuple[Any, ...], report: tuple[int, int, int]) -> None:
        """A task that has run. ``call``: what :meth:`Hooks.issued` says of the call, or the wall time of queueing alone."""
        begin_wall, end_wall, end = report
        if type(task) in kinds.QUEUED:
            begin = getattr(task, "since_ns", end - getattr(task, "cost_ns", 0))
            self._call([(task, stream, (begin, end, begin_wall, end_wall))], thread, kinds.CALLS[task.name], (task.issued_ns, call[0]) * 2)
            return
        cost = getattr(task, "cost", None)
        times = (end if cost is None else end - cost.ns, end, begin_wall, end_wall)
        if len(call) == 1:
            self._open.setdefault(thread, []).append((task, stream, times))
            return
        name, took = call
        template = self._template(task, stream, thread, name, times)
        if cost is not None:
            template.took, template.name = cost.ns, name
            if len(self._quick) >= KEPT:
                self._quick.clear()
            self._quick[stream, id(cost), task.name, thread, name] = template
        self._block.add(template, took, times)

    # -- column by column ------------------------------------------------------------------------------------------------

    def _launches(self, flat: list[Any], unfinished: bool) -> int:
        """Launches as :meth:`Hooks.issued` reports them, one after the other, up to the first that has not run (``unfinished``: all) or a
        tuple, which is something else; how many it was."""
        if not flat:
            return 0
        run = self._known(flat)
        if not run:
            stream, cost, own, thread, name, number, *took = flat[:NOTE]
            return int(self._entry((stream, _Issued(own, number, cost), thread, name, tuple(took)), unfinished))
        notes = packed([x for k in range(NOTE - 5, NOTE) for x in flat[k : NOTE * len(run) : NOTE]], len(run))
        done, times = self._ended.of(notes[0])
        count = len(run)
        if not unfinished and not done.all():
            count = int(done.argmin())
            if not count:
                return 0
            run, notes, done, times = run[:count], notes[:, :count], done[:count], times[:count]
        finished = int(np.count_nonzero(done))
        self._ended.take(notes[0], finished)
        self.left_out += count - finished
        done &= times[:, 2] != DROPPED
        if not done.all():
            run = [t if ran else self._alone(t.thread, t.name) for t, ran in zip(run, done.tolist(), strict=True)]
        rows = self._block.add_all(run)
        rows[:4] = notes[1:]
        rows[4] = rows[5] = times[:, 2]
        rows[4] -= [template.took for template in run]
        rows[6:] = times[:, :2].T
        return count

    def _known(self, flat: list[Any]) -> list[Template]:
        """The templates of the launches at the head that are like others before."""
        streams = flat[::NOTE]
        types = list(map(type, streams))
        count = types.index(tuple) if tuple in types else len(types)
        columns = [flat[k : NOTE * count : NOTE] for k in range(NOTE - 5)]
        if all(column.count(column[0]) == count for column in columns):
            stream, cost, *others = (column[0] for column in columns)
            template = self._quick.get((stream, id(cost), *others))
            return [] if template is None else [template] * count
        streams, costs, *rest = columns
        run = list(map(self._quick.get, zip(streams, map(id, costs), *rest, strict=True)))
        return list(takewhile(lambda template: template is not None, run))  # type: ignore[arg-type]

    # -- templates -------------------------------------------------------------------------------------------------------

    def _call(self, tasks: list[Work], thread: int, name: str, took: Times) -> None:
        """A slice of the CANN layer with its tasks."""
        if not tasks:
            self._block.add(self._alone(self._number(thread), name), took)
        for k, (task, stream, times) in enumerate(tasks):
            last = k == len(tasks) - 1
            self._block.add(self._template(task, stream, thread, name if last else None, times), took, times)

    def _alone(self, number: int, name: str) -> Template:
        """The template of a call without a task, by a thread's row."""
        template = self._others.get((number, name))
        if template is None:
            template = self._others[number, name] = Template(kinds.host(self._simulated, number, name), thread=number, call=True)
        return template

    def _template(self, task: Any, stream: Stream, thread: int, name: str | None, times: Times) -> Template:
        """The template of a task, with the call ``name`` behind it."""
        row = self._rows.get(stream)
        if row is None:
            row = self._rows[stream] = kinds.Row(stream)
        begin, end, begin_wall, end_wall = times
        takes_time = end > begin if self._simulated else end_wall > begin_wall
        failed = task.number in self.failed
        own, cost = task.name, getattr(task, "cost", None)
        nbytes = kinds.size(task) if own in ("memcpy", "memset") else None
        waited = task.record.stream if own == "event wait" else None
        key = id(cost), name, thread, own, nbytes, takes_time, waited, failed
        template = row.templates.get(key)
        if template is None:
            number = self._number(thread)
            self._name(row.pid, row.tid, f"Stream {row.tid}")
            pieces = kinds.device(self._simulated, own, cost, nbytes, waited, row, number, takes_time, failed)
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
        self._block.add(template, (*now, *now), (used + sim0, 0, used + wall0, 0))

    def _number(self, thread: int) -> int:
        """The thread's row in the CANN layer, named."""
        number = self._threads.setdefault(thread, len(self._threads) + 1)
        self._name(events.CANN, number, f"Thread {number}")
        return number

    def _layer(self, pid: int) -> None:
        if (pid, None) not in self._named:
            self._named.add((pid, None))
            self._block.add(Template(events.layer(pid, self._label)))

    def _name(self, pid: int, tid: int, name: str) -> None:
        self._layer(pid)
        if (pid, tid) not in self._named:
            self._named.add((pid, tid))
            self._block.add(Template(events.row(pid, tid, name)))
