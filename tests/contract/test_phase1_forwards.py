"""Phase 1 of the forward operators and LogSoftmaxBackward: the tables of their checks, and what is not checked at all."""

from __future__ import annotations

import pytest

import emu
from emu.types import DataType

from .phase1 import A2, A950, INVALID, NULL, Op, Row, T, all_float_to, dim, dtype, execute, fresh, null, rank9, shape

_ROWS_DEFAULTS = {"dim": 1}
OPS = {
    "selu": Op(("self", "out"), "aclnnSeluGetWorkspaceSize"),
    "inplace_selu": Op(("selfRef",), "aclnnInplaceSeluGetWorkspaceSize"),
    "log_sigmoid": Op(("self", "out"), "aclnnLogSigmoidGetWorkspaceSize"),
    "log_sigmoid_forward": Op(("self", "out", "buffer"), "aclnnLogSigmoidForwardGetWorkspaceSize"),
    "softmax": Op(("self", "dim", "out"), "aclnnSoftmaxGetWorkspaceSize", _ROWS_DEFAULTS),
    "log_softmax": Op(("self", "dim", "out"), "aclnnLogSoftmaxGetWorkspaceSize", _ROWS_DEFAULTS),
    "log_softmax_backward": Op(("gradOutput", "output", "dim", "out"), "aclnnLogSoftmaxBackwardGetWorkspaceSize", _ROWS_DEFAULTS),
}


def _nulls(*names: str) -> list[Row]:
    return [(f"null {n}", null(n), NULL, f"null for argument {n}") for n in names]


_DIM: Row = ("dim", dim(99), INVALID, r"provided dim 99 not in the range of input size \d")
_FAR: Row = ("dim", dim(-77), INVALID, r"provided dim -77 not in the range of input size \d")
_OUT_SHAPE: Row = ("shape of out", shape("out", (4, 3)), INVALID, "to have same size as tensor for")
_LOG_SIGMOID: list[Row] = [
    ("list: self", all_float_to(DataType.INT32), INVALID, "not implemented for DT_INT32"),
    ("dtype of out", dtype("out", DataType.FLOAT16), INVALID, "DT_FLOAT16"),
    _OUT_SHAPE,
]
TABLES: dict[str, list[Row]] = {
    "selu": [
        *_nulls("self", "out"),
        ("dtype of out", dtype("out", DataType.FLOAT16), INVALID, "self DT_.* and out DT_FLOAT16"),
        ("dtype list", all_float_to(DataType.DOUBLE), INVALID, "not implemented for DT_DOUBLE"),
        _OUT_SHAPE,
    ],
    "inplace_selu": [*_nulls("selfRef"), ("dtype list", all_float_to(DataType.DOUBLE), INVALID, "not implemented for DT_DOUBLE")],
    "log_sigmoid": [*_nulls("self", "out"), *_LOG_SIGMOID],
    "log_sigmoid_forward": [*_nulls("self", "out", "buffer"), *_LOG_SIGMOID],
    "softmax": [
        *_nulls("self", "out"),
        ("dtype list", dtype("self", DataType.INT32), INVALID, "not implemented for DT_INT32"),
        _DIM,
        _OUT_SHAPE,
    ],
    "log_softmax": [
        *_nulls("self", "out"),
        _FAR,
        ("dtype list", dtype("self", DataType.INT8), INVALID, "not implemented for DT_INT8"),
        _OUT_SHAPE,
    ],
    "log_softmax_backward": [
        *_nulls("gradOutput", "output", "out"),
        ("list: gradOutput", dtype("gradOutput", DataType.DOUBLE), INVALID, "not implemented for DT_DOUBLE"),
        ("dtype of output", dtype("output", DataType.FLOAT16), INVALID, "gradOutput DT_FLOAT and output DT_FLOAT16"),
        ("shape of output", shape("output", (2, 4)), INVALID, "output to have same size as tensor for gradOutput"),
        ("shape of out", shape("out", (4, 3)), INVALID, "out to have same size as tensor for gradOutput"),
        _DIM,
    ],
}


@pytest.mark.parametrize("op", OPS)
def test_the_plain_call_is_accepted(soc: str, op: str) -> None:
    _, executor, code, message = execute(OPS[op], fresh(OPS[op]))
    assert (code, executor > 0) == (0, True), message


@pytest.mark.parametrize("op", ["softmax", "log_softmax", "log_softmax_backward"])
def test_a_rank_above_8_is_refused(soc: str, op: str) -> None:
    call = fresh(OPS[op])
    rank9(call)
    _, _, code, message = execute(OPS[op], call)
    assert code == INVALID
    assert "cannot be larger than 8" in message


@pytest.mark.parametrize("op", ["selu", "inplace_selu", "log_sigmoid", "log_sigmoid_forward"])
def test_rank_and_format_of_the_elementwise_ones_are_not_checked(soc: str, op: str) -> None:
    call = fresh(OPS[op])
    rank9(call)
    for value in call.values():
        if isinstance(value, T):
            value.fmt = 99
    assert execute(OPS[op], call)[2] == 0


def test_buffer_of_log_sigmoid_forward_is_only_checked_for_null(soc: str) -> None:
    call = fresh(OPS["log_sigmoid_forward"])
    call["buffer"] = T((7, 7), DataType.STRING)
    assert execute(OPS["log_sigmoid_forward"], call)[2] == 0


def test_softmax_empty_shortcut_comes_before_every_other_check(soc: str) -> None:
    call = fresh(OPS["softmax"])
    call["self"] = T((0, 3), DataType.STRING)
    call["dim"] = 77
    assert execute(OPS["softmax"], call)[2] == (INVALID if soc == A950 else 0)


@pytest.mark.parametrize(("op", "code"), [("softmax", 0), ("log_softmax", 0), ("log_softmax_backward", INVALID)])
def test_float64(op: str, code: int) -> None:
    before = emu.configure()
    emu.configure(soc=A2)
    try:
        call = fresh(OPS[op])
        for value in call.values():
            if isinstance(value, T):
                value.dtype = DataType.DOUBLE
        assert execute(OPS[op], call)[2] == code
    finally:
        emu.configure(soc=before.soc)
