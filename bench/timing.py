"""Time several competitors in turns, so that a slow minute of the machine hits them all."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from statistics import quantiles
from typing import Any, NamedTuple

Run = Callable[[int], None]


class Effort(NamedTuple):
    """How long to measure one cell.

    seconds: budget of a cell. rounds: fewest and most rounds. sample: shortest sample; a faster call is repeated inside it.
    settle: untimed calls before each sample last at least this long. quiet: sleep before a sample on several threads, so that the
    workers of the competitor before no longer spin (OpenMP's do for some milliseconds). rare, rare_rounds: a competitor slower than
    this many seconds takes part in so many rounds only.
    """

    seconds: float = 3.0
    rounds: tuple[int, int] = (7, 40)
    sample: float = 2e-3
    settle: float = 3e-3
    quiet: float = 15e-3
    rare: float = 0.4
    rare_rounds: int = 3


class Samples(NamedTuple):
    """Seconds per call of one competitor, by round; None where it did not take part."""

    seconds: list[float | None]
    calls: int

    def taken(self) -> list[float]:
        return [s for s in self.seconds if s is not None]


def interleave(runs: Mapping[str, Run], effort: Effort, *, calls: int | None = None, several: bool = False) -> dict[str, Samples]:
    """Time each run in turns, the order turned round by round. ``calls``: fixed number of calls in a sample.

    ``several``: they use several threads, so each is given a quiet machine first.
    """
    names = list(runs)
    cost: dict[str, float] = {}
    for name, run in runs.items():
        cost[name] = _timed(run, 1)
        if cost[name] <= effort.rare:
            cost[name] = _timed(run, 1)
        if cost[name] < effort.sample:
            cost[name] = _timed(run, 1 + int(effort.sample / max(cost[name], 1e-7)))
    count = {n: calls or max(1, int(effort.sample / max(cost[n], 1e-7))) for n in names}
    taken: dict[str, list[float | None]] = {name: [] for name in names}
    collect = gc.isenabled()
    gc.disable()
    try:
        began = time.perf_counter()
        for turn in range(effort.rounds[1]):
            if turn >= effort.rounds[0] and time.perf_counter() - began > effort.seconds:
                break
            shift = turn % len(names)
            for name in (*names[shift:], *names[:shift]):
                if cost[name] > effort.rare and turn >= effort.rare_rounds:
                    taken[name].append(None)
                    continue
                if several:
                    time.sleep(effort.quiet)
                _settle(runs[name], cost[name], effort, several)
                taken[name].append(_timed(runs[name], count[name]))
    finally:
        if collect:
            gc.enable()
    return {name: Samples(taken[name], count[name]) for name in names}


def _settle(run: Run, cost: float, effort: Effort, several: bool) -> None:
    """Warm the caches with the competitor's own calls; a long call needs none, except to wake threads."""
    if cost < effort.settle:
        run(max(1, int(effort.settle / max(cost, 1e-7))))
    elif several and cost < effort.rare:
        run(1)


def _timed(run: Run, calls: int) -> float:
    start = time.perf_counter_ns()
    run(calls)
    return (time.perf_counter_ns() - start) / calls * 1e-9


def spread(values: list[float], least: str = "best") -> dict[str, float]:
    """Median, quartiles and least of values, the last under the name of what it means; one value stands for all."""
    if not values:
        raise ValueError("no sample")
    q1, middle, q3 = quantiles(values, n=4, method="inclusive") if len(values) > 1 else values * 3
    found = {"median": middle, "q1": q1, "q3": q3, least: min(values)}
    return {k: float(f"{v:.5g}") for k, v in found.items()}


def summary(samples: Mapping[str, Samples], base: str = "emu") -> dict[str, Any]:
    """Seconds per call of each competitor, and its time over ``base``'s: the median over the rounds in which both ran."""
    times = {}
    for name, s in samples.items():
        times[name] = {**spread(s.taken()), "samples": len(s.taken()), "calls": s.calls}
    ratios = {}
    mine = samples[base].seconds
    for name, s in samples.items():
        if name != base:
            pairs = [a / b for a, b in zip(s.seconds, mine, strict=True) if a is not None and b is not None]
            ratios[name] = spread(pairs, "worst")
    return {"seconds": times, "ratio": ratios}
