"""Slots on the hot path: the two phases of every operator, and nothing between C and the emulator's own functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu import config, kernel_cache, opapi
from emu.executor import Executor, prepare
from emu.objects import Tensor
from emu.opdef.catalogue import OPERATORS
from emu.opdef.spec import Operator
from emu.plan import bind
from emu.runtime import handles
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


def _phase_one(op: Operator) -> Callable[..., int]:
    """The slot finds three live tensors without a function call each; whatever is unusual goes through the general function."""
    name = op.name + "GetWorkspaceSize"
    general: Callable[..., tuple[int, int, int]] = opapi.FUNCTIONS[name]
    places = tuple(i for i, p in enumerate(op.params) if p.is_tensor)
    live = handles._live.get
    operator = op.name

    def slot(*args: Any) -> int:
        *values, size, executor = args
        if not size or not executor:
            return fail_aclnn(_NULLPTR, f"{name}: workspaceSize and executor must not be null.")
        for i in places:
            tensor = live(values[i])
            if tensor.__class__ is not Tensor:
                needed, handle, code = general(*args[:-2])
                break
            values[i] = tensor
        else:
            now = config.current()
            made = prepare(bind(operator, now.soc), values, now.numerics, now.strict_products)
            if not isinstance(made, Executor):
                return fail_aclnn(made.code, made.text)
            needed, handle, code = made.plan.workspace, handles.register(made), 0
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
        slots[first] = _phase_one(op)
        slots[op.name] = _phase_two(op.name)
    return slots


SLOTS: dict[str, Callable[..., int]] = _operators()
