"""The Python function behind each slot: thin, without the argument checks that C has done by its types.

A slot gets ints for what comes in (addresses too) and cffi pointers for what goes out. Most are made from their declarations; those with
arrays, strings or a hot path are written out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import emu.acl  # noqa: F401  (fills ENTRIES)
from emu import aclnn
from emu.acl._entry import ENTRIES
from emu.runtime import errors
from emu.sdk import slots_hot, slots_nn
from emu.sdk.bridge import ffi, record
from emu.sdk.signatures import Function, by_name
from emu.status import AclnnStatus, Status

_NULL = int(Status.ACL_ERROR_INVALID_PARAM)
_NULLPTR = int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR)
_UNSUPPORTED_RT = int(Status.ACL_ERROR_RT_FEATURE_NOT_SUPPORT)
_UNSUPPORTED = int(Status.ACL_ERROR_API_NOT_SUPPORT)


def function_for(name: str, abi: str) -> Callable[..., Any]:
    """The function of a slot whose C type is ``abi``."""
    declared = by_name().get(name)
    if declared is None or declared.abi != abi:
        return _not_emulated(name, abi)
    for table in (slots_hot.SLOTS, slots_nn.SLOTS, _STRINGS):
        if name in table:
            return table[name]
    target = _target(declared)
    return _not_emulated(name, abi) if target is None else _generic(declared, target)


def emulated(name: str) -> bool:
    """Whether a call of the function does its work here."""
    written = name in slots_hot.SLOTS or name in slots_nn.SLOTS or name in _STRINGS or name in _IN_C
    return written or _target(by_name()[name]) is not None


#: Done by the libraries themselves, without an interpreter.
_IN_C = ("aclGetRecentErrMsg", "aclFloat16ToFloat", "aclFloatToFloat16", "aclDataTypeSize")


#: Structures whose layout is not public: what is behind such a pointer can neither be read nor written.
_OPAQUE = ("aclrtPtrAttributes *", "aclCANNPackageVersion *")


def _target(declared: Function) -> Callable[..., Any] | None:
    """The emulator's own function: inputs in C's order, what goes out first in its result, the code last."""
    name = declared.name
    if any(p.ctype in _OPAQUE for p in declared.params):
        return None
    if name in ENTRIES:
        return ENTRIES[name].function
    # AclSetInputTensorAddr and its sisters are second names.
    target: Callable[..., Any] | None = aclnn.FUNCTIONS.get("acl" + name[3:])
    return target


def _not_emulated(name: str, abi: str) -> Callable[..., Any]:
    code = _UNSUPPORTED_RT if name.startswith("aclrt") else _UNSUPPORTED
    result = abi.partition("(")[0]

    def refuse(*_: Any) -> int:
        record(name, f"{name} is not emulated", code)
        return code if result == "int32_t" else 0xFFFFFFFF if result == "uint32_t" else 0

    return refuse


def _null(declared: Function, names: Iterable[str]) -> int:
    text = f"{declared.name}: {', '.join(names)} must not be null"
    if declared.result == "aclnnStatus":
        return errors.fail_aclnn(_NULLPTR, text)
    return errors.fail(_NULL, "EH0008", text)


def _generic(declared: Function, target: Callable[..., Any]) -> Callable[..., Any]:
    """A slot made from its declaration: null checks of what goes out, the call, the results."""
    if all(p.direction == "in" for p in declared.params):
        return target
    simple = _one_output(declared, target)
    if simple is not None:
        return simple
    places = [i for i, p in enumerate(declared.params) if p.direction != "in"]
    needed = [i for i, p in enumerate(declared.params) if p.direction == "out"]
    inputs = [i for i, p in enumerate(declared.params) if p.direction == "in"]
    names = [p.name for p in declared.params]

    def slot(*args: Any) -> int:
        for i in needed:
            if not args[i]:
                return _null(declared, [names[i] for i in needed if not args[i]])
        *values, code = target(*[args[i] for i in inputs])
        if not code:
            for i, value in zip(places, values, strict=True):
                if args[i]:
                    args[i][0] = value
        result: int = code
        return result

    return slot


def _one_output(declared: Function, target: Callable[..., Any]) -> Callable[..., Any] | None:
    """The usual shapes without loops: one output, first or last, that must not be null."""
    places = [i for i, p in enumerate(declared.params) if p.direction != "in"]
    if len(places) != 1 or declared.params[places[0]].direction != "out":
        return None
    name = declared.params[places[0]].name

    def first(out: Any, *inputs: Any) -> int:
        if not out:
            return _null(declared, [name])
        value, code = target(*inputs)
        if not code:
            out[0] = value
        result: int = code
        return result

    def last(*args: Any) -> int:
        return first(args[-1], *args[:-1])

    return first if places[0] == 0 else last if places[0] == len(declared.params) - 1 else None


def text_at(address: int) -> str | None:
    """The C string at an address; None for null."""
    if not address:
        return None
    raw: bytes = ffi.string(ffi.cast("char *", address))
    return raw.decode("utf-8", "surrogateescape")


_texts: dict[str, Any] = {}


def _static(text: str | None) -> int:
    """A C string that lives as long as the process; null for None or an empty one."""
    if not text:
        return 0
    if text not in _texts:
        _texts[text] = ffi.new("char[]", text.encode())
    return int(ffi.cast("uintptr_t", _texts[text]))


def _init(path: int) -> int:
    code: int = ENTRIES["aclInit"].function(text_at(path))
    return code


def _aclnn_init(path: int) -> int:
    from emu.nnopbase_executor import aclnnInit

    return aclnnInit(text_at(path))


def _version_num(package: int, out: Any) -> int:
    if not out:
        return _null(by_name()["aclsysGetVersionNum"], ["versionNum"])
    number, code = ENTRIES["aclsysGetVersionNum"].function(text_at(package))
    if not code:
        out[0] = number
    result: int = code
    return result


def _version_str(package: int, out: int) -> int:
    if not out:
        return _null(by_name()["aclsysGetVersionStr"], ["versionStr"])
    text, code = ENTRIES["aclsysGetVersionStr"].function(text_at(package))
    if not code:
        ffi.memmove(ffi.cast("char *", out), text.encode() + b"\0", len(text) + 1)
    result: int = code
    return result


def _soc_name() -> int:
    return _static(ENTRIES["aclrtGetSocName"].function())


_STRINGS: dict[str, Callable[..., Any]] = {
    "aclInit": _init,
    "aclnnInit": _aclnn_init,
    "aclrtGetSocName": _soc_name,
    "aclsysGetVersionNum": _version_num,
    "aclsysGetVersionStr": _version_str,
}
