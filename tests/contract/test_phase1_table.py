"""Phase 1 of the three operators beside the order of its checks: products, workspaces, and what is not checked at all."""

from __future__ import annotations

import pytest

import emu
from emu import aclnn
from emu.types import DataType, Format

from .phase1 import A910, A950, INVALID, NULL, P310, REFUSED, T, execute, fresh
from .test_phase1_order import OPS, TABLES


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
