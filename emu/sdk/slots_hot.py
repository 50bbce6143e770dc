"""Slots on the hot path: the two phases of every operator, and nothing between C and the emulator's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu import kernel_cache, opapi
from emu.opdef.catalogue import OPERATORS
from emu.runtime.errors import fail_aclnn
from emu.sdk import bridge
from emu.status import AclnnStatus

_NULLPTR = int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR)

#: True until the compiler is in the process and the exit handler has been moved before its own.
_cold = True


def _after_load() -> None:
    global _cold
    if kernel_cache._build is not None:
        bridge.arm_exit()
        _cold = False


def _phase_one(name: str, target: Callable[..., tuple[int, int, int]]) -> Callable[..., int]:
    def slot(*args: Any) -> int:
        size, executor = args[-2], args[-1]
        if not size or not executor:
            text = f"{name}: workspaceSize and executor must not be null."
            return fail_aclnn(_NULLPTR, text)
        needed, handle, code = target(*args[:-2])
        if code == 0:
            size[0] = needed
            executor[0] = handle
        return code

    return slot


def _phase_two(name: str) -> Callable[[int, int, int, int], int]:
    execute = opapi.execute

    def slot(workspace: int, size: int, executor: int, stream: int) -> int:
        code = execute(name, workspace, size, executor, stream)
        if _cold:
            _after_load()
        return code

    return slot


def _operators() -> dict[str, Callable[..., int]]:
    slots: dict[str, Callable[..., int]] = {}
    for op in OPERATORS:
        first = op.name + "GetWorkspaceSize"
        slots[first] = _phase_one(first, opapi.FUNCTIONS[first])
        slots[op.name] = _phase_two(op.name)
    return slots


SLOTS: dict[str, Callable[..., int]] = _operators()
