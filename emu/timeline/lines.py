"""Lines of JSON with numbers of fixed width: thousands of events are made at once, by a kernel.

Python's own formatting of the dozen numbers of a launch takes longer than all hooks of a launch. JSON allows blanks before a number, so
every number has a fixed place in its line. A line is the same whichever way it was made.
"""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from emu_kernels.variant import Kernel

#: From so many lines at once on the kernel is worth loading, which may mean compiling; fewer are formatted by Python until it is there.
MANY = 512


class Slot(NamedTuple):
    """A number's place in a line: column ``column`` of the rows, with at least ``digits`` characters, at most 12.

    ``fraction``: the column is in ns and is written in µs with three decimals.
    """

    column: int
    digits: int
    fraction: bool = False


class Template:
    """All lines of one kind: fixed text and slots. Each line begins with a comma and a break.

    ``thread`` is the host thread of its call (0: none), ``call`` False when the call itself stands in a later line, ``stream`` what counts
    the tasks of its task (None: no task). ``held`` is kept alive as long as the template: its identity may be the template's key. ``took``
    is what each task of a launch costs, ``name`` the name of its call.
    """

    __slots__ = (
        "_text", "blank", "call", "code", "held", "name", "slots", "stream", "table", "thread", "took",
    )  # fmt: skip
    name: str

    def __init__(self, pieces: list[str | Slot], *, thread: int = 0, call: bool = False, stream: Any = None, held: Any = None) -> None:
        self.thread = thread
        self.call = call
        self.stream = stream
        self.held = held
        self.took = 0
        #: Its number in the block that is being written.
        self.code = 0
        self.slots = tuple(piece for piece in pieces if isinstance(piece, Slot))
        text: list[str] = []
        table: list[int] = []
        place = 0
        for piece in (",\n", *pieces):
            if isinstance(piece, str):
                text.append(piece.replace("%", "%%"))
                place += len(piece.encode())
            else:
                text.append(f"%{piece.digits}d" + (".%03d" if piece.fraction else ""))
                place += piece.digits + (4 if piece.fraction else 0)
                table += (place, piece.column, 10**piece.digits * (1000 if piece.fraction else 1), piece.fraction)
        self._text = "".join(text)
        #: The slots as the kernel reads them.
        self.table = struct.pack(f"{len(table)}q", *table)
        #: A line of zeros.
        self.blank = self.one([0] * (max((slot.column for slot in self.slots), default=0) + 1))

    def one(self, row: list[int]) -> bytes:
        """One line; a number that is too long for its place widens it."""
        values: list[int] = []
        for slot in self.slots:
            values += divmod(row[slot.column], 1000) if slot.fraction else (row[slot.column],)
        return (self._text % tuple(values)).encode()


class Maker:
    """Formats rows; keeps its memory, or the system would clear new pages for every block."""

    def __init__(self) -> None:
        self._kept: dict[str, NDArray[Any]] = {}
        self._kernel: Kernel | None = None
        self._refused = False

    def room(self, name: str, kind: type[np.generic], *shape: int) -> NDArray[Any]:
        """An array of this shape with whatever stands in it, the same memory every time."""
        size = math.prod(shape)
        kept = self._kept.get(name)
        if kept is None or kept.size < size:
            kept = self._kept[name] = np.empty(size, kind)
        return kept[:size].reshape(shape)

    def render(self, templates: list[Template], codes: NDArray[np.int64], values: NDArray[np.int64]) -> bytes | memoryview:
        """A line for each number in ``codes``, by the template of that number. ``values``: a row for each column. What is returned is good
        until the next call."""
        if self._kernel is None and len(codes) >= MANY and not self._refused:
            self._load()
        if self._kernel is not None:
            return self._many(self._kernel, templates, codes, values)
        return b"".join([templates[code].one(row) for code, row in zip(codes.tolist(), values.T.tolist(), strict=True)])

    def _load(self) -> None:
        from emu.kernel_cache import build

        try:
            self._kernel = build().lines()
        except Exception:  # NUMBA_DISABLE_JIT and the like: that is the operators' trouble, a trace of copies can do without
            self._refused = True

    def _many(self, kernel: Kernel, templates: list[Template], codes: NDArray[np.int64], values: NDArray[np.int64]) -> bytes | memoryview:
        """The same by the kernel, but for lines with a number that is too long for its place."""
        from emu_kernels import text
        from emu_kernels.call import call

        texts = np.frombuffer(b"".join([template.blank for template in templates]) + bytes(text.SLACK), np.uint8)
        slots = np.frombuffer(b"".join([template.table for template in templates]) or bytes(8), np.int64)
        sizes = np.array([(len(template.blank), len(template.slots)) for template in templates])
        ends = np.cumsum(sizes, axis=0)
        table = np.stack((ends[:, 0] - sizes[:, 0], sizes[:, 0], ends[:, 1] - sizes[:, 1], ends[:, 1]), axis=1)
        count = len(codes)
        out = self.room("lines", np.uint8, int(sizes[codes, 0].sum()) + text.SLACK)
        done = np.zeros(2, np.int64)
        pieces: list[bytes] = []
        begin = 0
        while begin < count:
            call(kernel, (out, texts, table, slots, codes, values, done), (values.shape[1],), begin, count)
            begin, size = done.tolist()
            lines = out[:size].data
            if begin == count and not pieces:
                return lines
            pieces.append(bytes(lines))
            if begin < count:
                pieces.append(templates[codes[begin]].one(values[:, begin].tolist()))
                begin += 1
        return b"".join(pieces)
