"""Strided copies against NumPy, casts against exact rounding."""

from __future__ import annotations

import math
from fractions import Fraction

import gmpy2
import numpy as np
import pytest
from emu_kernels import build
from emu_kernels.call import call
from emu_kernels.variant import Variant
from hypothesis import given, settings
from hypothesis import strategies as st

ITEMS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64, 16: np.complex128}


@settings(max_examples=120, deadline=None)
@given(data=st.data())
def test_strided_copy_moves_what_numpy_moves(data: st.DataObject) -> None:
    itemsize = data.draw(st.sampled_from([1, 2, 4, 8, 16]))
    rank = data.draw(st.integers(0, 5))
    # Long dims, for blocks of vectors, in few dims.
    dims = tuple(data.draw(st.integers(1, 5) if rank > 3 else st.sampled_from([1, 2, 7, 8, 9, 24, 40])) for _ in range(rank))
    total = math.prod(dims)

    def view(fill: np.ndarray, broadcast: bool) -> np.ndarray:
        # A view with gaps, reversed, permuted and (source only) broadcast dims.
        steps = [data.draw(st.sampled_from([1, 2, -1, -3])) for _ in dims]
        shape = tuple(1 if broadcast and data.draw(st.booleans()) else d for d in dims)
        order = data.draw(st.permutations(range(rank)))
        base = fill(tuple(shape[i] * abs(steps[i]) for i in order))  # type: ignore[operator]
        undo = [order.index(i) for i in range(rank)]
        cut = base.transpose(undo) if rank else base
        cut = cut[tuple(slice(None, None, s) for s in steps)] if rank else cut
        return np.broadcast_to(cut, dims) if broadcast else cut

    rng = np.random.default_rng(total)
    src = view(lambda s: rng.integers(0, 200, s).astype(ITEMS[itemsize]), True)  # type: ignore[arg-type]
    dst = view(lambda s: np.full(s, 255).astype(ITEMS[itemsize]), False)  # type: ignore[arg-type]
    assert dst.shape == src.shape == dims
    cut = data.draw(st.integers(0, total))
    kernel = build.strided_copy(itemsize)
    numbers = (rank, *dims, *dst.strides, *src.strides)
    call(kernel, (dst, src), numbers, 0, cut)
    want = np.full(total, 255).astype(ITEMS[itemsize])
    want[:cut] = src.ravel()[:cut]
    assert (dst.ravel() == want).all()
    call(kernel, (dst, src), numbers, cut, total)
    assert (dst == src).all()


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8])
@pytest.mark.parametrize("shape", [(8, 8), (16, 200), (131, 77), (300, 67)])
def test_a_turned_copy_in_both_directions(itemsize: int, shape: tuple[int, int]) -> None:
    kind = ITEMS[itemsize]
    src = np.random.default_rng(1).integers(0, 250, shape).astype(kind)
    kernel = build.strided_copy(itemsize)
    for dst, x in (
        (np.zeros(shape[::-1], kind).T, src),
        (np.zeros(shape, kind), src.T.copy().T),
        (np.zeros(shape, kind), src.T.copy().T[::-1]),
    ):
        call(kernel, (dst, x), (2, *shape, *dst.strides, *x.strides), 0, x.size)
        assert (dst == x).all()


def test_a_copy_onto_itself_keeps_the_last_element() -> None:
    """The order of the elements decides what a destination holds that overlaps itself."""
    src = np.arange(40 * 40, dtype=np.uint32).reshape(40, 40)
    room = np.zeros(40 + 2 * 39, np.uint32)
    call(build.strided_copy(4), (room, src), (2, 40, 40, 4, 8, *src.strides), 0, src.size)
    want = np.zeros_like(room)
    for row in range(40):
        want[row : row + 80 : 2] = src[row]
    assert (room == want).all()


def run(src: str, dst: str, x: np.ndarray, out_type: type, arch: str = "dav_2201", saturate: bool = False) -> np.ndarray:
    out = np.zeros(x.size * (2 if dst.startswith("COMPLEX") else 1), out_type)
    call(build.cast(src, dst, Variant(arch, "", saturate)), (out, x), (), 0, x.size)
    return out


DOUBLES = np.array(
    [
        1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 3 * 2**-8, 1 + 2**-11 + 2**-50, 65519.99, 65520.0, 65536.0, 1e300, -1e300, 0.0,
        -0.0, 2.0**-24, 2.0**-25, 2.0**-25 * (1 + 2**-30), 2.0**-133, 2.0**-134, 2.0**-134 * (1 + 2**-40), 5e-324, np.inf,
        -np.inf, 3.4e38, 3.3961775292304960e38, 1 / 3, -2 / 3, 2.0**-126, 2.0**-127 + 2.0**-150,
    ]
)  # fmt: skip


def exact(x: float, precision: int, emin: int, emax: int) -> float:
    """x rounded once to a binary format: nearest even, subnormals, infinity on overflow."""
    with gmpy2.context(precision=precision, emin=emin, emax=emax, subnormalize=True):
        return float(gmpy2.mpfr(x))


def test_a_double_is_rounded_once() -> None:
    rng = np.random.default_rng(2)
    # Neighbours of 16-bit ties, too close for FLOAT to tell them apart.
    ties = (rng.integers(-4096, 4096, 4000) + 0.5) * 2.0 ** rng.integers(-20, 4, 4000)
    x = np.concatenate([DOUBLES, ties * (1 + 2.0**-45), ties, ties * (1 - 2.0**-45)])
    half = run("DOUBLE", "FLOAT16", x, np.float16)
    assert half.astype(float).tolist() == [exact(v, 11, -23, 16) for v in x]
    brain = run("DOUBLE", "BF16", x, np.uint16)
    got = (brain.astype(np.uint32) << 16).view(np.float32)
    assert got.astype(float).tolist() == [exact(v, 8, -132, 128) for v in x]
    single = run("DOUBLE", "FLOAT", x, np.float32)
    assert single.astype(float).tolist() == [exact(v, 24, -148, 128) for v in x]


def test_saturation_of_a_cast() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 65520.0, 1e30, -1e30, 65519.0, 3.4e38, -3.4e38], np.float32)
    half = run("FLOAT", "FLOAT16", x, np.float16, "dav_1001", True)
    assert half.tolist() == [65504, -65504, 0, 65504, 65504, -65504, 65504, 65504, -65504]
    assert not np.signbit(half[2])
    brain = run("FLOAT", "BF16", x, np.uint16, "dav_2201", True)
    assert [hex(b) for b in brain[[0, 1, 2, 7, 8]]] == ["0x7f7f", "0xff7f", "0x0", "0x7f7f", "0xff7f"]
    assert np.isinf(run("DOUBLE", "FLOAT", np.array([1e300]), np.float32, "dav_2201", True)).all()


def test_a_nan_stays_a_nan_in_bf16() -> None:
    x = np.array([0x7F800001, 0x7F80FFFF, 0xFF800001, 0x7FFFFFFF, 0xFFFFFFFF], np.uint32)
    assert (run("FLOAT", "BF16", x, np.uint16) & 0x7FFF > 0x7F80).all()
    all_brain = np.arange(65536, dtype=np.uint16)
    nan = all_brain & 0x7FFF > 0x7F80
    back = run("FLOAT", "BF16", run("BF16", "FLOAT", all_brain, np.uint32), np.uint16)
    assert (back[~nan] == all_brain[~nan]).all()
    assert (back[nan] & 0x7FFF > 0x7F80).all()


def test_every_float16_survives_the_way_to_double_and_back() -> None:
    bits = np.arange(65536, dtype=np.uint16)
    nan = bits & 0x7FFF > 0x7C00
    wide = run("FLOAT16", "DOUBLE", bits, np.float64)
    want = bits.view(np.float16).astype(np.float64)
    assert (wide[~nan].view(np.uint64) == want[~nan].view(np.uint64)).all()
    assert np.isnan(wide[nan]).all()
    assert (run("DOUBLE", "FLOAT16", wide, np.uint16)[~nan] == bits[~nan]).all()


INTS = {
    "INT8": np.int8, "INT16": np.int16, "INT32": np.int32, "INT64": np.int64,
    "UINT8": np.uint8, "UINT16": np.uint16, "UINT32": np.uint32, "UINT64": np.uint64,
}  # fmt: skip


@pytest.mark.parametrize("dst", INTS)
@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
def test_integers_are_clamped_and_rounded_by_the_architecture(arch: str, dst: str) -> None:
    info = np.iinfo(INTS[dst])
    x = np.array(
        [
            0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999999999999994, 126.5, 127.5, -128.5, 255.5, 1e10, -1e10, 1e30, -1e30,
            np.inf, -np.inf, 2.0**31, 2.0**31 - 0.5, 2.0**32, 2.0**63, -(2.0**63), 2.0**64, 2.0**52 + 1, 2.0**53 + 2, -0.99999,
        ]
    )  # fmt: skip
    got = run("DOUBLE", dst, x, INTS[dst], arch)

    def want(v: float) -> int:
        if math.isinf(v):
            return int(info.max if v > 0 else info.min)
        whole = round(Fraction(v)) if arch == "dav_3510" else math.trunc(v)
        return min(max(whole, int(info.min)), int(info.max))

    assert [int(v) for v in got] == [want(v) for v in x.tolist()]
    assert run("DOUBLE", dst, np.array([np.nan]), INTS[dst], arch)[0] == 0


def test_bool_and_complex() -> None:
    x = np.array([0.0, -0.0, 1e-45, np.nan, -3.5, np.inf], np.float32)
    assert run("FLOAT", "BOOL", x, np.uint8).tolist() == [0, 0, 1, 1, 1, 1]
    pair = run("FLOAT", "COMPLEX64", x, np.float32).reshape(-1, 2)
    assert pair[:, 1].view(np.uint32).tolist() == [0] * 6
    assert (pair[[0, 1, 2, 4, 5], 0].view(np.uint32) == x[[0, 1, 2, 4, 5]].view(np.uint32)).all()
    wide = run("DOUBLE", "COMPLEX128", np.array([-0.0, 0.1]), np.float64)
    assert wide.view(np.uint64).tolist() == np.array([-0.0, 0.0, 0.1, 0.0]).view(np.uint64).tolist()


@pytest.mark.parametrize("src", ["INT8", "INT16", "INT32", "UINT8", "UINT16", "UINT32"])
def test_integers_as_sources(src: str) -> None:
    info = np.iinfo(INTS[src])
    every = info.bits <= 16
    x = np.arange(info.min, info.max + 1, dtype=INTS[src]) if every else np.array([info.min, info.max, 0, 1, 100, 127], INTS[src])
    assert run(src, "DOUBLE", x, np.float64).tolist() == [float(v) for v in x]
    assert run(src, "FLOAT16", x, np.float16).astype(float).tolist() == [exact(float(v), 11, -23, 16) for v in x]
    assert run(src, "FLOAT", x, np.float32).tolist() == [exact(float(v), 24, -148, 128) for v in x]
