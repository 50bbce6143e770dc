"""The tensors of a cell and what has to come out.

A block of at most :data:`BLOCK` elements is drawn and its result computed by the reference, which shares no arithmetic
with the kernels. The tensors repeat the block, so every element of every output is checked, whatever the size.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from emu_kernels.reference.arrays import BITS_DTYPE
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from bench.arena import Arena
from bench.cells import ITEM_BYTES, Cell
from emu.soc import profile
from emu.verify import judge

Array = NDArray[Any]

BLOCK = 1 << 20
SOC = "Ascend910B1"
#: Elements between the rows of a padded tensor: 64, a gap of one to four cache lines.
PADDING = 64
NUMPY: dict[str, Any] = {"FLOAT": np.float32, "FLOAT16": np.float16, "BF16": ml_dtypes.bfloat16, "INT8": np.int8}
FLOWS = {
    "SeluBackward": "selu_backward", "LogSigmoidBackward": "log_sigmoid_backward", "SoftmaxBackward": "softmax_backward",
    "Selu": "selu", "LogSigmoid": "log_sigmoid", "Softmax": "softmax", "LogSoftmax": "log_softmax",
}  # fmt: skip


class WrongResultError(Exception):
    """A competitor does not compute what it should; its cell was not timed."""


class Block(NamedTuple):
    """Inputs and expected output of a block, and the axis along which the tensors repeat it."""

    inputs: tuple[Array, ...]
    expected: Array
    axis: int


class Work(NamedTuple):
    """The tensors of a cell, in the arena. A competitor's further buffers come from there too."""

    cell: Cell
    inputs: tuple[Array, ...]
    out: Array
    block: Block
    arena: Arena


def block_shape(cell: Cell) -> tuple[tuple[int, ...], int]:
    """Shape of the repeated block and its axis, which is never the reduced one."""
    axis = 1 if cell.dim == 0 else 0
    shape = list(cell.shape)
    length = shape[axis]
    part = max(1, min(length, BLOCK // (prod(shape) // length)))
    while length % part:
        part -= 1
    shape[axis] = part
    return tuple(shape), axis


def draw(dtype: str, values: str, shape: tuple[int, ...], rng: np.random.Generator) -> Array:
    """Normal values (INT8: of scale 20), or uniform random bit patterns."""
    kind = np.dtype(NUMPY[dtype])
    if values == "bits":
        patterns: Array = rng.integers(0, 1 << (8 * kind.itemsize), shape, dtype=f"u{kind.itemsize}").view(kind)
        return patterns
    normal = rng.standard_normal(shape, np.float32)
    if dtype == "INT8":
        return np.rint(normal * 20).clip(-128, 127).astype(np.int8)
    narrowed: Array = normal.astype(kind)
    return narrowed


@lru_cache(maxsize=4)
def make_block(operator: str, dtype: str, values: str, shape: tuple[int, ...], axis: int, dim: int | None) -> Block:
    """Draw a block and compute its result by the reference."""
    rng = np.random.default_rng(20240501)
    count = 2 if operator.endswith("Backward") else 1
    inputs = tuple(draw(dtype, values, shape, rng) for _ in range(count))
    soc = profile(SOC)
    v = Variant(soc.arch, dtype, soc.saturates)
    bits = [a.view(BITS_DTYPE[dtype]) for a in inputs]
    flow = FLOWS[operator]
    if dim is None:
        expected = judge.expected(flow, v, *(b.reshape(-1) for b in bits)).reshape(shape)
    else:
        outer, r, inner = prod(shape[:dim]), shape[dim], prod(shape[dim + 1 :])
        expected = judge.expected_rows(flow, v, inner == 1, *(b.reshape(outer, r, inner) for b in bits)).reshape(shape)
    return Block(inputs, expected.view(NUMPY[dtype]), axis)


def bytes_needed(cell: Cell) -> int:
    """Arena bytes for the cell's tensors and its competitors' buffers."""
    gaps = PADDING * cell.shape[0] if cell.layout == "padded" else 0
    one = (cell.elements + gaps) * ITEM_BYTES[cell.dtype] + (2 << 20)
    # Inputs, a workspace that may hold a copy of each, the limit's contiguous ones; output, PyTorch's buffer, NumPy's temporary.
    return (cell.inputs * 3 + 3) * one + (4 << 20)


def make(cell: Cell, arena: Arena) -> Work:
    """Fill the tensors of a cell; the arena is reset first."""
    arena.reset()
    shape, axis = block_shape(cell)
    block = make_block(cell.operator, cell.dtype, cell.values, shape, axis, cell.dim)
    inputs = tuple(_tensor(cell, k, arena) for k in range(cell.inputs))
    for tensor, source in zip(inputs, block.inputs, strict=True):
        for part in _parts(tensor, block):
            part[...] = source
    out = arena.empty(cell.shape, NUMPY[cell.dtype])
    out.view(np.uint8).fill(0xA5)
    return Work(cell, inputs, out, block, arena)


def _tensor(cell: Cell, k: int, arena: Arena) -> Array:
    kind = NUMPY[cell.dtype]
    if cell.layout == "padded":
        rows, length = cell.shape
        padded: Array = arena.empty((rows, length + PADDING), kind)[:, :length]
        return padded
    if cell.layout == "transposed both" or (cell.layout == "transposed" and k == 0):
        turned: Array = arena.empty(cell.shape[::-1], kind).T
        return turned
    return arena.empty(cell.shape, kind)


def _parts(tensor: Array, block: Block) -> Iterator[Array]:
    length = block.expected.shape[block.axis]
    for start in range(0, tensor.shape[block.axis], length):
        yield tensor[(slice(None),) * block.axis + (slice(start, start + length),)]


def spoil(work: Work) -> None:
    """Overwrite the output, so that a competitor that does nothing is noticed."""
    work.out.view(np.uint8).fill(0xA5)


def check_exact(work: Work, who: str) -> None:
    """Every bit of the output equals the reference's (any NaN equals any NaN); WrongResultError if not."""
    cell = work.cell
    bits = BITS_DTYPE[cell.dtype]
    want = work.block.expected.view(bits)
    for part in _parts(work.out, work.block):
        got = part.view(bits)
        if not np.array_equal(got, want):
            wrong = judge.mismatches(cell.dtype, got, want)
            if wrong.any():
                raise WrongResultError(f"{who}, {cell.label} {cell.dtype} {cell.layout}: {int(wrong.sum())} of {want.size} elements differ")


def check_close(work: Work, who: str) -> None:
    """The output's first and last blocks are the operator's to the accuracy of its data type: the competitor does the same job."""
    cell = work.cell
    if cell.values == "bits":
        return  # NaN and overflow everywhere: the same function was checked on normal values
    tolerance = {"FLOAT": 1e-4, "FLOAT16": 2e-2, "BF16": 1e-1}[cell.dtype]
    want = work.block.expected.astype(np.float64)
    scale = float(np.abs(want).max())
    parts = list(_parts(work.out, work.block))
    for part in {0: parts[0], 1: parts[-1]}.values():
        worst = float(np.abs(part.astype(np.float64) - want).max())
        if not worst <= tolerance * scale:
            raise WrongResultError(f"{who}, {cell.label} {cell.dtype} {cell.layout}: off by {worst} where values reach {scale}")
