"""Face 1: the aclnn two-phase contract with the names as in C.

Out-parameters come first and the return code last; a (pointer, count) pair of C is one Python sequence in both
directions; null is 0 or None; handles are positive ints, never reused. A wrong Python type raises TypeError before
anything happens. Every failure leaves a message for aclGetRecentErrMsg.

The functions are those of :mod:`emu.nnopbase` (data objects), :mod:`emu.nnopbase_executor` and :mod:`emu.opapi`
(operators).
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

from emu import backend as _backend
from emu import nnopbase, nnopbase_executor, opapi
from emu.opdef.catalogue import OPERATORS
from emu.runtime.errors import recent_message


def aclGetRecentErrMsg() -> str | None:
    """This thread's pending messages, newest first; None when there are none. Each is given once."""
    return recent_message()


def _own(module: ModuleType) -> dict[str, Any]:
    return {n: f for n, f in vars(module).items() if n.startswith("acl") and getattr(f, "__module__", "") == module.__name__}


FUNCTIONS: dict[str, Any] = {**_own(nnopbase), **_own(nnopbase_executor), **opapi.FUNCTIONS}
globals().update(FUNCTIONS)

__all__ = ["aclGetRecentErrMsg", *FUNCTIONS]


def __getattr__(name: str) -> Any:
    known = ", ".join(op.name for op in OPERATORS)
    raise AttributeError(f"emu.aclnn has no {name}; declared operators: {known}")


_backend.follow()
