"""emu.aclnn's functions over C."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

from emu import aclnn, nnopbase, opapi
from emu.arguments import INT32, UINT64, integer, integers, pointer, pointers, sequence
from emu.cann.acl_face import _text_in, _text_out
from emu.cann.calls import call, typed
from emu.cann.libraries import Libraries
from emu.objects import Scalar
from emu.opdef.catalogue import OPERATORS
from emu.sdk.signatures import Function, by_name

_INT64 = (-(1 << 63), (1 << 63) - 1)


def functions(libraries: Libraries) -> dict[str, Callable[..., Any]]:
    """C name → the same Python function that emu.aclnn has, over C."""
    made = {name: _plain(libraries, by_name()[name], aclnn.FUNCTIONS[name]) for name in aclnn.FUNCTIONS if name not in _SPECIAL}
    made.update({name: wraps(aclnn.FUNCTIONS[name])(make(libraries)) for name, make in _SPECIAL.items()})
    for op in OPERATORS:
        made[op.name + "GetWorkspaceSize"] = _phase_one(libraries, by_name()[op.name + "GetWorkspaceSize"])
    made["aclGetRecentErrMsg"] = _text_out("aclGetRecentErrMsg")(libraries)
    return made


def _converter(ctype: str) -> Callable[[Any, str], int]:
    plain = ctype.removeprefix("const ").strip()
    limits = {"int64_t": _INT64, "uint64_t": UINT64, "size_t": UINT64, "aclDataType": INT32, "aclFormat": INT32}.get(plain)
    return pointer if limits is None else lambda value, name: integer(value, name, limits)


def _plain(libraries: Libraries, declared: Function, like: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ints; ``like`` gives its Python name, parameters and documentation."""
    function = call(libraries, declared)
    inputs = [p for p in declared.params if p.direction == "in"]
    converters = [(_converter(p.ctype), p.name) for p in inputs]

    @wraps(like)
    def run(*args: Any) -> Any:
        if len(args) != len(converters):
            raise TypeError(f"{declared.name}() takes {len(converters)} arguments, {len(args)} given")
        return function(*(convert(value, name) for value, (convert, name) in zip(args, converters, strict=True)))

    return run


def _phase_one(libraries: Libraries, declared: Function) -> Callable[..., Any]:
    general = _plain(libraries, declared, aclnn.FUNCTIONS[declared.name])
    names = tuple(p.name for p in declared.params if p.direction == "in")

    @wraps(aclnn.FUNCTIONS[declared.name])
    def get_workspace_size(*args: Any, **named: Any) -> tuple[int, int, int]:
        values = opapi._by_name(declared.name, names, args, named) if named else args
        if len(values) != len(names):
            raise TypeError(f"{declared.name}() takes {', '.join(names)}: {len(names)} arguments, {len(values)} given")
        result: tuple[int, int, int] = general(*values)
        return result if result[2] == 0 else (0, 0, result[2])

    return get_workspace_size


def _array(values: Sequence[Any], ctype: Any) -> tuple[Any, int, int]:
    """(the array, its address or 0, its length); the caller keeps the array until the call has returned."""
    array = (ctype * len(values))(*values)
    return array, ctypes.addressof(array) if values else 0, len(values)


def _tensor_arguments(view_dims: Any, data_type: Any, strides: Any, offset: Any, fmt: Any, storage_dims: Any, data: Any) -> list[Any]:
    dims, storage = integers(view_dims, "view_dims"), integers(storage_dims, "storage_dims")
    steps = None if strides is None else integers(strides, "strides")
    kept_dims, dims_at, rank = _array(dims, ctypes.c_int64)
    kept_storage, storage_at, storage_rank = _array(storage, ctypes.c_int64)
    # An empty list is not null: a scalar's strides.
    kept_steps = (ctypes.c_int64 * max(len(steps), 1))(*steps) if steps is not None else None
    steps_at = 0 if kept_steps is None else ctypes.addressof(kept_steps)
    values = [dims_at, rank, integer(data_type, "data_type", INT32), steps_at, integer(offset, "offset")]
    values += [integer(fmt, "format", INT32), storage_at, storage_rank, pointer(data, "data")]
    return [values, steps is None or len(steps) == rank, (kept_dims, kept_storage, kept_steps)]


def _create_tensor(libraries: Libraries) -> Callable[..., Any]:
    function = typed(libraries, by_name()["aclCreateTensor"])

    def create(view_dims: Any, data_type: Any, strides: Any, offset: Any, format: Any, storage_dims: Any, data: Any) -> int:
        values, fits, _kept = _tensor_arguments(view_dims, data_type, strides, offset, format, storage_dims, data)
        if not fits:
            # C has one number for both: the call would read past the end of the strides.
            return nnopbase.aclCreateTensor(view_dims, data_type, strides, offset, format, storage_dims, data)
        return int(function(*values))

    return create


def _init_tensor(libraries: Libraries) -> Callable[..., Any]:
    function = typed(libraries, by_name()["aclInitTensor"])

    def init(tensor: Any, view_dims: Any, data_type: Any, strides: Any, offset: Any, format: Any, storage_dims: Any, data: Any) -> int:
        values, fits, _kept = _tensor_arguments(view_dims, data_type, strides, offset, format, storage_dims, data)
        if not fits:
            raise ValueError("as many strides as dimensions are needed")
        return int(function(pointer(tensor, "tensor"), *values))

    return init


def _list_of(name: str, ctype: Any, convert: Callable[[Any], Sequence[Any]]) -> Callable[[Libraries], Callable[..., Any]]:
    def make(libraries: Libraries) -> Callable[..., Any]:
        function = typed(libraries, by_name()[name])

        def create(values: Any) -> int:
            _kept, address, count = _array(convert(values), ctype)
            return int(function(address, count))

        return create

    return make


def _floats(values: Any) -> list[float]:
    return [] if values is None else [nnopbase._float32(v, i) for i, v in enumerate(sequence(values, "values"))]


def _bools(values: Any) -> list[bool]:
    return [] if values is None else [bool(v) for v in sequence(values, "values")]


def _create_scalar(libraries: Libraries) -> Callable[..., Any]:
    function = typed(libraries, by_name()["aclCreateScalar"])

    def create(value: Any, data_type: Any) -> int:
        dtype = integer(data_type, "data_type", INT32)
        if value is None:
            return int(function(0, dtype))
        scalar = Scalar.of(value, dtype)
        raw = ctypes.create_string_buffer(scalar.raw if scalar is not None else b"", 16)
        return int(function(ctypes.addressof(raw), dtype))

    return create


def _numbers(name: str) -> Callable[[Libraries], Callable[..., Any]]:
    """A getter whose array the caller frees; it was made by operator new[], which is malloc's in every C++ runtime here."""

    def make(libraries: Libraries) -> Callable[..., Any]:
        function = typed(libraries, by_name()[name])
        free = ctypes.CDLL(None).free
        free.argtypes, free.restype = [ctypes.c_void_p], None

        def get(tensor: Any) -> tuple[list[int], int]:
            values, count = ctypes.POINTER(ctypes.c_int64)(), ctypes.c_uint64()
            code: int = function(pointer(tensor, "tensor"), ctypes.addressof(values), ctypes.addressof(count))
            if code:
                return [], code
            numbers = values[: count.value]
            free(values)
            return numbers, 0

        return get

    return make


def _aclnn_init(libraries: Libraries) -> Callable[..., Any]:
    function = _text_in("aclnnInit")(libraries)

    def init(config_path: Any) -> int:
        if config_path is not None and not isinstance(config_path, str):
            raise TypeError(f"config_path must be a str, not {type(config_path).__name__}")
        return int(function(config_path))

    return init


_SPECIAL: dict[str, Callable[[Libraries], Callable[..., Any]]] = {
    "aclCreateTensor": _create_tensor,
    "aclInitTensor": _init_tensor,
    "aclCreateScalar": _create_scalar,
    "aclCreateIntArray": _list_of("aclCreateIntArray", ctypes.c_int64, lambda v: integers(v, "values")),
    "aclCreateFloatArray": _list_of("aclCreateFloatArray", ctypes.c_float, _floats),
    "aclCreateBoolArray": _list_of("aclCreateBoolArray", ctypes.c_bool, _bools),
    "aclCreateTensorList": _list_of("aclCreateTensorList", ctypes.c_size_t, lambda v: pointers(v, "values")),
    "aclCreateScalarList": _list_of("aclCreateScalarList", ctypes.c_size_t, lambda v: pointers(v, "values")),
    "aclGetViewShape": _numbers("aclGetViewShape"),
    "aclGetStorageShape": _numbers("aclGetStorageShape"),
    "aclGetViewStrides": _numbers("aclGetViewStrides"),
    "aclnnInit": _aclnn_init,
}
