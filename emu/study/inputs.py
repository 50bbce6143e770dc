"""Where a study's inputs come from: distributions, every pattern, special values, the user's arrays, case files.

A source is cut into blocks that do not depend on each other, so that blocks can run in any order, on any thread, and a
study can be taken up again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from emu.study import numbers
from emu.study.distributions import sampler, special_values
from emu.study.errors import StudyError
from emu.study.files import LazyArray, load_inputs
from emu.study.numbers import Bits

#: Elements of a block: its float64 temporaries stay within a few MiB.
BLOCK = 1 << 16
MAX_ROW = 1 << 20


def kind(spec: str) -> str:
    """What `--inputs SPEC` names: "arrays", "cases", "auto", "exhaustive", "specials" or, for all else, "random"."""
    first = spec.split(",")[0]
    if first.endswith((".npy", ".npz")):
        return "arrays"
    if first.endswith((".csv", ".json")):
        return "cases"
    return spec.lower() if spec.lower() in ("auto", "exhaustive", "specials") else "random"


class Source(Protocol):
    """Blocks of inputs in the order of the operator's tensors: flat arrays, or (rows, r) for an operator of rows."""

    size: int
    blocks: int
    #: The shape of the user's arrays; None where the inputs have none.
    shape: tuple[int, ...] | None

    def block(self, i: int) -> tuple[Bits, ...]:
        """The inputs of block i, as patterns of the dtype."""
        ...

    def start(self, i: int) -> int:
        """The number of block i's first element."""
        ...


class Sampled:
    """Random inputs. Input k of block i comes from a generator seeded with (seed, i, k). grad: the first is --grad's."""

    shape: tuple[int, ...] | None = None

    def __init__(self, dtype: str, specs: Sequence[str], n: int, seed: int, row: int | None, grad: bool = False) -> None:
        self._draw = [sampler(s, dtype, "--grad" if grad and k == 0 else "--inputs") for k, s in enumerate(specs)]
        self._seed, self._row = seed, row
        if row is None:
            self._unit, self.size = BLOCK, n
        else:
            rows = max(1, BLOCK // row)
            self._unit, self.size = rows * row, -(-n // row) * row
        self.blocks = -(-self.size // self._unit)

    def block(self, i: int) -> tuple[Bits, ...]:
        n = min(self._unit, self.size - i * self._unit)
        found = tuple(d(np.random.Generator(np.random.PCG64([self._seed, i, k])), n) for k, d in enumerate(self._draw))
        return found if self._row is None else tuple(a.reshape(-1, self._row) for a in found)

    def start(self, i: int) -> int:
        return i * self._unit


class Exhaustive:
    """Every pattern of the last input once; the other input, if any, from a distribution."""

    shape: tuple[int, ...] | None = None

    def __init__(self, dtype: str, grad: str | None, seed: int) -> None:
        kind = np.dtype(numbers.BITS[dtype])
        if kind.itemsize > 2:
            raise StudyError(f"inputs exhaustive is for 8 and 16-bit dtypes, not {dtype}: try --inputs binade, bits or uniform:-20,20")
        count = 1 << (8 * kind.itemsize)
        self._all = np.arange(count, dtype=np.int64).astype(np.dtype(f"u{kind.itemsize}")).view(kind)
        self._grad = None if grad is None else sampler(grad, dtype, "--grad")
        self._seed, self.size = seed, int(count)
        self._unit: int = min(self.size, BLOCK // 8)
        self.blocks = count // self._unit

    def block(self, i: int) -> tuple[Bits, ...]:
        x = self._all[i * self._unit : (i + 1) * self._unit]
        if self._grad is None:
            return (x,)
        return self._grad(np.random.Generator(np.random.PCG64([self._seed, i, 0])), x.size), x

    def start(self, i: int) -> int:
        return i * self._unit


class Arrays:
    """Given arrays of patterns, in blocks; `row` is their last dimension for an operator of rows, `shape` that of the
    user's arrays."""

    def __init__(self, arrays: Sequence[Bits | LazyArray], row: int | None, shape: tuple[int, ...] | None = None) -> None:
        self._arrays, self._row, self.shape = arrays, row, shape
        self._unit = BLOCK if row is None else max(1, BLOCK // row) * row
        self.size = int(arrays[0].size)
        self.blocks = -(-self.size // self._unit)

    def block(self, i: int) -> tuple[Bits, ...]:
        start = i * self._unit
        stop = min(start + self._unit, self.size)
        found = tuple(a.read(start, stop) if isinstance(a, LazyArray) else a.reshape(-1)[start:stop] for a in self._arrays)
        return found if self._row is None else tuple(a.reshape(-1, self._row) for a in found)

    def start(self, i: int) -> int:
        return i * self._unit


class Chain:
    """Sources one after the other: the cases of a case file."""

    shape: tuple[int, ...] | None = None

    def __init__(self, parts: Sequence[Source]) -> None:
        self._parts = parts
        self.size, self.blocks = sum(p.size for p in parts), sum(p.blocks for p in parts)

    def block(self, i: int) -> tuple[Bits, ...]:
        part, i, _ = self._find(i)
        return part.block(i)

    def start(self, i: int) -> int:
        part, i, before = self._find(i)
        return before + part.start(i)

    def _find(self, i: int) -> tuple[Source, int, int]:
        before = 0
        for part in self._parts:
            if i < part.blocks:
                return part, i, before
            i -= part.blocks
            before += part.size
        raise IndexError(i)


def make(spec: str, dtype: str, names: Sequence[str], *, grad: str | None, n: int, seed: int, row: int | None,
         places: Mapping[str, int | None] = MappingProxyType({})) -> Source:  # fmt: skip
    """The source of `--inputs SPEC` for an operator that reads `names`; `row` is the row length of an operator of rows,
    `places` are those of the tensors in a case file, see `Problem.places`.

    `grad` is the distribution of the first of two inputs; None: as the last one (as 1 when exhaustive).
    """
    of = kind(spec)
    if of == "cases":
        from emu.study.cases import read_cases

        return read_cases(Path(spec), dtype, names, seed=seed, rows=row is not None, places=places)
    if of == "arrays":
        return from_arrays(load_inputs(spec, names), dtype, names, row is not None, spec)
    two = len(names) == 2
    if of == "exhaustive":
        if row is not None:
            raise StudyError("inputs exhaustive is for elementwise operators: a row has too many patterns; try --inputs l1")
        return Exhaustive(dtype, (grad or "1") if two else None, seed)
    if of == "specials":
        return _specials(dtype, len(names), row)
    return Sampled(dtype, [grad or spec, spec] if two else [spec], n, seed, row, grad is not None and two)


def from_arrays(arrays: Sequence[NDArray[Any]], dtype: str, names: Sequence[str], rows: bool, label: str) -> Source:
    if arrays[0].size == 0:
        raise StudyError(f"{label} holds no element: there is nothing to study")
    row = None
    if rows:
        row = arrays[0].shape[-1] if arrays[0].ndim else 1
        if row > MAX_ROW:
            raise StudyError(f"{label} has rows of {row} elements; a study takes at most {MAX_ROW}")
    return Arrays([LazyArray(a, dtype, f"{label} ({n})") for a, n in zip(arrays, names, strict=True)], row, arrays[0].shape)


def _specials(dtype: str, inputs: int, row: int | None) -> Source:
    s = special_values(dtype)
    if row is None:
        grid = np.meshgrid(*[s] * inputs, indexing="ij")
        return Arrays([np.ascontiguousarray(g).reshape(-1) for g in grid], None)
    # Rows: each special alone among ordinary values, each pair of specials, and rows of one special.
    ordinary = numbers.from_values(dtype, np.linspace(-2.0, 2.0, row))
    lines = [np.concatenate([[v], ordinary[1:]]) for v in s] + [np.full(row, v) for v in s]
    lines += [np.concatenate([[v, w], ordinary[2:]])[:row] for v in s for w in s]
    table = np.stack(lines).astype(s.dtype)
    plain = np.broadcast_to(ordinary, table.shape)
    if inputs == 1:
        return Arrays([table.reshape(-1)], row)
    return Chain([Arrays([np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)], row)
                  for a, b in ((table, plain), (plain, table), (table, table))])  # fmt: skip
