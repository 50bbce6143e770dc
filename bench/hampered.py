"""The cells in which a second thread made PyTorch or the limit slower: its threads wait for each other without leaving the CPU.

That happens when another process takes one of the CPUs, and it flatters the emulator.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bench.text import name

Record = dict[str, Any]
#: So many times the time of one thread. Below that it may be the scatter of two cells that were timed one after the other.
MARGIN = 1.1
NAMES = {"torch": "PyTorch", "limit": "The limit"}
#: What makes two records the same cell but for the threads.
FIELDS = ("operator", "dtype", "shape", "dim", "path", "layout", "values", "elements")


def factors(records: Iterable[Record], other: str = "torch") -> list[tuple[Record, float | None]]:
    """Each record of two threads, and the time of ``other`` there over its time on one; None where that was not measured."""

    def cell(r: Record) -> str:
        return repr([list(v) if isinstance(v, tuple) else v for v in map(r.get, FIELDS)])

    timed = [r for r in records if other in r["seconds"]]
    one = {cell(r): r["seconds"][other]["median"] for r in timed if r["threads"] == 1}
    two = (r for r in timed if r["threads"] > 1)
    return [(r, r["seconds"][other]["median"] / one[cell(r)] if cell(r) in one else None) for r in two]


def marked(records: Iterable[Record], other: str = "torch") -> set[int]:
    """The ``id`` of each record in which ``other`` was hampered."""
    return {id(r) for r, factor in factors(records, other) if factor is not None and factor > MARGIN}


#: Where the records of a run are, and what is said of those that have no label of their own.
TABLES = {"cells": "", "calls": "SeluBackward FLOAT as a caller sees it", "lengths": "SeluBackward FLOAT by length"}


def all_marked(result: Record) -> set[tuple[int, str]]:
    """``id`` of the record and who was hampered there, in every table."""
    return {(r, other) for other in NAMES for table in TABLES for r in marked(result.get(table, []), other)}


def sentences(result: Record) -> list[str]:
    """All of it in words; nothing where nothing was hampered and everything can be judged."""
    found = []
    for other, called in NAMES.items():
        judged = [(name(r, head), f) for table, head in TABLES.items() for r, f in factors(result.get(table, []), other)]
        slow = [f"{cell} ({f:.2f} times the time)" for cell, f in judged if f is not None and f > MARGIN]
        if slow:
            found.append(f"{called} on two threads was slower than on one, as when another process is busy: {'; '.join(slow)}.")
    unknown = [name(r) for r, f in factors(result.get("cells", [])) if f is None]
    if unknown:
        found.append(f"Whether that was so cannot be judged where one thread was not measured: {'; '.join(unknown)}.")
    return found
