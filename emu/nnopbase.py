"""The functions of libnnopbase: aclnn's data objects and executors, on handles.

C names, out-parameters first, the code last. Create functions return the handle alone (0 when refused), destroy and
set functions the code alone. Null is 0 or None; an int that is no live object of the right kind is 161002 with a
message, a wrong Python type raises TypeError.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, TypeVar

from emu.arguments import INT32, integer, integers, pointer, pointers, sequence
from emu.arguments import handle as as_handle
from emu.objects import BoolArray, FloatArray, IntArray, Scalar, ScalarList, Tensor, TensorList
from emu.runtime.errors import fail_aclnn
from emu.runtime.handles import lookup, register, release
from emu.status import AclnnStatus
from emu.types import dtype_name

T = TypeVar("T")

_NULLPTR = int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR)
_INVALID = int(AclnnStatus.ACLNN_ERR_PARAM_INVALID)

_C_NAMES: dict[type, str] = {
    Tensor: "aclTensor", Scalar: "aclScalar", IntArray: "aclIntArray", FloatArray: "aclFloatArray", BoolArray: "aclBoolArray",
    TensorList: "aclTensorList", ScalarList: "aclScalarList",
}  # fmt: skip


def find(handle: int, kind: type[T], where: str) -> T | int:
    """The live object behind a handle, or the code of what is wrong with it."""
    if handle == 0:
        return fail_aclnn(_NULLPTR, f"{where}: the {_C_NAMES[kind]} is null.")
    obj = lookup(handle, kind)
    if obj is None:
        return fail_aclnn(_INVALID, f"{where}: {handle:#x} is no live {_C_NAMES[kind]} (never created, or destroyed already).")
    return obj


# -- tensors ---------------------------------------------------------------------------------------------------------------


def _tensor_fields(view_dims: Any, data_type: Any, strides: Any, offset: Any, fmt: Any, storage_dims: Any, data: Any) -> tuple[Any, ...]:
    return (
        integers(view_dims, "view_dims"),
        integer(data_type, "data_type", INT32),
        None if strides is None else integers(strides, "strides"),
        integer(offset, "offset"),
        integer(fmt, "format", INT32),
        integers(storage_dims, "storage_dims"),
        pointer(data, "data"),
    )


def aclCreateTensor(view_dims: Any, data_type: Any, strides: Any, offset: Any, format: Any, storage_dims: Any, data: Any) -> int:
    """A tensor descriptor over device memory at ``data`` (its storage's base; 0 or None: to be filled later).

    ``strides`` and ``offset`` are in elements, None strides mean contiguous. As on real cards nothing is checked
    here: not the data type, the format, signs, bounds or alignment. 0 with a message when the strides are not as many
    as the dimensions.
    """
    values = _tensor_fields(view_dims, data_type, strides, offset, format, storage_dims, data)
    if values[2] is not None and len(values[2]) != len(values[0]):
        fail_aclnn(_INVALID, f"aclCreateTensor: {len(values[0])} dimensions but {len(values[2])} strides.")
        return 0
    return register(Tensor(*values))


def aclInitTensor(tensor: Any, view_dims: Any, data_type: Any, strides: Any, offset: Any, format: Any, storage_dims: Any, data: Any) -> int:
    """Give an existing tensor new fields, as :func:`aclCreateTensor`. Null → 161001."""
    values = _tensor_fields(view_dims, data_type, strides, offset, format, storage_dims, data)
    found = find(as_handle(tensor, "tensor"), Tensor, "aclInitTensor")
    if isinstance(found, int):
        return found
    if values[2] is not None and len(values[2]) != len(values[0]):
        return fail_aclnn(_INVALID, f"aclInitTensor: {len(values[0])} dimensions but {len(values[2])} strides.")
    found.set(*values)
    return 0


def _destroy(handle: Any, kind: type[Any], function: str) -> int:
    number = as_handle(handle, "handle")
    if number == 0:
        return 0
    if lookup(number, kind) is None or release(number) is None:
        return fail_aclnn(
            _INVALID,
            f"{function}: {number:#x} is no live {_C_NAMES[kind]}. On a real card destroying an object twice is a use after free.",
        )
    return 0


def aclDestroyTensor(tensor: Any) -> int:
    """Forget the descriptor, never the device memory.

    Null → 0; destroyed already → 161002 (a real library corrupts its heap).
    """
    return _destroy(tensor, Tensor, "aclDestroyTensor")


def aclGetViewShape(tensor: Any) -> tuple[list[int], int]:
    """(dims, code). Null → 161001."""
    return _get_list(tensor, "aclGetViewShape", lambda t: t.dims)


def aclGetStorageShape(tensor: Any) -> tuple[list[int], int]:
    """(storage dims, code). Null → 161001."""
    return _get_list(tensor, "aclGetStorageShape", lambda t: t.storage)


def aclGetViewStrides(tensor: Any) -> tuple[list[int], int]:
    """(strides in elements, code). Null → 161001."""
    return _get_list(tensor, "aclGetViewStrides", lambda t: t.strides)


def _get_list(tensor: Any, function: str, get: Callable[[Tensor], tuple[int, ...]]) -> tuple[list[int], int]:
    found = find(as_handle(tensor, "tensor"), Tensor, function)
    return ([], found) if isinstance(found, int) else (list(get(found)), 0)


def _get_int(tensor: Any, function: str, get: Callable[[Tensor], int]) -> tuple[int, int]:
    found = find(as_handle(tensor, "tensor"), Tensor, function)
    return (0, found) if isinstance(found, int) else (get(found), 0)


def aclGetViewOffset(tensor: Any) -> tuple[int, int]:
    """(offset in elements, code). Null → 161001."""
    return _get_int(tensor, "aclGetViewOffset", lambda t: t.offset)


def aclGetFormat(tensor: Any) -> tuple[int, int]:
    """(view format, code). Null → 161001."""
    return _get_int(tensor, "aclGetFormat", lambda t: t.format)


def aclGetDataType(tensor: Any) -> tuple[int, int]:
    """(data type, code). Null → 161001."""
    return _get_int(tensor, "aclGetDataType", lambda t: t.dtype)


def aclGetRawTensorAddr(tensor: Any) -> tuple[int, int]:
    """(device address of the storage, without the view's offset; code). Null → 161001."""
    return _get_int(tensor, "aclGetRawTensorAddr", lambda t: t.data)


def aclSetRawTensorAddr(tensor: Any, addr: Any) -> int:
    """Move the tensor to other device memory. Not between phase 1 and phase 2. Null → 161001."""
    address = pointer(addr, "addr")
    found = find(as_handle(tensor, "tensor"), Tensor, "aclSetRawTensorAddr")
    if isinstance(found, int):
        return found
    found.data = address
    return 0


# -- scalars and arrays ----------------------------------------------------------------------------------------------------


def aclCreateScalar(value: Any, data_type: Any) -> int:
    """A host number in a data type, rounded to nearest even.

    0 with a message for None or a type that scalars cannot have.
    """
    dtype = integer(data_type, "data_type", INT32)
    if value is None:
        fail_aclnn(_NULLPTR, "aclCreateScalar: the value is null.")
        return 0
    scalar = Scalar.of(value, dtype)
    if scalar is None:
        fail_aclnn(_INVALID, f"aclCreateScalar: data type {dtype_name(dtype)} is not supported for scalars.")
        return 0
    return register(scalar)


def aclDestroyScalar(scalar: Any) -> int:
    """Null → 0; destroyed already → 161002."""
    return _destroy(scalar, Scalar, "aclDestroyScalar")


def aclCreateIntArray(values: Any) -> int:
    """A copied list of int64. None or empty gives an empty object, not null."""
    return register(IntArray(integers(values, "values")))


def aclCreateFloatArray(values: Any) -> int:
    """A copied list of FLOAT (each number rounded to it). None or empty gives an empty object."""
    items = () if values is None else sequence(values, "values")
    return register(FloatArray(tuple(_float32(v, i) for i, v in enumerate(items))))


def _float32(value: Any, i: int) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"values[{i}] must be a number, not {type(value).__name__}") from None
    try:
        rounded: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return float("inf") if number > 0 else float("-inf")
    return rounded


def aclCreateBoolArray(values: Any) -> int:
    """A copied list of bool. None or empty gives an empty object."""
    items = () if values is None else sequence(values, "values")
    return register(BoolArray(tuple(bool(v) for v in items)))


def aclDestroyIntArray(array: Any) -> int:
    """Null → 0; destroyed already → 161002."""
    return _destroy(array, IntArray, "aclDestroyIntArray")


def aclDestroyFloatArray(array: Any) -> int:
    """Null → 0; destroyed already → 161002."""
    return _destroy(array, FloatArray, "aclDestroyFloatArray")


def aclDestroyBoolArray(array: Any) -> int:
    """Null → 0; destroyed already → 161002."""
    return _destroy(array, BoolArray, "aclDestroyBoolArray")


def _size(handle: Any, kind: type[Any], function: str, get: Callable[[Any], int]) -> tuple[int, int]:
    found = find(as_handle(handle, "handle"), kind, function)
    return (0, found) if isinstance(found, int) else (get(found), 0)


def aclGetIntArraySize(array: Any) -> tuple[int, int]:
    """(number of elements, code). Null → 161001."""
    return _size(array, IntArray, "aclGetIntArraySize", lambda a: len(a.values))


def aclGetFloatArraySize(array: Any) -> tuple[int, int]:
    """(number of elements, code). Null → 161001."""
    return _size(array, FloatArray, "aclGetFloatArraySize", lambda a: len(a.values))


def aclGetBoolArraySize(array: Any) -> tuple[int, int]:
    """(number of elements, code). Null → 161001."""
    return _size(array, BoolArray, "aclGetBoolArraySize", lambda a: len(a.values))


# -- lists: they own their elements ----------------------------------------------------------------------------------------


def _create_list(values: Any, element: type[Any], make: Callable[[tuple[int, ...]], object], function: str) -> int:
    members = pointers(values, "values")
    for member in members:
        if member and lookup(member, element) is None:
            fail_aclnn(_INVALID, f"{function}: {member:#x} is no live {_C_NAMES[element]}.")
            return 0
    return register(make(members))


def aclCreateTensorList(tensors: Any) -> int:
    """A list that takes ownership of its tensors. 0 with a message when one is no live tensor."""
    return _create_list(tensors, Tensor, TensorList, "aclCreateTensorList")


def aclCreateScalarList(scalars: Any) -> int:
    """A list that takes ownership of its scalars. 0 with a message when one is no live scalar."""
    return _create_list(scalars, Scalar, ScalarList, "aclCreateScalarList")


def _destroy_list(handle: Any, kind: type[Any], destroy_element: Callable[[int], int], function: str) -> int:
    number = as_handle(handle, "handle")
    members = lookup(number, kind)
    code = _destroy(number, kind, function)
    if code or members is None:
        return code
    codes = [destroy_element(member) for member in members.handles]
    return next((c for c in codes if c), 0)


def aclDestroyTensorList(tensors: Any) -> int:
    """Destroys the contained tensors too.

    161002 with a message when one of them was destroyed apart: a double free on real cards.
    """
    return _destroy_list(tensors, TensorList, aclDestroyTensor, "aclDestroyTensorList")


def aclDestroyScalarList(scalars: Any) -> int:
    """Destroys the contained scalars too. 161002 with a message when one of them was destroyed apart."""
    return _destroy_list(scalars, ScalarList, aclDestroyScalar, "aclDestroyScalarList")


def aclGetTensorListSize(tensors: Any) -> tuple[int, int]:
    """(number of tensors, code). Null → 161001."""
    return _size(tensors, TensorList, "aclGetTensorListSize", lambda x: len(x.handles))


def aclGetScalarListSize(scalars: Any) -> tuple[int, int]:
    """(number of scalars, code). Null → 161001."""
    return _size(scalars, ScalarList, "aclGetScalarListSize", lambda x: len(x.handles))
