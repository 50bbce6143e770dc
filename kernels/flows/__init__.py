"""The scalar dataflow of each operator family, per architecture. One file per family.

A flow function takes a Variant and gives a Plan: what to compile, reduced to what decides the bits, so that variants of
equal arithmetic share one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple


class Kind(NamedTuple):
    """Of a loop that `lanes.mapped` makes.

    dtype: of its tensors, FLOAT, FLOAT16 or BF16. saturate: an overflow gives the largest value, a NaN +0.
    table: the second operand is looked up. plus_zero: +0 is added to each result of FLOAT16 once it is rounded, which turns -0 into +0.
    """

    dtype: str = "FLOAT"
    saturate: bool = False
    table: bool = False
    plus_zero: bool = False

    @property
    def largest(self) -> float:
        return {"FLOAT": float.fromhex("0x1.fffffep127"), "FLOAT16": 65504.0, "BF16": float.fromhex("0x1.fep127")}[self.dtype]


class Plan(NamedTuple):
    """One elementwise kernel.

    key: everything that decides the bits; with the flow's name it names the kernel.
    inputs: dtype names of the inputs. output: dtype name of the output.
    tile: makes the jitable `tile(out, in0[, in1], table, n)`, which computes n elements.
    table: None, or makes the Plan of a kernel that fills a table of 65,536 FLOAT from all 16-bit patterns; the table's
        address follows the tensors in args.
    host: None, or makes a tile with the bits of `tile` that is faster here. `tile` stays what the card does, and what is counted.
    direct: `host` makes `tile(out, in0[, in1], table, n, stream)`, which writes the tensor itself (`out` may be an input), past the caches
        with `stream`; others write scratch memory, which is copied. Of FLOAT16 only where the CPU converts it, elsewhere `tile` is used.
    """

    key: tuple[Any, ...]
    inputs: tuple[str, ...]
    output: str
    tile: Callable[[], Any]
    table: Callable[[], tuple[str, Plan]] | None = None
    host: Callable[[], Any] | None = None
    direct: bool = False


class RowPlan(NamedTuple):
    """One kernel over rows or columns.

    key: as in Plan, plus whether the dim is last.
    inputs: number of inputs. dtype: of all tensors. saturate: of the final rounding.
    order: order of the sum, "lanes64", "sequential" or "tree" (dav_3510).
    maximum: whether the flow needs the maximum first. heavy: whether term or last_step contains an exp.
    scalars: makes the jitable (prepare, term, finish, last_step) of `rows`.
    vectors: None, or term(a, b) and last_step(a, b, s) for `lanes.Lanes`, of a flow without a maximum that computes in FLOAT.
    exponent: None, or makes the jitable (argument, share, exp_tile) of a flow in FLOAT with term = exp(argument(a, m)); last_step is
        share(that exp, s), or share is None and it contains no exp.
    """

    key: tuple[Any, ...]
    inputs: int
    dtype: str
    saturate: bool
    order: str
    maximum: bool
    heavy: bool
    scalars: Callable[[], tuple[Any, Any, Any, Any]]
    vectors: tuple[Callable[[Any, Any], Any], Callable[[Any, Any, Any], Any]] | None = None
    exponent: Callable[[], tuple[Any, Any, Any]] | None = None
