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
        wrong = [text for text in reader.problems(trace) if "unknown kind" in text or "wrong type" in text]
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise CommandError(f"no timeline: {path} is no text") from None
    except reader.TraceError as error:
        raise CommandError(f"no timeline: {error}") from None
    except (AttributeError, KeyError, TypeError):  # JSON of another shape
        wrong = ["it holds other things than aclnn-emu writes"]
    if wrong:
        raise CommandError(f"no timeline: {path}: {wrong[0]}")
    return trace
