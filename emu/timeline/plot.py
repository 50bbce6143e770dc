"""A picture of a timeline: the host's threads and the streams over time."""

from __future__ import annotations

import warnings
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

from emu.timeline.events import CANN, HARDWARE
from emu.timeline.reader import Event, Trace

#: Colours by operator, in the order of first appearance; waits and host calls have their own.
_COLOURS = (
    "#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#332288", "#cc6633", "#44aa99", "#882255", "#88cc44", "#885533",
)  # fmt: skip
_WAIT, _HOST = "#dddddd", "#999999"
#: A slice narrower than this share of the width has no text; nor has one that is not so wide for each letter.
_TEXT_SHARE, _LETTER_SHARE = 0.03, 0.005
#: A slice narrower than this share of the width is no bar of its own: the picture has about so many columns.
COLUMNS = 1200
#: Letters of a name in the legend, and operators in it.
_LETTERS, _NAMED = 40, 12


class Bar(NamedTuple):
    """A stretch of one colour in a lane, in µs; ``slice`` where it is one slice, None where it stands for several narrow ones."""

    begin: float
    length: float
    colour: str
    slice: Event | None


def bars(slices: list[Event], colours: list[str], column: float) -> list[Bar]:
    """The bars of a lane: one for each slice that is as wide as a column (in µs), and stretches of columns for the narrower ones, each
    column in the colour that takes most of its time."""
    found = []
    times: defaultdict[int, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for e, colour in zip(slices, colours, strict=True):
        if e["dur"] >= column:
            found.append(Bar(e["ts"], e["dur"], colour, e))
        elif e["dur"] > 0:
            times[int(e["ts"] // column)][colour] += e["dur"]
    narrow: list[list[Any]] = []
    for at in sorted(times):
        colour = max(times[at], key=times[at].__getitem__)
        if narrow and narrow[-1][1] == at and narrow[-1][2] == colour:
            narrow[-1][1] += 1
        else:
            narrow.append([at, at + 1, colour])
    return [*(Bar(a * column, (b - a) * column, colour, None) for a, b, colour in narrow), *found]


def draw(trace: Trace, axes: Any, title: str, colours: dict[str, str], span: tuple[float, float] | None = None) -> None:
    """Draw into matplotlib axes; the time axis says which clock it is and covers ``span`` (µs). ``colours`` grows by operator."""
    lanes = [(CANN, tid) for tid in trace.host_rows()] + trace.device_rows()
    first, last = span or extent(trace)
    width = last - first
    for y, lane in enumerate(lanes):
        slices = trace.slices(*lane)
        drawn = bars(slices, [_colour(e, colours) for e in slices], width / COLUMNS)
        for edge in (0.0, 0.4):  # an edge would hide a narrow bar
            mine = [bar for bar in drawn if (bar.slice is not None) == bool(edge)]
            if mine:
                axes.broken_barh(
                    [(bar.begin, bar.length) for bar in mine], (y - 0.38, 0.76), facecolors=[bar.colour for bar in mine],
                    edgecolor="white", linewidth=edge,
                )  # fmt: skip
        for bar in drawn:
            name = "" if bar.slice is None else bar.slice["name"].removeprefix("aclrt").removeprefix("aclnn")
            if name and bar.length > width * max(_TEXT_SHARE, _LETTER_SHARE * len(name)):
                dark = bar.colour in (_WAIT, "#ccbb44", "#66ccee")
                axes.text(
                    bar.begin + bar.length / 2, y, name, ha="center", va="center", fontsize=7, color="black" if dark else "white",
                    clip_on=True, parse_math=False,
                )  # fmt: skip
    axes.set_yticks(range(len(lanes)), [_label(*lane) for lane in lanes])
    axes.set_ylim(len(lanes) - 0.5, -0.5)
    axes.set_xlim(first, last + 0.01 * width)
    axes.set_xlabel(f"{trace.clock} time, µs")
    axes.set_title(
        f"{title[:_LETTERS]} (EMULATED {trace.about.get('soc', '')}, {trace.clock} time)", fontsize=9, loc="left", parse_math=False
    )  # fmt: skip


def extent(*traces: Trace) -> tuple[float, float]:
    """From 0, or what begins before, to the end of the last slice, in µs."""
    slices = [e for trace in traces for e in trace.slices()]
    first, last = min((e["ts"] for e in slices), default=0.0), max((e["ts"] + e["dur"] for e in slices), default=0.0)
    return min(first, 0.0), last if last > min(first, 0.0) else 1.0


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

    ImportError without matplotlib; ValueError for an ending that it does not know, and for a trace in which nothing took any time.
    """
    from matplotlib.figure import Figure
    from matplotlib.patches import Patch

    for title, trace in traces:
        if not any(e["dur"] > 0 for e in trace.slices()):
            raise ValueError(f"{title}: nothing in this trace takes any time, so there is nothing to draw")
    rows = sum(len(t.host_rows()) + len(t.device_rows()) for _, t in traces)
    figure = Figure(figsize=(10, 0.9 * len(traces) + 0.42 * rows), layout="constrained")
    span = extent(*(trace for _, trace in traces))
    colours: dict[str, str] = {}
    for axes, (title, trace) in zip(figure.subplots(len(traces), squeeze=False)[:, 0], traces, strict=True):
        draw(trace, axes, title, colours, span)
    if colours:
        named = list(colours.items())[:_NAMED]
        patches = [Patch(color=colour, label=name[:_LETTERS].lstrip("_")) for name, colour in named]
        for text in figure.legend(handles=patches, loc="outside upper right", ncols=min(len(patches), 6), fontsize=7).get_texts():
            text.set_parse_math(False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # signs that the font lacks
        figure.savefig(path, dpi=130)
