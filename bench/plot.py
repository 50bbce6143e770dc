"""The plot: speed by length, and the ratio to PyTorch of every plain large cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.hampered import marked
from bench.text import size

STYLE = {"emu": ("emulator", "#c0392b", "o"), "torch": ("PyTorch", "#2c6fbb", "s"), "limit": ("streaming limit", "#777777", "^")}
NOTE = (
    "The emulator's points are launches (\"native\": the compiled function) without the two phases, PyTorch's whole calls: "
    "at small sizes no caller sees this ratio.\nHollow: slower on two threads than on one; right, PyTorch was."
)


def draw(result: dict[str, Any], path: Path) -> None:
    """Write the plot, its kind by the file's ending. Needs matplotlib."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    groups = _groups(result)
    figure = Figure(figsize=(12, max(7.5, 0.14 * len(groups))), layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1, 1.2))
    _lengths(left, result)
    _ratios(right, groups)
    figure.supxlabel(NOTE, fontsize=8)
    figure.savefig(path, dpi=100, metadata={"Software": None} if path.suffix == ".png" else None)


def _lengths(axes: Any, result: dict[str, Any]) -> None:
    records = result.get("lengths", [])
    for threads, dash in ((1, "--"), (2, "-")):
        for name, (label, colour, mark) in STYLE.items():
            some = [r for r in records if r["threads"] == threads and name in r["seconds"]]
            points = [(r["elements"], r["elements"] / r["seconds"][name]["median"] / 1e9) for r in some]
            if points:
                axes.plot(*zip(*points, strict=True), dash, marker=mark, color=colour, label=f"{label}, {threads}T")
                slow = [point for r, point in zip(some, points, strict=True) if id(r) in marked(records, name)]
                if slow:
                    axes.plot(*zip(*slow, strict=True), mark, color=colour, markerfacecolor="white")
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="elements",
        ylabel="1e9 elements per second",
        title="SeluBackward FLOAT launches by length",
    )
    _plain(axes.yaxis)
    axes.grid(True, which="both", alpha=0.3)
    if axes.lines:
        _legend(axes)


def _plain(axis: Any) -> None:
    """0.5, 1, 2 and the like on a logarithmic axis; powers of ten would run into each other."""
    from matplotlib.ticker import LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axis.set_major_formatter("{x:g}")
    axis.set_minor_formatter(NullFormatter())


def _legend(axes: Any) -> None:
    """Below the axes, where no point is."""
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.1), ncols=3, fontsize=8)


def _groups(result: dict[str, Any]) -> dict[str, list[tuple[float, str, bool]]]:
    """Row of the plot -> ratio and data type of its cells, and whether PyTorch was hampered."""
    groups: dict[str, list[tuple[float, str, bool]]] = {}
    slow = marked(result["cells"])
    for r in result["cells"]:
        if r["layout"] == "contiguous" and r["values"] == "normal" and "torch" in r["ratio"] and r["operator"].endswith("Backward"):
            native = " native" if r["path"] == "native" else ""
            name = f"{r['label']} {size(r['elements'])} {r['threads']}T{native}"
            groups.setdefault(name, []).append((r["ratio"]["torch"]["median"], r["dtype"], id(r) in slow))
    return groups


def _ratios(axes: Any, groups: dict[str, list[tuple[float, str, bool]]]) -> None:
    colours = {"FLOAT": "#333333", "FLOAT16": "#e08e0b", "BF16": "#1b9e77"}
    shown: set[str] = set()
    for y, found in enumerate(groups.values()):
        for ratio, dtype, slow in found:
            colour = colours[dtype]
            label = None if slow or dtype in shown else dtype
            axes.plot(ratio, y, "o", color=colour, markerfacecolor="white" if slow else colour, label=label, markersize=5)
            if label:
                shown.add(dtype)
    axes.axvline(1, color="#c0392b", linewidth=1)
    axes.set_yticks(range(len(groups)), list(groups), fontsize=6)
    axes.invert_yaxis()
    axes.set(xscale="log", xlabel="PyTorch's time / the emulator's time", title="Ratio (right of the line: emulator faster)")
    _plain(axes.xaxis)
    axes.grid(True, axis="x", which="both", alpha=0.3)
    if shown:
        _legend(axes)
