"""The order of phase 1's checks: each violated alone, each two neighbours together.

The tables are written from the published check order, not from the declarations.
"""

from __future__ import annotations

import pytest

from emu.types import DataType

from . import test_phase1_forwards as forwards
from .phase1 import INVALID, NULL, Op, Row, all_float_to, check_alone, check_pair, dim, dtype, null, rank9, shape

OPS = {
    "selu": Op(("gradOutput", "result", "gradInput"), "aclnnSeluBackwardGetWorkspaceSize"),
    "log_sigmoid": Op(("gradOutput", "self", "buffer", "gradInput"), "aclnnLogSigmoidBackwardGetWorkspaceSize"),
    "softmax": Op(("gradOutput", "output", "dim", "out"), "aclnnSoftmaxBackwardGetWorkspaceSize", {"dim": 1}),
}

SELU: list[Row] = [
    ("null gradOutput", null("gradOutput"), NULL, "null for argument gradOutput"),
    ("null result", null("result"), NULL, "null for argument result"),
    ("null gradInput", null("gradInput"), NULL, "null for argument gradInput"),
    ("dtype of result", dtype("result", DataType.FLOAT16), INVALID, "gradOutput DT_FLOAT and result DT_FLOAT16"),
    ("dtype of gradInput", dtype("gradInput", DataType.FLOAT16), INVALID, "gradOutput .* and gradInput DT_FLOAT16"),
    ("dtype list", all_float_to(DataType.DOUBLE), INVALID, "not implemented for DT_DOUBLE"),
    ("shape of result", shape("result", (2, 4)), INVALID, "result to have same size as tensor for gradOutput"),
    ("shape of gradInput", shape("gradInput", (4, 3)), INVALID, "gradInput to have same size as tensor for gradOutput"),
]
LOG_SIGMOID: list[Row] = [
    ("null gradOutput", null("gradOutput"), NULL, "null for argument gradOutput"),
    ("null self", null("self"), NULL, "null for argument self"),
    ("null buffer", null("buffer"), NULL, "null for argument buffer"),
    ("null gradInput", null("gradInput"), NULL, "null for argument gradInput"),
    ("list: gradOutput", dtype("gradOutput", DataType.DOUBLE), INVALID, "Tensor gradOutput not implemented for DT_DOUBLE"),
    ("list: self", dtype("self", DataType.INT32), INVALID, "Tensor self not implemented for DT_INT32"),
    ("dtype of gradInput", dtype("gradInput", DataType.FLOAT16), INVALID, "gradOutput DT_FLOAT and gradInput DT_FLOAT16"),
    ("dtype of self", dtype("self", DataType.FLOAT16), INVALID, "self DT_FLOAT16 and gradInput DT_FLOAT"),
    ("shape of gradOutput", shape("gradOutput", (2, 4)), INVALID, r"gradInput to have same size as tensor for gradOutput"),
    ("shape of self", shape("self", (4, 3)), INVALID, r"gradInput to have same size as tensor for self"),
]
SOFTMAX: list[Row] = [
    ("null gradOutput", null("gradOutput"), NULL, "null for argument gradOutput"),
    ("null output", null("output"), NULL, "null for argument output"),
    ("null out", null("out"), NULL, "null for argument out"),
    ("list: gradOutput", dtype("gradOutput", DataType.DOUBLE), INVALID, "Tensor gradOutput not implemented for DT_DOUBLE"),
    ("list: output", dtype("output", DataType.INT32), INVALID, "Tensor output not implemented for DT_INT32"),
    ("dtype of output", dtype("output", DataType.FLOAT16), INVALID, "gradOutput DT_FLOAT and output DT_FLOAT16"),
    ("dim", dim(99), INVALID, r"provided dim 99 not in the range of input size \d"),
    ("rank", rank9, INVALID, "gradOutput tensor cannot be larger than 8"),
    ("shape of output", shape("output", (2, 4)), INVALID, "output to have same size as tensor for gradOutput"),
    ("shape of out", shape("out", (4, 3)), INVALID, "out to have same size as tensor for gradOutput"),
]
TABLES = {"selu": SELU, "log_sigmoid": LOG_SIGMOID, "softmax": SOFTMAX}
BOTH = ((OPS, TABLES), (forwards.OPS, forwards.TABLES))
#: (operator, its table, the number of a check).
Case = tuple[Op, list[Row], int]
ALONE: list[Case] = [(ops[op], rows, i) for ops, tables in BOTH for op, rows in tables.items() for i in range(len(rows))]
PAIRS = [case for case in ALONE if case[2] + 1 < len(case[1])]


def name_of(case: Case) -> str:
    op, rows, i = case
    return f"{op.function.removesuffix('GetWorkspaceSize')}-{rows[i][0]}"


@pytest.mark.parametrize("case", ALONE, ids=name_of)
def test_each_check_alone(soc: str, case: Case) -> None:
    check_alone(*case)


@pytest.mark.parametrize("case", PAIRS, ids=name_of)
def test_of_two_neighbours_the_first_is_reported(soc: str, case: Case) -> None:
    check_pair(*case)
