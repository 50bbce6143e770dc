"""Reading a timeline for a command: a file that is none is said to be none."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from emu.cli._errors import CommandError

if TYPE_CHECKING:
    from emu.timeline.reader import Trace


def load(path: Path) -> Trace:
    """The timeline in a file, with events of the kinds that there are; CommandError otherwise."""
    from emu.timeline import reader

    try:
        trace = reader.load(path)
        wrong = reader.malformed(trace)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandError(f"no timeline: {path} is no text") from None
    except reader.TraceError as error:
        raise CommandError(f"no timeline: {error}") from None
    if wrong:
        raise CommandError(f"no timeline: {path}: {wrong[0]}")
    return trace
