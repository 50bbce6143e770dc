"""Figures of a study. Matplotlib comes with the extra `study` and is imported here only, at the first figure.

Colours are Okabe and Ito's, told apart with every colour vision; lines differ in dash and marker as well, for print in
grey. The same study gives the same bytes.
"""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.study import measure, numbers
from emu.study.dd import F64
from emu.study.errors import StudyError, unknown

if TYPE_CHECKING:
    from emu.study.result import Cell, Study

KINDS = ("error", "relative", "histogram", "comparison")
FORMS = ("svg", "png")
#: The files of all plots.
FILES = tuple(f"{kind}.{form}" for kind in KINDS for form in FORMS)
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), (0, (1, 1)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: Shown as "0" on logarithmic error axes.
FLOOR_ULP, FLOOR_REL = 2.0**-6, 2.0**-30


def check() -> None:
    """Raises StudyError if matplotlib is missing."""
    _pyplot()


def _pyplot() -> Any:
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        raise StudyError("plots need matplotlib: pip install 'aclnn-emu[study]'") from None
    matplotlib.use("Agg")
    matplotlib.rcParams.update(
        {
            "svg.hashsalt": "aclnn-emu", "svg.fonttype": "path", "figure.dpi": 110, "savefig.dpi": 150, "font.size": 10,
            "axes.grid": True, "grid.color": "#D8D8D8", "grid.linewidth": 0.6, "axes.spines.top": False, "axes.spines.right": False,
            "legend.frameon": False, "lines.linewidth": 1.5, "figure.constrained_layout.use": True,
        }
    )  # fmt: skip
    return import_module("matplotlib.pyplot")


def studied(study: Study) -> list[Cell]:
    """The cells that have results."""
    return [c for c in study.cells if c.tally is not None]


def curve(cell: Cell, what: str) -> tuple[F64, F64]:
    """(x, error) of the cell, x ascending: the largest error in each stretch of inputs. `what` is "ulp" or "rel"."""
    assert cell.tally is not None
    dtype = cell.problem.dtype
    bins, shift = measure.curve_bins(dtype), measure.curve_shift(dtype)
    kind = np.dtype(numbers.BITS[dtype])
    # The middle of each stretch stands for it; the last stretch of a float begins at infinity.
    middle = (np.arange(bins, dtype=np.int64) << shift) + ((1 << shift) >> 1)
    middle = np.minimum(middle, (1 << (8 * kind.itemsize - 1)) - 1)
    x = np.abs(numbers.values(dtype, middle.astype(np.dtype(f"u{kind.itemsize}")).view(kind)))
    count, error = cell.tally.curve["count"], cell.tally.curve_top[what]
    keep = np.isfinite(x)
    low = keep & (count[bins:] > 0)
    high = keep & (count[:bins] > 0)
    return np.concatenate([-x[low][::-1], x[high]]), np.concatenate([error[bins:][low][::-1], error[:bins][high]])


def _style(i: int) -> dict[str, Any]:
    return {"color": COLOURS[i % len(COLOURS)], "linestyle": DASHES[i % len(DASHES)]}


def _thin(x: F64, y: F64, points: int = 500) -> tuple[F64, F64]:
    """At most `points` points, each the largest error of its stretch: a peak is never lost."""
    if x.size <= points:
        return x, y
    edges = np.linspace(0, x.size, points + 1).astype(int)[:-1]
    return x[edges], np.maximum.reduceat(y, edges)


def input_name(study: Study) -> str:
    problem = studied(study)[0].problem
    if problem.sees_result and study.question["against"] == "true":
        return "x, input of the forward operator"
    return {"self": "x"}.get(problem.names[-1], problem.names[-1]) + (", forward result" if problem.sees_result else ", input")


def _over_input(study: Study, what: str) -> Any:
    plt = _pyplot()
    floor, unit = (FLOOR_ULP, "ulp of the golden value") if what == "ulp" else (FLOOR_REL, "relative to the golden value")
    figure = plt.figure(figsize=(9, 6.4))
    grid = figure.add_gridspec(2, 2, wspace=0.04)
    top = figure.add_subplot(grid[0, :])
    negative = figure.add_subplot(grid[1, 0], sharey=top)
    positive = figure.add_subplot(grid[1, 1], sharey=top)
    name = input_name(study)
    ceiling = floor
    for i, cell in enumerate(studied(study)):
        x, y = curve(cell, what)
        y = np.clip(y, floor, 1e6 if what == "ulp" else 1e3)
        ceiling = max(ceiling, float(y.max(initial=floor)))
        near = np.abs(x) <= 20
        top.plot(*_thin(x[near], y[near]), label=cell.label, **_style(i))
        for axis, side in ((negative, x < 0), (positive, x > 0)):
            axis.plot(*_thin(np.abs(x[side]), y[side]), **_style(i))
    for axis in (top, negative, positive):
        axis.set_yscale("log", base=2 if what == "ulp" else 10)
        if what == "ulp":
            axis.axhline(0.5, color="#555555", linewidth=0.9, label="limit")
    top.set_ylim(floor * 0.9, max(ceiling * 1.6, 1.0 if what == "ulp" else 10 * floor))
    top.set_xlabel(f"{name} (linear)")
    top.set_ylabel(f"largest error, {unit}")
    if what == "ulp":
        top.annotate(
            "0.5: correctly rounded", (1, 0.5), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=8, color="#555555"
        )
    for axis, sign in ((negative, "negative"), (positive, "positive")):
        if axis.has_data() and any(line.get_xdata().size for line in axis.lines if line.get_label() != "limit"):
            axis.set_xscale("log")
        else:
            axis.annotate(f"no {sign} inputs", (0.5, 0.5), xycoords="axes fraction", ha="center", color="#555555")
            axis.set_xticks([])
    negative.invert_xaxis()
    negative.set_xlabel(f"−{name.split(',')[0]}, negative inputs (logarithmic)")
    positive.set_xlabel(f"{name.split(',')[0]}, positive inputs (logarithmic)")
    negative.set_ylabel(f"largest error, {unit.split(' ')[0]}")
    positive.tick_params(labelleft=False)
    figure.suptitle(title(study))
    shown = [(h, t) for h, t in zip(*top.get_legend_handles_labels(), strict=True) if t != "limit"]
    figure.legend(*zip(*shown, strict=True), loc="outside lower center", ncols=min(3, len(study.cells)), fontsize=9)
    return figure


def title(study: Study) -> str:
    q = study.question
    numerics = "" if q["numerics"] == "device" else ", document's formula"
    assume = "".join(f", {a}" for a in q["assume"])
    return f"{q['op']}{numerics}{assume} against {q['against']}"


def _histogram(study: Study) -> Any:
    plt = _pyplot()
    figure, axis = plt.subplots(figsize=(9, 4.2))
    edges = measure.ulp_edges()
    marks = np.concatenate([np.arange(0, 2.0625, 0.0625), [np.inf]])
    for i, cell in enumerate(studied(study)):
        assert cell.tally is not None
        total = max(1, int(cell.tally.ulp_hist.sum()))
        at = np.searchsorted(marks, np.minimum(edges, 1e300), side="left").clip(1, len(marks) - 1) - 1
        share = np.bincount(at, cell.tally.ulp_hist, len(marks) - 1) / total
        axis.stairs(np.where(share > 0, share, np.nan), np.append(marks[:-1], 2.125), label=cell.label, linewidth=1.5, **_style(i))
    axis.set_yscale("log")
    axis.axvline(0.5, color="#555555", linewidth=0.9)
    axis.set_xlabel("|error|, ulp of the golden value (the last step: more than 2)")
    axis.set_ylabel("share of the elements")
    axis.set_title(title(study))
    figure.legend(*axis.get_legend_handles_labels(), loc="outside lower center", ncols=min(3, len(study.cells)), fontsize=9)
    return figure


def _comparison(study: Study) -> Any:
    plt = _pyplot()
    cells = studied(study)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 2.8 + 0.42 * len(cells)), sharey=True)
    rows = np.arange(len(cells))[::-1]
    for j, (key, text) in enumerate((("ulp_mean", "mean"), ("ulp_p99", "99th percentile"), ("ulp_max", "largest"))):
        values = [max(float(c.tally.metrics()[key]), FLOOR_ULP) for c in cells if c.tally]
        left.plot(values, rows, MARKERS[j], color=COLOURS[j], label=text, markersize=7)
    left.set_xscale("log", base=2)
    left.axvline(0.5, color="#555555", linewidth=0.9)
    left.set_xlabel("|error|, ulp of the golden value")
    left.set_yticks(rows, [c.label for c in cells])
    wrong = [100 * (1 - c.tally.sums["exact_hits"] / max(1.0, c.tally.sums["compared"])) for c in cells if c.tally]
    right.barh(rows, wrong, color=COLOURS[4], edgecolor="black", height=0.55)
    for y, w in zip(rows, wrong, strict=True):
        right.annotate(f" {w:.3g} %", (w, y), va="center", fontsize=9)
    right.set_xlim(0, max(1e-3, max(wrong)) * 1.25)
    right.locator_params(axis="x", nbins=5)
    right.set_xlabel("elements that are not correctly rounded, %")
    figure.suptitle(title(study))
    figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=9)
    return figure


def draw(study: Study, kind: str) -> Any:
    """A matplotlib figure of one of KINDS."""
    if kind not in KINDS:
        raise unknown("plot", kind, KINDS)
    if kind == "histogram":
        return _histogram(study)
    if kind == "comparison":
        return _comparison(study)
    return _over_input(study, "ulp" if kind == "error" else "rel")


def render(figure: Any, form: str) -> bytes:
    """The figure as svg, png or pdf bytes, without dates, and closed."""
    buffer = io.BytesIO()
    meta: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}.get(form, {})
    figure.savefig(buffer, format=form, metadata=meta)
    _pyplot().close(figure)
    return buffer.getvalue()


def save(figure: Any, path: Path) -> None:
    form = path.suffix.lstrip(".").lower() or "png"
    if form not in ("svg", "png", "pdf"):
        raise unknown("plot format", path.suffix, (".svg", ".png", ".pdf"))
    path.write_bytes(render(figure, form))


def all_plots(study: Study) -> dict[str, bytes]:
    """File name -> bytes of every plot, as SVG and PNG."""
    return {f"{kind}.{form}": render(draw(study, kind), form) for kind in KINDS for form in FORMS}
