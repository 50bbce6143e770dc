"""C functions as Python functions: types from the table of signatures, what goes out first in the result, the code last."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from emu.cann.libraries import Libraries
from emu.sdk.signatures import Function, Parameter, _word

_TYPES: dict[str, Any] = {
    "int32_t": ctypes.c_int32,
    "uint32_t": ctypes.c_uint32,
    "int64_t": ctypes.c_int64,
    "uint64_t": ctypes.c_uint64,
    "size_t": ctypes.c_size_t,
    # Pointers and handles are ints on the Python side, so never c_void_p, which gives None for null.
    "uintptr_t": ctypes.c_size_t,
    "uint16_t": ctypes.c_uint16,
    "float": ctypes.c_float,
}


def _ctype(p: Parameter) -> Any:
    return _TYPES[_word(p.ctype if p.direction == "in" else p.ctype.removesuffix("*").strip())]


def typed(libraries: Libraries, declared: Function) -> Any:
    """The C function with its types set; looked up when it is first called."""
    found: list[Any] = []

    def call(*args: Any) -> Any:
        if not found:
            function = libraries.function(declared.name)
            function.restype = _TYPES[_word(declared.result)]
            function.argtypes = [_ctype(p) if p.direction == "in" else ctypes.c_void_p for p in declared.params]
            found.append(function)
        return found[0](*args)

    return call


def call(libraries: Libraries, declared: Function) -> Callable[..., Any]:
    """A Python function of the inputs: the code alone, or (outputs…, code)."""
    function = typed(libraries, declared)
    outs = [(i, _ctype(p)) for i, p in enumerate(declared.params) if p.direction != "in"]
    if not outs:
        return function  # type: ignore[no-any-return]

    def with_outputs(*inputs: Any) -> tuple[Any, ...]:
        args = list(inputs)
        values = [make() for _, make in outs]
        for (i, _), value in zip(outs, values, strict=True):
            args.insert(i, ctypes.byref(value))
        code = function(*args)
        return (*(v.value for v in values), code)

    return with_outputs
