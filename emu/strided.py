"""Strided operands without whole copies: the kernel of a plan run in tiles, in the place of its copies.

A plan says what a card launches, and the workspace has room for every intermediate. The host does the same work with less
memory traffic: operands whose rows are dense are used where they are, others are gathered into tiles (:mod:`emu_kernels.tiles`)
that lie where their dense copy would lie. The launches of the copies stay in the stream and do nothing. Results are the same:
where operands overlap in a way that could show the order of reads and writes, the copies are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import TYPE_CHECKING, NamedTuple

from emu.objects import Tensor, row_major

if TYPE_CHECKING:
    from emu_kernels.variant import Kernel

#: Shortest row, in elements, for which the kernel is called on its own.
SHORT_ROW = 256
#: Bytes of an operand's tile; a reduction's tile has whole rows, at least a cache line high.
TILE_BYTES, ROW_TILE_BYTES = 128 << 10, 512 << 10
#: Bytes of a tile's height: what is read of each line of a turned operand.
HEIGHT_BYTES, LINE_BYTES = 128, 64
#: Longest row of a reduction, in bytes, that is gathered.
LONG_ROW_BYTES = 64 << 10


class Tiles(NamedTuple):
    """How a plan's kernel runs on the operands themselves. ``shape`` is [unit, rows, columns, linear] of the tile kernel's arguments.

    operands: places or workspace bytes as in a Step, of result and inputs. tiles: workspace bytes of each operand's tile, -1 for none.
    reach: lowest and highest byte of each operand, counted from its first element. folded: numbers of the steps that do nothing;
    main: number of the kernel's step.
    """

    itemsize: int
    shape: tuple[int, int, int, int]
    operands: tuple[int, ...]
    tiles: tuple[int, ...]
    dims: tuple[int, ...]
    dense: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    reach: tuple[tuple[int, int], ...]
    folded: frozenset[int]
    main: int

    def addresses(self, where: dict[int, int], workspace: int) -> list[int]:
        """The address of each operand's first element."""
        return [where[k] if k >= 0 else workspace + ~k for k in self.operands]

    def same_result(self, at: Sequence[int]) -> bool:
        """Whether tiles give what copies give: each input is apart from the result, or exactly the result."""
        low, high = at[0] + self.reach[0][0], at[0] + self.reach[0][1]
        for k in range(1, len(at)):
            apart = at[k] + self.reach[k][0] >= high or at[k] + self.reach[k][1] <= low
            if not apart and (at[k] != at[0] or self.strides[k] != self.strides[0]):
                return False
        return True

    def arguments(self, kernel: Kernel, copy: Kernel, sizes: tuple[int, ...], at: Sequence[int], workspace: int) -> list[int]:
        """The tile kernel's arguments; ``sizes`` are the kernel's own, ``copy`` is the strided copy of the operands' items."""
        rest = [*sizes, *kernel.aux[:-1], prod(self.dims) * self.itemsize]
        memory = (0 if t < 0 else workspace + t for t in self.tiles)
        values = [kernel.address, copy.address, self.itemsize, len(at), *self.shape, len(at) + len(rest), len(self.dims)]
        values += (*at, *memory, *self.dims, *self.dense)
        for strides in self.strides:
            values += strides
        return values + rest


def byte_strides(tensor: Tensor) -> tuple[int, ...]:
    """Of a tensor as an operator reads it: one that counts as contiguous is dense, whatever its strides say."""
    return tuple(s * tensor.itemsize for s in (row_major(tensor.dims) if tensor.contiguous else tensor.strides))


def merge(dims: Sequence[int], strides: Sequence[tuple[int, ...]], keep: int) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
    """The same elements in the same order with as few dims as all operands allow, but at least two; the last ``keep`` dims longer than 1
    stay unmerged."""
    kept: list[tuple[int, tuple[int, ...]]] = []
    real = [d for d in range(len(dims)) if dims[d] != 1]
    fixed = len(real) - keep
    for number, d in enumerate(real):
        steps = tuple(s[d] for s in strides)
        if kept and number < fixed and all(a == b * dims[d] for a, b in zip(kept[-1][1], steps, strict=True)):
            kept[-1] = (kept[-1][0] * dims[d], steps)
        else:
            kept.append((dims[d], steps))
    kept = [(1, (0,) * len(strides))] * (2 - len(kept)) + kept
    return tuple(n for n, _ in kept), [tuple(steps[k] for _, steps in kept) for k in range(len(strides))]


class Shape(NamedTuple):
    """Dims and strides after merging, the tile kernel's shape, and which operands need a tile."""

    dims: tuple[int, ...]
    strides: list[tuple[int, ...]]
    tile: tuple[int, int, int, int]
    gathered: tuple[bool, ...]


def shape_of(dims: Sequence[int], strides: Sequence[tuple[int, ...]], item: int, unit: int) -> Shape | None:
    """How to run over operands of these strides, the result first; None where whole copies are as good.

    unit: 1, or the length of the last dim, which a reduction wants whole.
    """
    merged, steps = merge(dims, strides, 0 if unit == 1 else 1)
    width, height = merged[-1], merged[-2]
    dense = tuple(s * item for s in row_major(merged))
    gathered = tuple(s[-1] != item for s in steps)
    if gathered[0]:
        return None
    if width < SHORT_ROW:
        if unit != 1 or steps[0] != dense:
            return None
        return Shape(merged, steps, (1, 1, TILE_BYTES // item, 1), tuple(s != dense for s in steps))
    if not any(gathered):
        return Shape(merged, steps, (unit, height, width, 0), gathered)
    rows = min(height, HEIGHT_BYTES // item)
    if unit != 1:
        if width * item > LONG_ROW_BYTES:
            return None
        rows = min(rows, max(ROW_TILE_BYTES // (width * item), LINE_BYTES // item))
        return Shape(merged, steps, (unit, rows, width, 0), gathered)
    line = LINE_BYTES // item
    columns = TILE_BYTES // (rows * item) // line * line
    return Shape(merged, steps, (1, rows, min(width, columns), 0), gathered)


def reach_of(dims: Sequence[int], strides: Sequence[int], item: int) -> tuple[int, int]:
    """The bytes that a view touches, from the address of its first element: [low, high)."""
    ends = [(d - 1) * s for d, s in zip(dims, strides, strict=True)]
    return sum(e for e in ends if e < 0), sum(e for e in ends if e > 0) + item


class Operand(NamedTuple):
    """One operand of a plan's kernel. place: where the kernel finds it in the plan, as in a Step. view: None for one that is dense there;
    for a strided tensor the place and byte strides of the tensor, ``copy`` the step that gathers or scatters it."""

    place: int
    view: tuple[int, tuple[int, ...]] | None = None
    copy: int = -1


def make_tiles(dims: tuple[int, ...], unit: int, item: int, operands: Sequence[Operand], main: int) -> Tiles | None:
    """How to run step ``main`` on the tensors themselves instead of their copies; None where copies are as good. The result comes first."""
    dense = tuple(s * item for s in row_major(dims))
    found = None
    # A result that cannot be written where it is stays with its copy.
    for first in dict.fromkeys((operands[0], Operand(operands[0].place))):
        chosen = [first, *operands[1:]]
        if any(o.view for o in chosen):
            found = shape_of(dims, [o.view[1] if o.view else dense for o in chosen], item, unit)
            if found is not None:
                break
    if found is None:
        return None
    return Tiles(
        item,
        found.tile,
        tuple(o.view[0] if o.view else o.place for o in chosen),
        tuple(~o.place if gathered else -1 for o, gathered in zip(chosen, found.gathered, strict=True)),
        found.dims,
        tuple(s * item for s in row_major(found.dims)),
        tuple(found.strides),
        tuple(reach_of(found.dims, s, item) for s in found.strides),
        frozenset(o.copy for o in chosen if o.view),
        main,
    )
