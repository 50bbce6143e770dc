"""Layouts: what workspace strided operands need, stated independently, and that every layout gives the bits of the contiguous call."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu import aclnn

from .phase1 import A2, A950


def align(n: int) -> int:
    return (n + 32 + 511) // 512 * 512


@pytest.mark.parametrize("soc", [A2, A950])
@pytest.mark.parametrize("mask", range(8))
def test_workspace_of_strided_operands(npu_on: Any, soc: str, mask: int) -> None:
    """Copies of both inputs and the result live together with the kernel: their sizes add up."""
    npu = npu_on(soc)
    n = 16 * 40 * 4
    tensors = []
    for i in range(3):
        block = npu.put(np.zeros(16 * 40, np.float32))
        if mask >> i & 1:
            tensors.append(npu.tensor((40, 16), np.float32, block, strides=(1, 40), storage=(16, 40)))
        else:
            tensors.append(npu.tensor((40, 16), np.float32, block))
    size, ex, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(*tensors)
    assert ret == 0
    assert size == bin(mask).count("1") * align(n) + (512 if soc == A950 else 0)
    assert aclnn.aclDestroyAclOpExecutor(ex) == 0


def test_a_cast_after_the_kernel_can_reuse_a_dead_bucket(npu: Any) -> None:
    """Strided gradOutput (dead after the kernel) + cast + strided out: the cast's result takes the copy's bucket."""
    g = npu.tensor((40, 16), np.float32, npu.put(np.zeros(640, np.float32)), strides=(1, 40), storage=(16, 40))
    y = npu.array(np.zeros((40, 16), np.float32))
    out = npu.tensor((40, 16), np.float16, npu.put(np.zeros(640, np.float16)), strides=(1, 40), storage=(16, 40))
    size, ex, ret = aclnn.aclnnSoftmaxBackwardGetWorkspaceSize(g, y, 1, out)
    assert ret == 0
    assert size == 2 * align(2560)
    assert aclnn.aclDestroyAclOpExecutor(ex) == 0


LAYOUTS = st.sampled_from(["plain", "transposed", "padded", "sliced", "broadcast"])


def place(npu: Any, layout: str, array: np.ndarray[Any, Any], *, output: bool = False) -> tuple[int, int, np.ndarray[Any, Any], Any]:
    """(tensor, address, what lies in its storage, index of the view in it) of a 2-D array in some layout."""
    rows, cols = array.shape
    if layout == "transposed":
        storage = np.full((cols, rows), 5, array.dtype)
        strides: tuple[int, int] = (1, rows)
        offset = 0
        storage.T[...] = array
        view = storage.T
    elif layout == "padded":
        storage = np.full((rows, cols + 3), 5, array.dtype)
        view, strides, offset = storage[:, :cols], (cols + 3, 1), 0
        view[...] = array
    elif layout == "sliced":
        storage = np.full((2 * rows + 1, 3 * cols + 2), 5, array.dtype)
        view = storage[1::2, 2::3][:rows, :cols]
        strides, offset = (2 * (3 * cols + 2), 3), 3 * cols + 2 + 2
        view[...] = array
    elif layout == "broadcast" and not output:
        storage = np.ascontiguousarray(array[:1])
        view, strides, offset = np.broadcast_to(storage, array.shape), (0, 1), 0
    else:
        storage = array.copy()
        view, strides, offset = storage, (cols, 1), 0
    address = npu.put(storage)
    return npu.tensor(array.shape, array.dtype, address, strides, offset, storage.shape), address, storage, view


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    layouts=st.tuples(LAYOUTS, LAYOUTS, LAYOUTS), rows=st.integers(1, 9), cols=st.integers(1, 70),
    dtype=st.sampled_from(["float32", "float16", "int8"]), seed=st.integers(0, 99), softmax=st.booleans(), dim=st.integers(-2, 1),
)  # fmt: skip
def test_any_layout_gives_the_bits_of_the_contiguous_call_and_touches_nothing_else(
    npu: Any, layouts: tuple[str, str, str], rows: int, cols: int, dtype: str, seed: int, softmax: bool, dim: int
) -> None:
    if softmax and dtype == "int8":
        dtype = "float32"
    rng = np.random.default_rng(seed)
    g, y = ((rng.standard_normal((rows, cols)) * 3).astype(dtype) for _ in range(2))
    tg, _, _, vg = place(npu, layouts[0], g)
    ty, _, _, vy = place(npu, layouts[1], y)
    tout, address, before, _ = place(npu, layouts[2], np.full((rows, cols), 9).astype(dtype), output=True)
    plain = npu.put(np.zeros((rows, cols), dtype))
    tp = npu.tensor((rows, cols), dtype, plain)
    op, extra = ("aclnnSoftmaxBackward", (dim,)) if softmax else ("aclnnSeluBackward", ())
    npu.run(op, npu.array(np.array(vg)), npu.array(np.array(vy)), *extra, tp)
    expected = npu.get(plain, (rows, cols), dtype)
    npu.run(op, tg, ty, *extra, tout)
    after = npu.get(address, before.shape, dtype)
    written = before == 9
    assert after[~written].tobytes() == before[~written].tobytes(), "storage between the elements stays as it was"
    strides, _ = aclnn.aclGetViewStrides(tout)
    offset, _ = aclnn.aclGetViewOffset(tout)
    index = offset + np.arange(rows)[:, None] * strides[0] + np.arange(cols)[None, :] * strides[1]
    assert after.ravel()[index].tobytes() == expected.tobytes()
    for block in npu.blocks[:]:
        npu.free(block)


def test_rank_nine_is_computed_flat(npu: Any) -> None:
    dims = (1, 2, 1, 2, 1, 2, 1, 2, 3)
    g = np.linspace(-2, 2, 48, dtype=np.float16).reshape(dims)
    out = npu.put(np.zeros(48, np.float16))
    npu.run("aclnnSeluBackward", npu.array(g), npu.array(g), npu.tensor(dims, np.float16, out))
    flat = npu.put(np.zeros(48, np.float16))
    npu.run("aclnnSeluBackward", npu.array(g.ravel()), npu.array(g.ravel()), npu.tensor((48,), np.float16, flat))
    assert npu.get(out, 48, np.float16).tobytes() == npu.get(flat, 48, np.float16).tobytes()


def test_zero_dimensional(npu: Any) -> None:
    one = np.array(1, np.float32)
    for op, extra in (("aclnnSeluBackward", ()), ("aclnnSoftmaxBackward", (-1,))):
        out = npu.put(np.zeros(1, np.float32))
        npu.run(op, npu.array(one), npu.array(one), *extra, npu.tensor((), np.float32, out))
        assert npu.get(out, 1, np.float32)[0] == (np.float32(1.0507010) if not extra else 0)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("float64", [-0.5, 0.5]), ("float16", [-0.5, 0.5]), ("int64", [0, 0]), ("bool", [True, True]), ("complex64", [-0.5, 0.5])],
)
def test_softmax_out_of_another_dtype(npu: Any, dtype: str, expected: list[Any]) -> None:
    g, y = np.array([1, 3], np.float32), np.array([0.5, 0.5], np.float32)
    out = npu.put(np.zeros(2, dtype))
    size = npu.run("aclnnSoftmaxBackward", npu.array(g), npu.array(y), 0, npu.tensor((2,), dtype, out))
    assert size == 512
    assert npu.get(out, 2, dtype).tolist() == expected
