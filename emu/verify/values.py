"""Numbers that run a kernel's source in Python with its bits, and a tape of what is done to them.

A FLOAT is a NumPy float32 and a DOUBLE a float64, so each operation rounds once. Integers compute in 64 bits, signed if both are, as
compiled code does, and are cut when they are converted.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from emu_kernels.reference.arith import Step
from emu_kernels.reference.formats import FORMATS, decimal

FLOATS: dict[str, Any] = {"f32": np.float32, "f64": np.float64}
INTEGERS = {f"{sign}{width}": (sign == "i", width) for sign in "iu" for width in (8, 16, 32, 64)}
_FORMAT = {"f32": "FLOAT", "f64": "DOUBLE"} | {k: f"{'' if signed else 'U'}INT{n}" for k, (signed, n) in INTEGERS.items()}
NUMPY = {kind: np.dtype(f"{kind[0]}{int(kind[1:]) // 8}") for kind in (*FLOATS, *INTEGERS)}


class Tape:
    """Steps in order. Nothing is written while `quiet` is not 0: inside a function that is a step of its own.

    `sums`: the loops of a reduction run. Only their additions are written, and not those with a zero: padding is one.
    """

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.quiet = 0
        self.sums = False

    def write(self, name: str, x: Any, fmt: str | None = None) -> None:
        """Append a value: a Value, or a bool of a comparison. `fmt` says what an integer is the pattern of."""
        if self.quiet:
            return
        if isinstance(x, Value):
            fmt = fmt or _FORMAT[x.kind]
            self.steps.append(Step(name, x.bits, decimal(FORMATS[fmt], x.bits) if fmt in FORMATS else str(x.x), fmt))
        else:
            self.steps.append(Step(name, int(x), str(bool(x)), "BOOL"))


#: What is being written on; None while nothing runs. One run at a time: `playback` holds a lock.
current: list[Tape] = []


def record(name: str, x: Any, fmt: str | None = None) -> None:
    """Append to the current tape, if there is one."""
    if current:
        current[-1].write(name, x, fmt)


def recording() -> bool:
    """Whether a step would be written: making its text costs more than the step."""
    return bool(current) and not current[-1].quiet


def cut(kind: str, x: int) -> int:
    """An integer's low bits, as a number of that kind."""
    signed, width = INTEGERS[kind]
    half = 1 << (width - 1)
    return (x + half) % (1 << width) - half if signed else x % (1 << width)


def text(x: Any) -> str:
    """An operand: its pattern."""
    if isinstance(x, Value):
        return f"0x{x.bits:0{NUMPY[x.kind].itemsize * 2}x}"
    return str(x)


class Value:
    """One number: `kind` as in the carriers of the kernels ("f32", "u16", …), `x` its value."""

    __slots__ = ("kind", "x")
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, kind: str, x: Any) -> None:
        self.kind, self.x = kind, x

    @property
    def bits(self) -> int:
        """The pattern, as an unsigned integer."""
        if self.kind in FLOATS:
            return int(self.x.view(np.dtype(f"u{NUMPY[self.kind].itemsize}")))
        return int(self.x) % (1 << INTEGERS[self.kind][1])

    def __index__(self) -> int:
        return int(self.x)

    def __bool__(self) -> bool:
        return bool(self.x)

    def __neg__(self) -> Value:
        out = Value(self.kind, -self.x)
        if recording() and not current[-1].sums:
            record(f"-{text(self)}", out)
        return out


def lift(x: Any, like: Value) -> Value:
    """A constant beside a Value: a Python number has the kind of the other."""
    if isinstance(x, Value):
        return x
    if isinstance(x, np.generic):
        kind = f"{x.dtype.kind}{8 * x.dtype.itemsize}"
        return Value(kind, x if kind in FLOATS else int(x))
    return Value(like.kind, FLOATS[like.kind](x)) if like.kind in FLOATS else Value("i64", int(x))


def pair(a: Any, b: Any) -> tuple[str, Any, Any]:
    """The kind in which two operands meet, and both of it."""
    a, b = (lift(a, b), b) if isinstance(b, Value) else (a, lift(b, a))
    if a.kind in FLOATS or b.kind in FLOATS:
        kind = a.kind if a.kind == b.kind else "f64"
        return kind, FLOATS[kind](a.x), FLOATS[kind](b.x)
    signed = INTEGERS[a.kind][0] and INTEGERS[b.kind][0]
    kind = "i64" if signed else "u64"
    return kind, a.x, b.x


def _divide(a: Any, b: Any) -> Any:
    return a / b


_ARITHMETIC: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "add": ("+", lambda a, b: a + b), "sub": ("-", lambda a, b: a - b), "mul": ("*", lambda a, b: a * b), "truediv": ("/", _divide),
    "and": ("&", lambda a, b: a & b), "or": ("|", lambda a, b: a | b), "lshift": ("<<", lambda a, b: a << b),
    "rshift": (">>", lambda a, b: a >> b),
}  # fmt: skip
_COMPARISONS: dict[str, tuple[str, Callable[[Any, Any], Any]]] = {
    "lt": ("<", lambda a, b: a < b), "le": ("<=", lambda a, b: a <= b), "gt": (">", lambda a, b: a > b),
    "ge": (">=", lambda a, b: a >= b), "eq": ("==", lambda a, b: a == b), "ne": ("!=", lambda a, b: a != b),
}  # fmt: skip


def _arithmetic(symbol: str, compute: Callable[[Any, Any], Any], swap: bool) -> Callable[[Value, Any], Value]:
    def apply(self: Value, other: Any) -> Value:
        a, b = (other, self) if swap else (self, other)
        kind, x, y = pair(a, b)
        out = Value(kind, compute(x, y) if kind in FLOATS else cut(kind, compute(x, y)))
        if recording() and (not current[-1].sums or (symbol == "+" and x != 0 and y != 0)):
            label = "sum: " if current[-1].sums else ""
            record(f"{label}{text(lift(a, self))} {symbol} {text(lift(b, self))}", out)
        return out

    return apply


def _comparison(symbol: str, compute: Callable[[Any, Any], Any]) -> Callable[[Value, Any], bool]:
    def apply(self: Value, other: Any) -> bool:
        _, x, y = pair(self, other)
        out = bool(compute(x, y))
        if recording() and not current[-1].sums:
            record(f"{text(self)} {symbol} {text(lift(other, self))}", out)
        return out

    return apply


for _name, (_symbol, _compute) in _ARITHMETIC.items():
    setattr(Value, f"__{_name}__", _arithmetic(_symbol, _compute, False))
    setattr(Value, f"__r{_name}__", _arithmetic(_symbol, _compute, True))
for _name, (_symbol, _compute) in _COMPARISONS.items():
    setattr(Value, f"__{_name}__", _comparison(_symbol, _compute))


def convert(kind: str, x: Any) -> Value:
    """A conversion of the compiler: to FLOAT and DOUBLE rounded once, to an integer toward zero and cut."""
    if isinstance(x, Value) and x.kind == kind:
        return x
    raw = x.x if isinstance(x, Value) else x
    if kind in FLOATS:
        out = Value(kind, FLOATS[kind](raw))
    else:
        whole = 0 if isinstance(raw, (float, np.floating)) and not math.isfinite(raw) else int(raw)
        out = Value(kind, cut(kind, whole))
    if isinstance(x, Value) and recording():
        record(f"{_FORMAT[x.kind]} {text(x)} to {_FORMAT[kind]}", out)
    return out


def fma(kind: str, a: Any, b: Any, c: Any) -> Value:
    """a * b + c, exact in rationals and rounded once."""
    x, y, z = (FLOATS[kind](v.x if isinstance(v, Value) else v) for v in (a, b, c))
    if not all(map(math.isfinite, (x, y, z))):
        return Value(kind, x * y + z)
    exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    if exact == 0:
        return Value(kind, x * y + z)  # the signs of zeros
    try:
        near = float(exact)
    except OverflowError:
        near = math.copysign(math.inf, exact)
    if kind == "f32" and math.isfinite(near) and Fraction(near) != exact:
        # Made odd, the second rounding is that of the exact value.
        low = near if Fraction(near) < exact else math.nextafter(near, -math.inf)
        high = math.nextafter(low, math.inf)
        near = low if int(np.float64(low).view(np.uint64)) & 1 else high
    return Value(kind, FLOATS[kind](near))
