"""Running a study: cells (operator × dtype × product), each streamed in blocks over threads and merged in order."""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from emu import __version__
from emu.study import ablation, assume, inputs, numbers, shapes, targets
from emu.study.errors import LacksError, StudyError, StudyWarning
from emu.study.files import check_formats
from emu.study.measure import Tally, measure
from emu.study.problem import Problem, find_operator, native, parse_assume
from emu.study.question import Question, ask, check_count, settings, text, whole
from emu.study.result import Cell, Study
from emu.study.traces import worst
from emu.study.writing import CHECKPOINT, check_directory, is_checkpoint, write_checkpoint
from emu.verify.provider import Provider

#: Called with elements done and elements in all.
Progress = Callable[[int, int], None]
_CHECKPOINT_EVERY_S = 2.0


class _Cell:
    """One cell's parts, made and checked before anything runs."""

    def __init__(self, q: Question, problem: Problem, provider: Provider) -> None:
        self.problem, self.provider = problem, provider
        self.true = q.against == "true"
        spec = q.inputs
        if spec == "auto":
            spec = "exhaustive" if np.dtype(numbers.BITS[problem.dtype]).itemsize < 4 and not problem.rows else "l1"
        self.spec = spec
        given = inputs.kind(spec) == "arrays"
        self.derived = problem.sees_result and (self.true or (problem.rows and not given))
        names = (*problem.names[:-1], "x") if self.derived and self.true else problem.names
        row = q.row_length if problem.rows else None
        self.source = inputs.make(spec, problem.dtype, names, grad=q.grad, n=q.n, seed=q.seed, row=row, places=problem.places)
        check_count(self.source.size, f"--inputs {q.inputs}")
        self.target = targets.make(q.against, problem, provider)
        targets.check_size(self.target, self.source)
        self.peer = None
        if q.peer is not None:
            self.peer = targets.make_peer(q.peer, problem, provider)
            targets.check_size(self.peer, self.source)
        self.ablate = q.ablate
        if self.ablate and (q.against not in ("exact", "true") or problem.dtype in ("INT8", "INT32", "DOUBLE")):
            raise StudyError("--ablate needs --against exact or true and a dtype of FLOAT, FLOAT16 or BF16")

    def prepare(self, raw: tuple[Any, ...]) -> tuple[Any, ...]:
        """The operator's inputs: x replaced by the forward result where the operator sees that."""
        return targets.derive(self.problem, raw) if self.derived else raw

    def block(self, i: int) -> tuple[Tally, Tally | None]:
        raw = self.source.block(i)
        start = self.source.start(i)
        p = self.problem
        ins = self.prepare(raw)
        result = p.run(self.provider, ins)
        expected = self.target(ins, raw, start)
        seen = raw if self.derived and self.true else ins
        flat = tuple(a.reshape(-1) for a in seen)
        golden = type(expected.golden)(*(a.reshape(-1) for a in expected.golden))
        seen_result = p.nan_stored(result, expected.rounded) if expected.stored else result
        tally = measure(p.dtype, seen_result.reshape(-1), golden, expected.rounded.reshape(-1), flat, p.dtype, start)
        tally.sums["mpfr_decided"] = float(expected.decided)
        tally.sums["repeat_differs"] = float(self._repeat(ins, result))
        if self.ablate:
            tally.parts = ablation.parts(p, self.provider, ins, raw, result, self.true, expected.golden)
        if self.peer is None:
            return tally, None
        other = self.peer(ins, raw, start).rounded.reshape(-1)
        return tally, measure(p.dtype, other, golden, expected.rounded.reshape(-1), flat, p.dtype, start)

    def _repeat(self, ins: tuple[Any, ...], result: Any) -> int:
        """The same inputs again in two pieces of odd length: how many patterns differ."""
        n = result.shape[0]
        cut = n // 3
        pieces = [tuple(np.ascontiguousarray(a[s]) for a in ins) for s in (slice(0, cut), slice(cut, n)) if s.stop > s.start]
        again = np.concatenate([self.problem.run(self.provider, piece) for piece in pieces])
        return int((again.view(result.dtype) != result).sum())


def _problems(q: Question) -> Iterator[Problem]:
    op = find_operator(q.op)
    changed = parse_assume(q.assume)
    for dtype in q.dtypes:
        for soc in q.socs:
            yield Problem(op=op, dtype=dtype, soc=soc, numerics=q.numerics, assume=changed, last=q.last)


def _lacks(problem: Problem) -> str:
    """Why there is no such cell, or an empty text."""
    if problem.numerics == "document":
        problem.check_document()
    missing = problem.unsupported()
    try:
        for name, _ in () if missing else problem.assume:
            assume.check(problem, name)
    except LacksError as error:
        return str(error)
    return missing


def plan(
    op: str, dtypes: str | Sequence[str] | None, socs: str | Sequence[str] | None, provider: Provider, asked: dict[str, Any]
) -> tuple[Question, list[tuple[Problem, _Cell | str]]]:
    """The question and its cells (or why there is no such one), checked and with nothing computed. Raises StudyError."""
    q = ask(op, dtypes, socs, asked)
    check_formats((q.inputs, q.against, q.peer), q.dtypes)
    todo: list[tuple[Problem, _Cell | str]] = []
    for problem in _problems(q):
        problem.check_studied()
        missing = _lacks(problem)
        todo.append((problem, missing or _Cell(q, problem, provider)))
    if all(isinstance(cell, str) for _, cell in todo):
        raise LacksError("nothing to study: " + "; ".join(str(cell) for _, cell in todo))
    return q, todo


def run(
    op: str, *, dtypes: str | Sequence[str] | None = None, socs: str | Sequence[str] | None = None,
    out: str | os.PathLike[str] | None = None, provider: Provider | None = None, threads: int | None = None,
    progress: Progress | None = None, **asked: Any,
) -> Study:  # fmt: skip
    """Run a study and return it. The keyword arguments are `Question`'s fields; dtypes and socs are sequences of names or
    one text with names between commas, and the product "all" is one of each architecture. Without socs and numerics the
    present Config says them.

    With `out`, a directory, the state is saved there every few seconds: the same call after an interruption goes on
    where it stopped, and gives the same result; a damaged state is a StudyWarning, and computed anew. Raises
    StudyError (a ValueError) for a request that makes no sense, or a checkpoint.json there that no study wrote,
    before anything is computed. Products that the operator's document excludes are computed and marked.
    """
    if threads is not None and whole("threads", threads) < 1:
        raise StudyError(f"threads must be at least 1, not {threads}")
    workers = threads or settings().threads
    if out is not None and not text("out", out):
        raise StudyError("out (-o) is an empty text: name a directory, or . for the present one")
    q, todo = plan(op, dtypes, socs, provider or native(), asked)
    total = sum(cell.source.size for _, cell in todo if isinstance(cell, _Cell))
    _keep_the_heap()
    state = _State(Path(out) if out is not None else None, q)
    done = 0
    cells = []
    with ThreadPoolExecutor(workers) as pool:
        for number, (problem, cell) in enumerate(todo):
            if isinstance(cell, str):
                cells.append(Cell(problem=problem, note=cell, inputs="", derived=False, tally=None, peer=None))
                continue
            before = done

            def advance(n: int, before: int = before) -> None:
                if progress is not None:
                    progress(before + n, total)

            tally, peer = _stream(cell, pool, workers, state, number, advance)
            done += cell.source.size
            cells.append(
                Cell(
                    problem=problem,
                    note=problem.refusal(),
                    inputs=cell.spec,
                    derived=cell.derived,
                    tally=tally,
                    peer=peer,
                    traces=worst(problem, tally, cell.source, cell.prepare, (*problem.names, "x")),
                    shapes=shapes.check(problem, cell.provider, q.seed) if cell.spec == "specials" else (),
                )
            )
    return Study(question=asdict(q), cells=tuple(cells))


def _keep_the_heap() -> None:
    """Let glibc keep what blocks free, up to some 60 MiB a thread: it moves its thresholds up to the largest mapped piece
    (at most 32 MiB) that it has seen freed. Otherwise each block's temporaries go back to the system and fault in again,
    which took a third of the processor time and made threads wait for each other."""
    np.empty(31 << 20, np.uint8)


def _stream(
    cell: _Cell, pool: ThreadPoolExecutor, workers: int, state: _State, number: int, advance: Callable[[int], None]
) -> tuple[Tally, Tally | None]:
    """All blocks of a cell. A few are in flight; they are merged in their order."""
    first, tally, peer = state.begin(number, cell)
    pending: deque[Future[tuple[Tally, Tally | None]]] = deque()
    following = first
    try:
        for i in range(first, cell.source.blocks):
            while following < cell.source.blocks and len(pending) < 2 * workers:
                pending.append(pool.submit(cell.block, following))
                following += 1
            one, other = pending.popleft().result()
            tally.add(one)
            if peer is not None and other is not None:
                peer.add(other)
            state.reached(number, i + 1, tally, peer)
            advance(cell.source.start(i + 1) if i + 1 < cell.source.blocks else cell.source.size)
    except BaseException:
        # Nothing is saved here: an interrupt may have come between the parts of a merge. The last checkpoint is whole.
        for future in pending:
            future.cancel()
        raise
    state.save()
    return tally, peer


class _State:
    """What is done so far, on disk: read back by the same question only."""

    def __init__(self, directory: Path | None, q: Question) -> None:
        self._directory = directory
        self._key = fingerprint(q)
        self._cells: dict[str, dict[str, Any]] = {}
        self._last = time.monotonic()
        self._now: tuple[int, int, Tally, Tally | None] | None = None
        if directory is None:
            return
        check_directory(directory)
        if is_checkpoint(directory / CHECKPOINT):
            try:
                found = json.loads((directory / CHECKPOINT).read_bytes())
                if found["key"] == self._key:
                    self._cells = dict(found["cells"])
            except (ValueError, KeyError, TypeError, OSError, RecursionError):
                self._damaged()

    def _damaged(self) -> None:
        assert self._directory is not None
        text = f"{self._directory / CHECKPOINT} is damaged: what it counts is computed anew"
        warnings.warn(text, StudyWarning, stacklevel=2)

    def begin(self, number: int, cell: _Cell) -> tuple[int, Tally, Tally | None]:
        """The next block of a cell and its tallies so far."""
        dtype = cell.problem.dtype
        if str(number) in self._cells:
            try:
                return _resumed(self._cells[str(number)], cell)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError):
                self._damaged()
        return 0, Tally(dtype), None if cell.peer is None else Tally(dtype)

    def reached(self, number: int, following: int, tally: Tally, peer: Tally | None) -> None:
        self._now = (number, following, tally, peer)
        if self._directory is not None and time.monotonic() - self._last > _CHECKPOINT_EVERY_S:
            self.save()

    def save(self) -> None:
        self._last = time.monotonic()
        if self._directory is None or self._now is None:
            return
        number, following, tally, peer = self._now
        self._cells[str(number)] = {"next": following, "tally": tally.to_dict(), "peer": None if peer is None else peer.to_dict()}
        write_checkpoint(self._directory, self._key, self._cells)


def _resumed(found: dict[str, Any], cell: _Cell) -> tuple[int, Tally, Tally | None]:
    """What a checkpoint holds of a cell. Raises ValueError and the like for what no study of the cell has saved."""
    following = found["next"]
    if type(following) is not int or not 0 < following <= cell.source.blocks:
        raise ValueError
    tallies = [Tally.from_dict(d, cell.problem.dtype) for d in (found["tally"], found["peer"]) if d is not None]
    done = cell.source.start(following) if following < cell.source.blocks else cell.source.size
    if len(tallies) != (1 if cell.peer is None else 2) or any(t.sums["n"] != done for t in tallies):
        raise ValueError
    return following, tallies[0], None if cell.peer is None else tallies[1]


def fingerprint(q: Question) -> str:
    """A hash of the question, of the files that it names and of the code that answers it."""
    import emu_kernels

    digest = hashlib.sha256(json.dumps([__version__, asdict(q)]).encode())
    for spec in (q.inputs, q.against, q.peer or ""):
        for name in spec.split(","):
            if Path(name).suffix in (".npy", ".npz", ".csv", ".json") and Path(name).is_file():
                info = Path(name).stat()
                digest.update(os.fsencode(f"{name} {info.st_size} {info.st_mtime_ns}"))
    kernels = Path(str(emu_kernels.__file__)).parent
    for file in sorted([*kernels.rglob("*.py"), *Path(__file__).parent.glob("*.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()
