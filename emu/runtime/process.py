"""What belongs to the process as a whole: aclInit's count and configuration, system parameters, time limits."""

from __future__ import annotations

import json
import os
from itertools import accumulate
from typing import Any

from emu.runtime import context, device, errors
from emu.runtime.context import Context
from emu.status import Status

#: A larger configuration file is refused (100005).
MAX_CONFIG_BYTES = 10 << 20
#: Nesting that aclInit accepts, for objects and for arrays each.
MAX_NESTING = 10

_references = 0
#: False until the first aclFinalize: a finalize before any init succeeds once.
_finalised = False
_settings: Any = None

#: Process-scope aclrtSetSysParamOpt values; unset ones read as 0.
sys_params: dict[int, int] = {}
#: Seconds of aclrtSetOpWaitTimeout: the limit of every wait queued from now on; 0 = none.
wait_timeout_s = 0
#: Microseconds of aclrtSetOpExecuteTimeOut; 0 = the product's default.
execute_timeout_us = 0


def _fail(code: Status, text: str) -> int:
    return errors.fail(int(code), "EH0004", f"aclInit: {text}")


def _nesting(text: str, opening: str, closing: str) -> int:
    """How deep ``opening`` nests outside of strings."""
    steps: list[int] = []
    quoted = escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif quoted and char == "\\":
            escaped = True
        elif char == '"':
            quoted = not quoted
        elif not quoted and char in (opening, closing):
            steps.append(1 if char == opening else -1)
    return max(accumulate(steps), default=0)


def _read(path: str) -> tuple[dict[str, Any], int]:
    try:
        if os.path.getsize(path) > MAX_CONFIG_BYTES:
            return {}, _fail(Status.ACL_ERROR_INVALID_FILE_SIZE, f"{path} is larger than {MAX_CONFIG_BYTES} bytes")
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, ValueError) as error:
        return {}, _fail(Status.ACL_ERROR_INVALID_FILE, f"cannot read {path!r}: {error}")
    if _nesting(text, "{", "}") > MAX_NESTING or _nesting(text, "[", "]") > MAX_NESTING:
        return {}, _fail(Status.ACL_ERROR_PARSE_FILE, f"{path} nests deeper than {MAX_NESTING} levels")
    try:
        settings = json.loads(text) if text.strip() else {}
    except ValueError as error:
        return {}, _fail(Status.ACL_ERROR_PARSE_FILE, f"{path} is no JSON: {error}")
    if not isinstance(settings, dict):
        return {}, _fail(Status.ACL_ERROR_PARSE_FILE, f"{path} holds no JSON object")
    return settings, 0


def _number(value: Any) -> int | None:
    """A JSON number, or a string of one; None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else None


def _check(settings: dict[str, Any]) -> int:
    for key, code in (("dump", Status.ACL_ERROR_INVALID_DUMP_CONFIG), ("profiler", Status.ACL_ERROR_INVALID_PROFILING_CONFIG)):
        if not isinstance(settings.get(key, {}), dict):
            return _fail(code, f"{key} must be an object")
    queue = settings.get("max_opqueue_num", 20000)
    if (_number(queue) or 0) < 1:
        return _fail(Status.ACL_ERROR_INVALID_MAX_OPQUEUE_NUM_CONFIG, f"max_opqueue_num must be a positive number, not {queue!r}")
    mode = settings.get("err_msg_mode", "0")
    if str(mode) not in ("0", "1"):
        return _fail(Status.ACL_ERROR_INVALID_PARAM, f'err_msg_mode must be "0" or "1", not {mode!r}')
    stack = settings.get("StackSize", {})
    size = _number(stack.get("aicore_stack_size", 32 << 10)) if isinstance(stack, dict) else None
    if size is None or size <= 0 or size % (16 << 10):
        return _fail(Status.ACL_ERROR_INVALID_PARAM, "StackSize.aicore_stack_size must be a positive multiple of 16384")
    if "defaultDevice" in settings:
        wanted = settings["defaultDevice"]
        index = _number(wanted.get("default_device")) if isinstance(wanted, dict) else None
        if index is None:
            return _fail(Status.ACL_ERROR_INVALID_PARAM, "defaultDevice.default_device must be a device number")
        if device.get(index) is None:
            text = f"defaultDevice.default_device {index}: there are {len(device.machine().devices)} devices"
            return _fail(Status.ACL_ERROR_RT_INVALID_DEVICEID, text)
    return 0


def _default_context(index: int) -> Context | None:
    chosen = device.get(index)
    if chosen is None:
        return None
    return chosen.primary or chosen.retain()


def init(path: str | None) -> int:
    """aclInit. None, an empty path and a file that holds ``{}`` mean no configuration.

    100002 when it was called before (the count goes up), 100000 when that call had another configuration; 100003 for a file that cannot be
    read, 100005 for one that is too large, 100006 for one that is no JSON object or nests deeper than ten levels.
    """
    global _references, _settings
    if context.forked():
        return errors.fail(int(Status.ACL_ERROR_INTERNAL_ERROR), "EH0009", "aclInit: this process was forked from one with an open device")
    settings: dict[str, Any] = {}
    if path:
        settings, code = _read(path)
        if code:
            return code
    if _references and settings != _settings:
        return _fail(Status.ACL_ERROR_INVALID_PARAM, "the first aclInit of this process had another configuration")
    if _references:
        _references += 1
        return errors.fail(int(Status.ACL_ERROR_REPEAT_INITIALIZE), "EH0009", f"aclInit: repeated initialization, now {_references}")
    code = _check(settings)
    if code:
        return code
    _references, _settings = 1, settings
    errors.set_process_mode(str(settings.get("err_msg_mode", "0")) == "1")
    if "defaultDevice" in settings:
        index = _number(settings["defaultDevice"]["default_device"]) or 0
        context.default_context = lambda: _default_context(index)
    return 0


def finalize() -> int:
    """aclFinalize: the count goes to zero and every device is closed, queued work first; 100037 when that was done before."""
    global _references, _settings, _finalised
    if _finalised and not _references:
        return errors.fail(int(Status.ACL_ERROR_REPEAT_FINALIZE), "EH0009", "aclFinalize: repeated, or aclInit was not called again")
    _references, _settings, _finalised = 0, None, True
    context.default_context = None
    errors.set_process_mode(False)
    device.shut_all()
    return 0


def finalize_reference() -> tuple[int, int]:
    """aclFinalizeReference: (remaining count, code); the last one finalizes, one too many is 100037."""
    global _references
    if _references < 1:
        return 0, errors.fail(int(Status.ACL_ERROR_REPEAT_FINALIZE), "EH0009", "aclFinalizeReference: aclInit was not called as often")
    if _references > 1:
        _references -= 1
        return _references, 0
    return 0, finalize()
