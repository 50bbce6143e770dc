"""aclnn-emu: a CPU emulator of the Ascend aclnn two-phase operator API.

Nothing heavy is loaded here: the faces (:mod:`emu.acl`, :mod:`emu.aclnn`, :mod:`emu.ops`) come at first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from emu.install import install

if TYPE_CHECKING:
    from emu import acl, aclnn, ops, types
    from emu.config import Config, configure
    from emu.status import AclError
    from emu.timeline import trace

__version__ = "0.1.0"
__all__ = ["AclError", "Config", "acl", "aclnn", "configure", "install", "ops", "trace", "types"]

_MODULES = {"acl", "aclnn", "ops", "types"}
_NAMES = {"AclError": "emu.status", "Config": "emu.config", "configure": "emu.config", "trace": "emu.timeline"}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"emu.{name}")
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'emu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(set(globals()) | set(__all__))
