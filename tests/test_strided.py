"""Strided operands in tiles: the same bytes in all of the memory as with whole copies, whatever the strides and overlaps."""

from __future__ import annotations

import math
from typing import Any
from unittest.mock import patch

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emu import ops
from emu.executor import Folded, Launch, prepare, submit
from emu.opdef.catalogue import operator
from emu.opdef.spec import Role
from emu.ops import ArraySpace, descriptor
from emu.plan import bind
from emu.runtime.cores import PROTOTYPE
from emu.strided import Tiles

DTYPES: dict[str, Any] = {"FLOAT": np.float32, "FLOAT16": np.float16, "BF16": ml_dtypes.bfloat16, "INT8": np.int8}
#: Operators and how many inputs they have.
OPERATORS = {"SeluBackward": 2, "LogSigmoidBackward": 2, "SoftmaxBackward": 2, "Selu": 1, "Softmax": 1}


def tasks(name: str, views: list[np.ndarray], dim: int, storage: np.ndarray, ws: np.ndarray) -> list[Launch]:
    """What phase 2 puts on a stream; views are the inputs and the result, all of them in the storage."""
    op = operator("aclnn" + name)
    inputs = iter(views[:-1])
    args: list[Any] = []
    for p in op.params:
        if p.role is Role.ATTR:
            args.append(dim)
        elif p.name == op.output.name:
            args.append(descriptor(views[-1], p.python, written=True))
        else:
            args.append(descriptor(next(inputs, views[0]), p.python))
    made = prepare(bind(op.name, "Ascend910B1"), args, "device", True)
    assert made.plan.workspace <= ws.nbytes
    space = ArraySpace()
    space.add("storage", storage)
    space.add("workspace", ws)
    queue: list[Any] = []
    submit(made, ws.ctypes.data, space, False, queue.append)
    return queue


def run(queue: list[Launch], cut: float) -> None:
    """Each launch in two blocks, as two cores would, unless its order matters."""
    for task in queue:
        if not isinstance(task, Folded):
            form = task.form
            at = 0 if form.grain >= form.total else int(form.total * cut)
            for block in ((0, at), (at, form.total)):
                PROTOTYPE(form.address)(task.args, *block)


def aligned(array: np.ndarray) -> np.ndarray:
    """A copy at a multiple of 64 bytes."""
    room = np.empty(array.nbytes + 64, np.uint8)
    skip = -room.ctypes.data % 64
    made = room[skip : skip + array.nbytes].view(array.dtype)
    made[...] = array
    return made


@st.composite
def shapes(draw: st.DrawFn) -> tuple[int, ...]:
    dims = [draw(st.sampled_from([1, 3, 17, 64, 255, 256, 300, 1100]))]
    for n in draw(st.lists(st.sampled_from([1, 2, 3, 8, 9, 33]), max_size=3)):
        if math.prod(dims) * n <= 40000:
            dims.append(n)
    return tuple(draw(st.permutations(dims)))


@st.composite
def layouts(draw: st.DrawFn, dims: tuple[int, ...], zero: bool) -> tuple[tuple[int, ...], int, int]:
    """Strides of a view of these dims, and its lowest and highest element: permuted, padded, reversed, broadcast."""
    steps = [0] * len(dims)
    reach = 1
    kinds = ["dense", "dense", "dense", "padded", "reversed", *(["zero"] if zero else [])]
    order = draw(st.sampled_from([tuple(range(len(dims)))[::-1], tuple(draw(st.permutations(range(len(dims)))))]))
    for d in order:
        kind = draw(st.sampled_from(kinds))
        if kind == "zero":
            continue
        reach += draw(st.integers(1, 3)) if kind == "padded" else 0
        steps[d] = -reach if kind == "reversed" else reach
        reach *= dims[d]
    ends = [(n - 1) * s for n, s in zip(dims, steps, strict=True)]
    return tuple(steps), sum(e for e in ends if e < 0), sum(e for e in ends if e > 0)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_tiles_leave_the_memory_as_copies_do(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(OPERATORS)))
    dtype = np.dtype(DTYPES[data.draw(st.sampled_from(sorted(DTYPES) if name.startswith("Selu") else ["FLOAT", "FLOAT16", "BF16"]))])
    dims = data.draw(shapes())
    count = OPERATORS[name] + 1
    found = [data.draw(layouts(dims, zero=k < count - 1 or data.draw(st.booleans()))) for k in range(count)]
    if data.draw(st.booleans()):
        found[0] = found[-1]
    # Apart, all at one place, or overlapping in part.
    gap = data.draw(st.sampled_from([None, 0, 1, 64, 1000]))
    starts, end = [], 0
    for k, (_, low, high) in enumerate(found):
        start = end if gap is None else k * gap
        starts.append(start - low)
        end = max(end, start + high - low + 1)
    storage = np.random.default_rng(end).integers(-300, 300, end).astype(dtype)
    if dtype.kind != "i":
        storage = (storage.astype(np.float32) / 64).astype(dtype)
    cut = data.draw(st.sampled_from([0.0, 0.37, 0.5]))
    # With overlaps, the order of blocks shows in what the kernel itself does to dense operands: one block.
    cut = cut if gap is None else 0.0
    ws = aligned(np.zeros(1 << 20, np.uint8))
    after = []
    for same in (Tiles.same_result, lambda tiles, at: False):
        # At a multiple of 64, since what the kernel does to dense operands that overlap in part depends on alignment.
        memory = aligned(storage)
        views = [
            np.lib.stride_tricks.as_strided(memory[start:], dims, tuple(s * dtype.itemsize for s in steps))
            for start, (steps, _, _) in zip(starts, found, strict=True)
        ]
        with patch.object(Tiles, "same_result", same):
            run(tasks(name, views, len(dims) - 1, memory, ws), cut)
        after.append(memory.view(np.uint8))
    assert (after[0] == after[1]).all()


def turned(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape[::-1], np.float32).astype(dtype).T


def padded(shape: tuple[int, int], dtype: Any) -> np.ndarray:
    return np.random.default_rng(8).standard_normal((shape[0], shape[1] + 5), np.float32).astype(dtype)[:, 2:-3]


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
@pytest.mark.parametrize("shape", [(1030, 1100), (70000, 20), (20, 70000), (7, 300), (3, 5), (1, 4099)])
@pytest.mark.parametrize("name", ["selu_backward", "log_sigmoid_backward", "softmax_backward"])
def test_strided_tensors_beyond_the_size_of_a_tile(name: str, shape: tuple[int, int], dtype: str) -> None:
    dim = (1,) if name == "softmax_backward" else ()
    kind = DTYPES[dtype]
    function = getattr(ops, name)
    for g, y in ((turned(shape, kind), padded(shape, kind)), (padded(shape, kind), turned(shape, kind)[::-1])):
        out = np.zeros((shape[0], shape[1] + 9), kind)
        function(g, y, *dim, out=out[:, 4:-5])
        want = function(np.ascontiguousarray(g), np.ascontiguousarray(y), *dim)
        bits = f"u{want.itemsize}"
        assert (out[:, 4:-5].view(bits) == want.view(bits)).all()
        assert not out[:, :4].view(bits).any()
        assert not out[:, -5:].view(bits).any()


@pytest.mark.parametrize("strided_out", [False, True])
def test_copies_are_folded_into_the_kernel(strided_out: bool) -> None:
    """The stream holds the card's launches; those of the copies do nothing."""
    storage = np.zeros(1 << 20, np.float32)
    g, out = storage[: 300 * 400].reshape(400, 300).T, storage[500000:][: 300 * 500].reshape(300, 500)
    out = out[:, :400] if strided_out else out.ravel()[: 300 * 400].reshape(300, 400)
    y = storage[800000:][: 300 * 400].reshape(300, 400)
    queue = tasks("SeluBackward", [g, y, out], 0, storage, np.zeros(4 << 20, np.uint8))
    want = [("Contiguous", Folded), ("aclnnSeluBackward", Launch), *([("ViewCopy", Folded)] if strided_out else [])]
    assert [(task.name, type(task)) for task in queue] == want


def test_a_result_over_a_turned_input_is_made_from_copies() -> None:
    storage = np.random.default_rng(3).standard_normal(512 * 512).astype(np.float32)
    x = storage.reshape(512, 512)
    before = x.T.copy()
    assert not any(isinstance(task, Folded) for task in tasks("Selu", [x.T, x], 0, storage, np.zeros(4 << 20, np.uint8)))
    ops.selu(x.T, out=x)
    assert (x == ops.selu(before)).all()
