"""What tracing costs a launch, and what the hooks cost when nothing is traced.

``python -m bench.trace_cost [--launches N] [--pairs K]``. A launch is both phases of SeluBackward on 16 FLOAT elements, with a
synchronisation after each 1000; each figure is CPU time of the whole process, so that the worker's part counts. Traced is one trace of N
launches; after each 4000 of them, about what the trace writes at once, as many run untraced. Each of the K pairs on the hooks consists of
short chunks in turn. So other programs disturb both sides alike.
"""

from __future__ import annotations
import __future__

import argparse
import ast
import inspect
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import numpy as np

import emu
from bench.latency import Device
from emu import opapi
from emu.runtime import hooks, stream

#: What a launch passes through and tests for hooks.
PATH = ((opapi, "execute"), (stream.Stream, "enqueue"), (stream.Stream, "_run"), (stream.Stream, "synchronize"))
#: Names that these functions give to the hook and to what they ask only for it.
_HELD = ("hook", "began")
#: Untimed launches before the first sample: the interpreter specialises new code as it runs.
SETTLE = 500
#: Launches of a sample of the trace, and of a short chunk of a pair.
CHUNK = 4000
#: Launches between two synchronisations.
QUEUED = 1000
SHORT = 100
#: Runs so many launches.
Launch = Callable[[int], None]


class Pairs(NamedTuple):
    """CPU seconds per launch of both sides, pair by pair or (of a trace) chunk by chunk."""

    base: list[float]
    other: list[float]

    @property
    def ratios(self) -> list[float]:
        """other / base, pair by pair."""
        return [o / b for b, o in zip(self.base, self.other, strict=True)]

    @property
    def ratio(self) -> float:
        """Their geometric mean."""
        return geometric_mean(self.ratios)

    def text(self, base: str, other: str) -> str:
        """The pairs in words."""
        b, o = median(self.base) * 1e6, median(self.other) * 1e6
        return (
            f"{base} {b:.2f} us, {other} {o:.2f} us per launch (medians of {len(self.base)}); "
            f"ratio {self.ratio:.3f} (geometric mean), {median(self.ratios):.3f} (median), "
            f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"
        )

    def difference(self) -> str:
        """What the other side costs more, pair by pair."""
        b, o = median(self.base) * 1e6, median(self.other) * 1e6
        more = (np.array(self.other) - np.array(self.base)) * 1e6
        low, middle, high = np.percentile(more, (25, 50, 75)).tolist()
        return (
            f"untraced {b:.2f} us, traced {o:.2f} us per launch (medians of {len(self.base)}); "
            f"more in a pair: {middle:+.2f} us (median), {low:+.2f} to {high:+.2f} us (quartiles), {more.mean():+.2f} us (mean)"
        )


class _NoHooks(ast.NodeTransformer):
    """``hooks.active`` is None and every test of it is False, before the compiler sees it."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        left = node.left
        held = isinstance(left, ast.Name) and left.id in _HELD
        if (held or _is_active(left)) and isinstance(node.ops[0], ast.IsNot):
            return ast.copy_location(ast.Constant(False), node)
        return self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        return ast.copy_location(ast.Constant(None), node) if _is_active(node) else self.generic_visit(node)


def _is_active(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "active" and isinstance(node.value, ast.Name) and node.value.id == "hooks"


def compiled(function: Any, *, tests: bool) -> Any:
    """A function made anew from its source, with its tests for hooks or without them."""
    tree: ast.Module = ast.parse(textwrap.dedent(inspect.getsource(function)))
    if not tests:
        tree = ast.fix_missing_locations(_NoHooks().visit(tree))
    made: dict[str, Any] = {}
    flags = __future__.annotations.compiler_flag
    exec(compile(tree, inspect.getfile(function), "exec", flags, dont_inherit=True), function.__globals__, made)
    return made[function.__name__]


class Path:
    """The launch path made anew, with the tests for hooks and without them; both are, so that nothing but the tests differs."""

    def __init__(self) -> None:
        self._kept = [(owner, name, getattr(owner, name)) for owner, name in PATH]
        self._made = {tests: [compiled(function, tests=tests) for _, _, function in self._kept] for tests in (False, True)}

    def choose(self, *, tests: bool) -> None:
        """Launch on this path."""
        for (owner, name, _), function in zip(self._kept, self._made[tests], strict=True):
            setattr(owner, name, function)

    def put_back(self) -> None:
        """Launch on the path as it was."""
        for owner, name, function in self._kept:
            setattr(owner, name, function)


def _timed(launch: Launch, launches: int) -> float:
    """CPU seconds of all of them."""
    began = time.process_time_ns()
    for begin in range(0, launches, QUEUED):
        launch(min(QUEUED, launches - begin))
    return (time.process_time_ns() - began) * 1e-9


def of_trace(launch: Launch, launches: int) -> Pairs:
    """One trace in chunks, with an untraced chunk after each. The file's beginning and end, some 10 ms, belong to no chunk."""
    found = Pairs([], [])
    with tempfile.TemporaryDirectory() as directory, emu.trace(f"{directory}/out.json") as recorder:
        for _ in range(launches // CHUNK):
            found.other.append(_timed(launch, CHUNK) / CHUNK)
            hooks.remove(recorder)
            found.base.append(_timed(launch, CHUNK) / CHUNK)
            hooks.install(recorder)
    return found


def of_hooks(launch: Launch, launches: int, pairs: int) -> Pairs:
    """Without the tests for hooks and with them: so many launches on each side, in short chunks that are shared out among the pairs."""
    path = Path()
    found = Pairs([], [])
    total = launches // SHORT
    try:
        for tests in (False, True):
            path.choose(tests=tests)
            launch(SETTLE)
        for pair in range(pairs):
            spent = {False: 0.0, True: 0.0}
            chunks = total * (pair + 1) // pairs - total * pair // pairs
            for k in range(chunks):
                for tests in (k % 2 == 0, k % 2 == 1):
                    path.choose(tests=tests)
                    spent[tests] += _timed(launch, SHORT)
            found.base.append(spent[False] / (chunks * SHORT))
            found.other.append(spent[True] / (chunks * SHORT))
    finally:
        path.put_back()
    return found


def measure(launches: int, pairs: int) -> tuple[Pairs, Pairs]:
    """Untraced and traced; without and with the tests for hooks. ``launches``: of each side of both."""
    with Device() as device:
        device.pipelined(SETTLE)
        return of_trace(device.pipelined, launches), of_hooks(device.pipelined, launches, pairs)


def main(arguments: list[str]) -> int:
    """Measure and print."""
    p = argparse.ArgumentParser(prog="python -m bench.trace_cost", description=__doc__)
    p.add_argument("--launches", type=int, default=100_000, metavar="N", help=f"launches of each side, a multiple of {CHUNK} (100000)")
    p.add_argument("--pairs", type=int, default=20, metavar="K", help="pairs of samples (20)")
    chosen = p.parse_args(arguments)
    if chosen.launches < CHUNK or chosen.launches % CHUNK:
        p.error(f"--launches is a multiple of {CHUNK}, the launches of a sample")
    if not 1 <= chosen.pairs <= chosen.launches // SHORT:
        p.error(f"--pairs is at least 1, and --launches at least {SHORT} for each pair")
    try:
        traced, tested = measure(chosen.launches, chosen.pairs)
    except KeyboardInterrupt:
        print("python -m bench.trace_cost: interrupted, no figure", file=sys.stderr)
        return 130
    print("trace: " + traced.difference())
    print("hooks, nothing traced: " + tested.text("without their tests", "with them"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
