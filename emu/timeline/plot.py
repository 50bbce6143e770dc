"""A picture of a timeline: the host's threads and the streams over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from emu.timeline.events import CANN, HARDWARE
from emu.timeline.reader import Event, Trace

#: Colours by operator, in the order of first appearance; waits and host calls have their own.
_COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
_WAIT, _HOST = "#dddddd", "#999999"
#: A slice narrower than this share of the width has no text.
_TEXT_SHARE = 0.03


def draw(trace: Trace, axes: Any, title: str, colours: dict[str, str], end: float | None = None) -> None:
    """Draw into matplotlib axes; the time axis says which clock it is and reaches to ``end`` (µs). ``colours`` grows by operator."""
    lanes = [(CANN, tid) for tid in trace.host_rows()] + trace.device_rows()
    slices = [e for e in trace.slices() if (e["pid"], e["tid"]) in lanes and e["dur"] > 0]
    last = end if end is not None else max((e["ts"] + e["dur"] for e in slices), default=1.0)
    for y, (pid, tid) in enumerate(lanes):
        for e in trace.slices(pid, tid):
            if e["dur"] <= 0:
                continue
            colour = _colour(e, colours)
            axes.broken_barh([(e["ts"], e["dur"])], (y - 0.38, 0.76), facecolors=colour, edgecolor="white", linewidth=0.4)
            if e["dur"] > _TEXT_SHARE * last:
                name = e["name"].removeprefix("aclrt").removeprefix("aclnn")
                dark = colour in (_WAIT, "#ccbb44", "#66ccee")
                axes.text(
                    e["ts"] + e["dur"] / 2, y, name, ha="center", va="center", fontsize=7, color="black" if dark else "white", clip_on=True
                )  # fmt: skip
    axes.set_yticks(range(len(lanes)), [_label(*lane) for lane in lanes])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_xlim(0, last * 1.01)
    axes.set_xlabel(f"{trace.clock} time, µs")
    axes.set_title(f"{title} (EMULATED {trace.about.get('soc', '')}, {trace.clock} time)", fontsize=9, loc="left")


def _label(pid: int, tid: int) -> str:
    if pid == CANN:
        return f"host thread {tid}"
    return f"stream {tid}" if pid == HARDWARE else f"device {pid - HARDWARE}, stream {tid}"


def _colour(e: Event, known: dict[str, str]) -> str:
    if e["pid"] == CANN:
        return _HOST
    if e["name"] == "event wait":
        return _WAIT
    return known.setdefault(e["name"], _COLOURS[len(known) % len(_COLOURS)])


def save(traces: list[tuple[str, Trace]], path: str | Path) -> None:
    """One panel for each (title, trace), on one time scale, as PNG, SVG or PDF by the name of ``path``.

    ImportError without matplotlib; ValueError for an ending that it does not know.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    rows = sum(len(t.host_rows()) + len(t.device_rows()) for _, t in traces)
    figure = Figure(figsize=(10, 0.9 * len(traces) + 0.42 * rows), layout="constrained")
    end = max((e["ts"] + e["dur"] for _, t in traces for e in t.slices()), default=1.0)
    colours: dict[str, str] = {}
    for axes, (title, trace) in zip(figure.subplots(len(traces), squeeze=False)[:, 0], traces, strict=True):
        draw(trace, axes, title, colours, end)
    if colours:
        patches = [Patch(color=colour, label=name) for name, colour in colours.items()]
        figure.legend(handles=patches, loc="outside upper right", ncols=len(patches), fontsize=7)
    figure.savefig(path, dpi=130)
