"""Draw a timeline: streams over time with the host's threads, as PNG, SVG or PDF."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emu.cli import _timeline
from emu.cli._errors import CommandError, usage

Out = Annotated[Path | None, typer.Option("-o", "--out", help="The picture; its ending is its format. Default: beside the first trace.")]


def command(traces: Annotated[list[Path], typer.Argument(metavar="TRACE.json...", show_default=False)], out: Out = None) -> None:
    """Draw a timeline: streams over time with the host's threads. Several traces become panels on one time scale."""
    from emu.timeline import plot

    path = out or traces[0].with_suffix(".png")
    if path.is_dir():
        raise usage(f"-o {path} is a directory: give the name of a picture")
    if path.suffix.lower() not in (".png", ".svg", ".pdf"):
        raise usage(f"-o {path}: end the name in .png, .svg or .pdf, which is the picture's format")
    try:
        loaded = [(trace.stem.replace("_", " "), _timeline.load(trace)) for trace in traces]
        if len({t.clock for _, t in loaded}) > 1:
            raise CommandError("one of these traces has simulated time and another wall time: they have no common scale")
        plot.save(loaded, path)
    except ImportError:
        raise CommandError("drawing needs matplotlib: pip install matplotlib") from None
    except OSError as error:
        raise CommandError(f"{error.filename or path}: {error.strerror}; give the name of a picture that can be written") from None
    except ValueError as error:
        raise CommandError(str(error)) from None
    print(f"{path}: {loaded[0][1].clock} time")
