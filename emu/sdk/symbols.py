"""What the libraries export, what of it works, and what is known by name only."""

from __future__ import annotations

from typing import NamedTuple

from emu.sdk.forward import LIBRARIES
from emu.sdk.signatures import ABSENT, functions


class Symbol(NamedTuple):
    """``state``: "works", "refuses" (exported, answers 207000 or 200001) or "absent" (no signature is known: not exported)."""

    name: str
    library: str
    header: str
    state: str
    prototype: str


def symbols() -> list[Symbol]:
    """Every name, exported ones first."""
    from emu.sdk.slots import emulated

    libraries = {part: name for name, part in reversed(LIBRARIES.items())}
    found = [Symbol(f.name, libraries[f.library], f.header, "works" if emulated(f.name) else "refuses", f.prototype) for f in functions()]
    return found + [Symbol(name, "", "", "absent", "") for name in sorted(ABSENT)]
