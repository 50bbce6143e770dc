"""The vectors that kernels write out (`lanes` of the kernels), run on one value after the other.

The steps are the kernels' own functions. Of a vector nothing but its operators is replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from emu_kernels.flows import Kind

from emu.verify import memory
from emu.verify.memory import Pointer
from emu.verify.values import Value, convert, fma, record, recording, text


class Lane:
    """One lane: a FLOAT with the operators of `lanes.Lanes`, read when it is used first."""

    def __init__(self, read: Callable[[], Any]) -> None:
        self._read = read
        self._value: Any = None

    @classmethod
    def of(cls, value: Any) -> Lane:
        return cls(lambda: value)

    @property
    def value(self) -> Any:
        if self._value is None:
            self._value = self._read()
        return self._value

    def __add__(self, other: Lane) -> Lane:
        return Lane.of(self.value + other.value)

    def __sub__(self, other: Lane) -> Lane:
        return Lane.of(self.value - other.value)

    def __mul__(self, other: Lane) -> Lane:
        return Lane.of(self.value * other.value)

    def __truediv__(self, other: Lane) -> Lane:
        return Lane.of(self.value / other.value)

    def __neg__(self) -> Lane:
        return Lane.of(-self.value)

    def fma(self, factor: Lane, term: Lane) -> Lane:
        operands = self.value, factor.value, term.value
        out = fma("f32", *operands)
        if recording():
            shown = [text(x) for x in operands]
            record(f"{shown[0]} * {shown[1]} + {shown[2]}, fused", out)
        return Lane.of(out)

    def choose(self, relation: str, bound: Lane, then: Lane, other: Lane) -> Lane:
        x, y = self.value, bound.value
        return then if {"<": x.__lt__, "<=": x.__le__, ">": x.__gt__, "==": x.__eq__}[relation](y) else other

    def if_sign(self, then: Lane, other: Lane) -> Lane:
        x = self.value
        negative = x.bits >= 1 << 31
        if recording():
            record(f"{text(x)} has its sign set", negative)
        return then if negative else other

    def rounded_to_half(self) -> Lane:
        x = self.value
        out = Value("f32", np.float32(np.float16(x.x)))
        if recording():
            record(f"{text(x)} rounded to FLOAT16", out)
        return Lane.of(out)


def _constant(x: float) -> Lane:
    return Lane.of(convert("f32", x))


def _saturated(x: Lane, k: Any, largest: float) -> Lane:
    if x.value.x != x.value.x:
        return _constant(0.0)
    return _constant(float(np.clip(x.value.x, -largest, largest)))


def _looked_up(look: Callable[..., Value], table: Any, pattern: Callable[..., Value], patterns: Pointer, i: int) -> Value:
    return look(table, pattern(patterns, i))


def lanes(formats: ModuleType) -> SimpleNamespace:
    """What stands in for `lanes`; `formats` is the kernels' own, whose readers and writers are steps."""

    def mapped(name: str, kind: Kind, step: Callable[..., Lane], constants: Sequence[float]) -> Callable[..., None]:
        read, write = formats.reader(kind.dtype), formats.writer(kind.dtype, kind.saturate)
        pattern, look, half, put_half = memory.load("u16"), memory.load("f32"), memory.load("u16"), memory.store("u16")

        def run(out: Pointer, a: Pointer, b: Pointer, c: Any, s: Any, n: int, stream: bool) -> None:
            for i in range(n):
                if kind.table:
                    factor = Lane(partial(_looked_up, look, c, pattern, b, i))
                    result = step(_constant, Lane(partial(read, a, i)), factor)
                else:
                    operands = [Lane(partial(read, p, i)) for p in (a, b, c)]
                    result = step(_constant, *operands, Lane.of(convert("f32", s)))
                write(out, i, result.value)
                if kind.plus_zero and half(Pointer(out.memory, out.at), i).bits == 0x8000:
                    put_half(out, i, Value("u16", 0))

        return run

    def direct(name: str, fast: Callable[..., None], plain: Any, size: int = 4) -> Callable[..., None]:
        return fast

    return SimpleNamespace(
        mapped=mapped, direct=direct, saturated=_saturated, LANES=1, Lanes=Lane, Constants=None, Memory=None, groups=None,
        FLOATS=None, INTS=None,
    )  # fmt: skip
