"""The one interface behind which every check and every trace lives.

With nothing installed, ``active`` is None and the runtime pays one test of it. A hook runs in the thread that made the call (or ran
the task), outside the runtime's locks unless said otherwise; it must be quick and must not call the runtime.
"""

from __future__ import annotations

from itertools import count
from typing import Any


class Hooks:
    """Every event that the runtime reports; each method does nothing here. Override what is needed."""

    #: When :meth:`tidy` is wanted, in wall ns.
    due = 1 << 63

    def allocated(self, memory: Any, block: Any) -> None:
        """``block`` (an Allocation) was handed out."""

    def freed(self, memory: Any, block: Any) -> None:
        """``block`` was given back."""

    def copied(self, dst: int, src: int, nbytes: int, stream: Any) -> None:
        """A copy is about to run; ``stream`` is None for a synchronous one. Addresses as the caller gave them."""

    def filled(self, dst: int, nbytes: int, stream: Any) -> None:
        """A memset is about to run; as :meth:`copied`."""

    def enqueued(self, report: tuple[Any, Any, int, int]) -> None:
        """A task is about to be put on a stream: (stream, task, number of the host thread, wall ns). One tuple: a trace keeps it as it
        is."""

    def issued(self, report: tuple[Any, Any, str, int, str, int, int, int, int, int]) -> None:
        """A call that queues one launch returns, in place of :meth:`enqueued` and :meth:`called`: (stream, cost of the task or None, its
        name, number of the host thread, name of the call, number of the task, begin of the call in simulated and wall ns, its end)."""

    def tidy(self, now: int) -> None:
        """A good moment for what takes longer: wall ns is ``due`` or later, or many launches were issued."""

    def finished(self, report: tuple[int, int, int, int]) -> None:
        """A task has run that was queued while a hook listened: (its number, wall ns of begin and end, simulated ns of the end); runs
        under the stream's drain lock. Not the task: who keeps that keeps all its arguments."""

    def failed(self, task: Any) -> None:
        """``task`` has raised, and its context gets a fault; :meth:`finished` follows. Runs under the stream's drain lock."""

    def dropped(self, stream: Any, task: Any) -> None:
        """``task`` (or gate) will never run: its stream was aborted or destroyed, its context has a fault; or a wait was given up."""

    def recorded(self, stream: Any, record: Any) -> None:
        """An event's ``record`` completed on ``stream``; runs under the stream's drain lock."""

    def waited(self, stream: Any, wait: Any) -> None:
        """``stream`` passed its ``wait`` for ``wait.record``; runs under the stream's drain lock."""

    def synchronised(self, scope: Any) -> None:
        """The host waited for a stream, an event's record or a device to its end."""

    def called(self, name: str, began: tuple[int, int]) -> None:
        """The host returns from the call ``name`` (phase 2 of an operator, a blocking copy, a synchronisation); ``began`` = (simulated
        ns, wall ns) at its beginning, see :func:`emu.runtime.clock.now`."""

    def created(self, obj: Any) -> None:
        """A context, stream or event came to life."""

    def destroyed(self, obj: Any) -> None:
        """A context, stream or event was destroyed."""


class _Several(Hooks):
    """Reports to several hooks in the order in which they were installed."""

    def __init__(self, members: list[Hooks]) -> None:
        self.members = members

    @property
    def due(self) -> int:  # type: ignore[override]
        return min(member.due for member in self.members)


def _fan_out(name: str) -> Any:
    def report(self: _Several, *args: Any) -> None:
        for member in self.members:
            getattr(member, name)(*args)

    return report


for _name in [name for name, value in vars(Hooks).items() if callable(value)]:
    setattr(_Several, _name, _fan_out(_name))

#: Of the numbers of tasks issued: :meth:`Hooks.tidy` comes where these bits are 0.
OFTEN = 1023
#: The numbers of tasks, in the order in which they are queued while a hook listens; no task has 0.
numbers = count(1)
#: What the runtime calls; None = nothing is installed.
active: Hooks | None = None
_installed: list[Hooks] = []


def install(hook: Hooks) -> None:
    """Report to ``hook`` from now on."""
    _installed.append(hook)
    _choose()


def remove(hook: Hooks) -> None:
    """Stop reporting to ``hook``; ValueError when it is not installed."""
    _installed.remove(hook)
    _choose()


def _choose() -> None:
    global active
    active = None if not _installed else _installed[0] if len(_installed) == 1 else _Several(list(_installed))
