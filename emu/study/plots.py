"""Figures of a study. Matplotlib comes with the extra `study` and is imported here only, at the first figure.

Colours are Okabe and Ito's, told apart with every colour vision; lines differ in dash and marker as well, for print in
grey. The same study gives the same bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from emu.study import measure
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
#: Beyond these an outlier would leave nothing of the other errors to see.
MOST_ULP, MOST_REL = 1e6, 1e3
NOTHING = "no finite results"
LIMIT = "0.5 ulp: correctly rounded"


def check() -> None:
    """Raises StudyError if matplotlib is missing."""
    _pyplot()


def _pyplot() -> Any:
    try:
        matplotlib = import_module("matplotlib")
    except ImportError:
        raise StudyError("plots need matplotlib: pip install 'aclnn-emu[study]'") from None
    matplotlib.use("Agg")
    return import_module("matplotlib.pyplot")


@contextmanager
def _own_style() -> Iterator[None]:
    """Matplotlib's defaults and these, whatever the user's matplotlibrc says; theirs are back afterwards."""
    matplotlib = _pyplot().matplotlib
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {
                "svg.hashsalt": "aclnn-emu", "svg.fonttype": "path", "figure.dpi": 110, "savefig.dpi": 150, "font.size": 10,
                "axes.grid": True, "grid.color": "#D8D8D8", "grid.linewidth": 0.6, "axes.spines.top": False,
                "axes.spines.right": False, "legend.frameon": False, "lines.linewidth": 1.5, "figure.constrained_layout.use": True,
            }
        )  # fmt: skip
        yield


def studied(study: Study) -> list[Cell]:
    """The cells that have results."""
    return [c for c in study.cells if c.tally is not None]


def curve(cell: Cell, what: str) -> tuple[F64, F64]:
    """(x, error) of the cell, x ascending: the largest error in each stretch of inputs. `what` is "ulp" or "rel"."""
    assert cell.tally is not None
    bins, x = measure.curve_bins(cell.problem.dtype), measure.curve_values(cell.problem.dtype)
    count, error = cell.tally.curve["count"], cell.tally.curve_top[what]
    keep = np.isfinite(x)
    low = keep & (count[bins:] > 0)
    high = keep & (count[:bins] > 0)
    return np.concatenate([-x[low][::-1], x[high]]), np.concatenate([error[bins:][low][::-1], error[:bins][high]])


def _style(i: int) -> dict[str, Any]:
    """Colour and dash of curve i: no two of 49 have both."""
    colour, turn = i % len(COLOURS), i // len(COLOURS)
    return {"color": COLOURS[colour], "linestyle": DASHES[(colour + turn) % len(DASHES)]}


def _line(axis: Any, x: F64, y: F64, i: int, **more: Any) -> None:
    """A curve; a lone point, or all curves after the 49th, with a marker."""
    x, y = _thin(x, y)
    turn = i // (len(COLOURS) * len(DASHES))
    marker = {"marker": MARKERS[turn % len(MARKERS)], "markersize": 5, "markevery": max(1, x.size // 8)} if turn or x.size == 1 else {}
    axis.plot(x, y, **_style(i), **marker, **more)


def _log_or_note(axis: Any, which: str, filled: bool, **more: Any) -> None:
    """A logarithmic axis, or a word where there is nothing to show on one."""
    if filled:
        getattr(axis, f"set_{which}scale")("log", **more)
    else:
        axis.annotate(NOTHING, (0.5, 0.5), xycoords="axes fraction", ha="center", color="#555555")


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
    most = MOST_ULP if what == "ulp" else MOST_REL
    ceiling, largest = floor, 0.0
    for i, cell in enumerate(studied(study)):
        x, y = curve(cell, what)
        largest = max(largest, float(y.max(initial=0.0)))
        y = np.clip(y, floor, most)
        ceiling = max(ceiling, float(y.max(initial=floor)))
        near = np.abs(x) <= 20
        _line(top, x[near], y[near], i, label=cell.label)
        for axis, side in ((negative, x < 0), (positive, x > 0)):
            _line(axis, np.abs(x[side]), y[side], i)
    top.set_ylim(floor * 0.9, max(ceiling * 1.6, 1.0 if what == "ulp" else 10 * floor))
    for axis in (top, negative, positive):
        axis.set_yscale("log", base=2 if what == "ulp" else 10)
        if what == "ulp":
            axis.axhline(0.5, color="#555555", linewidth=0.9, label=LIMIT)
    if largest > most:
        said = "a golden value of 0 is missed" if largest >= 1e300 else f"the largest is {largest:.3g}"
        top.annotate(f"errors beyond {most:.3g} are drawn at {most:.3g}: {said}", (0, 1.01), xycoords="axes fraction", fontsize=8)
    top.set_xlabel(f"{name} (linear)")
    top.set_ylabel(f"largest error, {unit}")
    for axis, kept in ((top, "within ±20"), (negative, "below 0"), (positive, "above 0")):
        if not any(np.size(line.get_xdata()) for line in axis.lines if line.get_label() != LIMIT):
            axis.annotate(f"{NOTHING} of inputs {kept}", (0.5, 0.5), xycoords="axes fraction", ha="center", color="#555555")
            axis.set_xticks([])
        elif axis is not top:
            axis.set_xscale("log")
    negative.invert_xaxis()
    negative.set_xlabel(f"−{name.split(',')[0]}, negative inputs (logarithmic)")
    positive.set_xlabel(f"{name.split(',')[0]}, positive inputs (logarithmic)")
    negative.set_ylabel(f"largest error, {unit.split(' ')[0]}")
    positive.tick_params(labelleft=False)
    figure.suptitle(title(study))
    figure.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=min(3, len(study.cells)), fontsize=9)
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
    _log_or_note(axis, "y", any(c.tally.sums["compared"] for c in studied(study) if c.tally))
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
        values = [max(float(c.tally.metrics()[key]), FLOOR_ULP) if c.tally.sums["compared"] else np.nan for c in cells if c.tally]
        left.plot(values, rows, MARKERS[j], color=COLOURS[j], label=text, markersize=7)
    _log_or_note(left, "x", bool(np.isfinite(values).any()), base=2)
    left.axvline(0.5, color="#555555", linewidth=0.9)
    left.set_xlabel("|error|, ulp of the golden value")
    left.set_yticks(rows, [c.label for c in cells])
    compared = [c.tally.sums["compared"] for c in cells if c.tally]
    wrong = [100 * (1 - c.tally.sums["exact_hits"] / max(1.0, n)) if n else 0.0 for c, n in zip(cells, compared, strict=True) if c.tally]
    right.barh(rows, wrong, color=COLOURS[4], edgecolor="black", height=0.55)
    for y, w, n in zip(rows, wrong, compared, strict=True):
        right.annotate(f" {w:.3g} %" if n else f" {NOTHING}", (w, y), va="center", fontsize=9)
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
    with _own_style():
        if kind == "histogram":
            return _histogram(study)
        if kind == "comparison":
            return _comparison(study)
        return _over_input(study, "ulp" if kind == "error" else "rel")


def render(figure: Any, form: str) -> bytes:
    """The figure as svg, png or pdf bytes, without dates, and closed."""
    buffer = io.BytesIO()
    meta: dict[str, Any] = {"svg": {"Date": None}, "png": {"Software": None}, "pdf": {"CreationDate": None}}.get(form, {})
    with _own_style():
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
