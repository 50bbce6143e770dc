"""What is measured: operator × data type × size × threads, and the special cells."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

KI, MI = 1 << 10, 1 << 20
#: From 64 Ki, which a core's own cache may hold, to 64 Mi, which no cache holds.
SIZES = (64 * KI, 1 * MI, 16 * MI, 64 * MI)
FLOATS = ("FLOAT", "FLOAT16", "BF16")
ITEM_BYTES = {"FLOAT": 4, "FLOAT16": 2, "BF16": 2, "INT8": 1}
#: Length of the reduced dim where it is the last one, and of the long first and middle dims.
ROW = 1024
BACKWARD = ("SeluBackward", "LogSigmoidBackward")


class Cell(NamedTuple):
    """One line of the result.

    operator: aclnn name without aclnn. threads: of every competitor. path: "launch" is what a stream runs; "native" the compiled
    function alone, CALLS_IN_A_ROW times in a row. layout: of the inputs ("contiguous", "transposed": the gradient alone,
    "transposed both", "padded": rows of both with a gap); the output is always contiguous. values: "normal" or "bits", uniform random bit
    patterns.
    """

    operator: str
    dtype: str
    shape: tuple[int, ...]
    dim: int | None
    threads: int
    path: str = "launch"
    layout: str = "contiguous"
    values: str = "normal"

    @property
    def elements(self) -> int:
        return prod(self.shape)

    @property
    def inputs(self) -> int:
        """Tensors that the operator has to read."""
        return 2 if self.operator.endswith("Backward") else 1

    @property
    def bytes(self) -> int:
        """What has to move: every input read once, the output written once."""
        return (self.inputs + 1) * self.elements * ITEM_BYTES[self.dtype]

    @property
    def place(self) -> str:
        """Where the reduced dim is: "last", "first", "middle"; "" for an elementwise operator."""
        if self.dim is None:
            return ""
        if self.dim == len(self.shape) - 1:
            return "last"
        return "first" if self.dim == 0 else "middle"

    @property
    def label(self) -> str:
        """Operator, place and length of the reduced dim."""
        return self.operator if self.dim is None else f"{self.operator} {self.place} r={self.shape[self.dim]}"

    @property
    def data(self) -> tuple[object, ...]:
        """Cells that are equal here share their tensors."""
        return self.operator, self.dtype, self.shape, self.dim, self.layout, self.values


def _last(n: int) -> tuple[int, ...]:
    return n // ROW, ROW


def _first(r: int, n: int) -> tuple[int, ...]:
    return r, n // r


def _middle(r: int, inner: int, n: int) -> tuple[int, ...]:
    return n // (r * inner), r, inner


def shapes(n: int) -> Iterator[tuple[str, tuple[int, ...], int | None]]:
    """Operator, shape and dim of the backward cells of n elements."""
    for op in BACKWARD:
        yield op, (n,), None
    yield "SoftmaxBackward", _last(n), 1
    yield "SoftmaxBackward", _first(ROW, n), 0
    yield "SoftmaxBackward", _middle(512, 512, n) if n >= MI else _middle(128, 128, n), 1
    if n >= 16 * MI:
        yield "SoftmaxBackward", _first(256, n), 0
        yield "SoftmaxBackward", _middle(ROW, ROW, n), 1


def _backward(sizes: tuple[int, ...], threads: tuple[int, ...]) -> Iterator[Cell]:
    for n in sizes:
        for op, shape, dim in shapes(n):
            for dtype in FLOATS:
                if n == 64 * KI:
                    yield Cell(op, dtype, shape, dim, 1, "native")
                for t in threads:
                    yield Cell(op, dtype, shape, dim, t)


def _layouts(layouts: tuple[str, ...], threads: tuple[int, ...], dtypes: tuple[str, ...] = FLOATS) -> Iterator[Cell]:
    square = (4 * KI, 4 * KI)
    for layout in layouts:
        for op, dim in (*((op, None) for op in BACKWARD), ("SoftmaxBackward", 1)):
            for dtype in dtypes:
                for t in threads:
                    yield Cell(op, dtype, square, dim, t, layout=layout)


def _random_bits() -> Iterator[Cell]:
    n = 16 * MI
    for op, shape, dim in ((BACKWARD[0], (n,), None), (BACKWARD[1], (n,), None), ("SoftmaxBackward", _last(n), 1)):
        for dtype in FLOATS:
            yield Cell(op, dtype, shape, dim, 1, values="bits")


def _forwards() -> Iterator[Cell]:
    for n in (64 * KI, 16 * MI):
        for op, shape, dim in (("Selu", (n,), None), ("LogSigmoid", (n,), None), ("Softmax", _last(n), 1), ("LogSoftmax", _last(n), 1)):
            for dtype in FLOATS:
                yield Cell(op, dtype, shape, dim, 1)


def _int8(threads: tuple[int, ...]) -> Iterator[Cell]:
    for n in (16 * MI, 64 * MI):
        for t in threads:
            yield Cell("SeluBackward", "INT8", (n,), None, t)


def thread_counts(available: int) -> tuple[int, ...]:
    """1, and 2 where the process may use two CPUs."""
    return (1, 2) if available >= 2 else (1,)


def full(threads: tuple[int, ...]) -> list[Cell]:
    """Every cell, those that share tensors side by side."""
    layouts = _layouts(("transposed", "transposed both", "padded"), threads)
    return [*_backward(SIZES, threads), *layouts, *_random_bits(), *_forwards(), *_int8(threads)]


def quick(threads: tuple[int, ...]) -> list[Cell]:
    """The cells that say most: 64 Ki, 1 Mi and 16 Mi, and a few layouts."""
    some = [c for c in _backward((64 * KI, 1 * MI, 16 * MI), threads) if c.path == "native" or c.elements > 64 * KI]
    one = max(threads)
    other = [c for c in some if c.elements == 16 * MI and c.threads == one and (c.shape[0] == ROW or c.shape[-1] == 512)]
    common = [c for c in some if c.place in ("", "last") or c in other]
    return [*common, *_layouts(("transposed", "padded"), (one,), ("FLOAT", "BF16")), *(c for c in _int8((one,)) if c.elements == 16 * MI)]


def tiny(threads: tuple[int, ...]) -> list[Cell]:
    """Cells of a few thousand elements that exercise every path of the harness; the figures mean nothing."""
    n = 4 * KI
    cells = [Cell("SeluBackward", "FLOAT", (n,), None, t) for t in threads]
    cells += [Cell(op, dtype, (n,), None, 1, "native") for op in BACKWARD for dtype in FLOATS]
    cells += [Cell("SoftmaxBackward", "BF16", shape, dim, 1) for shape, dim in (((8, 64), 1), ((64, 8), 0), ((2, 16, 8), 1))]
    cells += [Cell("SeluBackward", "BF16", (32, 32), None, 1, layout=layout) for layout in ("transposed", "transposed both", "padded")]
    cells += [Cell("LogSigmoidBackward", "FLOAT16", (n,), None, 1, values="bits"), Cell("SeluBackward", "INT8", (n,), None, 1)]
    forwards = (("Selu", None), ("LogSigmoid", None), ("Softmax", 1), ("LogSoftmax", 1))
    return [*cells, *(Cell(op, "FLOAT", (8, 64), dim, 1) for op, dim in forwards)]
