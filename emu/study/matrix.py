"""A matrix of studies, operators × dtypes × products, over processes or a dask cluster, and one summary."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import CancelledError, ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from typing import Any

from emu.opdef.spec import Role
from emu.soc import profile
from emu.study.errors import LacksError, StudyError
from emu.study.files import check_formats
from emu.study.problem import find_operator, native
from emu.study.question import check_keywords, dtypes_of, ignored, names_of, products_of, settings, text, whole

#: op, dtype, soc, keyword arguments of run.
Job = tuple[str, str, str, dict[str, Any]]
#: Keywords of `run` that a sweep has no use for.
_SET = ("out", "provider", "threads")


def jobs(ops: Sequence[str], dtypes: Sequence[str], socs: Sequence[str], asked: dict[str, Any]) -> list[Job]:
    """The cells that exist: a dtype that an operator or a product lacks is left out. Raises StudyError for unknown names."""
    found: list[Job] = []
    known = {d for op in ops for d in find_operator(op).dtypes}
    for dtype in dtypes:
        if dtype not in known:
            raise StudyError(f"no operator of the sweep has dtype {dtype!r}; known: {', '.join(sorted(known))}")
    known_ops = list(dict.fromkeys(map(find_operator, ops)))
    # An operator is given the options that mean something to it; one that means nothing to any is refused by `run`.
    useless = set.intersection(*(set(ignored(op)) for op in known_ops)) if known_ops else set()
    for declared in known_ops:
        mine = {k: v for k, v in asked.items() if k in useless or k not in ignored(declared)}
        for dtype in dtypes:
            found += [(declared.python_name, dtype, soc, mine) for soc in socs if dtype in declared.dtypes_on(profile(soc))]
    return found


def default_ops() -> tuple[str, ...]:
    """Every operator with a flow of its own: in-place forms are left out."""
    from emu.opdef.catalogue import OPERATORS

    seen: dict[str, str] = {}
    for op in OPERATORS:
        if op.output.role is not Role.INOUT:
            seen.setdefault(op.flow.name, op.python_name)
    return tuple(seen.values())


def one(job: Job) -> list[dict[str, Any]]:
    """The rows of one study; a note where the product or the operator lacks what is asked. Runs in a worker process, on
    one thread."""
    from emu.study.runner import run

    op, dtype, soc, asked = job
    try:
        return run(op, dtypes=(dtype,), socs=(soc,), threads=1, **asked).rows()
    except LacksError as error:
        return [{"op": op, "dtype": dtype, "soc": soc, "note": str(error)}]


def check(todo: Sequence[Job]) -> None:
    """Every cell's request, before any is computed. Raises StudyError for one that makes no sense, and if no cell has
    what is asked."""
    from emu.study.runner import plan

    lacking = None
    found = 0
    for op, dtype, soc, asked in todo:
        try:
            plan(op, (dtype,), (soc,), native(), asked)
            found += 1
        except LacksError as error:
            lacking = error
    if lacking is not None and not found:
        raise lacking


def _local(todo: Sequence[Job], workers: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    if workers == 1:
        yield from ((i, one(job)) for i, job in enumerate(todo))
        return
    # spawn: a fork of a process with threads may hang.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(one, job): i for i, job in enumerate(todo)}
        try:
            for future in as_completed(futures):
                yield futures[future], future.result()
        except BrokenProcessPool:
            raise StudyError("a worker process was killed, or had no memory left: try fewer --workers, or a smaller -n") from None
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _dask(todo: Sequence[Job], address: str) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    try:
        distributed = import_module("distributed")
    except ImportError:
        raise StudyError("--scheduler needs dask.distributed: pip install 'aclnn-emu[dask]'") from None
    try:
        client = distributed.Client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise StudyError(f"no dask scheduler at {address} ({error}): start one with dask scheduler, or leave out --scheduler") from None
    with client:
        futures = {client.submit(one, job, pure=False): i for i, job in enumerate(todo)}
        try:
            for future in distributed.as_completed(list(futures)):
                yield futures[future], future.result()
        except (CancelledError, OSError, distributed.scheduler.KilledWorker) as error:
            why = f"the dask scheduler at {address} has gone, or has lost its workers ({type(error).__name__})"
            raise StudyError(f"{why}: start it again, or leave out --scheduler") from None


def sweep(
    ops: str | Iterable[str] | None = None, *, dtypes: str | Sequence[str] = ("FLOAT", "FLOAT16", "BF16"),
    socs: str | Sequence[str] | None = None, workers: int = 2, scheduler: str | None = None,
    progress: Callable[[int, int], None] | None = None, **asked: Any,
) -> list[dict[str, Any]]:  # fmt: skip
    """One row for each cell of the matrix, in the order operators, dtypes, products, whoever computed it.

    `asked` are `run`'s keyword arguments, without `out`, `provider` and `threads`. `scheduler` is the address of a dask
    scheduler (tcp://…) whose workers have this package; else `workers` local processes.
    """
    check_keywords("sweep", asked, _SET)
    # Said here: a worker process has a Config of its own.
    asked = {"numerics": settings().numerics} | asked
    todo = jobs(names_of("ops", ops) if ops is not None else default_ops(), dtypes_of(dtypes), products_of(socs), asked)
    if not todo:
        raise StudyError("nothing to sweep: no operator has these dtypes on these products")
    if whole("workers", workers) < 1:
        raise StudyError(f"workers must be at least 1, not {workers}")
    if scheduler is not None:
        scheduler = text("scheduler", scheduler)
    check(todo)
    check_formats((asked.get("inputs"), asked.get("against"), asked.get("peer")), dtypes_of(dtypes))
    rows: list[list[dict[str, Any]]] = [[] for _ in todo]
    for done, (i, found) in enumerate(_dask(todo, scheduler) if scheduler else _local(todo, workers), 1):
        rows[i] = found
        if progress is not None:
            progress(done, len(todo))
    return [row for found in rows for row in found]
