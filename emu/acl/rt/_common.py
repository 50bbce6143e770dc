"""What the files of acl.rt share."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from emu.runtime import context, errors
from emu.runtime.context import Context
from emu.runtime.stream import Stream, resolve
from emu.status import Status

INVALID = int(Status.ACL_ERROR_INVALID_PARAM)
RT_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)
UNSUPPORTED = int(Status.ACL_ERROR_RT_FEATURE_NOT_SUPPORT)

_VOID = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


def null(function: str, *names: str) -> int:
    """100000 for a null argument."""
    return errors.fail(INVALID, "EH0008", f"{function}: {', '.join(names)} must not be null")


def bad_value(function: str, name: str, value: object, why: str) -> int:
    """100000 for a value that the outer layer refuses."""
    return errors.fail(INVALID, "EH0007", f"{function}: {name} {value}: {why}")


def bad_argument(function: str, name: str, value: object, why: str) -> int:
    """107000 for a value that the runtime layer refuses."""
    return errors.fail(RT_INVALID, "EE1003", f"{function}: {name} {value}: {why}")


def find_stream(function: str, handle: int) -> Stream | int:
    """A stream of the current context (0 = its default stream), or the code: 107002, 107003, 107017."""
    ctx = context.current()
    if ctx is None:
        return context.no_context(function)
    return resolve(handle, ctx)


def need_context(function: str) -> Context | int:
    """The current context, or 107002."""
    ctx = context.current()
    return context.no_context(function) if ctx is None else ctx


def no_function(function: str, name: str, pointer: object) -> int:
    """0, or 107000 for an int that points to no code: to call it would end the process."""
    if not isinstance(pointer, int) or _executable(pointer):
        return 0
    return bad_argument(function, name, hex(pointer), "no code lies at this address")


def _executable(address: int) -> bool:
    with open("/proc/self/maps") as maps:
        for line in maps:
            span, mode = line.split(maxsplit=2)[:2]
            start, end = (int(part, 16) for part in span.split("-"))
            if start <= address < end:
                return "x" in mode
    return False


def caller(function: Any, argument: Any) -> Callable[[], None]:
    """The user's function with its argument; a C function pointer comes as an int."""
    if isinstance(function, int):
        native = _VOID(function)
        return lambda: native(argument)
    return lambda: function(argument)


def inside_callback(function: str) -> int:
    """107000: a host function or a callback called what would wait for its own stream."""
    return errors.fail(RT_INVALID, "EE1018", f"{function} was called inside a host function or callback: it would wait for itself")
