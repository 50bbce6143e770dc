"""`emu verify --quick` sees a limit of the sum order that is off by one, and the one that changes no bit is known to."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from emu_kernels.reference import array_sums, sums
from emu_kernels.reference.operators import log_softmax, log_softmax_backward, softmax, softmax_backward
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from emu.verify import judge
from emu.verify.engine import execute
from emu.verify.plan import plan


class OtherLimit:
    """The reference with one text of `array_sums` replaced."""

    def __init__(self, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
        source = Path(array_sums.__file__).read_text()
        assert source.count(old) == 1
        module = types.ModuleType("other_limit")
        exec(compile(source.replace(old, new), "other_limit", "exec"), module.__dict__)
        self.other: Callable[..., Any] = module.row_sum_array
        self.monkeypatch = monkeypatch

    def elementwise(self, flow: str, v: Variant, *inputs: NDArray[Any]) -> NDArray[Any]:
        raise AssertionError(flow)

    def rows(self, flow: str, v: Variant, last: bool, *inputs: NDArray[Any]) -> NDArray[Any]:
        with self.monkeypatch.context() as patch:
            for operator in (softmax, log_softmax, softmax_backward, log_softmax_backward):
                patch.setattr(operator, "row_sum_array", self.other)
            return judge.expected_rows(flow, v, last, *inputs)


HALVING, FOLDING, COLUMNS = "(8 if wide else 16)", "(10512 if wide else 16384)", "if n <= (165 if wide else 123):"


@pytest.mark.parametrize(
    ("old", "new", "dtypes", "length"),
    [
        (HALVING, "(7 if wide else 16)", ["FLOAT"], 8),
        (HALVING, "(9 if wide else 16)", ["FLOAT"], 9),
        (HALVING, "(8 if wide else 15)", ["FLOAT16", "BF16"], 16),
        (HALVING, "(8 if wide else 17)", ["FLOAT16", "BF16"], 17),
        (FOLDING, "(10511 if wide else 16384)", ["FLOAT"], 10512),
        (FOLDING, "(10513 if wide else 16384)", ["FLOAT"], 10513),
        (FOLDING, "(10512 if wide else 16383)", ["FLOAT16", "BF16"], 16384),
        (FOLDING, "(10512 if wide else 16385)", ["FLOAT16", "BF16"], 16385),
        (COLUMNS, "if n <= 257:", ["FLOAT", "FLOAT16", "BF16"], 257),
    ],
)
def test_a_limit_that_is_off_by_one_is_seen(old: str, new: str, dtypes: list[str], length: int, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = OtherLimit(old, new, monkeypatch)
    units = [u for u in plan("quick", ["SoftmaxBackward"], [], ["dav_3510"]) if u.kind == "length" and u.v.numerics == "device"]
    near = [u for u in units if abs(u.low - length) <= 1]
    found = {(u.v.dtype, u.low) for u, o in zip(near, execute(near, wrong, jobs=1), strict=True) if o.mismatches}
    assert found == {(dtype, length) for dtype in dtypes}


class Tree:
    """Instead of sums, which items are added: equal numbers are equal trees; the sides of an addition do not matter."""

    trace = None

    def __init__(self) -> None:
        self.nodes: dict[tuple[int, int], int] = {}

    def add(self, a: int, b: int) -> int:
        return self.nodes.setdefault((min(a, b), max(a, b)), 1000 + len(self.nodes))


def test_the_limit_of_columns_changes_no_bit_up_to_256_rows() -> None:
    def same(n: int) -> bool:
        f: Any = Tree()
        items = list(range(1, n + 1))
        return sums.halving(f, items) == sums.neighbours(f, [sums.halving(f, b) for b in sums._blocks_folded(f, items, 128)])

    assert [n for n in range(1, 260) if not same(n)] == [257, 258, 259]
