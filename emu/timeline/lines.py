"""Lines of JSON with numbers of fixed width: thousands of events are made at once, by NumPy.

Python's own formatting of the dozen numbers of a launch takes longer than all hooks of a launch. JSON allows blanks before a number, so
every number has a fixed place in its line, and its digits come from a table, four at a time. A line is the same whichever way it was made.
"""

from __future__ import annotations

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
    """

    __slots__ = ("_limits", "_slots", "_text", "_used", "call", "code", "held", "stream", "thread", "width")

    def __init__(self, pieces: list[str | Slot], *, thread: int = 0, call: bool = False, stream: Any = None, held: Any = None) -> None:
        self.thread = thread
        self.call = call
        self.stream = stream
        self.held = held
        #: Its number in the block that is being written.
        self.code = 0
        self._slots: list[tuple[int, Slot]] = []
        text: list[str] = []
        place = 0
        for piece in (",\n", *pieces):
            if isinstance(piece, str):
                text.append(piece.replace("%", "%%"))
                place += len(piece.encode())
            else:
                text.append(f"%{piece.digits}d" + (".%03d" if piece.fraction else ""))
                self._slots.append((place, piece))
                place += piece.digits + (4 if piece.fraction else 0)
        self.width = place
        self._text = "".join(text)
        limits: dict[int, int] = {}
        for _, slot in self._slots:
            limit = 10**slot.digits * (1000 if slot.fraction else 1)
            limits[slot.column] = min(limits.get(slot.column, limit), limit)
        self._used, self._limits = list(limits), np.array(list(limits.values()), np.int64)

    def one(self, row: list[int]) -> bytes:
        """One line; a number that is too long for its place widens it."""
        values: list[int] = []
        for _, slot in self._slots:
            values += divmod(row[slot.column], 1000) if slot.fraction else (row[slot.column],)
        return (self._text % tuple(values)).encode()

    def fits(self, values: NDArray[np.int64]) -> bool:
        """Whether every number of these lines has room in its place. ``values``: a row for each column."""
        mine = values[self._used]
        return bool(mine.min(initial=0) >= 0 and (mine.max(axis=1, initial=0) < self._limits).all())

    def many(self, digits: NDArray[np.uint32], maker: Maker) -> NDArray[np.uint8]:
        """The lines of rows that fit, from :meth:`Maker.digits`."""
        columns, count, _ = digits.shape
        lines = maker.block(count, self.width)
        lines[:] = np.frombuffer(self.one([0] * columns), np.uint8)
        for place, slot in self._slots:
            kind = f"V{slot.digits + (4 if slot.fraction else 0)}"
            start = slot.column * count * _CELL + 12 - slot.digits
            source: NDArray[Any] = np.ndarray((count,), kind, digits.data, start, (_CELL,))
            target: NDArray[Any] = np.ndarray((count,), kind, lines.data, place, (self.width,))
            target[:] = source
        return lines


class Maker:
    """Formats rows; keeps its memory, or the system would clear new pages for every block."""

    def __init__(self) -> None:
        self._block = np.empty(0, np.uint8)
        self._digits = np.empty(0, np.uint32)

    def block(self, count: int, width: int) -> NDArray[np.uint8]:
        """Room for so many lines."""
        if self._block.size < count * width:
            self._block = np.empty(count * width, np.uint8)
        return self._block[: count * width].reshape(count, width)

    def digits(self, values: NDArray[np.int64], fractions: int) -> NDArray[np.uint32]:
        """The characters of every value, 0 to 10^12 - 1 (others are cut off): twelve with blanks before, then the decimals of the first
        ``fractions`` columns. ``values``: a row for each column."""
        table, decimals = _tables()
        columns, count = values.shape
        if self._digits.size < 4 * count * columns:
            self._digits = np.empty(4 * count * columns, np.uint32)
        out = self._digits[: 4 * count * columns].reshape(columns, count, 4)
        left = np.clip(values, 0, 10**12 - 1)
        whole = left[:fractions] // 1000
        out[:fractions, :, 3] = decimals[left[:fractions] - whole * 1000]
        left[:fractions] = whole
        long = np.flatnonzero(left.max(axis=1) >= 100_000_000)
        above = left[long] // 100_000_000
        left[long] -= above * 100_000_000
        low = left.astype(np.int32)  # divides several at a time
        middle = low // 10000
        low -= middle * 10000
        blank, empty = np.int32(10000), middle == 0
        empty[long] &= above == 0
        out[:, :, 2] = table[low + empty * (2 * blank)]
        out[:, :, 0] = table[blank]
        begins = np.full(middle.shape, blank, np.int32)
        begins[long] *= above == 0
        out[long, :, 0] = table[above + blank]
        out[:, :, 1] = table[middle + begins]
        return out

    def render(
        self, templates: list[Template], codes: NDArray[np.intp] | None, values: NDArray[np.int64], fractions: int
    ) -> bytes | memoryview:
        """A line for each number in ``codes``, by the template of that number (None: there is one template). ``values``: a row for each
        column. What is returned is good until the next call."""
        digits = self.digits(values, fractions)
        if codes is None:
            if templates[0].fits(values):
                return templates[0].many(digits, self).reshape(-1).data
            codes = np.zeros(values.shape[1], np.intp)
        lines: list[bytes] = [b""] * len(codes)
        for code, template in enumerate(templates):
            places = np.flatnonzero(codes == code)
            mine = values[:, places]
            if len(places) >= FEW and template.fits(mine):
                text, width = template.many(digits.take(places, axis=1), self).tobytes(), template.width
                for k, place in enumerate(places.tolist()):
                    lines[place] = text[k * width : (k + 1) * width]
            else:
                for place, row in zip(places.tolist(), mine.T.tolist(), strict=True):
                    lines[place] = template.one(row)
        return b"".join(lines)
