"""What a study says to a wrong request."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


class StudyError(ValueError):
    """The request cannot be carried out; the text names the fix. The command line turns it into exit code 2."""


class StudyWarning(UserWarning):
    """What a study did otherwise than one might think. The command line prints the text."""


class LacksError(StudyError):
    """A product, an operator or PyTorch has no such dtype or variant: an error for one study, a note in a matrix."""


def unknown(what: str, value: object, known: Iterable[str]) -> StudyError:
    """The error for a name that is not known, with the nearest ones or all."""
    names = list(known)
    near = get_close_matches(str(value), names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    return StudyError(f"unknown {what} {value!r}: {hint}")
