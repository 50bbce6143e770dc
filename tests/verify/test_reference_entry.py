"""`operators.scalar` and `operators.array`, the way into the reference: what has no meaning is refused with the choices."""

from __future__ import annotations

import pytest
from emu_kernels import catalog as kernels
from emu_kernels.reference import operators
from emu_kernels.variant import Variant

from emu.verify import catalog

V = Variant("dav_2201", "BF16", False)


def test_a_value_and_its_steps() -> None:
    trace: list[object] = []
    assert operators.scalar("selu_backward", V)(0x4000, 0xBF80, trace=trace) == 0x3FC2
    assert len(trace) > 5
    assert operators.scalar("softmax", V)([0x3F80, 0x3F80], last=True) == [0x3F00, 0x3F00]


@pytest.mark.parametrize(
    ("flow", "v", "text"),
    [
        ("mish", V, "unknown flow: 'mish'; known: selu_backward, "),
        ("selu_backward", V._replace(numerics="documnt"), "'documnt'; known: device, document$"),
        ("selu_backward", V._replace(arch="dav_9"), "unknown architecture: 'dav_9'; known: dav_1001, "),
        ("selu_backward", V._replace(arch="dav_1001"), "'BF16'; known: FLOAT, FLOAT16, INT8, INT32$"),
        ("log_sigmoid", V._replace(dtype="DOUBLE"), "'DOUBLE'; known: FLOAT, FLOAT16, BF16$"),
    ],
)
def test_what_has_no_reference_is_refused(flow: str, v: Variant, text: str) -> None:
    for form in (operators.scalar, operators.array):
        with pytest.raises(ValueError, match=text):
            form(flow, v)


def test_an_unknown_assumption_is_refused() -> None:
    with pytest.raises(LookupError, match="known"):
        operators.scalar("softmax", V._replace(assume=(("tbe_row_order", "random"),)))


@pytest.mark.parametrize("op", [op for op in catalog.OPS if op.rows], ids=lambda op: op.name)
def test_an_empty_row_is_refused(op: catalog.Op) -> None:
    with pytest.raises(ValueError, match="at least one element"):
        operators.scalar(op.flow, V)(*([] for _ in range(op.inputs)), last=True)


def test_document_is_device_where_the_document_has_no_formula_of_its_own() -> None:
    for v in (V, V._replace(numerics="document")):
        assert operators.scalar("selu", v)(0xBF80) == 0xBF8E
    assert operators.scalar("selu_backward", V._replace(numerics="document"))(0x4000, 0xBF80) != 0x3FC2


def test_double_has_no_array_form() -> None:
    with pytest.raises(ValueError, match="no array form"):
        operators.array("softmax", V._replace(dtype="DOUBLE"))


def test_every_dtype_of_the_kernels_has_a_reference() -> None:
    for flow, dtypes in operators.DTYPES.items():
        assert set(kernels.FLOWS[flow].dtypes) == set(dtypes), flow
