"""Slots of libnnopbase that read or write arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from emu import nnopbase
from emu.objects import MAX_DIMS, BoolArray, FloatArray, IntArray, Scalar, Tensor
from emu.runtime.errors import fail_aclnn
from emu.runtime.handles import register
from emu.sdk.bridge import ffi
from emu.status import AclnnStatus
from emu.types import dtype_name

_NULLPTR = int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR)
_INVALID = int(AclnnStatus.ACLNN_ERR_PARAM_INVALID)

_cast, _unpack = ffi.cast, ffi.unpack
_INT64 = ffi.typeof("int64_t *")


def _int64s(address: int, count: int) -> tuple[int, ...]:
    return tuple(_unpack(_cast(_INT64, address), count)) if address and count else ()


def _fields(
    dims: int, rank: int, dtype: int, strides: int, offset: int, fmt: int, storage: int, storage_rank: int, data: int
) -> tuple[Any, ...] | None:
    """The tensor that C describes; None when an array is null and not empty. Dimensions past the 25th are dropped, as in real libraries."""
    if (rank and not dims) or (storage_rank and not storage):
        return None
    rank, storage_rank = min(rank, MAX_DIMS), min(storage_rank, MAX_DIMS)
    stride = _int64s(strides, rank) if strides else None
    return _int64s(dims, rank), dtype, stride, offset, fmt, _int64s(storage, storage_rank), data


def _create_tensor(*args: int) -> int:
    fields = _fields(*args)
    if fields is None:
        fail_aclnn(_NULLPTR, "aclCreateTensor: viewDims or storageDims is null, its number of dimensions is not 0.")
        return 0
    return register(Tensor(*fields))


def _init_tensor(tensor: int, *args: int) -> int:
    found = nnopbase.find(tensor, Tensor, "aclInitTensor")
    if isinstance(found, int):
        return found
    fields = _fields(*args)
    if fields is None:
        return fail_aclnn(_NULLPTR, "aclInitTensor: viewDims or storageDims is null, its number of dimensions is not 0.")
    found.set(*fields)
    return 0


def _numbers(function: str, get: Callable[[Tensor], tuple[int, ...]]) -> Callable[[int, int, int], int]:
    """A getter of dimensions or strides: the C side gives room for 32 numbers and makes the array that the caller frees."""

    def slot(tensor: int, values: int, count: int) -> int:
        found = nnopbase.find(tensor, Tensor, function)
        if isinstance(found, int):
            return found
        numbers = get(found)
        target = _cast(_INT64, values)
        for i, number in enumerate(numbers):
            target[i] = number
        _cast("uint64_t *", count)[0] = len(numbers)
        return 0

    return slot


def _create_scalar(value: int, dtype: int) -> int:
    if not value:
        fail_aclnn(_NULLPTR, "aclCreateScalar: the value is null.")
        return 0
    size = Scalar.size_of(dtype)
    if not size:
        fail_aclnn(_INVALID, f"aclCreateScalar: data type {dtype_name(dtype)} is not supported for scalars.")
        return 0
    return register(Scalar(bytes(ffi.buffer(_cast("char *", value), size)), dtype))


def _create_int_array(values: int, count: int) -> int:
    return register(IntArray(_int64s(values, count)))


def _create_float_array(values: int, count: int) -> int:
    return register(FloatArray(tuple(_unpack(_cast("float *", values), count)) if values and count else ()))


def _create_bool_array(values: int, count: int) -> int:
    raw = _unpack(_cast("uint8_t *", values), count) if values and count else ()
    return register(BoolArray(tuple(bool(b) for b in raw)))


def _handles(values: int, count: int) -> list[int]:
    return list(_unpack(_cast("uintptr_t *", values), count)) if values and count else []


def _create_tensor_list(values: int, count: int) -> int:
    return nnopbase.aclCreateTensorList(_handles(values, count))


def _create_scalar_list(values: int, count: int) -> int:
    return nnopbase.aclCreateScalarList(_handles(values, count))


SLOTS: dict[str, Callable[..., int]] = {
    "aclCreateTensor": _create_tensor,
    "aclInitTensor": _init_tensor,
    "aclGetViewShape": _numbers("aclGetViewShape", lambda t: t.dims),
    "aclGetStorageShape": _numbers("aclGetStorageShape", lambda t: t.storage),
    "aclGetViewStrides": _numbers("aclGetViewStrides", lambda t: t.strides),
    "aclCreateScalar": _create_scalar,
    "aclCreateIntArray": _create_int_array,
    "aclCreateFloatArray": _create_float_array,
    "aclCreateBoolArray": _create_bool_array,
    "aclCreateTensorList": _create_tensor_list,
    "aclCreateScalarList": _create_scalar_list,
}
