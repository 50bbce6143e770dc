"""A simulated card for the contract tests: set up, filled and read through emu.acl and emu.aclnn alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import emu
from emu import aclnn
from emu.types import DataType, Format, MemcpyKind

from .phase1 import SOCS

CODES = {
    np.dtype(np.float32): DataType.FLOAT,
    np.dtype(np.float16): DataType.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): DataType.BF16,
    np.dtype(np.int8): DataType.INT8,
    np.dtype(np.int32): DataType.INT32,
    np.dtype(np.float64): DataType.DOUBLE,
    np.dtype(np.int64): DataType.INT64,
    np.dtype(np.bool_): DataType.BOOL,
    np.dtype(np.complex64): DataType.COMPLEX64,
}


class Npu:
    """Device 0 with one stream; remembers what it made and takes it all down."""

    def __init__(self) -> None:
        from emu import acl

        self.acl = acl
        assert acl.rt.set_device(0) == 0
        self.stream, ret = acl.rt.create_stream()
        assert ret == 0
        self.blocks: list[int] = []
        self.tensors: list[int] = []

    def malloc(self, nbytes: int) -> int:
        ptr, ret = self.acl.rt.malloc(nbytes, 0)
        assert ret == 0
        self.blocks.append(ptr)
        return int(ptr)

    def free(self, ptr: int) -> None:
        self.blocks.remove(ptr)
        assert self.acl.rt.free(ptr) == 0

    def put(self, array: np.ndarray[Any, Any]) -> int:
        """Bytes of a contiguous array in new device memory."""
        flat = np.ascontiguousarray(array)
        ptr = self.malloc(max(flat.nbytes, 1))
        self.write(ptr, flat)
        return ptr

    def write(self, ptr: int, array: np.ndarray[Any, Any]) -> None:
        flat = np.ascontiguousarray(array)
        host = flat.__array_interface__["data"][0]
        assert self.acl.rt.memcpy(ptr, flat.nbytes, host, flat.nbytes, MemcpyKind.HOST_TO_DEVICE) == 0

    def get(self, ptr: int, shape: Any, dtype: Any) -> np.ndarray[Any, Any]:
        out = np.empty(shape, dtype)
        host = out.__array_interface__["data"][0]
        assert self.acl.rt.memcpy(host, out.nbytes, ptr, out.nbytes, MemcpyKind.DEVICE_TO_HOST) == 0
        return out

    def tensor(
        self, shape: Any, dtype: Any, ptr: int | None, strides: Any = None, offset: int = 0, storage: Any = None, fmt: int = Format.ND
    ) -> int:
        code = dtype if isinstance(dtype, int) else CODES[np.dtype(dtype)]
        h = aclnn.aclCreateTensor(shape, code, strides, offset, fmt, shape if storage is None else storage, ptr)
        assert h > 0
        self.tensors.append(h)
        return int(h)

    def array(self, array: np.ndarray[Any, Any]) -> int:
        """A contiguous tensor with the array's values."""
        return self.tensor(array.shape, array.dtype, self.put(array))

    def run(self, op: str, *args: Any, workspace: int | None = None) -> int:
        """Both phases and a synchronisation; returns the workspace size."""
        size, executor, ret = getattr(aclnn, op + "GetWorkspaceSize")(*args)
        assert ret == 0, aclnn.aclGetRecentErrMsg()
        ws = workspace if workspace is not None else (self.malloc(size) if size else 0)
        assert getattr(aclnn, op)(ws, size, executor, self.stream) == 0, aclnn.aclGetRecentErrMsg()
        assert self.acl.rt.synchronize_stream(self.stream) == 0, aclnn.aclGetRecentErrMsg()
        return int(size)

    def close(self) -> None:
        for t in self.tensors:
            aclnn.aclDestroyTensor(t)
        for ptr in self.blocks:
            self.acl.rt.free(ptr)
        self.acl.rt.reset_device_force(0)


@pytest.fixture
def restore_config() -> Iterator[None]:
    """What a test configures ends with it."""
    before = emu.configure()
    yield
    emu.configure(**{f.name: getattr(before, f.name) for f in fields(before)})


@pytest.fixture
def npu(restore_config: None) -> Iterator[Npu]:
    """The default product (A2)."""
    card = Npu()
    yield card
    card.close()


@pytest.fixture
def npu_on(restore_config: None) -> Iterator[Any]:
    """``npu_on(soc, **config)`` opens a card of another product."""
    cards: list[Npu] = []

    def make(soc: str, **changes: Any) -> Npu:
        while cards:
            cards.pop().close()
        emu.configure(soc=soc, strict_products=False, **changes)
        cards.append(Npu())
        return cards[-1]

    yield make
    while cards:
        cards.pop().close()


@pytest.fixture(params=SOCS)
def soc(request: pytest.FixtureRequest) -> Any:
    before = emu.configure()
    emu.configure(soc=request.param, strict_products=True)
    yield request.param
    emu.configure(soc=before.soc, strict_products=before.strict_products)
