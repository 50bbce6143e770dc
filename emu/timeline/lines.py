"""Lines of JSON with numbers of fixed width: thousands of events are made at once, by NumPy.

Python's own formatting of the dozen numbers of a launch takes longer than all hooks of a launch. JSON allows blanks before a number, so
every number has a fixed place in its line, and its digits come from a table, four at a time. A line is the same whichever way it was made.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

#: Fewer lines than this of one template are formatted one by one: NumPy's calls would take longer.
FEW = 12
#: Characters of a number in :meth:`Maker.digits`: twelve digits and a fraction.
_CELL = 16


class Slot(NamedTuple):
    """A number's place in a line: column ``column`` of the rows, with at least ``digits`` (4, 8 or 12) characters.

    ``fraction``: the column is in ns and is written in µs with three decimals; such columns come first.
    """

    column: int
    digits: int
    fraction: bool = False


@cache
def _tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """Four characters each: of 0 to 9999 with zeros before, with blanks before and nothing for 0, and with blanks before; of ".000" to
    ".999"."""
    digits = [b"%04d" % k for k in range(10000)] + [b"    "] + [b"%4d" % k for k in range(1, 10000)] + [b"%4d" % k for k in range(10000)]
    return np.array(digits, "S4").view(np.uint32), np.array([b".%03d" % k for k in range(1000)], "S4").view(np.uint32)


class Template:
    """All lines of one kind: fixed text and slots. Each line begins with a comma and a break.

    ``thread`` is the host thread of its call (0: none), ``call`` False when the call itself stands in a later line, ``stream`` what counts
    the tasks of its task (None: no task). ``held`` is kept alive as long as the template: its identity may be the template's key.
    ``notes`` is where the numbers of calls go that are noted with the template alone, ``note`` adds some; ``took`` is what each of their
    tasks costs, ``name`` the name of these calls.
    """

    __slots__ = (
        "_limits", "_text", "_used", "blank", "call", "code", "held", "name", "note", "notes", "places", "slots", "stream", "thread",
        "took", "width",
    )  # fmt: skip
    notes: list[int]
    note: Callable[[tuple[int, ...]], None]
    name: str

    def __init__(self, pieces: list[str | Slot], *, thread: int = 0, call: bool = False, stream: Any = None, held: Any = None) -> None:
        self.thread = thread
        self.call = call
        self.stream = stream
        self.held = held
        self.took = 0
        #: Its number in the block that is being written.
        self.code = 0
        slots: list[Slot] = []
        #: Where in the line the number of each slot begins.
        self.places: list[int] = []
        text: list[str] = []
        place = 0
        for piece in (",\n", *pieces):
            if isinstance(piece, str):
                text.append(piece.replace("%", "%%"))
                place += len(piece.encode())
            else:
                text.append(f"%{piece.digits}d" + (".%03d" if piece.fraction else ""))
                slots.append(piece)
                self.places.append(place)
                place += piece.digits + (4 if piece.fraction else 0)
        self.width = place
        self._text = "".join(text)
        self.slots = tuple(slots)
        limits: dict[int, int] = {}
        for slot in slots:
            limit = 10**slot.digits * (1000 if slot.fraction else 1)
            limits[slot.column] = min(limits.get(slot.column, limit), limit)
        self._used, self._limits = list(limits), np.array(list(limits.values()), np.int64)
        #: A line of zeros.
        self.blank = self.one([0] * (max(limits, default=0) + 1))

    def one(self, row: list[int]) -> bytes:
        """One line; a number that is too long for its place widens it."""
        values: list[int] = []
        for slot in self.slots:
            values += divmod(row[slot.column], 1000) if slot.fraction else (row[slot.column],)
        return (self._text % tuple(values)).encode()

    def fits(self, values: NDArray[np.int64]) -> bool:
        """Whether every number of these lines has room in its place. ``values``: a row for each column."""
        mine = values[self._used]
        return bool(mine.min(initial=0) >= 0 and (mine.max(axis=1, initial=0) < self._limits).all())


class Maker:
    """Formats rows; keeps its memory, or the system would clear new pages for every block."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}

    def room(self, name: str, kind: type[np.generic], *shape: int) -> NDArray[Any]:
        """An array of this shape with whatever stands in it, the same memory every time."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size, kind)
        return kept[:size].reshape(shape)

    def digits(self, values: NDArray[np.int64], fractions: int) -> NDArray[np.uint32]:
        """The characters of every value, 0 to 10^12 - 1 (others are cut off): twelve with blanks before, then the decimals of the first
        ``fractions`` columns. ``values``: a row for each column."""
        table, decimals = _tables()
        shape = columns, count = values.shape
        out = self.room("digits", np.uint32, columns, count, 4)
        left = self.room("left", np.int64, *shape)
        part = self.room("part", np.int64, *shape)
        np.clip(values, 0, 10**12 - 1, out=left)
        whole, rest = part[:fractions], left[:fractions]
        np.floor_divide(rest, 1000, out=whole)
        rest -= np.multiply(whole, 1000, out=self.room("thousands", np.int64, fractions, count))
        out[:fractions, :, 3] = decimals[rest]
        rest[:] = whole
        long = np.flatnonzero(left.max(axis=1) >= 100_000_000)
        above = left[long] // 100_000_000
        left[long] -= above * 100_000_000
        low, middle = self.room("low", np.int32, *shape), self.room("middle", np.int32, *shape)
        low[:] = left  # 32 bits: several are divided at a time
        np.floor_divide(low, 10000, out=middle)
        index = self.room("index", np.int32, *shape)
        low -= np.multiply(middle, 10000, out=index)
        blank, empty = np.int32(10000), np.equal(middle, 0, out=self.room("empty", np.bool_, *shape))
        empty[long] &= above == 0
        low += np.multiply(empty, 2 * blank, out=index)
        cell = self.room("cell", np.uint32, *shape)
        out[:, :, 2] = table.take(low, out=cell, mode="clip")
        out[:, :, 0] = table[blank]
        index[:] = blank
        index[long] *= above == 0
        out[long, :, 0] = table[above + blank]
        middle += index
        out[:, :, 1] = table.take(middle, out=cell, mode="clip")
        return out

    def render(
        self, templates: list[Template], codes: NDArray[np.intp] | None, values: NDArray[np.int64], fractions: int
    ) -> bytes | memoryview:
        """A line for each number in ``codes``, by the template of that number (None: there is one template). ``values``: a row for each
        column. What is returned is good until the next call."""
        if codes is None and len(templates[0].slots) and templates[0].fits(values):
            return self._alike(templates[0], self.digits(values, fractions))
        if codes is None:
            codes = np.zeros(values.shape[1], np.intp)
        kinds: dict[tuple[Slot, ...], list[int]] = {}
        for code, template in enumerate(templates):
            kinds.setdefault(template.slots, []).append(code)
        order = codes.tolist()
        lines = [templates[code].blank for code in order]
        many: list[tuple[list[int], NDArray[np.intp]]] = []
        for slots, mine in kinds.items():
            at = np.flatnonzero(np.isin(codes, mine)) if len(kinds) > 1 else np.arange(len(order))
            if slots and len(at) >= FEW and templates[mine[0]].fits(values[:, at]):  # the limits are the slots' own
                many.append((mine, at))
            elif slots:
                for place, row in zip(at.tolist(), values[:, at].T.tolist(), strict=True):
                    lines[place] = templates[order[place]].one(row)
        text = bytearray().join(lines)
        if many:
            digits = self.digits(values, fractions)
            begins = np.cumsum([0, *map(len, lines)])[:-1]
            for mine, at in many:
                _scatter(text, [templates[code] for code in mine], np.searchsorted(mine, codes[at]), begins[at], digits, at)
        return memoryview(text)

    def _alike(self, template: Template, digits: NDArray[np.uint32]) -> memoryview:
        """Lines of one template."""
        count = digits.shape[1]
        lines = self.room("lines", np.uint8, count, template.width)
        lines[:] = np.frombuffer(template.blank, np.uint8)
        for place, slot in zip(template.places, template.slots, strict=True):
            target: NDArray[Any] = np.ndarray((count,), _width(slot), lines.data, place, (template.width,))
            target[:] = _cells(digits, slot)
        return lines.reshape(-1).data


def _width(slot: Slot) -> str:
    return f"V{slot.digits + (4 if slot.fraction else 0)}"


def _cells(digits: NDArray[np.uint32], slot: Slot) -> NDArray[Any]:
    """The characters of a slot, line by line."""
    count = digits.shape[1]
    cells: NDArray[Any] = np.ndarray((count,), _width(slot), digits.data, slot.column * count * _CELL + 12 - slot.digits, (_CELL,))
    return cells


def _scatter(
    text: bytearray,
    templates: list[Template],
    codes: NDArray[np.intp],
    begins: NDArray[np.intp],
    digits: NDArray[np.uint32],
    at: NDArray[np.intp],
) -> None:
    """Put the numbers of the lines ``at``, which begin at ``begins``, into their text. All have the same slots, at places of their own."""
    places = np.array([template.places for template in templates], np.intp).T
    for slot, mine in zip(templates[0].slots, places, strict=True):
        kind = np.dtype(_width(slot))
        everywhere: NDArray[Any] = np.ndarray((len(text) - kind.itemsize + 1,), kind, text, 0, (1,))
        everywhere[begins + mine[codes]] = _cells(digits, slot)[at]
