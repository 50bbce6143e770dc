"""Memory for the tensors of every competitor, all of it with the same page size."""

from __future__ import annotations

import mmap
import re
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

HUGE = 2 << 20
#: As aclrtMalloc does it: small blocks at multiples of 512, blocks above 1 MiB at huge pages of their own.
ALIGN, SMALL = 512, 1 << 20


class Arena:
    """One anonymous mapping with 2 MiB pages (if the system gives them) that arrays are cut from, again and again."""

    def __init__(self, nbytes: int) -> None:
        self._map = mmap.mmap(-1, nbytes + 2 * HUGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        if hasattr(mmap, "MADV_HUGEPAGE"):
            self._map.madvise(mmap.MADV_HUGEPAGE)
        whole = np.frombuffer(self._map, np.uint8)
        self.address = int(whole.ctypes.data)
        skip = -self.address % HUGE
        self._bytes = whole[skip:]
        self._used = 0

    def reset(self) -> None:
        """Use the memory again. Arrays given so far must not be used any more; their pages stay."""
        self._used = 0

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array of undefined content. MemoryError when the arena is full."""
        kind: np.dtype[Any] = np.dtype(dtype)
        size = max(1, prod(shape)) * kind.itemsize
        step = HUGE if size > SMALL else ALIGN
        start = -(-self._used // step) * step
        end = start + -(-size // step) * step
        if end > self._bytes.size:
            raise MemoryError(f"the arena of {self._bytes.size} bytes has no room for {size} more")
        self._used = end
        return self._bytes[start : start + prod(shape) * kind.itemsize].view(kind).reshape(shape)

    def huge_share(self) -> float | None:
        """The part of the touched memory that lies on 2 MiB pages; None where the system does not tell."""
        return huge_share(self.address, len(self._map))


def huge_share(address: int, nbytes: int) -> float | None:
    """The same of the mappings that hold these bytes."""
    try:
        text = Path("/proc/self/smaps").read_text(encoding="ascii", errors="replace")
    except OSError:
        return None
    resident = huge = 0
    inside = False
    for line in text.splitlines():
        head = re.match(r"([0-9a-f]+)-([0-9a-f]+) ", line)
        if head:
            low, high = (int(x, 16) for x in head.groups())
            inside = low < address + nbytes and address < high
        elif inside and line.startswith("Rss:"):
            resident += int(line.split()[1])
        elif inside and line.startswith("AnonHugePages:"):
            huge += int(line.split()[1])
    return huge / resident if resident else None
