"""Which back end the faces :mod:`emu.acl` and :mod:`emu.aclnn` call: the emulator itself, or real libraries (:mod:`emu.cann`).

A switch replaces the functions in the faces' modules, under every name that they have there; the emulator's own stay reachable for the C
libraries, which may be the ones that are called.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from emu import config
from emu.config import Config

if TYPE_CHECKING:
    from emu.cann.libraries import Libraries

_FACES = ("emu.acl", "emu.acl.rt", "emu.aclnn")
#: Module name → what the module had before the switch, for the way back.
_replaced: dict[str, dict[str, Any]] = {}
_in_force = ("emulator", "")
_busy = False


def follow() -> None:
    """The faces call this when they are imported: the back end that is chosen already takes effect."""
    if not _busy and (os.environ.get("EMU_BACKEND", "emulator") != "emulator" or config._current is not None):
        _apply(config.current())


def _load(new: Config) -> Libraries:
    from emu.cann.libraries import Libraries, find

    return Libraries(find(new.cann_path))


def _wanted(new: Config) -> tuple[str, str]:
    return new.backend, str(new.cann_path) if new.backend == "cann" else ""


def _guard(old: Config, new: Config) -> None:
    """A library that is missing refuses the change before anything has changed."""
    if new.backend == "cann" and _wanted(old) != _wanted(new):
        _load(new)


def _apply(new: Config) -> None:
    global _in_force, _busy
    if _wanted(new) == _in_force:
        return
    _busy = True
    try:
        for name, names in _replaced.items():
            vars(sys.modules[name]).update(names)
        _replaced.clear()
        _in_force = ("emulator", "")
        if new.backend == "cann":
            _install(_load(new))
        _in_force = _wanted(new)
    finally:
        _busy = False


def _install(libraries: Libraries) -> None:
    modules = {name: vars(import_module(name)) for name in _FACES}
    from emu.acl._entry import ENTRIES, checked
    from emu.cann import acl_face, aclnn_face

    # The emulator's function → the one that takes its place.
    instead: dict[int, Any] = {}
    for name, function in aclnn_face.functions(libraries).items():
        instead[id(modules["emu.aclnn"][name])] = function
    made = acl_face.functions(libraries)
    for entry in ENTRIES.values():
        face, _, name = f"emu.{entry.python_name}".rpartition(".")
        instead[id(modules[face][name])] = checked(entry, made[entry.c_name])
    for face, names in modules.items():
        mine = {name: instead[id(value)] for name, value in names.items() if id(value) in instead}
        _replaced[face] = {name: names[name] for name in mine}
        names.update(mine)


config.on_change(guard=_guard, then=_apply)
