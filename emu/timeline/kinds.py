"""The kinds of lines: what the columns of a line's numbers mean, and the texts around them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from emu.runtime.copies import CopyTask, FillTask
from emu.runtime.gates import Record, Wait
from emu.timeline import events
from emu.timeline.lines import Slot, Template

if TYPE_CHECKING:
    from emu.runtime.stream import Stream

#: What the host calls to queue what is no launch, and what the device calls it.
CALLS = {
    "memcpy": "aclrtMemcpyAsync",
    "memset": "aclrtMemsetAsync",
    "event record": "aclrtRecordEvent",
    "event wait": "aclrtStreamWaitEvent",
}
#: What is no launch: no call of the host reports that it has queued it.
QUEUED = frozenset((CopyTask, FillTask, Record, Wait))
_TASK_TYPES = {"memcpy": "MEMCPY_ASYNC", "memset": "MEMSET_ASYNC", "event record": "EVENT_RECORD", "event wait": "EVENT_WAIT"}

# What a line can show: times on the file's clock (an arrow ends where its task begins, or where its call is drawn if that is later), then
# the begin of the call on both clocks and how long it took on the other one, numbers of the task, its times on the other clock.
HOST = Slot(0, 12, True)
_HOST_TOOK = Slot(1, 8, True)
_TASK = Slot(2, 12, True)
_TASK_TOOK = Slot(3, 8, True)
_ARROW = Slot(4, 12, True)
_SIM, _WALL, _TOOK = Slot(5, 12), Slot(6, 12), Slot(7, 12)
_TASK_ID, _CONNECTION = Slot(8, 8), Slot(9, 8)
OTHER, _OTHER_TOOK = Slot(10, 12), Slot(11, 12)
COLUMNS = 12


class Row:
    """One stream: its place in the file, and the templates of its tasks."""

    __slots__ = ("core", "pid", "tasks", "templates", "tid")

    def __init__(self, stream: Stream) -> None:
        device = stream.context.device
        self.pid = events.HARDWARE + device.index
        self.tid = stream.id
        self.core = "AI_VECTOR_CORE" if device.profile.vector_cores else "AI_CORE"
        #: Tasks written so far.
        self.tasks = 0
        self.templates: dict[Any, Template] = {}


def device(
    simulated: bool,
    name: str,
    cost: Any,
    nbytes: int | None,
    waited: Stream | None,
    row: Row,
    thread: int,
    takes_time: bool,
    failed: bool,
) -> events.Pieces:
    """A slice of a stream with its arrow; what takes no time has none, nor has a wait. ``failed``: the task left a fault, and says so."""
    args: dict[str, Any] = {"Task Type": _TASK_TYPES.get(name, row.core)}
    if cost is not None:
        args |= {
            "Block Dim": cost.block_dim,
            "read bytes": cost.traffic.read,
            "written bytes": cost.traffic.written,
            "binds": cost.binds,
        }
    if nbytes is not None:
        args["bytes"] = nbytes
    if waited is not None:
        args |= {"waited_for_stream": waited.id, "waited_for_device": waited.context.device.index}
    if failed:
        args["failed"] = True
    args["Stream Id"] = row.tid
    other = "wall" if simulated else "sim"
    numbers = [("Task Id", _TASK_ID), ("connection_id", _CONNECTION), (f"{other}_ns", OTHER), (f"{other}_dur_ns", _OTHER_TOOK)]
    category = "copy" if nbytes is not None else "sync" if name.startswith("event") else "kernel"
    pieces = events.slice_of(name, category, row.pid, row.tid, args, numbers, _TASK, _TASK_TOOK)
    if takes_time and waited is None:
        pieces += [",\n", *events.arrow(_CONNECTION, thread, HOST, row.pid, row.tid, _ARROW)]
    return pieces


def host(simulated: bool, thread: int, name: str) -> events.Pieces:
    """A slice of the CANN layer. Its begin stands on both clocks: on the simulated one it may be drawn later."""
    other = [("wall_ns", _WALL), ("wall_dur_ns", _TOOK)] if simulated else [("sim_dur_ns", _WALL)]
    numbers = [("sim_ns", _SIM), *other]
    return events.slice_of(name, "host", events.CANN, thread, {}, numbers, HOST, _HOST_TOOK)


def size(task: Any) -> int:
    """The size of a copy or fill."""
    return int(task.nbytes * task.height) if task.name == "memcpy" else int(task.count * len(task.pattern))
