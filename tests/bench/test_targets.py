from __future__ import annotations

from typing import Any

import pytest

from bench.cells import KI, MI, Cell
from bench.run import record
from bench.targets import Target, Value, mean, targets
from bench.timing import Samples, summary


def cell_record(cell: Cell, torch: float, limit: float = 0.9) -> dict[str, Any]:
    return record(cell, summary({"emu": Samples([1.0], 1), "torch": Samples([torch], 1), "limit": Samples([limit], 1)}))


def by_name(result: dict[str, Any]) -> dict[str, Target]:
    found = targets(result)
    names = {t.cell: t for t in found}
    assert len(names) == len(found)
    return names


def test_nothing_measured_is_neither_met_nor_missed():
    found = by_name({})
    assert {t.verdict for t in found.values()} == {"not measured"}
    assert {f"SoftmaxBackward {cell} / PyTorch" for cell in ("first r=1024", "first r=256", "middle r=1024", "middle r=512")} <= set(found)


def test_met_and_missed():
    def verdict(*values: float | None, upper: bool = False, doubtful: bool = False) -> str:
        return Target("x", 2.0, tuple(Value("a", v, doubtful) for v in values), upper).verdict

    assert verdict(2.0, None) == "met"
    assert verdict(1.99) == "missed"
    assert verdict(1.0, 3.0, 1.5) == "missed in 2 of 3"
    assert verdict(2.0, upper=True) == "met"
    assert verdict(2.1, upper=True) == "missed"
    assert verdict(2.0, 3.0, doubtful=True) == "met, in doubt"
    assert verdict(1.0, doubtful=True) == "missed"


@pytest.mark.parametrize("other", ["torch", "limit"])
def test_a_hampered_competitor_puts_what_rests_on_it_in_doubt(other: str):
    def at(threads: int, seconds: float) -> dict[str, Any]:
        return cell_record(Cell("SeluBackward", "FLOAT", (16 * MI,), None, threads), **{"torch": 2.0, "limit": 1.0, other: seconds})

    name = "SeluBackward FLOAT / PyTorch" if other == "torch" else "SeluBackward FLOAT, of the limit"
    for two, verdict in ((2.1, "met"), (2.5, "met, in doubt")):
        found = by_name({"cells": [at(1, 2.0), at(2, two)]})
        assert found[name].verdict == verdict
        assert [v.doubtful for v in found[name].values] == [False, verdict != "met"]
        assert sum(t.doubtful for t in found.values()) == (verdict != "met")


def test_means_over_types_are_geometric_and_need_every_type():
    assert mean([]) is None
    assert mean([2.0, 8.0]) == pytest.approx(4.0)
    n = 16 * MI
    one = cell_record(Cell("SeluBackward", "FLOAT16", (n,), None, 2), 0.8)
    assert by_name({"cells": [one]})["SeluBackward 16-bit / PyTorch"].values == ()
    two = cell_record(Cell("SeluBackward", "BF16", (n,), None, 2), 3.2)
    both = by_name({"cells": [one, two]})["SeluBackward 16-bit / PyTorch"]
    assert both.values == (("16 Mi 2T", pytest.approx(1.6), False),)
    assert both.met


def test_large_cells_keep_layouts_and_random_bits_out():
    n = 16 * MI
    cells = [
        cell_record(Cell("SeluBackward", "FLOAT", (n,), None, 1), 1.5),
        cell_record(Cell("SeluBackward", "FLOAT", (4096, 4096), None, 1, layout="padded"), 0.1),
        cell_record(Cell("SeluBackward", "FLOAT", (n,), None, 1, values="bits"), 0.1),
    ]
    found = by_name({"cells": cells})
    assert found["SeluBackward FLOAT / PyTorch"].values == (("16 Mi 1T", pytest.approx(1.5), False),)
    assert found["SeluBackward FLOAT, of the limit"].values == (("16 Mi 1T", pytest.approx(0.9), False),)
    assert found["padded input, 16 Mi / PyTorch"].values == (("SeluBackward 1T", pytest.approx(0.1), False),)


def test_softmax_goals_depend_on_the_length_of_the_reduced_dim():
    n = 16 * MI
    cells = [
        cell_record(Cell("SoftmaxBackward", dtype, (r, n // r), 0, 1), 2.0) for r in (1024, 256) for dtype in ("FLOAT", "FLOAT16", "BF16")
    ]
    found = by_name({"cells": cells})
    assert found["SoftmaxBackward first r=1024 / PyTorch"].goal == 2.5
    assert not found["SoftmaxBackward first r=1024 / PyTorch"].met
    assert found["SoftmaxBackward first r=256 / PyTorch"].met


def test_small_cells_use_the_native_path():
    types = ("FLOAT", "FLOAT16", "BF16")
    cells = [
        cell_record(Cell("SeluBackward", t, (64 * KI,), None, 1, path), r) for t in types for path, r in (("native", 1.3), ("launch", 0.2))
    ]
    assert by_name({"cells": cells})["64 Ki, native function alone, SeluBackward / PyTorch"].values == (("1T", pytest.approx(1.3), False),)


C_ABI = {"pipelined_ratio": 6.0, "start_alone_ratio": 9.0, "program_ratio": 1.5, "document_program_a.cpp_ratio": 2.5}


def test_other_questions():
    one = {"median": 1.0}
    result: dict[str, Any] = {
        "scaling": [
            {
                "operator": "SeluBackward",
                "dtype": "FLOAT",
                "elements": 16 * MI,
                "idle_s": idle,
                "speedup": {"emu": {"median": gain}, "limit": {"median": 2.0}},
            }
            for idle, gain in ((0.0, 1.9), (0.02, 1.0))
        ],
        "latency": {"ratio": {"torch": {"median": 0.25}}, "seconds": {"torch": {"median": 2e-6}}, "c": C_ABI},
        "processes": {
            "import emu, without site": {"inside": {"median": 0.5}, "wall": one},
            "import numpy, without site": {"inside": one, "wall": one},
        },
        "memory": [{"operator": "SeluBackward", "dtype": "FLOAT", "dim": None, "extra": 17 * MI, "baseline": 100 * MI}],
    }
    found = by_name(result)
    assert found["2 threads over 1, of what the limit gains"].values[0].label == "SeluBackward FLOAT 16 Mi (gains 1.90)"
    verdicts = {name: t.verdict for name, t in found.items() if t.met is not None}
    assert verdicts == {
        "2 threads over 1, of what the limit gains": "met",
        "2 threads over 1, of what the limit gains, after 20 ms of idleness": "missed",
        "16 elements, two phases and sync, Python face, in PyTorch out= calls": "met",
        "16 elements, two phases pipelined, C ABI, in PyTorch out= calls": "missed",
        "whole C++ program of one operator, warm cache / a process that imports numba": "missed in 1 of 2",
        "import emu / import numpy, inside the process": "met",
        "memory beyond the tensors, 64 Mi": "missed",
        "memory of the process at its first result": "met",
    }
