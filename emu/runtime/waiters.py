"""How host threads sleep until something moves: one condition for all of them, which costs one test while nobody sleeps."""

from __future__ import annotations

import threading

_condition = threading.Condition()
#: Host threads between :func:`arrive` and :func:`leave`.
count = 0
#: Goes up with each :func:`notify`.
version = 0


def notify() -> None:
    """Something moved: wake whoever sleeps."""
    global version
    if count:
        with _condition:
            version += 1
            _condition.notify_all()


def arrive() -> None:
    """The calling thread is going to sleep: from now on nothing moves without being counted in ``version``."""
    global count
    with _condition:
        count += 1


def leave() -> None:
    """It has what it wanted."""
    global count
    with _condition:
        count -= 1


def sleep(since: int, seconds: float) -> None:
    """Sleep until something moves, if nothing has since ``version`` was ``since``; at most ``seconds``."""
    with _condition:
        if version == since:
            _condition.wait(seconds)


def forget_after_fork() -> None:
    """In a forked child nobody sleeps, and nobody holds the condition."""
    global _condition, count
    _condition = threading.Condition()
    count = 0
