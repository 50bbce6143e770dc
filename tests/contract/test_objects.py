"""aclTensor, aclScalar, arrays and lists: what is refused, what is not, who owns what."""

from __future__ import annotations

import struct
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu import aclnn, nnopbase, nnopbase_executor
from emu.objects import Scalar, Tensor, row_major
from emu.types import DataType, Format

NULL, INVALID = 161001, 161002


def tensor(dims: Any = (2, 3), dtype: int = 0, strides: Any = None, offset: int = 0, storage: Any = (2, 3), data: int = 0) -> int:
    handle: int = aclnn.aclCreateTensor(dims, dtype, strides, offset, Format.ND, storage, data)
    return handle


def test_getters_give_back_what_was_given() -> None:
    t = tensor((2, 3), DataType.FLOAT16, (1, 2), 4, (5, 6), 0x1234)
    assert aclnn.aclGetViewShape(t) == ([2, 3], 0)
    assert aclnn.aclGetViewStrides(t) == ([1, 2], 0)
    assert aclnn.aclGetStorageShape(t) == ([5, 6], 0)
    assert aclnn.aclGetViewOffset(t) == (4, 0)
    assert aclnn.aclGetFormat(t) == (Format.ND, 0)
    assert aclnn.aclGetDataType(t) == (DataType.FLOAT16, 0)
    assert aclnn.aclGetRawTensorAddr(t) == (0x1234, 0)
    assert aclnn.aclSetRawTensorAddr(t, 0x99) == 0
    assert aclnn.aclGetRawTensorAddr(t) == (0x99, 0)
    assert aclnn.aclInitTensor(t, (7,), 0, None, 0, 2, (7,), 5) == 0
    assert aclnn.aclGetViewStrides(t) == ([1], 0)
    assert aclnn.aclDestroyTensor(t) == 0


def test_null_strides_mean_contiguous() -> None:
    t = tensor((2, 3, 4))
    assert aclnn.aclGetViewStrides(t) == ([12, 4, 1], 0)
    aclnn.aclDestroyTensor(t)


@pytest.mark.parametrize("dtype", [-1, 5, 99, 2**31 - 1])
def test_create_checks_next_to_nothing(dtype: int) -> None:
    t = tensor((2, -3), dtype, (-1, 7), -100, (1,), 0xFFFF_FFFF_FFFF_FFFF)
    assert t > 0
    assert aclnn.aclDestroyTensor(t) == 0


def test_dimensions_beyond_25_are_dropped() -> None:
    t = tensor((1,) * 30)
    assert len(aclnn.aclGetViewShape(t)[0]) == 25
    aclnn.aclDestroyTensor(t)


def test_strides_of_another_length_are_refused_with_a_message() -> None:
    assert tensor((2, 3), strides=(1,)) == 0
    assert "2 dimensions but 1 strides" in aclnn.aclGetRecentErrMsg()


@pytest.mark.parametrize(
    "function", ["aclGetViewShape", "aclGetViewStrides", "aclGetStorageShape", "aclGetViewOffset", "aclGetFormat", "aclGetDataType"]
)
def test_getters_of_null_and_of_dead_handles(function: str) -> None:
    get = getattr(aclnn, function)
    assert get(0)[1] == NULL
    assert get(None)[1] == NULL
    t = tensor()
    aclnn.aclDestroyTensor(t)
    assert get(t)[1] == INVALID
    array = aclnn.aclCreateIntArray([1])
    assert get(array)[1] == INVALID
    assert "no live aclTensor" in aclnn.aclGetRecentErrMsg()
    aclnn.aclDestroyIntArray(array)
    with pytest.raises(TypeError):
        get("tensor")


@pytest.mark.parametrize("value", [-5, 2**64, 2**80])
def test_any_int_that_is_no_handle_is_161002(value: int) -> None:
    t = tensor()
    assert aclnn.aclGetViewShape(value)[1] == INVALID
    assert aclnn.aclDestroyTensor(value) == INVALID
    assert aclnn.aclnnSeluBackwardGetWorkspaceSize(value, t, t)[2] == INVALID
    assert "no live aclTensor" in aclnn.aclGetRecentErrMsg()
    assert aclnn.aclnnSeluBackward(0, 0, value, 0) == 561000
    aclnn.aclDestroyTensor(t)


def test_handles_are_positive_and_never_reused() -> None:
    seen = set()
    for _ in range(200):
        t = tensor()
        assert t > 0
        assert t not in seen
        seen.add(t)
        aclnn.aclDestroyTensor(t)


def test_destroying_null_is_fine_and_destroying_twice_is_told() -> None:
    for kind in ("Tensor", "Scalar", "IntArray", "FloatArray", "BoolArray", "TensorList", "ScalarList"):
        destroy = getattr(aclnn, f"aclDestroy{kind}")
        assert destroy(0) == 0
        assert destroy(None) == 0
        assert destroy(123) == INVALID
    t = tensor()
    assert aclnn.aclDestroyTensor(t) == 0
    assert aclnn.aclDestroyTensor(t) == INVALID
    assert "use after free" in aclnn.aclGetRecentErrMsg()


def test_lists_own_their_elements() -> None:
    a, b = tensor(), tensor()
    both = aclnn.aclCreateTensorList([a, b])
    assert aclnn.aclGetTensorListSize(both) == (2, 0)
    assert aclnn.aclDestroyTensorList(both) == 0
    assert aclnn.aclGetViewShape(a)[1] == INVALID
    a = tensor()
    one = aclnn.aclCreateTensorList([a, 0])
    assert aclnn.aclDestroyTensor(a) == 0
    assert aclnn.aclDestroyTensorList(one) == INVALID
    assert aclnn.aclCreateTensorList([a]) == 0
    s = aclnn.aclCreateScalar(1.5, 0)
    scalars = aclnn.aclCreateScalarList([s])
    assert aclnn.aclGetScalarListSize(scalars) == (1, 0)
    assert aclnn.aclDestroyScalarList(scalars) == 0
    assert aclnn.aclDestroyScalar(s) == INVALID


def test_arrays_copy_and_empty_ones_are_objects() -> None:
    values = [1, 2, 3]
    a = aclnn.aclCreateIntArray(values)
    values.append(4)
    assert aclnn.aclGetIntArraySize(a) == (3, 0)
    assert aclnn.aclDestroyIntArray(a) == 0
    for kind in ("Int", "Float", "Bool"):
        for nothing in (None, []):
            empty = getattr(aclnn, f"aclCreate{kind}Array")(nothing)
            assert empty > 0
            assert getattr(aclnn, f"aclGet{kind}ArraySize")(empty) == (0, 0)
            assert getattr(aclnn, f"aclDestroy{kind}Array")(empty) == 0
    with pytest.raises(TypeError):
        aclnn.aclCreateIntArray([1.5])
    with pytest.raises(TypeError):
        aclnn.aclCreateFloatArray(["x"])
    with pytest.raises(OverflowError):
        aclnn.aclCreateIntArray([2**63])


def test_scalars_of_refused_types() -> None:
    assert aclnn.aclCreateScalar(1, DataType.STRING) == 0
    assert "not supported for scalars" in aclnn.aclGetRecentErrMsg()
    assert aclnn.aclCreateScalar(None, 0) == 0
    with pytest.raises(OverflowError):
        aclnn.aclCreateScalar(300, DataType.INT8)
    for dtype in (DataType.FLOAT, DataType.FLOAT16, DataType.BF16, DataType.DOUBLE):
        assert Scalar.of(2**1100, dtype).value() == float("inf")  # type: ignore[union-attr]
        assert Scalar.of(-(2**31), dtype).value() == (-np.inf if dtype == DataType.FLOAT16 else -(2.0**31))  # type: ignore[union-attr]
    for value in ("1", np.array("x")):
        with pytest.raises(TypeError):
            aclnn.aclCreateScalar(value, 0)
    with pytest.raises(TypeError):
        aclnn.aclCreateScalar(1.5, DataType.INT32)


@given(st.floats(width=64))
def test_scalar_bytes_are_those_of_numpy(value: float) -> None:
    for dtype, kind in ((DataType.FLOAT, np.float32), (DataType.FLOAT16, np.float16), (DataType.DOUBLE, np.float64)):
        made = Scalar.of(value, dtype)
        assert made is not None
        with np.errstate(over="ignore", under="ignore"):
            expected = np.array(value, np.float64).astype(kind)
        got = np.frombuffer(made.raw, kind)[0]
        assert got.tobytes() == expected.tobytes() or (np.isnan(got) and np.isnan(expected))


@given(st.floats(width=32) | st.floats(-3e-38, 3e-38) | st.floats(3.3e38, 3.5e38))
def test_bf16_scalars_round_once_from_double(value: float) -> None:
    """FLOAT holds the value exactly or the oracle is exact arithmetic on its neighbours: ml_dtypes only rounds FLOAT right."""
    with np.errstate(over="ignore"):
        single = np.float32(value)
    if float(single) == value or value != value:
        expected = np.array(single).astype(ml_dtypes.bfloat16)
        got = Scalar.of(value, DataType.BF16)
        assert got is not None
        out = np.frombuffer(got.raw, ml_dtypes.bfloat16)[0]
        assert out.tobytes() == expected.tobytes() or (np.isnan(float(out)) and np.isnan(float(expected)))


@pytest.mark.parametrize(
    ("value", "bits"),
    [(1 + 2**-8 + 2**-40, 0x3F81), (1 + 2**-8, 0x3F80), (1 + 3 * 2**-8, 0x3F82), (2**-133, 1), (2**-134, 0), (3 * 2**-135, 1),
     (3.3961e38, 0x7F7F), (3.3962e38, 0x7F80), (3.3895e38, 0x7F7F), (-0.0, 0x8000), (float("inf"), 0x7F80), (2**-126 - 2**-134, 0x0080)],
)  # fmt: skip
def test_bf16_scalars_that_two_roundings_get_wrong(value: float, bits: int) -> None:
    made = Scalar.of(value, DataType.BF16)
    assert made is not None
    assert struct.unpack("<H", made.raw)[0] == bits
    assert Scalar.of(made.value(), DataType.BF16).raw == made.raw  # type: ignore[union-attr]


@given(st.lists(st.integers(0, 5), max_size=5), st.data())
def test_contiguity_and_reach_are_numpys(dims: list[int], data: st.DataObject) -> None:
    strides = data.draw(st.lists(st.integers(-6, 6), min_size=len(dims), max_size=len(dims)))
    t = Tensor(tuple(dims), 0, tuple(strides), 3, 2, (1,), 0)
    places = np.arange(1, dtype=np.int64).reshape([1] * len(dims))
    index = np.zeros(dims, np.int64) + 3
    for axis, (d, s) in enumerate(zip(dims, strides, strict=True)):
        shape = [1] * len(dims)
        shape[axis] = d
        index = index + (np.arange(d) * s).reshape(shape)
    del places
    assert t.numel == index.size
    if index.size:
        assert (t.low, t.high) == (index.min(), index.max()) or t.contiguous
        dense = np.arange(index.size).reshape(dims) + 3
        assert t.contiguous == bool((index == dense).all())


@given(st.lists(st.integers(0, 5), max_size=6))
def test_row_major_strides_are_numpys(dims: list[int]) -> None:
    strides = row_major(dims)
    if np.prod(dims, dtype=int):
        assert [s * 8 for s, d in zip(strides, dims, strict=True) if d > 1] == [
            s for s, d in zip(np.empty(dims).strides, dims, strict=True) if d > 1
        ]


WRONG: list[Any] = ["x", 1.5, object(), [1], {}, b"1", -1, 2**70, True, None]


@pytest.mark.parametrize("module", [nnopbase, nnopbase_executor], ids=["objects", "executor"])
def test_wrong_arguments_raise_or_give_a_code(module: Any) -> None:
    """Every function, every kind of wrong value in every place: TypeError, OverflowError or a code; never anything else."""
    import inspect

    for name, function in vars(module).items():
        if not name.startswith("acl") or name.startswith("aclCreate"):
            continue
        parameters = list(inspect.signature(function).parameters)
        for at in range(len(parameters)):
            for value in WRONG:
                args: list[Any] = [1] * len(parameters)
                args[at] = value
                try:
                    result = function(*args)
                except (TypeError, OverflowError):
                    continue
                code = result[-1] if isinstance(result, tuple) else result
                assert isinstance(code, int), (name, args)


def test_aclnn_init_and_finalize(tmp_path: Any) -> None:
    good = tmp_path / "good.json"
    good.write_text('{"op_debug_config": {"enable_debug_kernel": "on"}}')
    bad = tmp_path / "bad.json"
    bad.write_text("[1")
    assert aclnn.aclnnInit(None) == 0
    assert aclnn.aclnnInit("") == 0
    assert aclnn.aclnnInit(str(good)) == 0
    assert aclnn.aclnnInit(str(bad)) == INVALID
    assert aclnn.aclnnInit(str(tmp_path / "none.json")) == INVALID
    with pytest.raises(TypeError):
        aclnn.aclnnInit(3)
    assert aclnn.aclnnFinalize() == 0


def test_executor_functions_on_null_and_unknown() -> None:
    assert aclnn.aclSetAclOpExecutorRepeatable(0) == 561103
    assert aclnn.aclSetAclOpExecutorRepeatable(77) == 561000
    assert aclnn.aclDestroyAclOpExecutor(0) == 561103
    assert aclnn.aclDestroyAclOpExecutor(77) == 561000
    t = tensor()
    for name in ("aclSetInputTensorAddr", "aclSetOutputTensorAddr", "aclSetTensorAddr"):
        assert getattr(aclnn, name)(0, 0, t, 1) == 561103
        assert getattr(aclnn, name)(77, 0, 0, 1) == 561103
        assert getattr(aclnn, name)(77, 0, t, 1) == 561000
    many = aclnn.aclCreateTensorList([t])
    for name in ("aclSetDynamicInputTensorAddr", "aclSetDynamicOutputTensorAddr", "aclSetDynamicTensorAddr"):
        assert getattr(aclnn, name)(0, 0, 0, many, 1) == 561103
        assert getattr(aclnn, name)(77, 0, 1, many, 1) == INVALID
    aclnn.aclDestroyTensorList(many)
