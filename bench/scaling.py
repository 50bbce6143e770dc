"""How speed depends on the number of threads, on idleness before the call, and on length."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

from bench import pytorch
from bench.arena import Arena
from bench.cells import KI, MI, Cell, thread_counts
from bench.competitors import competitors, emulator, limit
from bench.timing import Effort, interleave, spread, summary
from bench.work import check_exact, make, spoil
from emu import config

Say = Callable[[str], None]
IDLE_S = 20e-3
LENGTHS = (4 * KI, 16 * KI, 64 * KI, 256 * KI, MI, 4 * MI, 16 * MI, 64 * MI)


def lengths(effort: Effort, arena: Arena, say: Say, sizes: tuple[int, ...] = LENGTHS) -> list[dict[str, Any]]:
    """SeluBackward FLOAT by length, one thread and two, through the launch path."""
    found = []
    for t in thread_counts(_cpus()):
        config.configure(threads=t)
        pytorch.set_threads(t)
        for n in sizes:
            cell = Cell("SeluBackward", "FLOAT", (n,), None, t)
            runs = {name: run for name, run in competitors(make(cell, arena)).items() if name != "numpy"}
            brief = effort._replace(seconds=effort.seconds / 4)
            times = summary(interleave(runs, brief, several=t > 1))
            found.append({"elements": n, "threads": t, **times})
            say(f"length {n:>9d} {t}T  G/s " + "  ".join(f"{k} {n / s['median'] / 1e9:6.3f}" for k, s in times["seconds"].items()))
    return found


def _cpus() -> int:
    return len(os.sched_getaffinity(0))


def scaled_cells(quick: bool) -> list[Cell]:
    """One cell of each operator, and a 16-bit one."""
    cells = []
    for n in (16 * MI,) if quick else (16 * MI, 64 * MI):
        cells += [Cell("SeluBackward", "FLOAT", (n,), None, 1), Cell("SeluBackward", "BF16", (n,), None, 1)]
        cells += [Cell("LogSigmoidBackward", "FLOAT", (n,), None, 1), Cell("SoftmaxBackward", "FLOAT", (n // KI, KI), 1, 1)]
    return cells


def all_cells(quick: bool) -> list[Cell]:
    """Every cell that this file makes, for the size of the arena."""
    return [*scaled_cells(quick), Cell("SeluBackward", "FLOAT", (LENGTHS[-1],), None, 1)]


def threads(quick: bool, arena: Arena, say: Say, cells: list[Cell] | None = None, rounds: int | None = None) -> list[dict[str, Any]]:
    """Time with 1 thread / time with 2, of the emulator and of the streaming limit, in turns; straight on, and after 20 ms of idleness."""
    if _cpus() < 2:
        say("one CPU: no scaling is measured")
        return []
    found = []
    for cell in scaled_cells(quick) if cells is None else cells:
        for idle in (0.0, IDLE_S):
            found.append(_scale(cell, idle, rounds or (9 if quick else 15), arena))
            gains = ", ".join(f"{name} {s['median']:.2f}" for name, s in found[-1]["speedup"].items())
            say(f"2 threads over 1, {cell.label} {cell.dtype} {cell.elements // MI} Mi, idle {idle * 1e3:.0f} ms: {gains}")
    return found


def _scale(cell: Cell, idle: float, rounds: int, arena: Arena) -> dict[str, Any]:
    work = make(cell, arena)
    mine = emulator(work)
    for t in (1, 2):
        config.configure(threads=t)
        spoil(work)
        mine(1)
        check_exact(work, f"the emulator on {t} threads")
    runs = {"emu": {1: mine, 2: mine}, "limit": {t: limit(work._replace(cell=cell._replace(threads=t))) for t in (1, 2)}}
    times: dict[str, dict[int, list[float]]] = {name: {1: [], 2: []} for name in runs}
    for turn in range(rounds):
        for name in sorted(runs, reverse=bool(turn % 2)):
            for t in (1, 2):
                config.configure(threads=t)
                run = runs[name][t]
                run(1)  # the threads exist, and know their CPUs
                if idle:
                    time.sleep(idle)
                start = time.perf_counter_ns()
                run(1)
                times[name][t].append((time.perf_counter_ns() - start) * 1e-9)
    speedup = {name: spread([a / b for a, b in zip(v[1], v[2], strict=True)], "worst") for name, v in times.items()}
    seconds = {name: {str(t): spread(v[t]) for t in v} for name, v in times.items()}
    about = {"label": cell.label, "operator": cell.operator, "dtype": cell.dtype, "elements": cell.elements}
    return {**about, "idle_s": idle, "seconds": seconds, "speedup": speedup}
