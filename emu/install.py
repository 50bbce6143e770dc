"""Make ``import acl`` find the emulator."""

from __future__ import annotations

import sys

_NAMES = ("acl", "acl.rt", "acl.util")


def install() -> None:
    """From now on ``import acl`` in this process gives :mod:`emu.acl`; a real pyACL that was imported before is replaced.

    Modules that imported the real one already keep it: call this first.
    """
    import emu.acl
    import emu.acl.rt
    import emu.acl.util

    for name, module in zip(_NAMES, (emu.acl, emu.acl.rt, emu.acl.util), strict=True):
        sys.modules[name] = module


def uninstall() -> None:
    """Undo :func:`install`: the next ``import acl`` looks for an installed one again."""
    for name in _NAMES:
        module = sys.modules.get(name)
        if module is not None and module.__name__.startswith("emu."):
            del sys.modules[name]
