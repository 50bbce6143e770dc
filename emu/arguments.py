"""Python arguments to C arguments: a wrong type raises TypeError, a number that the C type cannot hold OverflowError,
before anything happens."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

INT32 = (-(1 << 31), (1 << 31) - 1)
INT64 = (-(1 << 63), (1 << 63) - 1)
UINT64 = (0, (1 << 64) - 1)


def integer(value: Any, name: str, limits: tuple[int, int] = INT64) -> int:
    """An int (or what counts as one) within the limits of its C type."""
    if type(value) is not int:
        try:
            value = index(value)
        except TypeError:
            raise TypeError(f"{name} must be an int, not {type(value).__name__}") from None
    if limits[0] <= value <= limits[1]:
        number: int = value
        return number
    raise OverflowError(f"{name} is {value}, outside {limits[0]} to {limits[1]}")


def pointer(value: Any, name: str) -> int:
    """A handle or an address: an int, None for null."""
    return 0 if value is None else integer(value, name, UINT64)


def handle(value: Any, name: str) -> int:
    """A handle: an int, None for null. Any int is taken: one that stands for nothing is an error with a code."""
    if type(value) is int:
        return value
    if value is None:
        return 0
    try:
        number: int = index(value)
    except TypeError:
        raise TypeError(f"{name} must be a handle (an int) or None, not {type(value).__name__}") from None
    return number


def integers(values: Any, name: str, limits: tuple[int, int] = INT64) -> tuple[int, ...]:
    """A (pointer, count) pair of C: one sequence of ints; None for (null, 0)."""
    if values is None:
        return ()
    return tuple(integer(v, f"{name}[{i}]", limits) for i, v in enumerate(sequence(values, name)))


def pointers(values: Any, name: str) -> tuple[int, ...]:
    """A sequence of handles; None elements are null."""
    if values is None:
        return ()
    return tuple(handle(v, f"{name}[{i}]") for i, v in enumerate(sequence(values, name)))


def sequence(values: Any, name: str) -> Sequence[Any] | Iterable[Any]:
    if isinstance(values, (str, bytes, dict)) or not hasattr(values, "__iter__"):
        raise TypeError(f"{name} must be a sequence, not {type(values).__name__}")
    items: Sequence[Any] = values
    return items
