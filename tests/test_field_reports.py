"""Faults that were reported elsewhere about these operators, their formats and this contract: the right value here.

Each test names the public report whose input it takes. Runtime reports are in tests/contract/test_runtime_*.py.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import emu
from emu import aclnn, ops

BF16 = ml_dtypes.bfloat16
S = np.float32(1.0507009873554805)
SA = np.float32(1.7580993408473769)
A950 = "Ascend950PR_9599"
FLOATS = (np.float32, np.float16, BF16)


@pytest.fixture(autouse=True)
def _all_products() -> Any:
    before = emu.configure()
    emu.configure(strict_products=False)
    yield
    emu.configure(strict_products=before.strict_products)


def f32(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


def test_fully_masked_softmax_row() -> None:
    """pytorch 41508, PR 131060, 55056: a NaN row stays a NaN row, the others stay finite; a zero row gives zeros."""
    y = np.array([[np.nan] * 3, [0.2, 0.3, 0.5], [0, 0, 0]], np.float32)
    out = ops.softmax_backward(np.ones((3, 3), np.float32) * f32(1, 2, 3), y, 1)
    assert np.isnan(out[0]).all()
    assert np.isfinite(out[1:]).all()
    assert (out[2] == 0).all()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_softmax_backward_of_a_slice(dim: int) -> None:
    """pytorch PR 139740."""
    base = np.random.default_rng(0).random((3, 10, 3)).astype(np.float32)
    y, g = base[:, :3, :], base[:, 4:7, ::-1]
    expected = ops.softmax_backward(g.copy(), y.copy(), dim)
    assert ops.softmax_backward(g, y, dim).tobytes() == expected.tobytes()


@pytest.mark.parametrize("dtype", FLOATS)
def test_strided_softmax_is_not_read_as_packed(dtype: Any) -> None:
    """pytorch 75923, rocm-libraries 11387, burn 4815: transposed, padded strides, strided out; what lies between stays."""
    rng = np.random.default_rng(1)
    storage = rng.random((2, 8, 4)).astype(dtype)
    y = np.lib.stride_tricks.as_strided(storage, (2, 4, 2, 2), tuple(s * storage.itemsize for s in (32, 4, 2, 1)))
    g = np.asarray(rng.random((4, 2, 2, 2))).astype(dtype).transpose(1, 0, 2, 3)
    big = np.full((2, 4, 2, 4), 9, dtype)
    out = big[..., ::2]
    for dim in range(-4, 4):
        expected = ops.softmax_backward(np.ascontiguousarray(g), np.ascontiguousarray(y), dim)
        assert ops.softmax_backward(g, y, dim, out=out) is out
        assert np.ascontiguousarray(out).tobytes() == expected.tobytes()
        assert (big[..., 1::2] == 9).all()


@pytest.mark.parametrize("op", ["selu_backward", "log_sigmoid_backward", "softmax_backward"])
def test_expanded_and_transposed_gradients(op: str) -> None:
    """apex PR 1568: a gradient of stride 0, a transposed gradient."""
    function = getattr(ops, op)
    extra = (0,) if op == "softmax_backward" else ()
    y = np.random.default_rng(2).standard_normal((5, 7)).astype(np.float32)
    for g in (np.broadcast_to(f32(1.5), (5, 7)), np.arange(35, dtype=np.float32).reshape(7, 5).T):
        assert function(g, y, *extra).tobytes() == function(np.ascontiguousarray(g), y, *extra).tobytes()


@pytest.mark.parametrize("soc", ["Ascend910B1", A950])
@pytest.mark.parametrize(("shape", "dim"), [((0, 3), 0), ((0, 3), 1), ((3, 0), 1), ((), 0), ((), -1)])
def test_softmax_of_nothing_and_of_a_scalar(soc: str, shape: tuple[int, ...], dim: int) -> None:
    """pytorch 17262, 17256, PR 91322, 46999: no floating-point exception, no error, no workspace off 950."""
    out = ops.softmax_backward(np.ones(shape, np.float32), np.ones(shape, np.float32), dim, soc=soc)
    assert out.shape == shape
    assert (out == 0).all()


@pytest.mark.parametrize("shape", [(0,), (2, 0, 3)])
@pytest.mark.parametrize("op", ["selu_backward", "log_sigmoid_backward"])
def test_elementwise_of_nothing(op: str, shape: tuple[int, ...]) -> None:
    empty = np.ones(shape, np.float32)
    assert getattr(ops, op)(empty, empty).shape == shape
    t = aclnn.aclCreateTensor(shape, 0, None, 0, 2, shape, 0)
    size, executor, code = aclnn.aclnnSeluBackwardGetWorkspaceSize(t, t, t)
    assert (size, code) == (0, 0)
    assert aclnn.aclDestroyAclOpExecutor(executor) == 0
    assert aclnn.aclDestroyTensor(t) == 0


@pytest.mark.parametrize("dtype", [*FLOATS, np.int8, np.int32])
def test_selu_backward_in_place_over_result(dtype: Any) -> None:
    """pytorch 47671, 49272: is_result with in-place gave wrong gradients."""
    rng = np.random.default_rng(4)
    g, y = ((rng.standard_normal(999) * 5).astype(dtype) for _ in range(2))
    expected = ops.selu_backward(g, y)
    assert ops.selu_backward(g, y, out=y) is y
    assert y.tobytes() == expected.tobytes()


@pytest.mark.parametrize(("soc", "at_zero"), [("Ascend910B1", S), ("Ascend910_9391", S), ("Ascend310P3", S), (A950, SA)])
def test_selu_backward_at_zero_and_at_the_far_end(soc: str, at_zero: float) -> None:
    """tinygrad PR 17852: NaN past 88.7, and the branch at 0."""
    g = f32(1, 1, 1, 1, 1)
    out = ops.selu_backward(g, f32(0.0, -0.0, 1e38, np.inf, 88.8), soc=soc)
    assert out.tolist() == [at_zero, at_zero, S, S, S]


@pytest.mark.parametrize("soc", ["Ascend910B1", A950])
@pytest.mark.parametrize("g", [1.0, 1e38])
def test_log_sigmoid_backward_in_the_tail(soc: str, g: float) -> None:
    """tt-metal 55724, pytorch 195681: s*(1-s) is zero from 6.25 (bf16) or 16.75 (FLOAT) on; here it is like exp(-x)."""
    x = f32(6.25, 16.75, 50, 87, 88, 100, 104)
    got = ops.log_sigmoid_backward(np.full_like(x, g), x, soc=soc).astype(np.float64)
    with np.errstate(under="ignore"):
        exact = g / (1 + np.exp(x.astype(np.float64)))
    factor = 1 / (1 + np.exp(x.astype(np.float64)))
    kept = factor >= 2.0**-126 if soc == A950 else np.ones(7, bool)
    # Below 2^-126 the factor has fewer bits, and on the 950 it is flushed to zero.
    tolerance = np.maximum(2.0**-23 * exact, g * 2.0**-149)
    assert (np.abs(got - exact)[kept] <= 1.5 * tolerance[kept]).all()
    assert (got[~kept] == 0).all()


@pytest.mark.parametrize("op", ["selu_backward", "log_sigmoid_backward"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_vector_body_and_tail_agree(op: str, dtype: Any) -> None:
    """pytorch 136345: at size 81 the tail differed. One value everywhere must give one result everywhere."""
    function = getattr(ops, op)
    for n in range(1, 131):
        out = function(np.full(n, 0.7, dtype), np.full(n, -1.3, dtype))
        assert out.tobytes() == out[:1].tobytes() * n


def test_bf16_sum_does_not_stop_at_256() -> None:
    """pytorch 68048: a FLOAT accumulator gives 1 - 4096 = -4095, in BF16 -4096; a BF16 one would give -255."""
    one = np.ones((1, 4096), BF16)
    for soc in ("Ascend910B1", A950):
        assert (ops.softmax_backward(one, one, 1, soc=soc).astype(np.float32) == -4096).all()


def test_bf16_nans_stay_nans() -> None:
    """dotnet 130583, tt-metal 51557, pytorch 41280, FBGEMM 632, pytorch 179282: NaN became infinity."""
    bits = np.arange(65536, dtype=np.uint16).view(BF16)
    nans = np.isnan(bits.astype(np.float32))
    one = np.ones(65536, BF16)
    for soc in ("Ascend910B1", A950):
        assert np.isnan(ops.selu_backward(bits, one, soc=soc).astype(np.float32))[nans].all()
        assert np.isnan(ops.log_sigmoid_backward(one, bits, soc=soc).astype(np.float32))[nans].all()
    for pattern in (0x7F800001, 0x7F80FFFF, 0xFF800001, 0x7FFFFFFF):
        g = np.array([pattern], np.uint32).view(np.float32)
        out = np.zeros(1, BF16)
        ops.softmax_backward(g, f32(1), 0, out=out)
        assert np.isnan(out.astype(np.float32))[0]


def test_bare_uint16_is_refused() -> None:
    """triton 11584, 4972, 8322: BF16 bits taken for integers."""
    with pytest.raises(emu.AclError, match="ml_dtypes") as caught:
        ops.selu_backward(np.zeros(3, np.uint16), np.zeros(3, np.uint16))
    assert caught.value.code == 161002


def test_softmax_backward_with_infinities_and_nans() -> None:
    """mindspore 274, openvino 33456: inf and NaN mixed."""
    g = f32(1, 2, 3, 4, 5)
    assert np.isnan(ops.softmax_backward(g, f32(np.nan, 0, 0, 0, 0), 0)).all()
    out = ops.softmax_backward(g, f32(np.inf, 0, 0, 0, 0), 0)
    assert out[0] == -np.inf, "inf * (1 - inf)"
    assert np.isnan(out[1:]).all(), "0 * -inf"
    out = ops.softmax_backward(f32(np.inf, 1), f32(0, 1), 0)
    assert np.isnan(out).all(), "0 * inf is NaN and so is the sum"
