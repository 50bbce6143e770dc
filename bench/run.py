"""One run: every cell and every other question, into one JSON-able dict."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from bench import cells as plans
from bench import machine, pytorch, scaling
from bench.arena import Arena
from bench.cells import Cell
from bench.competitors import CALLS_IN_A_ROW, competitors
from bench.limit import tune
from bench.text import line
from bench.timing import Effort, Samples, interleave, summary
from bench.usage import FORMAT, complain, no_cffi, one_line
from bench.work import SOC, WrongResultError, bytes_needed, make
from emu import config

Say = Callable[[str], None]
#: Every cell with its samples.
Kept = list[tuple[Cell, dict[str, Samples]]]


class Settings(NamedTuple):
    """How much to do. processes: rounds of process starts, and of those with an empty cache. others: the questions besides cells."""

    name: str
    cells: list[Cell]
    effort: Effort
    processes: tuple[int, int]
    others: bool = True


def settings(name: str) -> Settings:
    """The named amount: "full" (within 30 minutes), "quick" (within 3) or "tiny" (seconds; the figures mean nothing)."""
    threads = plans.thread_counts(len(os.sched_getaffinity(0)))
    if name == "full":
        return Settings(name, plans.full(threads), Effort(seconds=2.5, rounds=(7, 30)), (9, 3))
    if name == "quick":
        return Settings(name, plans.quick(threads), Effort(seconds=0.4, rounds=(4, 12), rare_rounds=1), (3, 1))
    effort = Effort(seconds=0.0, rounds=(2, 2), sample=1e-5, settle=0.0, quiet=0.0)
    return Settings("tiny", plans.tiny(threads), effort, (1, 1), others=False)


def measure_cells(cells: Iterable[Cell], effort: Effort, arena: Arena, say: Say, records: list[dict[str, Any]], kept: Kept) -> None:
    """Check and time each cell; neighbours that share tensors are filled once. Raises WrongResultError."""
    for cell in cells:
        set_threads(cell.threads)
        runs = competitors(make(cell, arena))
        calls = CALLS_IN_A_ROW if cell.path == "native" else None
        times = interleave(runs, effort, calls=calls, several=cell.threads > 1)
        kept.append((cell, times))
        records.append({**record(cell, summary(times)), "load": os.getloadavg()[0]})
        say(line(records[-1]))


def set_threads(threads: int) -> None:
    """The same number for the emulator and PyTorch; the limit is told its own."""
    if config.current().threads != threads:
        config.configure(threads=threads)
    pytorch.set_threads(threads)


def record(cell: Cell, times: dict[str, Any]) -> dict[str, Any]:
    """A cell and its figures."""
    about = {"label": cell.label, "place": cell.place, "elements": cell.elements, "bytes": cell.bytes}
    return {**cell._asdict(), "shape": list(cell.shape), **about, **times}


def measure(what: Settings, say: Say, result: dict[str, Any], kept: Kept) -> None:
    """Everything, into ``result`` and ``kept`` as soon as it is known. A question besides the cells that fails is noted there and costs
    no other. Needs the kernels' cache writable for the process times to mean what they say."""
    began = time.perf_counter()
    arena = Arena(max(map(bytes_needed, [*what.cells, *(scaling.all_cells(what.name == "quick") if what.others else [])])))
    config.configure(soc=SOC, numerics="device")
    load = {"before": os.getloadavg()[0]}
    result |= {"format": FORMAT, "amount": what.name, "emulator": machine.emulator(), "machine": machine.describe(), "load": load}
    for warning in machine.warnings(result):
        complain(warning)
    if what.others and no_cffi():
        complain(f"the C ABI will not be measured: {no_cffi()}")
    try:
        if what.name != "tiny":
            result["limit_ahead"] = tune(arena)
        say(f"{len(what.cells)} cells; medians; ratio = time of the other / time of the emulator, median over rounds")
        result["cells"] = []
        measure_cells(what.cells, what.effort, arena, say, result["cells"], kept)
        result["huge_share"] = arena.huge_share()
        result["pytorch"] = pytorch.describe(sorted({c.threads for c in what.cells}))
        if what.others:
            _others(what, arena, say, result)
    finally:
        load["after"] = os.getloadavg()[0]
        result["duration_s"] = round(time.perf_counter() - began, 1)


def _others(what: Settings, arena: Arena, say: Say, result: dict[str, Any]) -> None:
    from bench import latency, memory, processes

    quick = what.name == "quick"

    def one_call() -> dict[str, Any]:
        set_threads(max(c.threads for c in what.cells))
        return latency.measure(what.effort, say, 3 if quick else 7)

    questions: dict[str, Callable[[], Any]] = {
        "calls": lambda: latency.calls(what.effort, say, plans.thread_counts(len(os.sched_getaffinity(0)))),
        "lengths": lambda: scaling.lengths(what.effort, arena, say),
        "scaling": lambda: scaling.threads(quick, arena, say),
        "latency": one_call,
        "processes": lambda: processes.measure(*what.processes, say),
        "memory": lambda: memory.measure(quick, say),
    }
    for name, ask in questions.items():
        try:
            result[name] = ask()
        except WrongResultError:
            raise
        except Exception as error:
            result.setdefault("failed", {})[name] = one_line(error)
            complain(f"{name} not measured: {one_line(error)}")
