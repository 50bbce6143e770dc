"""emu.acl's functions over C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from emu.acl._entry import ENTRIES, Entry
from emu.cann.calls import call, typed
from emu.cann.libraries import Libraries
from emu.sdk.signatures import by_name
from emu.status import AclError, Status

_CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
#: Longest version text that a caller must make room for.
_VERSION_BYTES = 128


def functions(libraries: Libraries) -> dict[str, Callable[..., Any]]:
    """C name → Python function of the inputs, for everything that emu.acl has."""
    made: dict[str, Callable[..., Any]] = {}
    for name, entry in ENTRIES.items():
        special = _SPECIAL.get(name)
        if special is not None:
            made[name] = special(libraries)
        elif not entry.c_known:
            made[name] = _unknown(entry)
        else:
            made[name] = call(libraries, by_name()[name])
    return made


def _unknown(entry: Entry) -> Callable[..., Any]:
    def refuse(*_: Any) -> Any:
        raise AclError(Status.ACL_ERROR_API_NOT_SUPPORT, f"backend cann: the C signature of {entry.c_name} is not known here")

    return refuse


def _text_in(name: str) -> Callable[[Libraries], Callable[..., Any]]:
    """A function whose first input is a C string."""

    def make(libraries: Libraries) -> Callable[..., Any]:
        declared = by_name()[name]
        function = call(libraries, declared)

        def with_text(text: str | None, *rest: Any) -> Any:
            buffer = None if text is None else ctypes.create_string_buffer(text.encode())
            return function(0 if buffer is None else ctypes.addressof(buffer), *rest)

        return with_text

    return make


def _text_out(name: str) -> Callable[[Libraries], Callable[..., Any]]:
    """A function that returns a C string; None for null."""

    def make(libraries: Libraries) -> Callable[..., Any]:
        function = typed(libraries, by_name()[name])

        def text() -> str | None:
            address = function()
            return ctypes.string_at(address).decode("utf-8", "replace") if address else None

        return text

    return make


def _version_str(libraries: Libraries) -> Callable[..., Any]:
    function = typed(libraries, by_name()["aclsysGetVersionStr"])

    def version(package: str | None) -> tuple[str, int]:
        buffer = ctypes.create_string_buffer(_VERSION_BYTES)
        name = None if package is None else ctypes.create_string_buffer(package.encode())
        code: int = function(0 if name is None else ctypes.addressof(name), ctypes.addressof(buffer))
        return buffer.value.decode("utf-8", "replace"), code

    return version


def _opaque(name: str) -> Callable[[Libraries], Callable[..., Any]]:
    def make(libraries: Libraries) -> Callable[..., Any]:
        def refuse(*_: Any) -> Any:
            raise AclError(Status.ACL_ERROR_API_NOT_SUPPORT, f"backend cann: the structure that {name} fills is not known here")

        return refuse

    return make


#: Callbacks that C holds, by what keeps them apart; a queued one is dropped when it has run.
_held: dict[int, Any] = {}


def _once(function: Any, argument: Any) -> int:
    """A C function pointer that calls function(argument) and then lets go of itself; an int is a C function already."""

    def run(_: Any) -> None:
        try:
            function(argument)
        finally:
            _held.pop(key, None)

    pointer = _CALLBACK(run)
    key = ctypes.cast(pointer, ctypes.c_void_p).value or 0
    _held[key] = pointer
    return key


def _launch_callback(libraries: Libraries) -> Callable[..., Any]:
    function = call(libraries, by_name()["aclrtLaunchCallback"])

    def launch(fn: Any, user_data: Any, block_type: int, stream: int) -> int:
        native = fn is None or isinstance(fn, int)
        pointer = (fn or 0) if native else _once(fn, user_data)
        code: int = function(pointer, (user_data or 0) if native else 0, block_type, stream)
        if code and not native:
            _held.pop(pointer, None)
        return code

    return launch


def _launch_host_func(libraries: Libraries) -> Callable[..., Any]:
    function = call(libraries, by_name()["aclrtLaunchHostFunc"])

    def launch(stream: int, fn: Any, args: Any) -> int:
        native = fn is None or isinstance(fn, int)
        pointer = (fn or 0) if native else _once(fn, args)
        code: int = function(stream, pointer, (args or 0) if native else 0)
        if code and not native:
            _held.pop(pointer, None)
        return code

    return launch


def _exception_callback(libraries: Libraries) -> Callable[..., Any]:
    function = call(libraries, by_name()["aclrtSetExceptionInfoCallback"])

    def set_callback(callback: Any) -> int:
        if callback is None or isinstance(callback, int):
            return int(function(callback or 0))
        pointer = _CALLBACK(callback)
        # One for the process: it stays until the next one.
        _held[0] = pointer
        return int(function(ctypes.cast(pointer, ctypes.c_void_p).value or 0))

    return set_callback


_SPECIAL: dict[str, Callable[[Libraries], Callable[..., Any]]] = {
    "aclInit": _text_in("aclInit"),
    "aclsysGetVersionNum": _text_in("aclsysGetVersionNum"),
    "aclsysGetVersionStr": _version_str,
    "aclGetRecentErrMsg": _text_out("aclGetRecentErrMsg"),
    "aclrtGetSocName": _text_out("aclrtGetSocName"),
    "aclsysGetCANNVersion": _opaque("aclsysGetCANNVersion"),
    "aclrtPointerGetAttributes": _opaque("aclrtPointerGetAttributes"),
    "aclrtLaunchCallback": _launch_callback,
    "aclrtLaunchHostFunc": _launch_host_func,
    "aclrtSetExceptionInfoCallback": _exception_callback,
}
