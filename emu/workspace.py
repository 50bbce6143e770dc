"""The layout of a workspace: intermediates that never live at the same time share a bucket.

Rules as in CANN's allocator (opbase memory_allocator.cpp, facts only): sizes are rounded by :func:`align`; a new
tensor goes into the last bucket whose occupant is not needed any more by the kernel that produces it; a bucket is as
large as its largest member.
"""

from __future__ import annotations


def align(size: int) -> int:
    """``(size + 32 + 511) & ~511`` bytes: 0 → 512, 480 → 512, 481 → 1024, 16 MiB → 16,777,728."""
    return (size + 32 + 511) & ~511


class Layout:
    """Intermediates in the order in which kernels produce them; :meth:`place` gives offsets once every lifetime is
    known."""

    def __init__(self) -> None:
        self._members: list[list[int]] = []

    def add(self, size: int, first: int, last: int) -> int:
        """An intermediate of ``size`` bytes that kernel ``first`` produces and kernel ``last`` reads last; returns
        its number."""
        self._members.append([align(size), first, last])
        return len(self._members) - 1

    def place(self) -> tuple[list[int], int]:
        """Byte offset of each intermediate and the total size in bytes."""
        buckets: list[list[int]] = []  # [size, last kernel that needs the present occupant]
        where: list[int] = []
        for size, first, last in self._members:
            for number in range(len(buckets) - 1, -1, -1):
                if buckets[number][1] < first:
                    buckets[number] = [max(buckets[number][0], size), last]
                    where.append(number)
                    break
            else:
                buckets.append([size, last])
                where.append(len(buckets) - 1)
        starts = [0]
        for size, _ in buckets:
            starts.append(starts[-1] + size)
        return [starts[number] for number in where], starts[-1]
