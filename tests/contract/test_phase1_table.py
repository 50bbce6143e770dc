"""Phase 1 of the three operators: each check violated alone, each two neighbours together, and what is not checked at all.

The table is written from the published check order, not from the declarations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import emu
from emu import aclnn
from emu.types import DataType, Format

A2, P310, A910, A950 = "Ascend910B1", "Ascend310P3", "Ascend910A", "Ascend950PR_9599"
SOCS = (A2, P310, A910, A950)
NULL, INVALID, REFUSED = 161001, 161002, 561103


@dataclass
class T:
    """A tensor to be made."""

    shape: tuple[int, ...] = (2, 3)
    dtype: int = DataType.FLOAT
    fmt: int = Format.ND
    strides: tuple[int, ...] | None = None
    storage: tuple[int, ...] | None = None
    data: int = 0
    offset: int = 0


Call = dict[str, Any]


@dataclass
class Op:
    names: tuple[str, ...]
    function: str
    defaults: Call = field(default_factory=dict)

    def call(self) -> Call:
        return {n: self.defaults.get(n, T()) for n in self.names}


def fresh(op: Op) -> Call:
    call = op.call()
    return {n: T(**vars(v)) if isinstance(v, T) else v for n, v in call.items()}


OPS = {
    "selu": Op(("gradOutput", "result", "gradInput"), "aclnnSeluBackwardGetWorkspaceSize"),
    "log_sigmoid": Op(("gradOutput", "self", "buffer", "gradInput"), "aclnnLogSigmoidBackwardGetWorkspaceSize"),
    "softmax": Op(("gradOutput", "output", "dim", "out"), "aclnnSoftmaxBackwardGetWorkspaceSize", {"dim": 1}),
}


def execute(op: Op, call: Call) -> tuple[int, int, int, str]:
    handles: list[Any] = []
    made = []
    for value in call.values():
        if isinstance(value, T):
            storage = value.storage if value.storage is not None else value.shape
            h = aclnn.aclCreateTensor(value.shape, value.dtype, value.strides, value.offset, value.fmt, storage, value.data)
            assert h > 0
            made.append(h)
            handles.append(h)
        else:
            handles.append(value)
    aclnn.aclGetRecentErrMsg()
    size, executor, code = getattr(aclnn, op.function)(*handles)
    text = aclnn.aclGetRecentErrMsg() or ""
    for h in made:
        assert aclnn.aclDestroyTensor(h) == 0
    if executor:
        assert aclnn.aclDestroyAclOpExecutor(executor) == 0
    return size, executor, code, text


def null(name: str) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call[name] = None

    return apply


def dtype(name: str, code: int) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        if call[name] is not None:
            call[name].dtype = code

    return apply


def all_float_to(code: int) -> Callable[[Call], None]:
    """Every tensor that still is FLOAT: so that it can stand beside a mismatch."""

    def apply(call: Call) -> None:
        for value in call.values():
            if isinstance(value, T) and value.dtype == DataType.FLOAT:
                value.dtype = code

    return apply


def shape(name: str, dims: tuple[int, ...]) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call[name].shape = dims

    return apply


def rank9(call: Call) -> None:
    for value in call.values():
        if isinstance(value, T):
            value.shape = (1,) * 7 + value.shape[-2:]


def dim(value: int) -> Callable[[Call], None]:
    def apply(call: Call) -> None:
        call["dim"] = value

    return apply


Row = tuple[str, Callable[[Call], None], int, str]

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
ALONE = [(op, i) for op, rows in TABLES.items() for i in range(len(rows))]
PAIRS = [(op, i) for op, rows in TABLES.items() for i in range(len(rows) - 1)]


@pytest.fixture(params=SOCS)
def soc(request: pytest.FixtureRequest) -> Any:
    before = emu.configure()
    emu.configure(soc=request.param, strict_products=True)
    yield request.param
    emu.configure(soc=before.soc, strict_products=before.strict_products)


def name_of(case: tuple[str, int]) -> str:
    return f"{case[0]}-{TABLES[case[0]][case[1]][0]}"


def search(pattern: str, text: str) -> bool:
    import re

    return re.search(pattern, text) is not None


@pytest.mark.parametrize("case", ALONE, ids=name_of)
def test_each_check_alone(soc: str, case: tuple[str, int]) -> None:
    op, i = case
    _, violate, code, text = TABLES[op][i]
    call = fresh(OPS[op])
    violate(call)
    size, executor, got, message = execute(OPS[op], call)
    assert (size, executor, got) == (0, 0, code), message
    assert search(text, message), message
    assert ("EZ1001" in message) == (code // 100000 == 1)


@pytest.mark.parametrize("case", PAIRS, ids=name_of)
def test_of_two_neighbours_the_first_is_reported(soc: str, case: tuple[str, int]) -> None:
    op, i = case
    call = fresh(OPS[op])
    rows = TABLES[op]
    # A later null would be met by the earlier mutation's tensor, so apply the second one first.
    rows[i + 1][1](call)
    rows[i][1](call)
    _, _, got, message = execute(OPS[op], call)
    assert got == rows[i][2], message
    assert search(rows[i][3].replace("DT_FLOAT and", "DT_.* and"), message), message


@pytest.mark.parametrize("op", OPS)
def test_the_plain_call_is_accepted_or_refused_by_the_document(soc: str, op: str) -> None:
    size, executor, code, message = execute(OPS[op], fresh(OPS[op]))
    if soc == A950 and op != "softmax":
        assert (size, executor, code) == (0, 0, REFUSED)
        assert "document" in message
        assert "strict_products=False" in message
        assert "runs" in message
    else:
        assert code == 0, message
        assert executor > 0
        assert size == (16_777_728 if soc == A950 else 0)


@pytest.mark.parametrize("op", OPS)
def test_310b_is_refused_for_all_three(op: str) -> None:
    before = emu.configure()
    emu.configure(soc="Ascend310B1")
    try:
        _, _, code, message = execute(OPS[op], fresh(OPS[op]))
        assert code == REFUSED
        assert "no kernel known" in message
        emu.configure(strict_products=False)
        assert execute(OPS[op], fresh(OPS[op]))[2] == 0
    finally:
        emu.configure(soc=before.soc, strict_products=before.strict_products)


def test_refusal_comes_after_every_check_and_after_the_empty_shortcut() -> None:
    before = emu.configure()
    emu.configure(soc=A950)
    try:
        for op in ("selu", "log_sigmoid"):
            for _, violate, code, _ in TABLES[op]:
                call = fresh(OPS[op])
                violate(call)
                assert execute(OPS[op], call)[2] == code
            call = fresh(OPS[op])
            for value in call.values():
                value.shape = (0, 3)
            size, executor, code, _ = execute(OPS[op], call)
            assert (size, code) == (0, 0)
            assert executor > 0
    finally:
        emu.configure(soc=before.soc)


@pytest.mark.parametrize(
    ("ws", "op"), [(512, "selu"), (16_777_728, "log_sigmoid"), (16_777_728, "softmax")], ids=["selu", "log_sigmoid", "softmax"]
)
def test_workspace_of_contiguous_tensors_on_950(ws: int, op: str) -> None:
    before = emu.configure()
    emu.configure(soc=A950, strict_products=False)
    try:
        assert execute(OPS[op], fresh(OPS[op]))[0] == ws
    finally:
        emu.configure(soc=before.soc, strict_products=before.strict_products)


UNSUPPORTED_SELU = (
    "UNDEFINED",
    "INT16",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "DOUBLE",
    "BOOL",
    "STRING",
    "COMPLEX64",
    "COMPLEX128",
)


@pytest.mark.parametrize("name", UNSUPPORTED_SELU)
def test_selu_refuses_what_the_unit_tests_refuse(name: str) -> None:
    call = fresh(OPS["selu"])
    for value in call.values():
        value.dtype = DataType[name]
    assert execute(OPS["selu"], call)[2] == INVALID


@pytest.mark.parametrize("op", OPS)
def test_bf16_needs_a_product_that_has_it(soc: str, op: str) -> None:
    call = fresh(OPS[op])
    for value in call.values():
        if isinstance(value, T):
            value.dtype = DataType.BF16
    code = execute(OPS[op], call)[2]
    if soc in (P310, A910):
        assert code == INVALID
    else:
        assert code == (REFUSED if soc == A950 and op != "softmax" else 0)


def accepted(soc: str, op: str) -> int:
    """The code of a call that every check lets pass."""
    return REFUSED if soc == A950 and op != "softmax" else 0


@pytest.mark.parametrize("op", OPS)
def test_format_is_never_checked(soc: str, op: str) -> None:
    for fmt in (*Format, 99):
        call = fresh(OPS[op])
        for value in call.values():
            if isinstance(value, T):
                value.fmt = fmt
        assert execute(OPS[op], call)[2] == accepted(soc, op), fmt


@pytest.mark.parametrize("op", ["selu", "log_sigmoid"])
@pytest.mark.parametrize("dims", [(), (1,) * 8 + (3,), (2,) * 9])
def test_rank_of_the_first_two_is_never_checked(soc: str, op: str, dims: tuple[int, ...]) -> None:
    call = fresh(OPS[op])
    for value in call.values():
        value.shape = dims
    assert execute(OPS[op], call)[2] == accepted(soc, op)


@pytest.mark.parametrize("buffer", [T((0,)), T((7, 7), DataType.STRING), T((1,), 99), T((2, 3), DataType.INT8, data=3)])
def test_buffer_is_only_checked_for_null(soc: str, buffer: T) -> None:
    call = fresh(OPS["log_sigmoid"])
    call["buffer"] = buffer
    assert execute(OPS["log_sigmoid"], call)[2] == accepted(soc, "log_sigmoid")


CAST_OK = ("DOUBLE", "COMPLEX64", "COMPLEX128", "FLOAT", "FLOAT16", "BF16", "INT8", "INT16", "INT32", "INT64")
CAST_OK = (*CAST_OK, "UINT8", "UINT16", "UINT32", "UINT64", "BOOL")


@pytest.mark.parametrize("target", list(DataType))
def test_softmax_out_dtype_is_not_checked_but_cast(soc: str, target: DataType) -> None:
    call = fresh(OPS["softmax"])
    call["out"].dtype = target
    size, _, code, message = execute(OPS["softmax"], call)
    possible = target.name in CAST_OK and (target != DataType.BF16 or soc not in (P310, A910))
    assert code == (0 if possible else REFUSED), message
    if soc != A950:
        assert size == (512 if code == 0 and target != DataType.FLOAT else 0)


@pytest.mark.parametrize("value", [-2, -1, 0, 1])
def test_softmax_dims_in_range(value: int) -> None:
    call = fresh(OPS["softmax"])
    call["dim"] = value
    assert execute(OPS["softmax"], call)[2] == 0


@pytest.mark.parametrize(("value", "code"), [(-2, INVALID), (-1, 0), (0, 0), (1, INVALID)])
def test_softmax_of_a_scalar_counts_as_rank_one(value: int, code: int) -> None:
    call = fresh(OPS["softmax"])
    call["dim"] = value
    for name in ("gradOutput", "output", "out"):
        call[name].shape = ()
    assert execute(OPS["softmax"], call)[2] == code


def test_softmax_empty_shortcut_skips_every_check_off_950(soc: str) -> None:
    call = fresh(OPS["softmax"])
    call["gradOutput"] = T((2, 0), DataType.STRING)
    call["output"] = T((5, 0), DataType.INT8)
    call["dim"] = 77
    size, executor, code, message = execute(OPS["softmax"], call)
    if soc == A950:
        assert code == INVALID
        assert "not implemented for DT_STRING" in message
    else:
        assert (size, code) == (0, 0)
        assert executor > 0


def test_softmax_null_comes_before_the_empty_shortcut() -> None:
    call = fresh(OPS["softmax"])
    call["gradOutput"] = T((0,))
    call["out"] = None
    assert execute(OPS["softmax"], call)[2] == NULL


@pytest.mark.parametrize(("op", "code"), [("selu", 561103), ("log_sigmoid", 161001), ("softmax", 561103)])
@pytest.mark.parametrize("view", [T((2, 3), strides=(1, 2), storage=(5,)), T((2, 3), strides=(-3, 1), storage=(9,), offset=2)])
def test_a_strided_view_outside_its_storage(op: str, code: int, view: T) -> None:
    call = fresh(OPS[op])
    call["gradOutput"] = view
    _, _, got, message = execute(OPS[op], call)
    assert got == code
    assert "outside the" in message


@pytest.mark.parametrize("op", OPS)
def test_addresses_and_bounds_of_contiguous_tensors_are_not_looked_at_in_phase_1(op: str) -> None:
    call = fresh(OPS[op])
    call["gradOutput"].data = 0xDEAD
    call["gradOutput"].offset = 10**12
    call["gradOutput"].storage = (1,)
    assert execute(OPS[op], call)[2] == 0


@pytest.mark.parametrize("op", OPS)
def test_negative_dimensions_are_refused_after_the_checks(op: str) -> None:
    call = fresh(OPS[op])
    for value in call.values():
        if isinstance(value, T):
            value.shape = (-2, 3)
    _, _, code, message = execute(OPS[op], call)
    assert code == INVALID
    assert "negative dimension" in message


def test_the_document_form_of_the_numbers_is_kept() -> None:
    """A handle that was destroyed is told apart from null, and null comes first."""
    h = aclnn.aclCreateTensor((2,), 0, None, 0, 2, (2,), 0)
    dead = aclnn.aclCreateTensor((2,), 0, None, 0, 2, (2,), 0)
    assert aclnn.aclDestroyTensor(dead) == 0
    f = aclnn.aclnnSeluBackwardGetWorkspaceSize
    assert f(h, dead, h)[2] == INVALID
    assert "no live aclTensor" in aclnn.aclGetRecentErrMsg()
    assert f(0, dead, h)[2] == NULL
    with pytest.raises(TypeError):
        f(h, "x", h)
    with pytest.raises(TypeError):
        f(h, h)
    assert f(gradOutput=h, result=h, gradInput=h)[2] == 0
    assert aclnn.aclDestroyTensor(h) == 0


def test_a_workspace_beyond_64_bits_is_refused() -> None:
    dims = (2**40, 2**26)
    h = [aclnn.aclCreateTensor(dims, 0, (0, 0), 0, 2, (1,), 0) for _ in range(2)] + [aclnn.aclCreateTensor(dims, 0, None, 0, 2, dims, 0)]
    assert aclnn.aclnnSeluBackwardGetWorkspaceSize(*h) == (0, 0, 561000)
    assert "uint64_t" in aclnn.aclGetRecentErrMsg()
    for t in h:
        aclnn.aclDestroyTensor(t)
