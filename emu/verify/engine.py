"""Runs units, here or elsewhere, and remembers what is done so that a stopped run can go on."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from functools import partial
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from emu.verify.provider import Provider
from emu.verify.units import Example, Outcome, Unit, run

IN_FLIGHT = 4  # units handed to each worker ahead of time


def stamp() -> str:
    """Hash of the kernels, the reference and this package: an outcome of other sources is worth nothing."""
    import emu_kernels

    roots = [Path(emu_kernels.__file__).parent, Path(__file__).parent]
    digest = hashlib.sha256()
    for root in roots:
        for file in sorted(root.rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


class StateError(Exception):
    """The state file cannot be used; the text says why."""


class SchedulerError(Exception):
    """The dask.distributed scheduler cannot be used; the text says why."""


class State:
    """A file of finished units, one JSON line each after a line with the stamp of the sources."""

    def __init__(self, path: Path, fresh: Iterable[str] = ()) -> None:
        """Read `path` if it is of the same sources, else start it anew; `fresh` are keys of units that are to run again.

        Raises StateError if the file cannot be read or written, or is something else: that is not overwritten.
        """
        self.path, self.done = path, dict[str, Outcome]()
        try:
            lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
            if lines and not _is_stamp(lines[0]):
                raise StateError(f"{path} is not a state file of emu verify; name another one with --state")
            if lines and json.loads(lines[0]) == {"stamp": stamp()}:
                self._read(lines[1:])
            for key in fresh:
                self.done.pop(key, None)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = [json.dumps({"stamp": stamp()}), *(json.dumps(o._asdict()) for o in self.done.values())]
            path.write_text("\n".join(text) + "\n", encoding="utf-8")
        except UnicodeDecodeError:
            raise StateError(f"{path} is not a state file of emu verify; name another one with --state") from None
        except OSError as error:
            raise StateError(f"cannot keep finished work in {path}: {error.strerror or error}") from None

    def _read(self, lines: Sequence[str]) -> None:
        for line in lines:
            try:
                outcome = _from_json(json.loads(line))
            except (ValueError, TypeError, KeyError):
                return  # the last line of a killed run
            self.done[outcome.key] = outcome

    def add(self, outcome: Outcome) -> None:
        """Append one finished unit."""
        self.done[outcome.key] = outcome
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome._asdict()) + "\n")
        except OSError as error:
            raise StateError(f"cannot keep finished work in {self.path}: {error.strerror or error}") from None


def _is_stamp(line: str) -> bool:
    try:
        first = json.loads(line)
    except ValueError:
        return False
    return isinstance(first, dict) and list(first) == ["stamp"]


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


def _from_json(fields: dict[str, Any]) -> Outcome:
    examples = tuple(Example(tuple(inputs), *rest) for inputs, *rest in fields["examples"])
    return Outcome(**{**fields, "examples": examples})


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

    `jobs`: processes; 1 runs in this one, 0 takes one for each CPU that this process may use. `scheduler`: address of a
    dask.distributed scheduler that gets the units instead. `finished` is called for each unit, those of `state` first.
    An exception of a unit ends the run; finished units are in `state`.
    """
    done = dict(state.done) if state else {}
    outcomes: dict[str, Outcome] = {}
    for unit in units:
        if unit.key in done:
            outcomes[unit.key] = done[unit.key]
            finished(unit, done[unit.key])
    rest = [unit for unit in units if unit.key not in outcomes]
    work = partial(run, provider=provider)
    jobs = jobs or len(os.sched_getaffinity(0))
    if scheduler is not None:
        results = _on_dask(rest, work, scheduler)
    elif jobs == 1:
        results = _here(rest, work)
    else:
        results = _on_processes(rest, work, jobs)
    for unit, outcome in results:
        outcomes[unit.key] = outcome
        if state:
            state.add(outcome)
        finished(unit, outcome)
    return [outcomes[unit.key] for unit in units]


def _here(units: Sequence[Unit], work: Callable[[Unit], Outcome]) -> Iterator[tuple[Unit, Outcome]]:
    with Interrupts() as interrupts:
        for unit in units:
            outcome = work(unit)
            yield unit, outcome  # it is kept, whatever follows
            interrupts.check()


def _on_processes(units: Sequence[Unit], work: Callable[[Unit], Outcome], jobs: int) -> Iterator[tuple[Unit, Outcome]]:
    # spawn: a fork would copy the locks of a runtime that may be live in this process.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        queue = iter(units)
        pending: dict[Future[Outcome], Unit] = {}
        try:
            while True:
                for unit in queue:
                    pending[pool.submit(work, unit)] = unit
                    if len(pending) >= jobs * IN_FLIGHT:
                        break
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), future.result()
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _on_dask(units: Sequence[Unit], work: Callable[[Unit], Outcome], address: str) -> Iterator[tuple[Unit, Outcome]]:
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise ImportError("--scheduler needs dask.distributed: pip install 'aclnn-emu[dask]'") from error
    try:
        client = distributed.Client(address)
    except (OSError, ValueError) as error:  # TimeoutError is an OSError
        raise SchedulerError(f"cannot reach a scheduler at {address!r}: {error}") from error
    with client:
        # pure=False: two runs of the same unit are two runs, not one remembered result.
        futures = {client.submit(work, unit, pure=False): unit for unit in units}
        for future in distributed.as_completed(list(futures)):
            yield futures[future], future.result()
