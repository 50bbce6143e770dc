"""The NumPy face: signatures, shapes, dtypes, out, strides, errors, several products in one process, threads."""

from __future__ import annotations

import copy
import inspect
import pickle
import sys
import threading
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import emu
from emu import ops
from emu.opdef.catalogue import OPERATORS

BF16 = ml_dtypes.bfloat16
A950 = "Ascend950PR_9599"


def test_every_operator_has_its_function() -> None:
    assert dir(ops) == sorted(op.python_name for op in OPERATORS)
    for name in dir(ops):
        function = getattr(ops, name)
        assert function.__name__ == name
        assert "emu.AclError" in function.__doc__
    with pytest.raises(AttributeError, match="did you mean selu_backward"):
        _ = ops.selu_backwards


@pytest.mark.parametrize(
    ("name", "signature"),
    [
        ("selu_backward", "(grad, result, *, soc=None, numerics=None, out=None)"),
        ("log_sigmoid_backward", "(grad, self, *, soc=None, numerics=None, out=None)"),
        ("softmax_backward", "(grad, output, dim, *, soc=None, numerics=None, out=None)"),
        ("inplace_selu", "(self, *, soc=None, numerics=None)"),
        ("log_sigmoid_forward", "(self, *, soc=None, numerics=None, out=None)"),
    ],
)
def test_signatures(name: str, signature: str) -> None:
    assert str(inspect.signature(getattr(ops, name))) == signature


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16, np.int8, np.int32])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3, 4), (1,) * 9])
def test_result_has_the_input_s_shape_and_dtype(dtype: Any, shape: tuple[int, ...]) -> None:
    out = ops.selu_backward(np.ones(shape, dtype), np.ones(shape, dtype))
    assert out.shape == shape
    assert out.dtype == dtype
    assert (out.astype(np.float64) == (1 if np.dtype(dtype).kind == "i" else out.astype(np.float64))).all()


def test_known_values() -> None:
    g, y = np.ones(2, np.float16), np.array([-1, 1], np.float16)
    assert ops.selu_backward(g, y).tolist() == [0.7578125, 1.05078125]
    y = np.float32([[1, 1], [1, 2], [2, 2], [3, 3]])
    assert ops.softmax_backward(np.arange(8, dtype=np.float32).reshape(4, 2), y, 0).ravel().tolist() == [
        -28, -37, -26, -70, -48, -66, -66, -93,
    ]  # fmt: skip
    assert ops.selu_backward(np.float32([2.5]), np.float32([0.5]), numerics="document").tolist() == [2.5]


def test_out_is_written_and_returned() -> None:
    g, y = np.ones((3, 4), np.float32), np.full((3, 4), -0.5, np.float32)
    out = np.zeros((6, 8), np.float32)
    view = out[::2, ::2]
    assert ops.selu_backward(g, y, out=view) is view
    assert (view == ops.selu_backward(g, y)).all()
    assert (out[1::2] == 0).all()
    with pytest.raises(emu.AclError) as caught:
        ops.selu_backward(g, y, out=np.zeros((4, 3), np.float32))
    assert caught.value.code == 161002
    with pytest.raises(emu.AclError):
        ops.selu_backward(g, y, out=np.zeros((3, 4), np.float16))
    frozen = np.zeros((3, 4), np.float32)
    frozen.flags.writeable = False
    with pytest.raises(emu.AclError, match="out is read-only"):
        ops.selu_backward(g, y, out=frozen)
    with pytest.raises(TypeError):
        ops.selu_backward(g, y, out=[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float16, BF16, np.int8, np.int64, np.uint16, np.bool_, np.complex64, np.complex128])
def test_softmax_backward_casts_to_any_out(dtype: Any) -> None:
    g, y = np.float32([[1, 300, -5]]), np.float32([[0.25, 0.5, 0.25]])
    plain = ops.softmax_backward(g, y, 1)
    out = np.zeros((1, 3), dtype)
    ops.softmax_backward(g, y, 1, out=out)
    if np.dtype(dtype).kind == "b":
        expected = plain != 0
    elif np.dtype(dtype).kind in "iu":
        limits = np.iinfo(dtype)
        expected = np.clip(np.trunc(plain), max(limits.min, -(2**53)), min(limits.max, 2**53)).astype(dtype)
    else:
        expected = plain.astype(dtype)
    assert (out == expected).all(), (out, expected)


def test_errors_carry_the_code() -> None:
    one = np.ones(3, np.float32)
    for args, code in (
        ((one, one.astype(np.float16)), 161002),
        ((one, np.ones(4, np.float32)), 161002),
        ((one.astype(np.float64), one.astype(np.float64)), 161002),
    ):
        with pytest.raises(emu.AclError) as caught:
            ops.selu_backward(*args)
        assert caught.value.code == code
    with pytest.raises(emu.AclError, match="561103") as caught:
        ops.selu_backward(one, one, soc=A950)
    assert "strict_products=False" in str(caught.value)
    with pytest.raises(emu.AclError, match="not in the range"):
        ops.softmax_backward(one, one, 1)
    with pytest.raises(emu.AclError, match="BF16"):
        ops.softmax_backward(one.astype(BF16), one.astype(BF16), 0, soc="Ascend910A")


def test_wrong_types_are_told() -> None:
    one = np.ones(3, np.float32)
    with pytest.raises(TypeError, match="NumPy array"):
        ops.selu_backward([1.0], one)
    with pytest.raises(TypeError, match="dim must be an int"):
        ops.softmax_backward(one, one, 0.5)
    with pytest.raises(TypeError):
        ops.selu_backward(one)
    with pytest.raises(TypeError):
        ops.selu_backward(one, one, sock="x")
    with pytest.raises(ValueError, match="unknown SoC"):
        ops.selu_backward(one, one, soc="Ascend910C")
    with pytest.raises(ValueError, match="document"):
        ops.selu_backward(one, one, numerics="doc")
    with pytest.raises(emu.AclError, match="no aclDataType"):
        ops.selu_backward(np.zeros(2, "S4"), one)


def test_a_torch_tensor_gets_the_conversion(monkeypatch: pytest.MonkeyPatch) -> None:
    class Tensor:
        __module__ = "torch"

    with pytest.raises(TypeError, match=r"numpy\(\)"):
        ops.selu_backward(Tensor(), np.ones(1, np.float32))


def test_more_dimensions_than_an_acl_tensor_holds() -> None:
    fine = np.ones((2,) + (1,) * 23 + (2,), np.float32)
    assert (ops.selu_backward(fine, fine) == ops.selu_backward(fine.ravel(), fine.ravel()).reshape(fine.shape)).all()
    many = np.ones((2,) + (1,) * 24 + (2,), np.float32)
    with pytest.raises(emu.AclError, match="at most 25"):
        ops.selu_backward(many, many)


def test_an_unaligned_array_is_refused() -> None:
    odd = np.zeros(41, np.uint8)[1:].view(np.float32)
    with pytest.raises(emu.AclError, match="not aligned") as caught:
        ops.selu(odd)
    assert caught.value.code == 161002


def test_an_out_that_overlaps_itself_holds_the_last_element_whatever_the_threads() -> None:
    n = 1 << 18
    g = np.arange(n, dtype=np.float32)
    before = emu.configure()
    try:
        for threads in (1, 2, 5):
            emu.configure(threads=threads)
            one = np.zeros(1, np.float32)
            out = np.lib.stride_tricks.as_strided(one, (n,), (0,), writeable=True)
            ops.selu_backward(g, np.ones(n, np.float32), out=out)
            assert one[0] == np.float32(n - 1) * np.float32(1.0507009873554805)
    finally:
        emu.configure(threads=before.threads)


def test_byte_strides_that_split_elements_are_refused() -> None:
    raw = np.zeros(60, np.uint8)
    odd = np.ndarray((10,), np.float32, raw, 0, (6,))
    with pytest.raises(emu.AclError, match="multiples of its element size"):
        ops.selu_backward(odd, odd)


def test_several_products_beside_an_open_device() -> None:
    from emu import acl

    zero, one = np.zeros(1, np.float32), np.ones(1, np.float32)
    before = emu.configure()
    emu.configure(strict_products=False)
    try:
        assert acl.rt.set_device(0) == 0
        assert ops.selu_backward(one, zero, soc=A950)[0] > 1.7
        assert ops.selu_backward(one, zero)[0] < 1.1
        assert acl.rt.get_device() == (0, 0)
        with pytest.raises(emu.AclError):
            emu.configure(soc=A950)
        assert acl.rt.reset_device(0) == 0
        emu.configure(soc=A950)
        assert ops.selu_backward(one, zero)[0] > 1.7
    finally:
        emu.configure(soc=before.soc, strict_products=before.strict_products)


def test_ops_opens_no_device() -> None:
    from emu import acl

    ops.selu_backward(np.ones(4, np.float32), np.ones(4, np.float32))
    assert acl.rt.get_device()[1] == 107002
    before = emu.configure().soc
    emu.configure(soc="Ascend310P3")  # refused while a device is open
    emu.configure(soc=before)


@pytest.mark.parametrize(
    ("array", "error", "text"),
    [
        (np.ma.masked_array(np.ones(3, np.float32), [0, 1, 0]), TypeError, r"grad is a masked array.*grad\.filled\(value\)"),
        (np.ones(3, ">f4"), emu.AclError, r"bytes are swapped.*newbyteorder"),
        (np.zeros(3, "V2"), emu.AclError, r"grad\.view\(ml_dtypes\.bfloat16\)"),
        (np.zeros(3, ml_dtypes.float8_e4m3fn), emu.AclError, "float8_e4m3fn, which has no aclDataType here; known: float32"),
        ([1.0, 2.0, 3.0], TypeError, "must be a NumPy array, not list"),
    ],
)
def test_arrays_that_are_none_say_what_to_give(array: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ops.selu_backward(array, np.ones(3, np.float32))


def test_out_that_is_none_says_what_to_give() -> None:
    one = np.ones(3, np.float32)
    with pytest.raises(TypeError, match=r"out is a masked array"):
        ops.selu_backward(one, one, out=np.ma.masked_array(one, [0, 1, 0]))
    with pytest.raises(TypeError, match=r"out must be a NumPy array, not float32"):
        ops.selu_backward(one[:1], one[:1], out=np.float32(1))
    with pytest.raises(emu.AclError, match=r"known: .*uint16"):
        ops.softmax_backward(one, one, 0, out=np.zeros(3, "V4"))


def test_an_error_survives_copies_and_other_processes() -> None:
    error = emu.AclError(161002, "what happened")
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert (type(again), again.code, str(again)) == (emu.AclError, 161002, str(error))


def test_inplace() -> None:
    x = np.float32([-1, 0, 2])
    expected = ops.selu(x)
    assert ops.inplace_selu(x) is x
    assert x.tolist() == expected.tolist()


@pytest.mark.parametrize("name", ["selu_backward", "log_sigmoid_backward", "softmax_backward0", "softmax_backward1"])
@pytest.mark.parametrize("soc", ["Ascend910B1", A950])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
def test_the_same_bits_for_one_and_for_many_threads(name: str, soc: str, dtype: Any) -> None:
    rng = np.random.default_rng(8)
    shape = (300, 1025)
    g, y = ((rng.standard_normal(shape) * 3).astype(dtype) for _ in range(2))
    extra = (int(name[-1]),) if name[-1].isdigit() else ()
    function = getattr(ops, name.rstrip("01"))
    before = emu.configure()
    results = []
    try:
        for threads in (1, 2, 3, 7):
            emu.configure(threads=threads, strict_products=False)
            results.append(function(g, y, *extra, soc=soc).tobytes())
    finally:
        emu.configure(threads=before.threads, strict_products=before.strict_products)
    assert len(set(results)) == 1


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 300), start=st.integers(0, 70), step=st.sampled_from([1, 2, -1, -3]), dtype=st.sampled_from(["f4", "f2", "bf16"]))
def test_the_same_bits_at_any_offset_and_step(n: int, start: int, step: int, dtype: str) -> None:
    kind = BF16 if dtype == "bf16" else np.dtype(dtype)
    big = (np.random.default_rng(n).standard_normal(4 * n + 100) * 4).astype(kind)
    g, y = big[start : start + 3 * n : 1][:n], big[start:][:: abs(step)][:n][:: 1 if step > 0 else -1]
    for function, extra in ((ops.selu_backward, ()), (ops.log_sigmoid_backward, ()), (ops.softmax_backward, (0,))):
        expected = function(g.copy(), np.ascontiguousarray(y), *extra)
        assert function(g, y, *extra).tobytes() == expected.tobytes()


def test_calls_from_many_threads_at_once() -> None:
    g = np.ones(100_000, np.float32)
    expected = ops.log_sigmoid_backward(g, g).tobytes()
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(20):
            if ops.log_sigmoid_backward(g, g).tobytes() != expected:
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_import_is_light() -> None:
    import subprocess

    code = (
        "import sys, emu, emu.ops, emu.aclnn; emu.ops.selu_backward; assert 'numba' not in sys.modules; assert 'torch' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
