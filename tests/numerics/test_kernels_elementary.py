"""exp, log, log1p and tanh of FLOAT are correctly rounded: exp and log for every input, the others on many.

The reference is the C library's DOUBLE function, trusted to 64 ulp only: where a value within 2^-46 of it could round
to another FLOAT, 300 bits of MPFR decide.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import gmpy2
import numpy as np
import pytest
from emu_kernels import bits, build, elementary, exp_lanes
from emu_kernels.call import call
from emu_kernels.flows import log_sigmoid
from emu_kernels.variant import Variant
from numba import njit

F = np.float32
CHUNK = 1 << 20
RAMP = np.arange(CHUNK, dtype=np.uint32)
Checker = Callable[[np.ndarray, np.ndarray, np.ndarray], int]


def kernel_of(name: str, arch: str = "dav_2201") -> Callable[..., np.ndarray]:
    kernel = build.elementwise(name, Variant(arch, "FLOAT", False))

    def run(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
        out = np.empty_like(x) if out is None else out
        call(kernel, (out, x), (), 0, x.size)
        return out

    return run


def checker(function: Callable[[float], float]) -> Checker:
    """Finds the results that could be wrong; inputs are such that the result is a number."""

    @njit(error_model="numpy", nogil=True)
    def check(x, y, doubtful):  # type: ignore[no-untyped-def]
        n = 0
        for i in range(len(x)):
            v = function(np.float64(x[i]))
            margin = v * 2.0**-46
            if (np.float32(v - margin) != y[i]) | (np.float32(v + margin) != y[i]):
                doubtful[n] = i
                n += 1
        return n

    return check


def exact(name: str, x: float) -> np.float32:
    """The correctly rounded FLOAT, subnormals included."""
    with gmpy2.context(precision=300):
        value = getattr(gmpy2, name)(gmpy2.mpfr(x))
    with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True):
        return F(+value)


def chunks(first: int, stop: int, work: Callable[[np.ndarray, np.ndarray], int], step: int = 1) -> int:
    """Give every step-th pattern of [first, stop) as FLOAT to work(x, out), on two threads; the sum of its results."""
    local = threading.local()

    def one(start: int) -> int:
        if not hasattr(local, "x"):
            local.x, local.out = np.empty(CHUNK, np.uint32), np.empty(CHUNK, F)
        n = min(CHUNK, -(-(stop - start) // step))
        np.multiply(RAMP[:n], np.uint32(step), out=local.x[:n])
        np.add(local.x[:n], np.uint32(start), out=local.x[:n])
        return work(local.x[:n].view(F), local.out[:n])

    with ThreadPoolExecutor(2) as pool:
        return sum(pool.map(one, range(first, stop, CHUNK * step)))


def check_all(name: str, first: int, stop: int, step: int = 1) -> int:
    """Check every step-th pattern; returns how many were decided by MPFR."""
    run, check = kernel_of(name), checker(getattr(math, name))
    check(np.ones(1, F), np.ones(1, F), np.empty(1, np.int64))

    def work(x: np.ndarray, out: np.ndarray) -> int:
        doubtful = np.empty(len(x), np.int64)
        n = check(x, run(x, out), doubtful)
        for i in doubtful[: min(n, 1000)]:
            assert out[i] == exact(name, float(x[i])), (float(x[i]).hex(), float(out[i]).hex())
        return n

    return chunks(first, stop, work, step)


def all_are(name: str, first: int, stop: int, want: float, step: int = 1) -> None:
    """Every step-th pattern of [first, stop) gives `want`."""
    run = kernel_of(name)

    def work(x: np.ndarray, out: np.ndarray) -> int:
        run(x, out)
        return int(np.count_nonzero(np.isnan(out) if math.isnan(want) else out == want))

    assert chunks(first, stop, work, step) == -(-(stop - first) // step)


def test_exp_of_every_float() -> None:
    # |x| < 2^-25: 1 is nearest. From 104 on the result is inf or 0; NaN stays NaN.
    tiny, big, inf, minus = 0x33000000, 0x42D00000, 0x7F800000, 0x80000000
    for sign, far in ((0, math.inf), (minus, 0.0)):
        all_are("exp", sign, sign + tiny, 1.0)
        all_are("exp", sign + big, sign + inf + 1, far)
        all_are("exp", sign + inf + 1, sign + minus, math.nan)
    decided = check_all("exp", tiny, big) + check_all("exp", minus + tiny, minus + big)
    assert decided > 100  # the hard cases were there


def lanes_kernel() -> Callable[[int, int, int], int]:
    """run(out, x, n): exp(-|x|) by lanes, NaN in the tiles that they leave open; how many tiles they settled."""
    size = elementary.EXP_TILE
    heads, rests = bits.scratch(4 * size), bits.scratch(4 * size)
    put = bits.store["f32"]

    @njit(error_model="numpy", nogil=True)
    def run(out, x, n):  # type: ignore[no-untyped-def]
        to, source, settled = bits.pointer(out), bits.pointer(x), 0
        for i in range(0, n, size):
            if exp_lanes.exp_lanes(bits.offset(to, 4 * i), bits.offset(source, 4 * i), heads(), rests(), size) == 0:
                settled += 1
            else:
                for k in range(size):
                    put(to, i + k, F(np.nan))
        return settled

    return run  # type: ignore[no-any-return]


def test_exp_of_minus_magnitude_by_lanes_is_exp_or_left_open_for_every_float() -> None:
    run, exp = lanes_kernel(), kernel_of("exp")
    settled = []

    def work(x: np.ndarray, out: np.ndarray) -> int:
        n = x.size // elementary.EXP_TILE * elementary.EXP_TILE
        x, out = x[:n], out[:n]
        settled.append(run(out.ctypes.data, x.ctypes.data, n))
        return int(np.count_nonzero((out != exp(-np.abs(x))) & ~np.isnan(out)))

    # Below 2^-25 the result is 1. A negative x is its magnitude.
    tiny, limit = 0x33000000, int(F(-exp_lanes.LIMIT).view(np.uint32))
    assert chunks(tiny, limit, work) == 0
    assert 0.9 < sum(settled) / ((limit - tiny) / elementary.EXP_TILE) < 0.99  # they were at work, and left some open
    settled.clear()
    assert chunks(0, tiny, work, 1009) + chunks(0x80000000, 0x80000000 + limit, work, 1009) == 0
    assert settled
    settled.clear()
    assert chunks(limit + 1, 0x80000000, work, 1009) == 0
    assert sum(settled) == 0  # too far, infinite or NaN


@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
def test_log_sigmoid_backward_by_lanes_has_the_bits_of_its_plain_tile_for_every_float(arch: str) -> None:
    """Every 7th x; other tests hold the plain steps against the reference."""
    v = Variant(arch, "FLOAT", False)
    plan = log_sigmoid.log_sigmoid_backward(v)
    by_lanes = build.elementwise("log_sigmoid_backward", v)
    plain = build._from_plan("log_sigmoid_backward", plan._replace(key=(*plan.key, "plain"), host=None, direct=False))
    g = np.ones(CHUNK, F)

    def work(x: np.ndarray, out: np.ndarray) -> int:
        again = np.empty_like(out)
        call(by_lanes, (out, g[: x.size], x), (), 0, x.size)
        call(plain, (again, g[: x.size], x), (), 0, x.size)
        return int(np.count_nonzero((out.view(np.uint32) != again.view(np.uint32)) & ~(np.isnan(out) & np.isnan(again))))

    assert chunks(0, 1 << 32, work, 7) == 0


def test_log_of_every_float() -> None:
    assert check_all("log", 1, 0x7F800000) > 400
    run = kernel_of("log")
    assert (run(np.array([0.0, -0.0], F)) == -np.inf).all()
    all_are("log", 0x80000001, 1 << 32, math.nan, 257)


HARD = {
    # Every input whose result lies within 2^-50 of a tie, found by going through all of them.
    "log1p": [
        0x35400003, 0x36DEDACE, 0x3710001B, 0x3770004B, 0x37C6E0E0, 0x3CF58230, 0x3DDBFEC3, 0x3EBE9143, 0x3EFD81AD,
        0x41078FEB, 0x464D572B, 0x4665A5A6, 0x50DA4BF6, 0x55185F82, 0x5588E13B, 0x5D800341, 0x5EE8984E, 0x5F64C24A,
        0x62B467BA, 0x64E27FA3, 0x65D890D3, 0x66A8C860, 0x66ABBD63, 0x6914CB96, 0x6D1F23EB, 0x6F31A8EC, 0x7405DEE8,
        0x79E7EC37, 0x7D98B8F4, 0xB53FFFFD, 0xB619776C, 0xB70FFFE5, 0xB76FFFB5, 0xB7C6E012, 0xBB0EC8C4,
    ],
    "tanh": [0x3AC37DE2, 0xBAC37DE2],
}  # fmt: skip


@pytest.mark.parametrize("name", ["log1p", "tanh"])
def test_log1p_and_tanh(name: str) -> None:
    stop = 0xBF800000 if name == "log1p" else 0xFF800000
    check_all(name, 0, 0x7F800000, 251)
    check_all(name, 0x80000000, stop, 251)
    hard = np.array(HARD[name], np.uint32).view(F)
    got = kernel_of(name)(hard)
    assert got.tolist() == [float(exact(name, float(x))) for x in hard]


@pytest.mark.parametrize(
    ("name", "x", "want"),
    [
        ("log1p", [0.0, -0.0, -1.0, np.inf, -1.5, np.nan], [0.0, -0.0, -np.inf, np.inf, np.nan, np.nan]),
        ("tanh", [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45], [0.0, -0.0, 1.0, -1.0, np.nan, 1e-45]),
        ("log", [1.0, np.inf, np.nan, -1.0], [0.0, np.inf, np.nan, np.nan]),
    ],
)
def test_special_values(name: str, x: list[float], want: list[float]) -> None:
    got = kernel_of(name)(np.array(x, F))
    expected = np.array(want, F)
    assert (np.isnan(got) == np.isnan(expected)).all()
    kept = ~np.isnan(expected)
    assert (got.view(np.uint32)[kept] == expected.view(np.uint32)[kept]).all()


def test_dav_3510_flushes_subnormal_operands_and_results() -> None:
    tiny, normal = np.array([1e-40, -1e-40], F), np.float32(2.0**-126)
    assert (kernel_of("log", "dav_3510")(tiny) == -np.inf).all()
    x = np.array([-87.33654, -87.33656, -100.0], F)  # exp is 2^-126 and below
    kept, flushed = kernel_of("exp")(x), kernel_of("exp", "dav_3510")(x)
    assert (kept > 0).all()
    assert (flushed == np.where(kept < normal, F(0), kept)).all()
    assert flushed[0] > 0
    assert (flushed[1:] == 0).all()
    # Every input whose exp lies between 2^-151 and 2^-124: the flush is all that differs.
    exp, exp_3510 = kernel_of("exp"), kernel_of("exp", "dav_3510")
    low, high = (int(np.array(v, F).view(np.uint32)) for v in (-85.9, -104.7))

    def differing(x: np.ndarray, out: np.ndarray) -> int:
        kept = exp(x)
        return int(np.count_nonzero(exp_3510(x, out) != np.where(kept < normal, F(0), kept)))

    assert chunks(low, high, differing) == 0
