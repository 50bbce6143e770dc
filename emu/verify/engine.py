"""Runs units, here or elsewhere, and leaves out what is done already."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from functools import partial
from typing import Any

from emu.verify.provider import Provider
from emu.verify.state import State
from emu.verify.units import Outcome, Unit, run
from emu.verify.workers import on_dask, on_processes


class Interrupts:
    """Ctrl-C while units run in this process: the first sets a flag, checked between units; the second ends at once.

    An exception would be lost in the compiler's callbacks. Only the main thread can take the signal; elsewhere this does nothing.
    """

    def __init__(self) -> None:
        self.asked = False
        self.before: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self.before = signal.signal(signal.SIGINT, self._ask)
        return self

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            signal.signal(signal.SIGINT, self.before)

    def _ask(self, *what: object) -> None:
        if self.asked:
            # Not an exception: where the first was lost, so would be this one. Finished units are in the state file.
            print("emu: stopped", file=sys.stderr, flush=True)
            os._exit(130)
        self.asked = True
        print("emu: stopping after this unit; Ctrl-C again stops at once", file=sys.stderr, flush=True)

    def check(self) -> None:
        """Raise KeyboardInterrupt if the user asked to stop."""
        if self.asked:
            raise KeyboardInterrupt


def execute(
    units: Sequence[Unit],
    provider: Provider,
    *,
    jobs: int = 0,
    scheduler: str | None = None,
    state: State | None = None,
    finished: Callable[[Unit, Outcome], None] = lambda unit, outcome: None,
) -> list[Outcome]:
    """Run the units and return their outcomes in the order of `units`.

    `jobs`: processes; 1 runs in this one, 0 takes one for each CPU that this process may use; never more than units. `scheduler`:
    address of a dask.distributed scheduler that gets the units instead. `finished` is called for each unit, those of `state` first.
    An exception of a unit ends the run, as does VerifyError for lost workers and for those of another stamp; finished units are in
    `state`.
    """
    done = dict(state.done) if state else {}
    outcomes: dict[str, Outcome] = {}
    for unit in units:
        if unit.key in done:
            outcomes[unit.key] = done[unit.key]
            finished(unit, done[unit.key])
    rest = [unit for unit in units if unit.key not in outcomes]
    work = partial(run, provider=provider)
    jobs = min(jobs or len(os.sched_getaffinity(0)), len(rest))
    if scheduler is not None:
        results = on_dask(rest, work, scheduler)
    elif jobs <= 1:
        results = _here(rest, work)
    else:
        results = on_processes(rest, work, jobs)
    with closing(results):  # whatever ends the loop ends the workers too
        for unit, outcome in results:
            outcomes[unit.key] = outcome
            if state:
                state.add(outcome)
            finished(unit, outcome)
    return [outcomes[unit.key] for unit in units]


def _here(units: Sequence[Unit], work: Callable[[Unit], Outcome]) -> Generator[tuple[Unit, Outcome], None, None]:
    with Interrupts() as interrupts:
        for unit in units:
            outcome = work(unit)
            yield unit, outcome  # it is kept, whatever follows
            interrupts.check()
