"""What tracing costs a launch, and what the hooks cost when nothing is traced.

``python -m bench.trace_cost [--launches N] [--pairs K]``. A launch is both phases of SeluBackward on 16 FLOAT elements; each figure is CPU
time of the whole process, so that the worker's part counts. The two sides of a pair run one after the other, in turning order.
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import emu
from bench.latency import Device
from emu import opapi
from emu.runtime import stream

#: What a launch passes through and tests for hooks.
PATH = ((opapi, "execute"), (stream.Stream, "enqueue"), (stream.Stream, "_run"), (stream.Stream, "synchronize"))
#: Names that these functions give to the hook and to what they ask only for it.
_HELD = ("hook", "began")
#: Untimed launches before a sample on new code.
SETTLE = 500
#: Runs so many launches; CPU seconds of one.
Run = Callable[[int], float]


class Pairs(NamedTuple):
    """CPU seconds per launch of both sides, pair by pair."""

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
        b, o = median(self.base) * 1e6, median(self.other) * 1e6
        return (
            f"{base} {b:.2f} us, {other} {o:.2f} us per launch (medians of {len(self.base)}); "
            f"ratio {self.ratio:.3f} (geometric mean), {median(self.ratios):.3f} (median), "
            f"{min(self.ratios):.2f} to {max(self.ratios):.2f}"
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


@contextmanager
def path(*, tests: bool) -> Iterator[None]:
    """The launch path made anew, inside; both kinds are, so that nothing but the tests differs."""
    kept = [(owner, name, getattr(owner, name)) for owner, name in PATH]
    made = [compiled(function, tests=tests) for _, _, function in kept]
    for (owner, name, _), function in zip(kept, made, strict=True):
        setattr(owner, name, function)
    try:
        yield
    finally:
        for owner, name, function in kept:
            setattr(owner, name, function)


def _timed(run: Callable[[int], None], launches: int) -> float:
    began = time.process_time_ns()
    run(launches)
    return (time.process_time_ns() - began) / launches * 1e-9


def untraced(device: Device) -> Run:
    """Launches as they are."""
    return lambda launches: _timed(device.pipelined, launches)


def traced(device: Device, file: Path) -> Run:
    """Launches under emu.trace, the file's beginning and end included."""

    def run(launches: int) -> None:
        with emu.trace(file):
            device.pipelined(launches)

    return lambda launches: _timed(run, launches)


def on_path(device: Device, *, tests: bool) -> Run:
    """Launches on the path made anew. Some go before, untimed: the interpreter specialises new code as it runs."""

    def run(launches: int) -> float:
        with path(tests=tests):
            device.pipelined(SETTLE)
            return _timed(device.pipelined, launches)

    return run


def interleaved(base: Run, other: Run, pairs: int, launches: int) -> Pairs:
    """``pairs`` pairs of ``launches`` on each side."""
    found = Pairs([], [])
    for k in range(pairs):
        sides = [(base, found.base), (other, found.other)]
        for run, taken in sides if k % 2 == 0 else reversed(sides):
            taken.append(run(launches))
    return found


def measure(launches: int, pairs: int) -> tuple[Pairs, Pairs]:
    """Untraced and traced; without and with the tests for hooks. ``launches``: of each side, over all pairs."""
    each = max(1, launches // pairs)
    with tempfile.TemporaryDirectory() as directory, Device() as device:
        device.pipelined(SETTLE)
        trace = interleaved(untraced(device), traced(device, Path(directory) / "out.json"), pairs, each)
        hooks = interleaved(on_path(device, tests=False), on_path(device, tests=True), pairs, each)
    return trace, hooks


def main(arguments: list[str]) -> int:
    """Measure and print."""
    p = argparse.ArgumentParser(prog="python -m bench.trace_cost", description=__doc__)
    p.add_argument("--launches", type=int, default=100_000, metavar="N", help="launches of each side, over all pairs (100000)")
    p.add_argument("--pairs", type=int, default=20, metavar="K", help="pairs of samples (20)")
    chosen = p.parse_args(arguments)
    if chosen.launches < 1 or chosen.pairs < 1:
        p.error("--launches and --pairs are at least 1")
    trace, hooks = measure(chosen.launches, chosen.pairs)
    print("trace: " + trace.text("untraced", "traced"))
    print("hooks, nothing traced: " + hooks.text("without their tests", "with them"))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
