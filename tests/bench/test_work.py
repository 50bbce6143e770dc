from __future__ import annotations

from itertools import pairwise
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import work as works
from bench.arena import ALIGN, HUGE, Arena
from bench.cells import Cell


def name(cell: Cell) -> str:
    return "-".join(map(str, (*cell.label.split(), cell.dtype, cell.path, cell.layout, cell.values, f"{cell.threads}T")))


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena(64 << 20)


CELLS = [
    Cell("SeluBackward", "FLOAT", (4096,), None, 1),
    Cell("SoftmaxBackward", "BF16", (8, 64), 1, 1),
    Cell("SoftmaxBackward", "FLOAT16", (64, 24), 0, 1),
    Cell("SoftmaxBackward", "FLOAT", (6, 16, 8), 1, 1),
    Cell("LogSigmoidBackward", "BF16", (32, 32), None, 1, layout="transposed"),
    Cell("SeluBackward", "FLOAT16", (32, 32), None, 1, layout="padded"),
]


def fill_right(work: works.Work) -> None:
    for part in works._parts(work.out, work.block):
        part[...] = work.block.expected


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_inputs_repeat_the_block(cell: Cell, arena: Arena, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(works, "BLOCK", 256)
    works.make_block.cache_clear()
    work = works.make(cell, arena)
    assert work.out.shape == cell.shape
    axis = work.block.axis
    assert axis != cell.dim
    repeats = cell.shape[axis] // work.block.expected.shape[axis]
    assert repeats > 1
    for tensor, block in zip(work.inputs, work.block.inputs, strict=True):
        assert tensor.shape == cell.shape
        want = np.concatenate([block] * repeats, axis=axis)
        assert tensor.tobytes() == want.tobytes()


@pytest.mark.parametrize("cell", CELLS, ids=name)
def test_one_wrong_bit_anywhere_is_found(cell: Cell, arena: Arena, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(works, "BLOCK", 256)
    works.make_block.cache_clear()
    work = works.make(cell, arena)
    fill_right(work)
    works.check_exact(work, "nobody")
    flat = work.out.reshape(-1).view(np.uint8)
    for at in (0, flat.size // 2, flat.size - 1):
        flat[at] ^= 1
        with pytest.raises(works.WrongResultError, match="nobody"):
            works.check_exact(work, "nobody")
        flat[at] ^= 1
    works.check_exact(work, "nobody")


def test_any_nan_equals_any_nan(arena: Arena):
    work = works.make(Cell("LogSigmoidBackward", "FLOAT16", (4096,), None, 1, values="bits"), arena)
    fill_right(work)
    bits = work.out.view(np.uint16)
    nans = np.flatnonzero((bits & 0x7FFF) > 0x7C00)
    assert nans.size > 100
    bits[nans] ^= 1
    works.check_exact(work, "nobody")


def test_close_is_about_the_operator_not_about_bits(arena: Arena):
    work = works.make(CELLS[0], arena)
    fill_right(work)
    out = work.out
    out *= np.float32(1 + 2**-20)
    works.check_close(work, "nobody")
    work.out[-1] = np.nan
    with pytest.raises(works.WrongResultError):
        works.check_close(work, "nobody")
    works.spoil(work)
    with pytest.raises(works.WrongResultError):
        works.check_close(work, "nobody")


def test_values_are_normal_and_never_all_zero():
    rng = np.random.default_rng(1)
    for dtype in ("FLOAT", "FLOAT16", "BF16"):
        x = works.draw(dtype, "normal", (4096,), rng).astype(np.float64)
        assert abs(x.mean()) < 0.1
        assert 0.9 < x.std() < 1.1
    x = works.draw("INT8", "normal", (4096,), rng)
    assert x.dtype == np.int8
    assert 15 < x.std() < 25
    bits = works.draw("BF16", "bits", (65536,), rng).view(np.uint16)
    assert np.unique(bits >> 8).size == 256


@given(st.lists(st.integers(1, 3000), min_size=1, max_size=3), st.data())
def test_a_block_divides_its_axis_and_keeps_the_reduced_dim_whole(dims: list[int], data: st.DataObject):
    dim = data.draw(st.sampled_from([None, *range(len(dims))])) if len(dims) > 1 else None
    cell = Cell("SoftmaxBackward", "FLOAT", tuple(dims), dim, 1)
    shape, axis = works.block_shape(cell)
    assert axis != dim
    assert dims[axis] % shape[axis] == 0
    assert all(a == b for k, (a, b) in enumerate(zip(shape, dims, strict=True)) if k != axis)
    assert shape[axis] == 1 or prod(shape) <= works.BLOCK


def test_arena_places_blocks_as_a_device_does():
    arena = Arena(16 << 20)
    small = [arena.empty((100,), np.float32) for _ in range(3)]
    large = arena.empty((1 << 20,), np.float32)
    addresses = [a.ctypes.data for a in (*small, large)]
    assert all(a % ALIGN == 0 for a in addresses)
    assert addresses[-1] % HUGE == 0
    assert addresses == sorted(addresses)
    assert all(b - a >= 400 for a, b in pairwise(addresses))
    with pytest.raises(MemoryError, match="no room"):
        arena.empty((32 << 20,), np.uint8)
    arena.reset()
    assert arena.empty((100,), np.float32).ctypes.data == addresses[0]


def test_the_share_of_huge_pages_is_a_share():
    arena = Arena(8 << 20)
    arena.empty((4 << 20,), np.uint8).fill(1)
    share = arena.huge_share()
    assert share is not None
    assert 0 <= share <= 1
