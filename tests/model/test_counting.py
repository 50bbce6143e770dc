"""Vector instructions counted from the flows, against the public instruction lists of the A2 kernels."""

from __future__ import annotations

import subprocess
import sys

import pytest
from emu_kernels import counting
from emu_kernels.catalog import FLOWS
from emu_kernels.variant import ARCHS, UnknownKernelError, Variant


def operations(flow: str, dtype: str, arch: str = "dav_2201", **more: str) -> int:
    return counting.work(FLOWS[flow].kind, flow, Variant(arch, dtype, False, **more)).operations


@pytest.mark.parametrize(
    ("flow", "instructions"),
    [
        ("sigmoid", "cast vmuls vexp vadds vdiv cast"),
        ("exp", "cast vexp cast"),
        ("gelu", "cast vmul vmul vmuls vadd vmuls vexp vadds vdiv cast"),
        ("softmax", "reduce_max vsub cast vexp reduce_sum vdiv cast"),
    ],
)
def test_as_the_public_kernels(flow, instructions):
    """The A2 kernels' FLOAT16 instruction lists, as read from the public operator sources."""
    assert operations(flow, "FLOAT16") == len(instructions.split())


@pytest.mark.parametrize("flow", FLOWS)
def test_every_flow_can_be_counted(flow):
    entry = FLOWS[flow]
    for arch in ARCHS:
        for dtype in entry.dtypes_on(arch):
            for saturate in (False, True):
                for numerics in ("device", "document"):
                    for last in (False, True):
                        found = counting.work(entry.kind, flow, Variant(arch, dtype, saturate, numerics), last)
                        assert 1 <= found.operations < 40
                        assert found.passes == (1 if entry.kind == "elementwise" else 3 if entry.inputs == 1 else 2)


def test_what_differs_between_architectures_and_formulas_shows():
    assert operations("selu_backward", "FLOAT") == 5, "add, compare, select, multiply, add"
    assert operations("selu_backward", "FLOAT", "dav_3510") == 4, "no final addition"
    assert operations("log_sigmoid_backward", "FLOAT", numerics="document") == 4
    assert operations("selu_backward", "INT32") == operations("selu_backward", "FLOAT") + 3, "three conversions"


def test_a_table_costs_what_it_stands_for():
    """LogSigmoidBackward looks FLOAT16 up on the host; the card computes, and converts three times."""
    assert operations("log_sigmoid_backward", "FLOAT16") == operations("log_sigmoid_backward", "FLOAT") + 3


def test_equal_subexpressions_count_once_and_both_sides_of_a_choice_count():
    counting._nodes.clear()
    x = counting.Value(("load", "x"))
    _ = (x + 1) * (x + 1)
    assert len(counting._nodes) == 2
    counting._select(x < 0, lambda: x * 2, lambda: x * 3)
    assert len(counting._nodes) == 6
    assert counting._select(True, lambda: 1, lambda: 2) == 1


def test_a_branch_on_a_value_is_refused():
    with pytest.raises(TypeError, match="conditional expression"):
        bool(counting.Value(("load", "x")) < 1)


def test_unknown_flows_are_named():
    with pytest.raises(UnknownKernelError, match="no elementwise flow 'mish'"):
        counting.work("elementwise", "mish", Variant("dav_2201", "FLOAT", False))


def test_counting_loads_no_compiler():
    code = (
        "import sys; from emu_kernels.counting import work; from emu_kernels.variant import Variant;"
        "work('rows', 'softmax', Variant('dav_2201', 'FLOAT', False)); sys.exit('numba' in sys.modules or 'llvmlite' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
