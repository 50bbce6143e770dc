"""Raw memory for a kernel's source that runs in Python: pointers into arrays of bytes, loads and stores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu.verify.values import FLOATS, NUMPY, Tape, Value, current, record, recording, text


class Pointer:
    """An address: `at` bytes into `memory`. A tensor has a name and a dtype, scratch has neither.

    `alone`: the only element whose loads and stores are written down; None: all.
    """

    __slots__ = ("alone", "at", "dtype", "memory", "name")

    def __init__(self, memory: NDArray[np.uint8], at: int = 0, name: str = "", dtype: str = "", alone: int | None = None) -> None:
        self.memory, self.at, self.name, self.dtype, self.alone = memory, at, name, dtype, alone

    def moved(self, nbytes: int) -> Pointer:
        """The address `nbytes` further on."""
        return Pointer(self.memory, self.at + int(nbytes), self.name, self.dtype, self.alone)

    def items(self, kind: str, i: int, n: int = 1) -> NDArray[Any]:
        """Elements i to i + n - 1 of an array of that kind here, as a view."""
        size = NUMPY[kind].itemsize
        start = self.at + i * size
        return self.memory[start : start + n * size].view(NUMPY[kind])

    def element(self, kind: str, i: int) -> int:
        """The number of element i in the whole tensor."""
        return self.at // NUMPY[kind].itemsize + i


#: The element that was loaded last from a tensor.
latest = [0]


class Table:
    """A table that is not there: an entry is computed when it is read."""

    def __init__(self, entry: Callable[[int], Value]) -> None:
        self.entry = entry


def _wanted(p: Pointer, kind: str, i: int) -> bool:
    return recording() and bool(p.name) and p.alone in (None, p.element(kind, i))


def load(kind: str) -> Callable[[Any, Any], Value]:
    """get(p, i) of a carrier; a load from a tensor is a step."""

    def get(p: Any, i: Any) -> Value:
        i = int(i)
        if isinstance(p, Table):
            return p.entry(i)
        raw = p.items(kind, i)[0]
        out = Value(kind, raw if kind in FLOATS else int(raw))
        if p.name:
            latest[0] = p.element(kind, i)
        if _wanted(p, kind, i):
            record(p.name, out, p.dtype)
        return out

    return get


def store(kind: str) -> Callable[[Any, Any, Any], None]:
    """put(p, i, x) of a carrier; a store to a tensor is a step."""

    def put(p: Pointer, i: Any, x: Any) -> None:
        p.items(kind, int(i))[0] = x.x if isinstance(x, Value) else x
        if _wanted(p, kind, int(i)):
            record(f"{p.name} = {text(x)}", x, p.dtype)

    return put


def scratch(nbytes: int) -> Callable[[], Pointer]:
    """A function that gives nbytes of memory."""
    return lambda: Pointer(np.zeros(nbytes, np.uint8))


def partial_sums(kind: str, a: NDArray[Any], b: NDArray[Any], out: NDArray[Any]) -> None:
    """Write down the sums of two lines. What is added to or from a zero, as padding is, is left out."""
    if recording():
        for i in np.flatnonzero((a != 0) & (b != 0)).tolist():
            partial_sum(Value(kind, a[i]), Value(kind, b[i]), Value(kind, out[i]))


def partial_sum(a: Value, b: Value, out: Value) -> None:
    """One addition of a sum."""
    record(f"sum: {text(a)} + {text(b)}", out)


def add64(kind: str) -> Callable[[Pointer, Pointer], None]:
    """x[i] += y[i] for 64 items: explicit vectors in the kernel, the plain addition here."""

    def add(x: Pointer, y: Pointer) -> None:
        to, other = x.items(kind, 0, 64), y.items(kind, 0, 64)
        total = to + other
        partial_sums(kind, to, other, total)
        to[:] = total

    return add


def fill64(kind: str) -> Callable[[Pointer, Any], None]:
    """x[i] = value for 64 items."""

    def fill(x: Pointer, value: Any) -> None:
        x.items(kind, 0, 64)[:] = value.x if isinstance(value, Value) else value

    return fill


def sum_pairs(kind: str, count: int, neighbours: bool) -> Callable[[Pointer], Value]:
    """The sum of `count` items by halving their number: explicit vectors in the kernel, the plain additions here."""

    def total(x: Pointer) -> Value:
        v = x.items(kind, 0, count).copy()
        while v.size > 1:
            half = v.size // 2
            a, b = (v[0::2], v[1::2]) if neighbours else (v[:half], v[half:])
            out = a + b
            partial_sums(kind, a, b, out)
            v = out
        return Value(kind, v[0])

    return total


def step(function: Callable[..., Any]) -> Callable[..., Any]:
    """A helper of the kernels as one step: its result is written down, what it does inside is not."""

    def run(*args: Any) -> Any:
        if not recording():
            return function(*args)
        tape: Tape = current[-1]
        shown = ", ".join(map(_shown, args))
        tape.quiet += 1
        try:
            result = function(*args)
        finally:
            tape.quiet -= 1
        _written(function.__name__, args, shown, result)
        return result

    return run


def _shown(x: Any) -> str:
    """An argument; of scratch its first item, the only one of a single element."""
    if isinstance(x, Pointer):
        return x.name or text(Value("f32", x.items("f32", 0)[0]))
    return text(x)


def _written(name: str, args: tuple[Any, ...], shown: str, result: Any) -> None:
    where = next((a for a in args if isinstance(a, Pointer)), None)
    if where is None:
        if isinstance(result, (Value, bool)):
            record(f"{name}({shown})", result)
        return
    if where.name:  # a reader or a writer of a tensor
        kind = {1: "i8", 2: "u16", 4: "i32" if where.dtype == "INT32" else "f32", 8: "f64"}[_size(where.dtype)]
        index = int(args[1])
        if where.alone not in (None, where.element(kind, index)):
            return
        raw = where.items(kind, index)[0]
        stored = Value(kind, raw if kind in FLOATS else int(raw))
        if result is None:
            record(f"{where.name} = {text(args[2])} to {where.dtype}", stored, where.dtype)
        else:
            record(f"{where.name} = {text(stored)} to FLOAT", result)
    elif name.startswith("exp_"):  # in place, on scratch
        value = where.items("f32", 0)[0]
        record(f"{name}({shown.split(',')[0]})", Value("f32", value))


def _size(dtype: str) -> int:
    return {"INT8": 1, "FLOAT16": 2, "BF16": 2, "FLOAT": 4, "INT32": 4, "DOUBLE": 8}[dtype]
