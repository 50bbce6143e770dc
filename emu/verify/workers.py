"""Where units run other than in this process: worker processes, or dask.distributed. A lost worker is an error of one line."""

from __future__ import annotations

import logging
import os
import pickle
import signal
import sys
import threading
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any, NamedTuple

from emu.verify.state import VerifyError, stamp
from emu.verify.units import Outcome, Unit

IN_FLIGHT = 4  # units handed to each worker ahead of time

Work = Callable[[Unit], Outcome]


class WorkerError(VerifyError):
    """A worker is lost, or is not as this process is. What is finished stays true: the run can go on."""


class SchedulerError(VerifyError):
    """There is no dask.distributed scheduler at the address."""


class Report(NamedTuple):
    """An outcome, and who says so."""

    outcome: Outcome
    stamp: str
    process: str


def reported(work: Work, unit: Unit) -> Report:
    """In a worker: the outcome of a unit with the stamp of what this process has loaded."""
    mine = stamp()  # before the work: of the sources that are about to be loaded
    return Report(work(unit), mine, f"process {os.getpid()} on {os.uname().nodename}")


def accepted(report: Report) -> Outcome:
    """The outcome, if the worker computes with what this process has; else WorkerError."""
    if report.stamp != stamp():
        raise WorkerError(
            f"a worker ({report.process}) has the stamp {report.stamp}, this process {stamp()}: give both the same sources, the same "
            f"Python, NumPy and Numba and one CPU target (NUMBA_CPU_NAME, NUMBA_CPU_FEATURES), then restart the worker"
        )
    return report.outcome


def _end_with(parent: Connection) -> None:
    """In a worker: end as soon as the parent closes its end of the pipe, which also happens when it is killed."""

    def follow() -> None:
        parent.poll(None)
        os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


def on_processes(units: Sequence[Unit], work: Work, jobs: int) -> Generator[tuple[Unit, Outcome], None, None]:
    """Run units in `jobs` new processes and yield each as it is finished. The processes end with this one, and with the iteration."""
    # spawn: a fork would copy the locks of a runtime that may be live in this process.
    context = get_context("spawn")
    followed, held = context.Pipe(duplex=False)
    with followed, held, ProcessPoolExecutor(jobs, mp_context=context, initializer=_end_with, initargs=(followed,)) as pool:
        queue = iter(units)
        pending: dict[Future[Report], Unit] = {}
        try:
            while True:
                for unit in queue:
                    pending[_submit(pool, work, unit)] = unit
                    if len(pending) >= jobs * IN_FLIGHT:
                        break
                if not pending:
                    return
                for future in wait(pending, return_when=FIRST_COMPLETED).done:
                    yield pending.pop(future), accepted(future.result())
        except BrokenProcessPool:
            raise WorkerError(
                "a worker process ended before its work: killed, out of memory, or started by a script without `if __name__ == '__main__':`"
            ) from None
        except BaseException:
            held.close()  # what the workers are at is of no use any more
            raise
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, work: Work, unit: Unit) -> Future[Report]:
    """Hand out a unit, which may start a process. The process inherits the mask: Ctrl-C is the parent's, which then ends it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(reported, work, unit)
    except BrokenProcessPool:
        raise
    except RuntimeError:  # a worker that imports the script which started it comes here
        raise WorkerError("worker processes cannot start while a script is imported: call emu under `if __name__ == '__main__':`") from None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Call(NamedTuple):
    """The arguments of `reported`; its pickle calls that where it is loaded.

    A dask worker dies of a task that names a module which it does not have, and nobody hears why. This names `pickle.loads`, which is
    everywhere and fails as the work does.
    """

    work: Work
    unit: Unit

    def __reduce__(self) -> tuple[Any, ...]:
        return reported, (self.work, self.unit)


def on_dask(units: Sequence[Unit], work: Work, address: str) -> Generator[tuple[Unit, Outcome], None, None]:
    """Run units on the workers of a dask.distributed scheduler and yield each as it is finished. ImportError without dask."""
    try:
        distributed = import_module("distributed")
    except ImportError as error:
        raise ImportError("--scheduler needs dask.distributed: pip install 'aclnn-emu[dask]'") from error
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # it logs, with a traceback, what is raised here
    try:
        client = distributed.Client(address)
    except Exception as error:  # of the network, the name, the protocol's own library: each protocol has its own errors
        raise SchedulerError(f"cannot reach a scheduler at {address!r}: {_one_line(error)}") from error
    with client:
        if not client.scheduler_info()["workers"]:
            print(f"emu: the scheduler at {address!r} has no workers: waiting for one", file=sys.stderr, flush=True)
        try:
            # pure=False: two runs of the same unit are two runs, not one remembered result.
            futures = {client.submit(pickle.loads, pickle.dumps(_Call(work, unit)), pure=False): unit for unit in units}
            for future in distributed.as_completed(list(futures)):
                yield futures[future], accepted(future.result())
        except (CancelledError, OSError, distributed.KilledWorker) as error:
            raise WorkerError(f"the scheduler at {address!r} or its workers are lost: {_one_line(error)}") from None
        except (ImportError, AttributeError) as error:
            raise WorkerError(f"a worker of {address!r} cannot compare: {_one_line(error)}; it needs what is installed here") from None


def _one_line(error: Exception) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
