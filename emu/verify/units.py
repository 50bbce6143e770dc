"""The work, cut into pieces that any process can do: a unit is plain data, `run` a pure function of it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from emu_kernels.reference.arrays import narrow
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from emu.verify import judge, samples
from emu.verify.catalog import BY_FLOW
from emu.verify.provider import Provider

Bits = NDArray[Any]

EXAMPLES = 3  # counterexamples kept per unit
COLUMNS = 10  # rows of each length: even, and more than the kinds of samples.row_block
BATCH = 1 << 18  # random cases at a time: what a core's cache holds
# gradOutput for the directed units: 1, -1, 65504, 2^-24, NaN, inf, -0.
GRADIENTS = np.array([1.0, -1.0, 65504.0, 2.0**-24, np.nan, np.inf, -0.0], np.float32)


class Unit(NamedTuple):
    """One piece of work on one variant of one flow.

    kind "pairs": every first input with second inputs low to high - 1. "directed": directed values. "random": `high`
    cases of seed `low`. "length": rows of length `low` along the last, first and middle dimension. "block": random
    rows, at least `high` elements, of seed `low`.
    """

    flow: str
    v: Variant
    kind: str
    low: int = 0
    high: int = 0

    @property
    def key(self) -> str:
        """Stable name, for the state file."""
        v = self.v
        mode = "saturation" if v.saturate else "infnan"
        return f"{self.flow}/{v.arch}/{v.dtype}/{mode}/{v.numerics}/{self.kind}/{self.low}/{self.high}"

    @property
    def weight(self) -> int:
        """About how many cases the unit holds, for the progress bar."""
        if self.kind == "pairs":
            return (self.high - self.low) << 16
        if self.kind == "directed":
            return 1 << 18
        return 3 * COLUMNS * self.low if self.kind == "length" else self.high


class Example(NamedTuple):
    """One counterexample, as patterns.

    For a reduction the inputs are lists of a row's patterns and `element` is the index of the wrong one.
    """

    inputs: tuple[Any, ...]
    got: int
    want: int
    last: bool | None = None
    element: int = 0


class Outcome(NamedTuple):
    """What a unit found: cases compared, how many differ, and the first of them."""

    key: str
    cases: int
    mismatches: int
    seconds: float
    examples: tuple[Example, ...] = ()


def _pairs(unit: Unit) -> Iterator[tuple[Bits, Bits]]:
    first = np.arange(1 << 16, dtype=np.uint16)
    for second in range(unit.low, unit.high):
        yield first, np.full(1 << 16, second, np.uint16)


def _directed(unit: Unit) -> Iterator[tuple[Bits, ...]]:
    v, rng = unit.v, np.random.default_rng(1)
    values = samples.directed(v.dtype)
    if BY_FLOW[unit.flow].inputs == 1:
        yield (values,)
        return
    yield samples.random(v.dtype, values.size, rng), values
    first = values if v.dtype in ("INT8", "INT32") else narrow(GRADIENTS, v._replace(saturate=False))
    for g in first:
        yield np.full(values.size, g), values


def _random(unit: Unit) -> Iterator[tuple[Bits, ...]]:
    rng = np.random.default_rng(unit.low)
    for start in range(0, unit.high, BATCH):
        n = min(BATCH, unit.high - start)
        yield tuple(samples.random(unit.v.dtype, n, rng) for _ in range(BY_FLOW[unit.flow].inputs))


_ELEMENTWISE = {"pairs": _pairs, "directed": _directed, "random": _random}


def _length(unit: Unit) -> Iterator[tuple[bool, tuple[Bits, ...]]]:
    columns = samples.row_block(unit.v.dtype, unit.low, COLUMNS, BY_FLOW[unit.flow].inputs, seed=unit.low)
    for last, outer in ((True, COLUMNS), (False, 1), (False, 2)):
        shape = (unit.low, outer, COLUMNS // outer)
        yield last, tuple(np.ascontiguousarray(a.reshape(shape).swapaxes(0, 1)) for a in columns)


def _block(unit: Unit) -> Iterator[tuple[bool, tuple[Bits, ...]]]:
    rng = np.random.default_rng(unit.low)
    done = 0
    while done < unit.high:
        r = int(2 ** rng.uniform(0, 14.7))
        outer = max(1, BATCH // r)
        last = bool(rng.integers(2))
        shape = (outer, r, 1) if last else (1, r, outer)
        arrays = []
        for _ in range(BY_FLOW[unit.flow].inputs):
            scale = 2.0 ** rng.integers(-8, 6, (shape[0], 1, shape[2]))
            arrays.append(samples.values(unit.v.dtype, rng.standard_normal(shape) * scale))
        yield last, tuple(arrays)
        done += outer * r


def run(unit: Unit, provider: Provider) -> Outcome:
    """Compare one unit. Raises what the provider raises, and HostError if the host's arithmetic is not IEEE."""
    begin, cases, wrong = time.perf_counter(), 0, 0
    examples: list[Example] = []
    for some_cases, some_wrong, some_examples in _row_batches(unit, provider) if BY_FLOW[unit.flow].rows else _batches(unit, provider):
        cases += some_cases
        wrong += some_wrong
        examples += some_examples[: EXAMPLES - len(examples)]
    return Outcome(unit.key, cases, wrong, time.perf_counter() - begin, tuple(examples))


def _batches(unit: Unit, provider: Provider) -> Iterator[tuple[int, int, list[Example]]]:
    for inputs in _ELEMENTWISE[unit.kind](unit):
        # Pairs keep the second input a single value: what depends on it alone is computed once.
        narrowed = (inputs[0], inputs[1][:1]) if unit.kind == "pairs" else inputs
        want = judge.expected(unit.flow, unit.v, *narrowed)
        got = provider.elementwise(unit.flow, unit.v, *inputs)
        differ = np.flatnonzero(judge.mismatches(unit.v.dtype, got, want))
        found = [Example(tuple(int(a[i]) for a in inputs), int(got[i]), int(want[i])) for i in differ[:EXAMPLES].tolist()]
        yield got.size, differ.size, found


def _row_batches(unit: Unit, provider: Provider) -> Iterator[tuple[int, int, list[Example]]]:
    for last, inputs in (_length if unit.kind == "length" else _block)(unit):
        want = judge.expected_rows(unit.flow, unit.v, last, *inputs)
        got = provider.rows(unit.flow, unit.v, last, *inputs)
        differ = np.argwhere(judge.mismatches(unit.v.dtype, got, want))
        found = [
            Example(tuple(a[o, :, i].tolist() for a in inputs), int(got[o, k, i]), int(want[o, k, i]), last, k)
            for o, k, i in differ[:EXAMPLES].tolist()
        ]
        yield got.size, len(differ), found
