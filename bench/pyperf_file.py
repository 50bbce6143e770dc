"""The samples of a run as a pyperf file: ``python -m pyperf compare_to before.json after.json`` says which cells have changed."""

from __future__ import annotations

from pathlib import Path

import pyperf  # type: ignore[import-untyped]

from bench.cells import Cell
from bench.timing import Samples


def name(cell: Cell, competitor: str) -> str:
    """Unique in a run, and the same in every run."""
    parts = [cell.label, cell.dtype, "x".join(map(str, cell.shape)), f"{cell.threads}T", cell.path, cell.layout, cell.values, competitor]
    return " ".join(parts)


class Suite:
    """Collects the samples of each cell: seconds per call, as timed in turns."""

    def __init__(self) -> None:
        self._benchmarks: list[pyperf.Benchmark] = []

    def keep(self, cell: Cell, samples: dict[str, Samples]) -> None:
        """All competitors of a cell."""
        for competitor, taken in samples.items():
            about = {"name": name(cell, competitor), "loops": taken.calls, "unit": "second"}
            self._benchmarks.append(pyperf.Benchmark([pyperf.Run(taken.taken(), metadata=about, collect_metadata=False)]))

    def write(self, path: Path) -> None:
        """Replace the file."""
        pyperf.BenchmarkSuite(self._benchmarks).dump(str(path), replace=True)
