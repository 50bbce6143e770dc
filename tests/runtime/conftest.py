"""A small program on the simulated card, for tests of its time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import pytest

import emu
from emu import aclnn
from emu.runtime import context
from emu.types import DataType, Format, MemcpyKind


class Card:
    """Device 0 with tensors of ``n`` FLOAT; takes everything down at the end."""

    def __init__(self, **changes: Any) -> None:
        from emu import acl

        self.rt = acl.rt
        emu.configure(**changes)
        assert self.rt.set_device(0) == 0
        self.tensors: list[int] = []

    def stream(self) -> int:
        handle, ret = self.rt.create_stream()
        assert ret == 0
        return int(handle)

    def event(self) -> int:
        handle, ret = self.rt.create_event()
        assert ret == 0
        return int(handle)

    def malloc(self, nbytes: int) -> int:
        ptr, ret = self.rt.malloc(nbytes, 0)
        assert ret == 0
        return int(ptr)

    def tensor(self, n: int, ptr: int | None = None) -> int:
        handle = aclnn.aclCreateTensor((n,), DataType.FLOAT, None, 0, Format.ND, (n,), self.malloc(4 * n) if ptr is None else ptr)
        self.tensors.append(handle)
        return int(handle)

    def launch(self, op: str, stream: int, *args: Any) -> None:
        size, executor, ret = getattr(aclnn, op + "GetWorkspaceSize")(*args)
        assert (size, ret) == (0, 0), aclnn.aclGetRecentErrMsg()
        assert getattr(aclnn, op)(0, size, executor, stream) == 0, aclnn.aclGetRecentErrMsg()

    def write(self, ptr: int, array: np.ndarray[Any, Any]) -> None:
        host = array.__array_interface__["data"][0]
        assert self.rt.memcpy(ptr, array.nbytes, host, array.nbytes, MemcpyKind.HOST_TO_DEVICE) == 0

    def elapsed(self, start: int, end: int) -> float:
        ms, ret = self.rt.event_elapsed_time(start, end)
        assert ret == 0
        return float(ms)

    def close(self) -> None:
        for tensor in self.tensors:
            aclnn.aclDestroyTensor(tensor)
        self.rt.reset_device_force(0)
        context.set_current(None)


@pytest.fixture
def card() -> Iterator[Callable[..., Card]]:
    """``card(schedule="lazy", …)`` opens a card; the next call closes the one before."""
    before = emu.configure()
    cards: list[Card] = []

    def make(**changes: Any) -> Card:
        while cards:
            cards.pop().close()
        cards.append(Card(**changes))
        return cards[-1]

    yield make
    while cards:
        cards.pop().close()
    emu.configure(**{f.name: getattr(before, f.name) for f in fields(before)})
