"""What is done, in a file, so that a stopped run can go on; and the stamp that says what it was done with."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from emu_kernels.reference.arrays import BITS_DTYPE

from emu.verify.catalog import BY_FLOW
from emu.verify.units import Example, Outcome


class VerifyError(Exception):
    """A run cannot start or go on; the text, one line, says why and what to do."""


class StateError(VerifyError):
    """The state file cannot be used."""


@cache
def stamp() -> str:
    """Hash of what an outcome depends on: an outcome of anything else is worth nothing.

    That is the sources of the kernels, the reference and this package, the versions of Python, NumPy and the compiler, and the CPU that
    kernels are compiled for. Of one process it is computed once: later edits do not change the code that is loaded.
    """
    import emu_kernels
    from emu_kernels.cache import source_stamp
    from numba.core.registry import cpu_target

    target = cpu_target.target_context.codegen().magic_tuple()
    roots = [Path(emu_kernels.__file__).parent, Path(__file__).parent]
    digest = hashlib.sha256(repr((source_stamp(), target)).encode())
    for root in roots:
        for file in sorted(root.rglob("*.py")):
            digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes())
    return digest.hexdigest()[:16]


class State:
    """A file of finished units, one JSON line each after a line with the stamp. Without a file it is kept in memory only."""

    def __init__(self, path: Path | None, fresh: Iterable[str] = ()) -> None:
        """Read `path`, leave out the units of the keys `fresh`, which are to run again, and write the rest back.

        A file of another stamp is started anew if there are `fresh` units. With none, as in a run that is to go on with the file, it is a
        StateError. So is a file that cannot be read or written, is no regular file or is something else: none of them is changed.
        `damaged` counts the lines that were left out because they are no outcome.
        """
        self.path, self.done, self.damaged = path, dict[str, Outcome](), 0
        if path is None:
            return
        fresh = set(fresh)
        try:
            self._read(path, resume=not fresh)
            for key in fresh:
                self.done.pop(key, None)
            path.parent.mkdir(parents=True, exist_ok=True)
            self._rewrite(path.resolve())
        except OSError as error:
            raise self._unusable(error) from None

    def _read(self, path: Path, resume: bool) -> None:
        if not path.exists():
            return
        if not path.is_file():  # a device may have no end, a pipe no beginning
            raise StateError(f"cannot keep finished work in {path}: it is not a regular file; name another one with --state")
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        if not lines:
            return
        first = _parse(lines[0])
        if not isinstance(first, dict) or list(first) != ["stamp"]:
            raise StateError(f"{path} is not a state file of emu verify; name another one with --state")
        if first["stamp"] != stamp():
            if resume:
                raise StateError(
                    f"{path} is of other sources, another compiler or another CPU target (stamp {first['stamp']}, here {stamp()}): "
                    f"start anew without --resume, or name another file with --state"
                )
            return
        outcomes = [_outcome(line) for line in lines[1:]]
        self.done = {outcome.key: outcome for outcome in outcomes if outcome}
        self.damaged = outcomes.count(None)

    def _rewrite(self, path: Path) -> None:
        """Replace the file in one step: what it holds survives a full disk."""
        text = [json.dumps({"stamp": stamp()}), *(json.dumps(o._asdict()) for o in self.done.values())]
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            part.write_text("\n".join(text) + "\n", encoding="utf-8")
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise

    def _unusable(self, error: OSError) -> StateError:
        return StateError(f"cannot keep finished work in {self.path}: {error.strerror or error}; name another file with --state")

    def add(self, outcome: Outcome) -> None:
        """Append one finished unit."""
        self.done[outcome.key] = outcome
        if self.path is None:
            return
        try:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome._asdict()) + "\n")
        except OSError as error:
            raise self._unusable(error) from None


def _parse(line: str) -> Any:
    """The JSON value of a line, or None."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None


def _outcome(line: str) -> Outcome | None:
    """The outcome that a line holds, or None if it is not one: cut off, or edited so that it could not be reported."""
    fields = _parse(line)
    try:
        outcome = Outcome(**{**fields, "examples": tuple(Example(tuple(inputs), *rest) for inputs, *rest in fields["examples"])})
        flow, _, dtype, *rest = outcome.key.split("/")
        whole = (outcome.cases, outcome.mismatches)
        good = (
            len(rest) == 5
            and all(type(n) is int for n in whole)
            and 0 <= outcome.mismatches <= outcome.cases < 1 << 63
            and (outcome.mismatches > 0) == (len(outcome.examples) > 0)
            and type(outcome.seconds) in (int, float)
            and 0 <= outcome.seconds < 1e9  # no NaN, and sums stay finite
            and all(_well_formed(example, flow, dtype) for example in outcome.examples)
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return outcome if good else None


def _well_formed(example: Example, flow: str, dtype: str) -> bool:
    """Whether an example holds patterns of the dtype, as many as the flow has inputs. KeyError for a flow or dtype that is unknown."""
    op, limits = BY_FLOW[flow], np.iinfo(BITS_DTYPE[dtype])  # type: ignore[type-var]

    def patterns(values: Sequence[Any]) -> bool:
        return all(type(x) is int and limits.min <= x <= limits.max for x in values)

    if len(example.inputs) != op.inputs or not patterns((example.got, example.want)):
        return False
    if not op.rows:
        return patterns(example.inputs) and example.last is None and example.element == 0
    lengths = {len(row) if isinstance(row, list) else 0 for row in example.inputs}
    return (
        len(lengths) == 1
        and type(example.last) is bool
        and type(example.element) is int
        and 0 <= example.element < min(lengths)
        and all(patterns(row) for row in example.inputs)
    )
