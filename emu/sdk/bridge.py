"""Fills the table of slots of the C libraries with Python functions. Runs once in a process, called by their bootstrap.

Each slot is a cffi callback: it takes the GIL for the length of one call, keeps ``threading.local`` on threads that Python did not make,
and returns an error code when anything is raised, so that no failure can look like success.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from _cffi_backend import FFI  # type: ignore[import-untyped]

from emu import config
from emu.runtime import errors, threads
from emu.status import AclnnStatus, Status

LINK_VERSION = 1
_INTERNAL = int(Status.ACL_ERROR_INTERNAL_ERROR)
_INNER = int(AclnnStatus.ACLNN_ERR_INNER)

ffi = FFI()
#: Callbacks, kept for the life of the process: C holds their addresses.
_kept: list[Any] = []
_arm: Callable[[], None] | None = None
#: The libraries' flag that a KeyboardInterrupt is to be raised again.
_interrupted: Any = [0]


def needs() -> None:
    """ImportError that names every package without which a kernel could not run."""
    from importlib.util import find_spec

    missing = [name for name in ("numpy", "numba", "llvmlite", "emu_kernels") if find_spec(name) is None]
    if missing:
        raise ImportError(f"no package {', '.join(missing)} in the Python that the SDK was built with")


def serve(link: int, host: bool) -> None:
    """Fill the table at address ``link`` (struct emu_link of shim.h). ``host``: the process was Python before."""
    global _arm, _interrupted
    words = ffi.cast("uintptr_t *", link)
    if words[0] != LINK_VERSION:
        raise ImportError(f"the libraries speak version {words[0]} of the link, this package {LINK_VERSION}: build the SDK again")
    needs()
    if not host:
        _own_process()
    # A bad EMU_SOC and the like is said now: aclrtSetDevice would be the next to meet it.
    config.current()
    from emu.sdk.slots import function_for

    count, functions, slots = int(words[1]), ffi.cast("char **", words[2]), ffi.cast("void **", words[3])
    keep = ffi.cast("void (*)(char *)", words[4])
    for i in range(count):
        name, abi = ffi.string(functions[2 * i]).decode(), ffi.string(functions[2 * i + 1]).decode()
        function = _message_slot(keep) if name == "aclGetRecentErrMsg" else function_for(name, abi)
        callback = ffi.callback(abi, function, error=failure_value(name, abi), onerror=_Failed(name))
        _kept.append(callback)
        slots[i] = ffi.cast("void *", callback)
    _arm = ffi.cast("void (*)(void)", words[5])
    _interrupted = ffi.cast("int *", words[8])
    at_exit = ffi.callback("int32_t(void)", _at_exit, error=1)
    _kept.append(at_exit)
    words[6] = int(ffi.cast("uintptr_t", at_exit))
    words[7] = 1


def _own_process() -> None:
    """A program that is not Python: its threads are unknown to Python, and it is the emulator whatever EMU_BACKEND says."""
    threads.foreign_host = True
    os.environ.pop("EMU_BACKEND", None)


def failure_value(name: str, abi: str) -> Any:
    """What a function returns when it cannot work: never what could be read as success."""
    result = abi.partition("(")[0]
    if result == "int32_t":
        return 0 if name == "aclGetRecentErrMsg" else _INNER if aclnn_code(name) else _INTERNAL
    return 0xFFFFFFFF if result == "uint32_t" else 0


def aclnn_code(name: str) -> bool:
    """Whether a function returns aclnnStatus."""
    from emu.sdk.signatures import by_name

    declared = by_name().get(name)
    return declared is not None and declared.result == "aclnnStatus"


class _Failed:
    """An exception in a slot becomes a message of the calling thread; the slot returns its failure value."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, kind: type[BaseException], error: BaseException, trace: Any) -> None:
        if issubclass(kind, KeyboardInterrupt):
            # It was meant for the Python program around us. The library raises it again when this call has returned.
            _interrupted[0] = 1
        record(self.name, f"{self.name}: {kind.__name__}: {error}")


def record(name: str, text: str, code: int | None = None) -> int:
    """Leave a message as the function's family does; returns the code."""
    if aclnn_code(name):
        return errors.fail_aclnn(_INNER if code is None else code, text)
    return errors.fail(_INTERNAL if code is None else code, "EH9999" if code is None else "EE1005", text)


def _message_slot(keep: Any) -> Callable[[], int]:
    def take() -> int:
        text = errors.recent_message()
        if text is None:
            return 0
        keep(ffi.new("char[]", text.encode("utf-8", "replace")))
        return 1

    return take


def arm_exit() -> None:
    """Move the exit handler before those of the libraries that were loaded since (the compiler's)."""
    if _arm is not None:
        _arm()


def _at_exit() -> int:
    """The end of a program that is not Python: what registered with atexit runs while everything still stands."""
    import atexit
    import sys

    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    return 0
