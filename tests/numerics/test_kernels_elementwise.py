"""Elementwise kernels: a body and its tail are the same, and neither the split, the address nor the caller's mode matters."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from emu_kernels import build
from emu_kernels.call import call
from emu_kernels.flows import selu
from emu_kernels.variant import Kernel, Variant
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

CARRIER = {"FLOAT": np.uint32, "FLOAT16": np.uint16, "BF16": np.uint16, "INT8": np.uint8, "INT32": np.uint32}
CASES = [
    ("selu_backward", "dav_2201", "FLOAT", False),
    ("selu_backward", "dav_2201", "FLOAT16", False),
    ("selu_backward", "dav_1001", "FLOAT16", True),
    ("selu_backward", "dav_2201", "BF16", True),
    ("selu_backward", "dav_2201", "INT8", False),
    ("selu_backward", "dav_3510", "INT8", False),
    ("selu_backward", "dav_3510", "INT32", False),
    ("log_sigmoid_backward", "dav_2201", "FLOAT", False),
    ("log_sigmoid_backward", "dav_2201", "BF16", False),
    ("log_sigmoid_backward", "dav_3510", "FLOAT16", False),
    ("log_sigmoid_backward", "dav_1001", "FLOAT16", True),
    ("log_sigmoid_backward", "dav_2201", "BF16", True),
    ("selu", "dav_2201", "FLOAT", False),
    ("log_sigmoid", "dav_2201", "FLOAT16", False),
]
EDGES = {
    np.uint32: [0, 0x80000000, 1, 0x80000001, 0x7FFFFF, 0x800000, 0x7F800000, 0xFF800000, 0x7F7FFFFF, 0x3F800000],
    np.uint16: [0, 0x8000, 1, 0x8001, 0x3FF, 0x400, 0x7C00, 0xFC00, 0x7BFF, 0x3C00, 0x7F80, 0xFF80, 0x7F7F, 0x3F80],
    np.uint8: [0, 0x80, 1, 0xFF, 0x7F],
}
Case = tuple[str, str, str, bool]


def inputs(case: Case, n: int, seed: int) -> list[np.ndarray]:
    """Random bit patterns with edge values among them."""
    flow, _, dtype, _ = case
    carrier = CARRIER[dtype]
    rng = np.random.default_rng(seed)
    made = []
    for _ in range(build.flows()[flow].inputs):
        a = rng.integers(0, 1 << 8 * carrier().itemsize, n, dtype=np.uint64).astype(carrier)
        where = rng.random(n) < 0.3
        a[where] = rng.choice(np.array(EDGES[carrier], carrier), where.sum())
        made.append(a)
    return made


def plain(dtype: str, a: np.ndarray) -> np.ndarray:
    """The bits with every NaN replaced by one: a NaN's payload is not defined."""
    if dtype == "FLOAT":
        return np.where(a & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FC00000), a)
    limit = {"FLOAT16": 0x7C00, "BF16": 0x7F80}.get(dtype)
    return a if limit is None else np.where(a & 0x7FFF > limit, np.uint16(0x7FFF), a)


def run(case: Case, arrays: list[np.ndarray], out: np.ndarray | None = None) -> np.ndarray:
    flow, arch, dtype, saturate = case
    out = np.full_like(arrays[0], 0xA5) if out is None else out
    call(build.elementwise(flow, Variant(arch, dtype, saturate)), (out, *arrays), (), 0, len(out))
    return plain(dtype, out)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_every_length_gives_what_single_elements_give(case: Case) -> None:
    arrays = inputs(case, 700, 1)
    single = np.concatenate([run(case, [a[i : i + 1].copy() for a in arrays]) for i in range(700)])
    for n in [*range(1, 131), 255, 256, 257, 511, 512, 513, 700]:
        got = run(case, [a[:n].copy() for a in arrays])
        assert (got == single[:n]).all(), n


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_split_and_any_alignment_give_the_same(case: Case, data: st.DataObject) -> None:
    flow, arch, dtype, saturate = case
    n = data.draw(st.integers(1, 1500))
    arrays = inputs(case, n, n)
    want = run(case, arrays)
    cuts = sorted({0, n, *data.draw(st.lists(st.integers(0, n), max_size=4))})
    shift = data.draw(st.integers(0, 67))
    raw = np.full(n * want.itemsize + 128, 0xA5, np.uint8)
    out = raw[shift : shift + want.nbytes]
    assert out.size == want.nbytes
    moved = []
    for a in arrays:
        copy = np.empty(a.nbytes + 3, np.uint8)[shift % 3 :][: a.nbytes]
        copy[:] = a.view(np.uint8)
        moved.append(copy)
    kernel = build.elementwise(flow, Variant(arch, dtype, saturate))
    for a, b in itertools.pairwise(cuts):
        call(kernel, (out, *moved), (), a, b)
    aligned = np.frombuffer(out.tobytes(), want.dtype)
    assert (plain(dtype, aligned) == want).all()
    assert (raw[:shift] == 0xA5).all()
    assert (raw[shift + want.nbytes :] == 0xA5).all()


@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_settled_tiles_beside_others(arch: str, data: st.DataObject) -> None:
    # exp of a tile is settled by FLOAT lanes, or else all of it by DOUBLE; the results of a tile are formed beside the exp of the next.
    n = data.draw(st.integers(1, 6000))
    rng = np.random.default_rng(n)
    g, x = (rng.uniform(-20, 20, n).astype(np.float32).view(np.uint32) for _ in range(2))
    odd = data.draw(
        st.lists(st.tuples(st.integers(0, n - 1), st.sampled_from([0x7FC00000, 0x7F800000, 0xFF800000, 0x42C80000, 1, 0])), max_size=6)
    )
    for place, bits in odd:
        x[place] = bits
    case = ("log_sigmoid_backward", arch, "FLOAT", False)
    kernel, alone = build.elementwise(case[0], Variant(arch, "FLOAT", False)), np.empty_like(x)
    for i in range(n):  # fewer than a vector: by DOUBLE
        call(kernel, (alone, g, x), (), i, i + 1)
    arrays = [g, x]
    place = data.draw(st.sampled_from([None, 0, 1]))
    out = np.full_like(x, 0xA5) if place is None else arrays[place]
    assert (run(case, arrays, out) == plain("FLOAT", alone)).all()


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_in_place_gives_what_out_of_place_gives(case: Case) -> None:
    arrays = inputs(case, 1001, 3)
    want = run(case, arrays)
    for k in range(len(arrays)):
        copies = [a.copy() for a in arrays]
        assert (run(case, copies, copies[k]) == want).all(), k


def past_the_caches(kernel: Kernel) -> Kernel:
    """The kernel as a part of a result so large that its stores bypass the caches: its last argument says so."""
    return Kernel(kernel.name, kernel.address, (*kernel.aux[:-1], 1 << 30), kernel.grain, kernel)


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
@pytest.mark.parametrize("place", ["apart", "apart, off a line", "first input", "last input"])
def test_stores_past_the_caches_have_the_same_bits(case: Case, place: str) -> None:
    flow, arch, dtype, saturate = case
    arrays = inputs(case, 1501, 6)
    want = run(case, arrays)
    raw = np.full(want.size + 128, 0x5A, want.dtype)
    first = -(raw.ctypes.data // raw.itemsize) % (64 // raw.itemsize) + (3 if "off" in place else 0)
    out = raw[first : first + want.size]
    if "input" in place:
        k = 0 if place == "first input" else len(arrays) - 1
        out[:] = arrays[k]
        arrays[k] = out
    call(past_the_caches(build.elementwise(flow, Variant(arch, dtype, saturate))), (out, *arrays), (), 0, want.size)
    assert (plain(dtype, out) == want).all()
    assert (raw[:first] == 0x5A).all()
    assert (raw[first + want.size :] == 0x5A).all()


def test_an_output_large_enough_to_stream_has_the_same_bits() -> None:
    case: Case = ("selu_backward", "dav_2201", "FLOAT16", False)
    n = (9 << 20) // 2 * 2
    block = inputs(case, 4096, 4)
    want = run(case, block)
    for shift in (0, 3):
        arrays = [np.tile(a, n // 4096 + 1)[: n + 5] for a in block]
        raw = np.zeros(n + 64, np.uint16)
        out = raw[shift : shift + n]
        got = run(case, [a[:n].copy() for a in arrays], out)
        assert (got == np.tile(want, n // 4096 + 1)[:n]).all()
        assert not raw[:shift].any()
        assert not raw[shift + n :].any()


@pytest.fixture(scope="module")
def set_mode():  # type: ignore[no-untyped-def]
    from emu_kernels.machine import float_mode_enter, float_mode_leave

    @njit
    def change(mode: int) -> int:
        old = float_mode_enter()
        float_mode_leave(mode)
        return old

    return change


@pytest.mark.parametrize("case", CASES, ids=lambda c: "-".join(map(str, c)))
def test_the_callers_floating_point_mode_does_not_leak_in_and_is_kept(case: Case, set_mode) -> None:  # type: ignore[no-untyped-def]
    arrays = inputs(case, 4096, 5)
    want, out = run(case, arrays), np.zeros_like(arrays[0])
    flush_and_truncate = 0x1F80 | 0x8040 | 0x6000  # MXCSR: FTZ, DAZ, round toward zero
    old = set_mode(flush_and_truncate)
    try:
        got = run(case, arrays, out)
    finally:
        left = set_mode(old)
    assert left & 0xFFC0 == flush_and_truncate
    assert (got == want).all()


@pytest.mark.parametrize(("arch", "numerics"), [("dav_2201", "device"), ("dav_3510", "device"), ("dav_2201", "document")])
def test_the_host_s_way_through_int8_has_the_bits_of_the_card_s_for_all_pairs(arch: str, numerics: str) -> None:
    v = Variant(arch, "INT8", False, numerics)
    plan = selu.selu_backward(v)
    assert plan.host is not None
    every = np.arange(65536, dtype=np.uint16)
    g, y, want = (every >> 8).astype(np.uint8), (every & 255).astype(np.uint8), np.zeros(65536, np.uint8)
    call(build._from_plan("card", plan._replace(host=None)), (want, g, y), (), 0, 65536)
    got = np.full_like(want, 0xA5)
    call(build.elementwise("selu_backward", v), (got, g, y), (), 0, 65536)
    assert (got == want).all()
    assert len(np.unique(got)) > 200
