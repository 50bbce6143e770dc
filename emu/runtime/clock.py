"""Simulated time: a clock for each stream and each host thread, advanced by what the product's model says.

A stream's item starts when the stream is free and the host has issued it, and lasts what it costs; an event's record keeps the stream's
time, a wait makes a stream as late as the record, a synchronisation makes the host thread as late as the stream. That is a max-plus
recurrence over the program's order: who runs what when (the schedule, the number of threads, the machine's speed) does not enter.

All times are simulated nanoseconds since the process started. Wall times stand beside them in every record; results depend on neither.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from emu.soc.profile import shared_numbers

if TYPE_CHECKING:
    from emu.config import Config
    from emu.executor import Executor
    from emu.model import Cost
    from emu.runtime.copies import Place
    from emu.runtime.device import Device
    from emu.soc import SocProfile


_threads = count(1)


class HostClock(threading.local):
    """The simulated time of the calling host thread and its number. A new thread starts at 0 and catches up when it takes a context."""

    ns = 0

    def __init__(self) -> None:  # once in each thread
        self.thread = next(_threads)


host = HostClock()
#: What events report: True = simulated, False = wall.
simulated = True
#: Simulated host time of one aclnn call.
issue_ns = 0
#: How many costs an operator keeps, and how many copies' costs the process.
KEPT_COSTS = 4096


def adopt(settings: Config) -> None:
    """Follow the Config of a new machine."""
    global simulated, issue_ns
    simulated = settings.clock == "simulated"
    issue_ns = host_issue_ns(settings.host)


_opened = False


def opened() -> None:
    """A context came to life: EMU_TRACE and EMU_WATCH start with the first one."""
    global _opened
    if not _opened:
        _opened = True
        if os.environ.get("EMU_TRACE"):
            from emu.timeline import from_environment

            from_environment()
        if os.environ.get("EMU_WATCH", "0") not in ("", "0"):
            from emu.runtime import watch

            watch.serve()


def host_issue_ns(text: str) -> int:
    """Nanoseconds of host time per aclnn call: "none" 0, "cpp" and "python" from profiles.toml, or a number of µs. ValueError otherwise."""
    if text == "none":
        return 0
    if text in ("cpp", "python"):
        return round(shared_numbers("host")[f"{text}_us"] * 1000)
    try:
        microseconds = float(text)
    except ValueError:
        microseconds = -1.0
    if not 0 <= microseconds < 1e9:
        raise ValueError(f"host must be none, cpp, python or a number of microseconds below 1e9, not {text!r}")
    return round(microseconds * 1000)


def now() -> tuple[int, int]:
    """(simulated ns of this thread, wall ns): the beginning of a host call for :meth:`emu.runtime.hooks.Hooks.called`."""
    return host.ns, time.perf_counter_ns()


def join(ns: int) -> None:
    """The calling thread has learnt of something that happened at ``ns``: it is no earlier now."""
    if ns > host.ns:
        host.ns = ns


def price(ex: Executor) -> None:
    """Put the cost of each launch into the executor's plan; plans are kept, so this happens once for each shape.

    A flow that cannot be counted costs nothing: a program runs whatever its time would be.
    """
    from emu_kernels.counting import CountError

    from emu.model import step_cost

    bound = ex.bound
    costs: list[Cost] = []
    for step in ex.plan.steps:
        cost = bound.costs.get(step)
        if cost is None:
            if len(bound.costs) >= KEPT_COSTS:
                bound.costs.clear()
            try:
                cost = bound.costs[step] = step_cost(step, bound.soc)
            except CountError as error:
                _say_once(f"no simulated time for {step.name}: {error}")
                return
        costs.append(cost)
    ex.plan.costs[:] = costs


_said: set[str] = set()


def _say_once(text: str) -> None:
    if text not in _said:
        _said.add(text)
        say(text)


def say(text: str) -> None:
    """A message on stderr; nothing fails when nobody can read it."""
    with suppress(OSError):
        os.write(2, f"emu: {text}\n".encode("utf-8", "backslashreplace"))


_copies: dict[tuple[str, str, int], int] = {}


def copy_cost(device: Device | None, direction: str, nbytes: int) -> int:
    """Simulated ns of a copy or fill on ``device``; 0 where there is none (host to host)."""
    if device is None:
        return 0
    soc: SocProfile = device.profile
    key = soc.name, direction, nbytes
    found = _copies.get(key)
    if found is None:
        from emu.model import copy_ns, rates

        if len(_copies) >= KEPT_COSTS:
            _copies.clear()
        found = _copies[key] = copy_ns(nbytes, direction, rates(soc))
    return found


def direction_of(to: Place, of: Place) -> tuple[Device | None, str]:
    """The device that does a copy, and over what: "device", "peer" or "link"."""
    if to.device is None or of.device is None:
        return to.device or of.device, "link"
    return to.device, "device" if to.device is of.device else "peer"
