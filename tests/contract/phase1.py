"""Calls of phase 1 that can be broken one check at a time: what the tables of each operator are made of."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emu import aclnn
from emu.types import DataType, Format

A2, P310, A910, A950 = "Ascend910B1", "Ascend310P3", "Ascend910A", "Ascend950PR_9599"
SOCS = (A2, P310, A910, A950)
NULL, INVALID, REFUSED = 161001, 161002, 561103


@dataclass
class T:
    """A tensor to be made."""

    shape: tuple[int, ...] = (2, 3)
    dtype: int = DataType.FLOAT
    fmt: int = Format.ND
    strides: tuple[int, ...] | None = None
    storage: tuple[int, ...] | None = None
    data: int = 0
    offset: int = 0


Call = dict[str, Any]


@dataclass
class Op:
    names: tuple[str, ...]
    function: str
    defaults: Call = field(default_factory=dict)

    def call(self) -> Call:
        return {n: self.defaults.get(n, T()) for n in self.names}


def fresh(op: Op) -> Call:
    call = op.call()
    return {n: T(**vars(v)) if isinstance(v, T) else v for n, v in call.items()}


def execute(op: Op, call: Call) -> tuple[int, int, int, str]:
    handles: list[Any] = []
    made = []
    for value in call.values():
        if isinstance(value, T):
            storage = value.storage if value.storage is not None else value.shape
            h = aclnn.aclCreateTensor(value.shape, value.dtype, value.strides, value.offset, value.fmt, storage, value.data)
            assert h > 0
            made.append(h)
            handles.append(h)
        else:
            handles.append(value)
    aclnn.aclGetRecentErrMsg()
    size, executor, code = getattr(aclnn, op.function)(*handles)
    text = aclnn.aclGetRecentErrMsg() or ""
    for h in made:
        assert aclnn.aclDestroyTensor(h) == 0
    if executor:
        assert aclnn.aclDestroyAclOpExecutor(executor) == 0
    return size, executor, code, text


def null(name: str) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call[name] = None

    return apply


def dtype(name: str, code: int) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        if call[name] is not None:
            call[name].dtype = code

    return apply


def all_float_to(code: int) -> Callable[[Call], None]:
    """Every tensor that still is FLOAT: so that it can stand beside a mismatch."""

    def apply(call: Call) -> None:
        for value in call.values():
            if isinstance(value, T) and value.dtype == DataType.FLOAT:
                value.dtype = code

    return apply


def shape(name: str, dims: tuple[int, ...]) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call[name].shape = dims

    return apply


def rank9(call: Call) -> None:
    for value in call.values():
        if isinstance(value, T):
            value.shape = (1,) * 7 + value.shape[-2:]


def dim(value: int) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call["dim"] = value

    return apply


Row = tuple[str, Callable[[Call], None], int, str]


def search(pattern: str, text: str) -> bool:
    return re.search(pattern, text) is not None


def check_alone(op: Op, rows: list[Row], i: int) -> None:
    """The violation of one check gives its code and its text."""
    _, violate, code, text = rows[i]
    call = fresh(op)
    violate(call)
    size, executor, got, message = execute(op, call)
    assert (size, executor, got) == (0, 0, code), message
    assert search(text, message), message
    assert ("EZ1001" in message) == (code // 100000 == 1)


def check_pair(op: Op, rows: list[Row], i: int) -> None:
    """Of checks ``i`` and ``i + 1`` violated together, the first is reported."""
    call = fresh(op)
    # A later null would be met by the earlier mutation's tensor, so apply the second one first.
    rows[i + 1][1](call)
    rows[i][1](call)
    _, _, got, message = execute(op, call)
    assert got == rows[i][2], message
    assert search(rows[i][3].replace("DT_FLOAT and", "DT_.* and"), message), message
