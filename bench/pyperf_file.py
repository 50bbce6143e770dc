"""The samples of a run as a pyperf file: ``python -m pyperf compare_to before.json after.json`` says which cells have changed."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pyperf  # type: ignore[import-untyped]

from bench.cells import Cell
from bench.timing import Samples


def name(cell: Cell, competitor: str) -> str:
    """Unique in a run, and the same in every run."""
    parts = [cell.label, cell.dtype, "x".join(map(str, cell.shape)), f"{cell.threads}T", cell.path, cell.layout, cell.values, competitor]
    return " ".join(parts)


def write(kept: Iterable[tuple[Cell, dict[str, Samples]]], path: Path) -> None:
    """Replace the file: the samples of each cell, seconds per call, as timed in turns."""
    benchmarks = []
    for cell, samples in kept:
        for competitor, taken in samples.items():
            about = {"name": name(cell, competitor), "loops": taken.calls, "unit": "second"}
            benchmarks.append(pyperf.Benchmark([pyperf.Run(taken.taken(), metadata=about, collect_metadata=False)]))
    pyperf.BenchmarkSuite(benchmarks).dump(str(path), replace=True)
