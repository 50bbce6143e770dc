"""Row and column kernels: orders of sums, splits, in-place calls, the caller's floating-point mode."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emu_kernels import build
from emu_kernels.call import call
from emu_kernels.variant import Kernel, Variant
from hypothesis import given, settings
from hypothesis import strategies as st

F = np.float32
CASES = [
    ("softmax_backward", "dav_2201", "FLOAT"),
    ("softmax_backward", "dav_3510", "FLOAT"),
    ("softmax_backward", "dav_3510", "BF16"),
    ("softmax", "dav_2201", "FLOAT16"),
    ("log_softmax", "dav_3510", "FLOAT"),
    ("log_softmax_backward", "dav_2201", "BF16"),
]
Case = tuple[str, str, str]


def data_for(case: Case, shape: tuple[int, int, int], seed: int) -> list[np.ndarray]:
    """Normal values as the carrier of the dtype."""
    flow, _, dtype = case
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(build.flows()[flow].inputs):
        a = rng.standard_normal(shape).astype(F)
        if dtype == "FLOAT16":
            made.append(a.astype(np.float16).view(np.uint16))
        elif dtype == "BF16":
            made.append((a.view(np.uint32) >> 16).astype(np.uint16))
        else:
            made.append(a.view(np.uint32))
    return made


def run(case: Case, arrays: list[np.ndarray], last: bool, cuts: tuple[int, ...] = (), out: object = None) -> np.ndarray:
    flow, arch, dtype = case
    outer, r, inner = arrays[0].shape
    result = np.full_like(arrays[0], 0x5A) if out is None else out
    assert isinstance(result, np.ndarray)
    stop = outer if last else outer * inner
    bounds = sorted({0, stop, *(c for c in cuts if c < stop)})
    kernel = build.rows(flow, Variant(arch, dtype, False), last)
    for a, b in itertools.pairwise(bounds):
        call(kernel, (result, *arrays), (outer, r, inner), a, b)
    return result


@pytest.mark.parametrize(
    "case", [*CASES, ("softmax_backward", "dav_2201", "FLOAT16"), ("softmax_backward", "dav_1001", "FLOAT16")], ids="-".join
)
@pytest.mark.parametrize("saturate", [False, True])
def test_stores_past_the_caches_have_the_same_bits(case: Case, saturate: bool) -> None:
    """Rows off the lines, lengths with and without a remainder, also into an input."""
    flow, arch, dtype = case
    kernel = build.rows(flow, Variant(arch, dtype, saturate), True)
    # The last argument: a part of a result so large that its stores bypass the caches.
    streaming = Kernel(kernel.name, kernel.address, (1 << 30,), kernel.grain, kernel)
    for r in (1, 7, 8, 63, 130, 1021, 4100):
        arrays = data_for(case, (3, r, 1), r)
        want = np.empty_like(arrays[0])
        call(kernel, (want, *arrays), (3, r, 1), 0, 3)
        raw = np.full(want.size + 64, 0x5A, want.dtype)
        for k in (None, *range(len(arrays))):
            out = raw[5 : 5 + want.size].reshape(want.shape)
            operands = list(arrays)
            if k is not None:
                out[:] = arrays[k]
                operands[k] = out
            call(streaming, (out, *operands), (3, r, 1), 0, 3)
            assert out.tobytes() == want.tobytes(), (r, k)
        assert (raw[:5] == 0x5A).all()
        assert (raw[5 + want.size :] == 0x5A).all()


# --- the orders, written down once more on whole arrays: axis 0 is the reduced one ---------------------------------


def order_t(x: np.ndarray) -> np.ndarray:
    v = np.zeros((64, *x.shape[1:]), x.dtype)
    v[: len(x)] = x
    while len(v) > 1:
        v = v[::2] + v[1::2]
    return v[0]


def order_h(x: np.ndarray) -> np.ndarray:
    x, p = x.copy(), 1 << (len(x).bit_length() - 1)
    x[: len(x) - p] += x[p:]
    while p > 1:
        p //= 2
        x[:p] += x[p : 2 * p]
    return x[0]


def order_f(x: np.ndarray) -> np.ndarray:
    n = len(x)
    if n <= 64:
        return order_t(x)
    if n <= 128:
        x = x.copy()
        x[: n - 64] += x[64:]
        return order_t(x[:64])
    blocks = -(-n // 64)
    f = 1 << ((blocks - 1).bit_length() - 1)
    x = x.copy()
    x[: n - 64 * f] += x[64 * f :]
    return order_f(np.array([order_t(x[64 * j : 64 * j + 64]) for j in range(f)]))


def order_k(x: np.ndarray) -> np.ndarray:
    x, p = x.copy(), 1 << (len(x).bit_length() - 1)
    x[: len(x) - p] += x[p:]
    v = x[:p].reshape(p // 64, 64)
    while len(v) >= 16:
        v = v.reshape(-1, 16, 64)
        for d in (8, 4, 2, 1):
            v = v[:, :d] + v[:, d : 2 * d]
        v = v[:, 0]
    while len(v) > 1:
        v = v[: len(v) // 2] + v[len(v) // 2 :]
    return order_t(v[0])


def in_blocks(x: np.ndarray, unit: int, inner_order: object) -> np.ndarray:
    m = -(-len(x) // unit)
    half = 1 << ((m - 1).bit_length() - 1)
    sums = []
    for j in range(half):
        block, upper = x[j * unit : (j + 1) * unit].copy(), x[(j + half) * unit : (j + half + 1) * unit]
        block[: len(upper)] += upper
        sums.append(inner_order(block))  # type: ignore[operator]
    while len(sums) > 1:
        sums = [a + b for a, b in zip(sums[::2], sums[1::2], strict=True)]
    return sums[0]


def order_lanes(x: np.ndarray) -> np.ndarray:
    acc = np.zeros((64, *x.shape[1:]), x.dtype)
    for k in range(len(x)):
        acc[k % 64] += x[k]
    return order_t(acc)


def order_sequential(x: np.ndarray) -> np.ndarray:
    s = np.zeros(x.shape[1:], x.dtype)
    for row in x:
        s = s + row
    return s


def expected_sum(arch: str, x: np.ndarray, last: bool) -> np.ndarray:
    n = len(x)
    if n == 1:
        return x[0]
    if arch != "dav_3510":
        return order_lanes(x) if last else order_sequential(x)
    if last:
        if n <= 8:
            return order_h(x)
        return order_f(x) if n <= 10512 else in_blocks(x, 10464, order_k)
    return order_h(x) if n <= 165 else in_blocks(x, 128, order_h)


@pytest.mark.parametrize("last", [True, False], ids=["last", "other"])
@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
@pytest.mark.parametrize("flow", ["softmax_backward", "log_softmax_backward"])
def test_the_sum_has_the_order_of_the_architecture(flow: str, arch: str, last: bool) -> None:
    lengths = [*range(1, 19), 63, 64, 65, 127, 128, 129, 165, 166, 192, 193, 255, 256, 257, 300, 1000]
    lengths += [10512, 10513, 20928, 20929, 31400, 50000] if last else [2500]
    rng = np.random.default_rng(7)
    for n in lengths:
        g = rng.standard_normal(n).astype(F)
        # out = 1 * (g - s), fused or not; and g - exp(0) * s.
        y = np.ones(n, F) if flow == "softmax_backward" else np.zeros(n, F)
        s = expected_sum(arch, g, last)
        shape = (1, n, 1)
        arrays = [a.reshape(shape).view(np.uint32) for a in (g, y)]
        got = run((flow, arch, "FLOAT"), arrays, last).view(F).ravel()
        assert (got == g - s).all(), n


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(c))
@settings(max_examples=20, deadline=None)
@given(data=st.data())
def test_any_split_of_the_rows_or_columns_gives_the_same(case: Case, data: st.DataObject) -> None:
    last = data.draw(st.booleans())
    outer, r = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 300))
    inner = 1 if last else data.draw(st.sampled_from([1, 2, 3, 63, 64, 127, 128, 129, 300]))
    arrays = data_for(case, (outer, r, inner), r)
    whole = run(case, arrays, last)
    cuts = tuple(data.draw(st.lists(st.integers(0, outer * inner), max_size=4)))
    assert (run(case, arrays, last, cuts) == whole).all()
    single = run(case, arrays, last, tuple(range(outer * inner)) if outer * inner < 400 else cuts)
    assert (single == whole).all()


@pytest.mark.parametrize("last", [True, False], ids=["last", "other"])
@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(c))
def test_in_place_gives_what_out_of_place_gives(case: Case, last: bool) -> None:
    arrays = data_for(case, (3, 200, 1) if last else (2, 200, 150), 5)
    want = run(case, arrays, last)
    for k in range(len(arrays)):
        copies = [a.copy() for a in arrays]
        assert (run(case, copies, last, (), copies[k]) == want).all(), k


@pytest.mark.parametrize("last", [True, False], ids=["last", "other"])
@pytest.mark.parametrize("arch", ["dav_1001", "dav_2002", "dav_2201", "dav_3002", "dav_3510"])
def test_published_softmax_backward(arch: str, last: bool) -> None:
    g, y = np.arange(8, dtype=F).reshape(4, 2), np.array([1, 1, 1, 2, 2, 2, 3, 3], F).reshape(4, 2)
    want = np.array([-28, -37, -26, -70, -48, -66, -66, -93], F)
    if last:
        arrays = [np.ascontiguousarray(a.T).reshape(2, 4, 1).view(np.uint32) for a in (g, y)]
        got = run(("softmax_backward", arch, "FLOAT"), arrays, True).view(F).reshape(2, 4).T.ravel()
    else:
        arrays = [a.reshape(1, 4, 2).view(np.uint32) for a in (g, y)]
        got = run(("softmax_backward", arch, "FLOAT"), arrays, False).view(F).ravel()
    assert (got == want).all()


def test_a_bf16_sum_accumulates_in_float() -> None:
    # y = 1, g = 1, 4,096 columns: the sum is 4096 and the result -4095, BF16 -4096. A BF16 sum would stop at 256.
    ones = np.full((1, 4096, 1), 0x3F80, np.uint16)
    assert (run(("softmax_backward", "dav_2201", "BF16"), [ones, ones], True) == 0xC580).all()


def test_a_nan_stays_in_its_row() -> None:
    g, y = np.ones((3, 70, 1), F), np.ones((3, 70, 1), F)
    y[1] = np.nan
    y[2] = 0
    got = run(("softmax_backward", "dav_2201", "FLOAT"), [a.view(np.uint32) for a in (g, y)], True).view(F)
    assert (got[0] == -69).all()
    assert np.isnan(got[1]).all()
    assert (got[2] == 0).all()


@pytest.mark.parametrize("last", [True, False], ids=["last", "other"])
@pytest.mark.parametrize("where", [0, 1, 63, 64, 69])
def test_softmax_of_a_row_with_nan_or_only_minus_infinity_is_nan(last: bool, where: int) -> None:
    x = np.zeros((2, 70, 1), F)
    x[0, where] = np.nan
    x[1] = -np.inf
    for flow in ("softmax", "log_softmax"):
        got = run((flow, "dav_2201", "FLOAT"), [x.view(np.uint32)], last).view(F)
        assert np.isnan(got).all()


def test_log_softmax_takes_the_maximum_of_the_last_dim_in_float16() -> None:
    # 70000 is infinite in FLOAT16: every x - max is -inf, the sum 0, and -inf - log(0) is NaN. Along another dim not.
    x = np.array([70000, 1], F).reshape(1, 2, 1).view(np.uint32)
    case = ("log_softmax", "dav_2201", "FLOAT")
    assert np.isnan(run(case, [x], True).view(F)).all()
    assert (run(case, [x], False).view(F).ravel() == [0, -69999]).all()


def test_rows_shorter_and_longer_than_scratch_do_not_touch_their_neighbours() -> None:
    for r in (1, 7, 64, 10512, 10513):
        arrays = data_for(("softmax_backward", "dav_3510", "FLOAT"), (1, r, 1), r)
        raw = np.full(r + 32, 7, np.uint32)
        run(("softmax_backward", "dav_3510", "FLOAT"), arrays, True, (), raw[16 : 16 + r].reshape(1, r, 1))
        assert (raw[:16] == 7).all()
        assert (raw[16 + r :] == 7).all()
