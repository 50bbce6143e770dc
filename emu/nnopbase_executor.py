"""The executor functions of libnnopbase: repeatable executors, address setters, destruction; and aclnnInit,
aclnnFinalize."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from emu.arguments import UINT64, integer, pointer
from emu.arguments import handle as as_handle
from emu.executor import Executor
from emu.objects import Tensor, TensorList
from emu.runtime.errors import fail_aclnn
from emu.runtime.handles import lookup, release
from emu.status import AclnnStatus

_INVALID = int(AclnnStatus.ACLNN_ERR_PARAM_INVALID)
_INNER = int(AclnnStatus.ACLNN_ERR_INNER)
_INNER_NULLPTR = int(AclnnStatus.ACLNN_ERR_INNER_NULLPTR)


def aclSetAclOpExecutorRepeatable(executor: Any) -> int:
    """Let phase 2 run the executor any number of times, until aclDestroyAclOpExecutor. After phase 1, before phase 2.

    Null → 561103; spent, destroyed or unknown → 561000.
    """
    number = as_handle(executor, "executor")
    if number == 0:
        return fail_aclnn(_INNER_NULLPTR, "aclSetAclOpExecutorRepeatable: the executor is null.")
    found = lookup(number, Executor)
    if found is None:
        return fail_aclnn(
            _INNER, f"aclSetAclOpExecutorRepeatable: {number:#x} is no live executor; phase 2 spends one that is not repeatable."
        )
    found.repeatable = True
    return 0


def aclDestroyAclOpExecutor(executor: Any) -> int:
    """Free a repeatable executor, or one that phase 2 never ran.

    Null → 561103; spent, destroyed or unknown → 561000.
    """
    number = as_handle(executor, "executor")
    if number == 0:
        return fail_aclnn(_INNER_NULLPTR, "aclDestroyAclOpExecutor: the executor is null.")
    if lookup(number, Executor) is None or release(number) is None:
        return fail_aclnn(_INNER, f"aclDestroyAclOpExecutor: {number:#x} is no live executor; a real library frees it twice here.")
    return 0


def _set_address(executor: Any, tensor: Any, addr: Any, function: str, places: Callable[[Executor], tuple[int, ...]]) -> int:
    number, target, address = as_handle(executor, "executor"), as_handle(tensor, "tensor"), pointer(addr, "addr")
    if number == 0 or target == 0:
        what = "executor" if number == 0 else "tensor"
        return fail_aclnn(_INNER_NULLPTR, f"{function}: the {what} is null.")
    ex, t = lookup(number, Executor), lookup(target, Tensor)
    if ex is None:
        return fail_aclnn(_INNER, f"{function}: {number:#x} is no live executor.")
    if t is None:
        return fail_aclnn(_INVALID, f"{function}: {target:#x} is no live aclTensor.")
    if not any(ex.args[i] is t for i in places(ex)):
        return fail_aclnn(_INVALID, f"{function}: the tensor is not one of those that phase 1 of {ex.bound.op.name} was given.")
    if ex.addresses is None:
        ex.addresses = {}
    ex.addresses[id(t)] = address
    return 0


def aclSetInputTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int:
    """The next runs read ``tensor`` at another device address.

    Null → 561103. ``index`` is not looked at, as in real libraries.
    """
    integer(index, "index", UINT64)
    return _set_address(executor, tensor, addr, "aclSetInputTensorAddr", lambda ex: ex.bound.places)


def aclSetOutputTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int:
    """The next runs write ``tensor`` at another device address.

    Null → 561103. ``index`` is not looked at, as in real libraries.
    """
    integer(index, "index", UINT64)
    return _set_address(executor, tensor, addr, "aclSetOutputTensorAddr", lambda ex: ex.bound.places)


def aclSetTensorAddr(executor: Any, index: Any, tensor: Any, addr: Any) -> int:
    """The next runs find ``tensor`` at another device address.

    Null → 561103. ``index`` is not looked at, as in real libraries.
    """
    integer(index, "index", UINT64)
    return _set_address(executor, tensor, addr, "aclSetTensorAddr", lambda ex: ex.bound.places)


def _set_dynamic(executor: Any, ir_index: Any, relative_index: Any, tensors: Any, addr: Any, function: str) -> int:
    integer(ir_index, "ir_index", UINT64)
    at = integer(relative_index, "relative_index", UINT64)
    number, target = as_handle(executor, "executor"), as_handle(tensors, "tensors")
    if number == 0 or target == 0:
        return fail_aclnn(_INNER_NULLPTR, f"{function}: the {'executor' if number == 0 else 'tensor list'} is null.")
    members = lookup(target, TensorList)
    if members is None:
        return fail_aclnn(_INVALID, f"{function}: {target:#x} is no live aclTensorList.")
    if at >= len(members.handles):
        return fail_aclnn(_INVALID, f"{function}: relativeIndex {at} is past the {len(members.handles)} tensors of the list.")
    return _set_address(executor, members.handles[at], addr, function, lambda ex: ex.bound.places)


def aclSetDynamicInputTensorAddr(executor: Any, ir_index: Any, relative_index: Any, tensors: Any, addr: Any) -> int:
    """As :func:`aclSetInputTensorAddr` for a member of a tensor list; an index past its end → 161002."""
    return _set_dynamic(executor, ir_index, relative_index, tensors, addr, "aclSetDynamicInputTensorAddr")


def aclSetDynamicOutputTensorAddr(executor: Any, ir_index: Any, relative_index: Any, tensors: Any, addr: Any) -> int:
    """As :func:`aclSetOutputTensorAddr` for a member of a tensor list; an index past its end → 161002."""
    return _set_dynamic(executor, ir_index, relative_index, tensors, addr, "aclSetDynamicOutputTensorAddr")


def aclSetDynamicTensorAddr(executor: Any, ir_index: Any, relative_index: Any, tensors: Any, addr: Any) -> int:
    """As :func:`aclSetTensorAddr` for a member of a tensor list; an index past its end → 161002."""
    return _set_dynamic(executor, ir_index, relative_index, tensors, addr, "aclSetDynamicTensorAddr")


def aclnnInit(config_path: Any) -> int:
    """Initialise aclnn without aclInit; both together are fine. None or "" means no configuration.

    The file is JSON, ``{"op_debug_config": {"enable_debug_kernel": "on"}}``; one that is missing or no JSON object →
    161002.
    """
    if config_path is None or config_path == "":
        return 0
    if not isinstance(config_path, str):
        raise TypeError(f"config_path must be a str, not {type(config_path).__name__}")
    try:
        content = json.loads(Path(config_path).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return fail_aclnn(_INVALID, f"aclnnInit: {config_path} cannot be read as JSON: {error}.")
    if not isinstance(content, dict):
        return fail_aclnn(_INVALID, f"aclnnInit: {config_path} holds no JSON object.")
    return 0


def aclnnFinalize() -> int:
    """The end of aclnn; always 0."""
    return 0
