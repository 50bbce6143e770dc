"""Handles: positive ints that stand for objects in every face, never reused in the life of the process.

A handle and the object behind it are two things: destroying the handle forgets the number, while queued work keeps the
object for as long as it needs it. Handles look like no device address and no host address (they start at 2**40 + 1 and are odd),
so that a mixed-up argument is recognised and not obeyed.
"""

from __future__ import annotations

from itertools import count
from typing import TypeVar

T = TypeVar("T")

_numbers = count((1 << 40) + 1, 2)
_live: dict[int, object] = {}


def register(obj: object) -> int:
    """Give ``obj`` a new handle."""
    handle = next(_numbers)
    _live[handle] = obj
    return handle


def lookup(handle: int, kind: type[T]) -> T | None:
    """The live object of class ``kind`` behind ``handle``; None for anything else."""
    obj = _live.get(handle)
    return obj if isinstance(obj, kind) else None


def release(handle: int) -> object | None:
    """Forget a handle and return what it stood for; None when it stood for nothing. Atomic: of two callers one wins."""
    return _live.pop(handle, None)


def live(kind: type[T]) -> list[T]:
    """The live objects of a class."""
    return [obj for obj in list(_live.values()) if isinstance(obj, kind)]


def count_live(kind: type[object]) -> int:
    """How many handles of a class are live."""
    return sum(isinstance(obj, kind) for obj in list(_live.values()))
