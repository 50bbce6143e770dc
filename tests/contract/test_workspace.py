"""The workspace layout: alignment, lifetimes, buckets."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.workspace import Layout, align


@pytest.mark.parametrize(("n", "size"), [(0, 512), (1, 512), (480, 512), (481, 1024), (16 << 20, 16_777_728)])
def test_published_alignments(n: int, size: int) -> None:
    assert align(n) == size


def test_a_bucket_is_reused_only_when_its_occupant_is_done() -> None:
    layout = Layout()
    layout.add(100, 0, 1)
    layout.add(100, 1, 2)
    layout.add(5000, 2, 3)
    offsets, total = layout.place()
    assert offsets == [0, 5120, 0]
    assert total == 5120 + 512


def test_the_last_fitting_bucket_is_chosen() -> None:
    layout = Layout()
    layout.add(1, 0, 0)
    layout.add(1, 0, 0)
    layout.add(1, 1, 1)
    assert layout.place() == ([0, 512, 512], 1024)


@given(st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 6), st.integers(0, 4)), max_size=12))
def test_tensors_that_live_together_never_overlap(members: list[tuple[int, int, int]]) -> None:
    layout = Layout()
    lives = sorted((first, first + length, size) for size, first, length in members)
    for first, last, size in lives:
        layout.add(size, first, last)
    offsets, total = layout.place()
    spans = [(o, o + align(size), first, last) for o, (first, last, size) in zip(offsets, lives, strict=True)]
    for i, (a, b, first, last) in enumerate(spans):
        assert a % 512 == 0
        assert b <= total
        for c, d, other_first, other_last in spans[:i]:
            if first <= other_last and other_first <= last:
                assert b <= c or d <= a
