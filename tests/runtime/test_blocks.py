"""How the launches of an operator ask to be split: by elements, not by rows; large blocks, so that stores may bypass the caches."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from emu import ops
from emu.executor import BLOCK_BYTES, SPLIT_ELEMENTS
from emu.runtime import cores


@pytest.fixture
def asked(monkeypatch):
    """(total, grain, block, border) of each launch."""
    seen: list[tuple[int, int, int, int]] = []
    run = cores.run

    def spy(address: int, args: Any, total: int, grain: int, block: int, border: int) -> None:
        seen.append((total, grain, block, border))
        run(address, args, total, grain, block, border)

    monkeypatch.setattr(cores, "run", spy)
    return seen


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_blocks_of_elements(asked, dtype):
    a = np.ones(1 << 17, dtype)
    ops.selu_backward(a, a)
    ((total, grain, block, border),) = asked
    assert total == a.size
    assert grain <= SPLIT_ELEMENTS
    assert block * a.itemsize == BLOCK_BYTES
    assert border == cores.BLOCK


@pytest.mark.parametrize("r", [3, 1000, 100_000])
def test_blocks_of_rows(asked, r):
    a = np.ones((200_000 // r, r), np.float32)
    ops.softmax_backward(a, a, 1)
    ((total, grain, block, border),) = asked
    assert total == a.shape[0]
    assert grain == max(1, SPLIT_ELEMENTS // r)
    assert (block - 1) * r * 4 < BLOCK_BYTES <= block * r * 4
    assert border == 1


def test_columns_have_one_block_for_each_thread(asked):
    a = np.ones((100, 2000), np.float32)
    ops.softmax_backward(a, a, 0)
    assert asked == [(2000, SPLIT_ELEMENTS // 100, 0, cores.BLOCK)]


@pytest.mark.parametrize("shape", [(1000, 1), (1, 1000)])
def test_rows_and_columns_of_one_element_are_no_work_for_two(asked, shape):
    a = np.ones(shape, np.float32)
    ops.softmax_backward(a, a, shape.index(1))
    ((total, grain, _, _),) = asked
    assert (total, grain) == (1000, SPLIT_ELEMENTS)


def test_a_small_launch_asks_for_nothing(asked):
    a = np.ones(100, np.float32)
    ops.selu_backward(a, a)
    ((total, grain, block, _),) = asked
    assert (total, block) == (100, 0)
    assert total < grain
