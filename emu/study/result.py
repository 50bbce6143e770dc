"""What a study found: cells of numbers, and the forms in which they leave: dict, rows, table, files, plots."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emu import __version__
from emu.study import ablation, acceptance, shapes
from emu.study.errors import unknown
from emu.study.measure import DEFINITIONS, STEP_BINS, Tally, ulp_edges
from emu.study.problem import Problem
from emu.study.writing import check_directory, csv_bytes, of_a_study, remove_checkpoint, write_files

#: Columns of the table on the screen; rows() has all metrics.
COLUMNS = ("dtype", "soc", "n", "exact_hits", "wrong_by_one", "steps_max", "ulp_mean", "ulp_max", "bias_ulp", "mere", "mare", "accepted")
#: Columns that say what was studied.
_ASKED = ("op", "dtype", "soc", "arch", "numerics", "assume", "inputs", "note")
_NOT_OF_PEER = ("repeat_differs", "mpfr_decided")


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One operator in one dtype on one product. `tally` is None where there is no such kernel; `note` says why, or that
    the operator's document excludes the product. `derived`: the last input was the rounded forward result of x.
    `traces`: the steps of the worst elements, in the order of `tally.worst`. `shapes`: see `shapes.check`."""

    problem: Problem
    note: str
    inputs: str
    derived: bool
    tally: Tally | None
    peer: Tally | None
    traces: tuple[dict[str, Any], ...] = field(default=())
    shapes: tuple[dict[str, Any], ...] = field(default=())

    @property
    def label(self) -> str:
        return f"{self.problem.dtype} on {self.problem.soc}"

    def verdicts(self) -> list[acceptance.Verdict]:
        """Every acceptance rule."""
        if self.tally is None:
            return []
        peer = None if self.peer is None else (self.peer.sums, self.peer.tops)
        return acceptance.verdicts(self.problem.dtype, self.tally.sums, self.tally.tops, peer)

    def accepted(self) -> str:
        """How many of the judged rules pass, bit equality and the strictest, torch's, among them."""
        judged = [v for v in self.verdicts() if v.passed is not None]
        return f"{sum(bool(v.passed) for v in judged)}/{len(judged)}"

    def row(self) -> dict[str, Any]:
        """One flat row: what was studied and every metric."""
        p = self.problem
        out: dict[str, Any] = {
            "op": p.op.python_name, "dtype": p.dtype, "soc": p.soc, "arch": p.arch, "numerics": p.numerics,
            "assume": " ".join(f"{k}={v}" for k, v in p.assume), "inputs": self.inputs, "note": self.note,
        }  # fmt: skip
        if self.tally is not None:
            out |= self.tally.metrics() | {"accepted": self.accepted()}
            out |= {p["part"].replace(" ", "_") + "_ulp": p["mean_ulp"] for p in self.ablation()}
        if self.peer is not None:
            out |= {f"peer_{k}": v for k, v in self.peer.metrics().items() if k not in _NOT_OF_PEER}
        return out

    def to_dict(self) -> dict[str, Any]:
        out = self.row()
        out["last"] = self.problem.last
        out["result_from_x"] = self.derived
        if self.tally is None:
            return out
        t = self.tally
        edges = ulp_edges()
        out["acceptance"] = acceptance.as_rows(self.verdicts())
        out["steps_histogram"] = {("more" if i == STEP_BINS - 1 else str(i)): int(c) for i, c in enumerate(t.step_hist) if c}
        out["ulp_histogram"] = [[float(edges[i]), int(c)] for i, c in enumerate(t.ulp_hist) if c]
        out["worst"] = list(self.traces) or t.worst
        if t.parts:
            out["ablation"] = self.ablation()
        if self.shapes:
            out["shapes"] = {"definition": shapes.DEFINITION, "cases": list(self.shapes)}
        return plain(out)  # type: ignore[no-any-return]

    def ablation(self) -> list[dict[str, Any]]:
        """The parts of the error, in ulp; empty unless asked for."""
        assert self.tally is not None
        return [
            {
                "part": k,
                "mean_ulp": s / n if n else None,
                "bias_ulp": b / n if n else None,
                "max_ulp": m,
                "definition": ablation.DEFINITIONS[k],
            }
            for k, (s, b, m, n) in self.tally.parts.items()
        ]


def plain(value: Any) -> Any:
    """The value with infinities and NaN as their names, "nan" and "inf": JSON has neither."""
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return repr(float(value))
    return value


def check_columns(columns: Sequence[str], *, peer: bool, ablate: bool) -> None:
    """Raises StudyError for a name that is no column of a study; `peer` and `ablate` add theirs."""
    known = [*_ASKED, *DEFINITIONS, "accepted"]
    if ablate:
        known += [p.replace(" ", "_") + "_ulp" for p in ablation.DEFINITIONS]
    if peer:
        known += [f"peer_{k}" for k in DEFINITIONS if k not in _NOT_OF_PEER]
    for name in columns:
        if name not in known:
            raise unknown("column", name, known)


@dataclass(frozen=True, kw_only=True)
class Study:
    """A finished study: the question as it was asked, and one Cell for each dtype and product."""

    question: dict[str, Any]
    cells: tuple[Cell, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, with the definitions; no clock, no host: the same question gives the same dict."""
        return {
            "emulator": f"aclnn-emu {__version__}", "question": plain(self.question),
            "definitions": DEFINITIONS, "cells": [c.to_dict() for c in self.cells],
        }  # fmt: skip

    def rows(self) -> list[dict[str, Any]]:
        """One flat dict for each cell: pandas.DataFrame(study.rows()) is the table."""
        return [c.row() for c in self.cells]

    def table(self, columns: Sequence[str] = COLUMNS) -> list[list[str]]:
        """The named columns of rows() as text, header first. Raises StudyError for an unknown one."""
        rows = self.rows()
        check_columns(columns, peer=self.question["peer"] is not None, ablate=self.question["ablate"])
        lines = [list(columns), *([text_of(row.get(k, "")) for k in columns] for row in rows)]
        for line, row in zip(lines[1:], rows, strict=True):
            if "n" not in row:
                line[-1] = row["note"]
        return lines

    def plot(self, path: str | os.PathLike[str] | None = None, kind: str = "error") -> Any:
        """A matplotlib figure: kind is "error" (error over input), "histogram" or "comparison"; saved if `path` is given."""
        from emu.study.plots import draw, save

        figure = draw(self, kind)
        if path is not None:
            save(figure, Path(path))
        return figure

    def html(self) -> str:
        """The whole study as one self-contained page."""
        from emu.study.page import page

        return page(self)

    def write(self, directory: str | os.PathLike[str], *, plots: bool = False, html: bool = False) -> list[Path]:
        """Write study.json, table.csv, acceptance.csv and worst.csv, with inputs of specials shapes.csv, and if asked plots
        and report.html; return the paths. Files appear complete or not at all. What an earlier study wrote there is
        replaced or (a report, plots, shapes.csv) removed: a directory answers one question. Raises StudyError where no
        study.json of a study lies and a file has one of these names."""
        files: dict[str, bytes] = {
            "study.json": (json.dumps(self.to_dict(), indent=1) + "\n").encode(),
            "table.csv": csv_bytes(self.rows()),
            "acceptance.csv": csv_bytes(
                [{"dtype": c.problem.dtype, "soc": c.problem.soc, **r} for c in self.cells for r in acceptance.as_rows(c.verdicts())]
            ),
            "worst.csv": csv_bytes([_flat_worst(c, w) for c in self.cells for w in c.traces]),
        }
        special = [_flat_shape(c, s) for c in self.cells for s in c.shapes]
        if special:
            files["shapes.csv"] = csv_bytes(special)
        if plots:
            from emu.study.plots import all_plots

            files |= all_plots(self)
        if html:
            files["report.html"] = self.html().encode(errors="backslashreplace")
        there = Path(directory)
        check_directory(there, files)
        written = write_files(there, files, sorted(of_a_study(there) - set(files)))
        remove_checkpoint(there)
        return written


def _flat_worst(cell: Cell, w: dict[str, Any]) -> dict[str, Any]:
    steps = "; ".join(f"{s['step']} -> {s['decimal']} ({s['hex']})" for s in w.get("steps_of_computation", ()))
    flat = {k: v for k, v in w.items() if k not in ("inputs", "steps_of_computation")}
    flat |= {f"input_{i['name']}": f"{i['decimal']} ({i['hex']})" for i in w["inputs"]}
    return {"dtype": cell.problem.dtype, "soc": cell.problem.soc, **flat, "steps_of_computation": steps}


def _flat_shape(cell: Cell, s: dict[str, Any]) -> dict[str, Any]:
    return {"dtype": cell.problem.dtype, "soc": cell.problem.soc, **s, "shape": "x".join(map(str, s["shape"]))}


def text_of(value: Any) -> str:
    """A cell of a table: floats with five digits."""
    return f"{value:.5g}" if isinstance(value, float) else str(value)
