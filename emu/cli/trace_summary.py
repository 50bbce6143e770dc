"""Summarise a timeline: time by operator, busy and idle share of each stream, the longest gaps and who they waited for."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emu.cli import _timeline
from emu.cli._common import AsJson, print_json, print_table

Gaps = Annotated[int, typer.Option("--gaps", min=0, help="How many of the longest gaps.")]


def command(
    trace: Annotated[Path, typer.Argument(metavar="TRACE.json", show_default=False)], gaps: Gaps = 10, as_json: AsJson = False
) -> None:
    """Summarise a timeline: time by operator, busy and idle share of each stream, the longest gaps and who they waited for."""
    from emu.timeline.summary import summarise

    loaded = _timeline.load(trace)
    found = summarise(loaded, gaps)
    clock, span = found.clock, found.span
    if as_json:
        lists = {k: [row._asdict() for row in getattr(found, k)] for k in ("operators", "streams", "gaps")}
        print_json({"clock": clock, "emulated": True, "about": loaded.about, "complete": loaded.complete, "span_us": span, **lists})
        return
    print(f"EMULATED {loaded.about.get('soc', '')}; all times are {clock} time. Device tasks span {span:.3f} µs {clock}.")
    if not loaded.complete:
        print("The file has no end: its process runs still, was killed, or could not write it.")
    unit = f"µs ({clock})"
    print_table(
        ("operator", "count", f"total {unit}", f"mean {unit}", f"longest {unit}", "share of busy"),
        [(o.name, str(o.times), f"{o.total:.3f}", f"{o.mean:.3f}", f"{o.longest:.3f}", f"{o.share:.1%}") for o in found.operators],
        "Time by operator",
    )
    whole = span or 1.0
    print_table(
        ("stream", "tasks", f"busy {unit}", "busy", "waiting for events", "idle"),
        [(s.stream, str(s.tasks), f"{s.busy:.3f}", *(f"{x / whole:.1%}" for x in (s.busy, s.waiting, s.idle))) for s in found.streams],
        "Streams",
    )
    if found.gaps:
        print_table(
            ("stream", f"from {unit}", f"length {unit}", "before", "waited for"),
            [(g.stream, f"{g.begin:.3f}", f"{g.length:.3f}", g.before, g.waited_for) for g in found.gaps],
            "Longest gaps",
        )
