"""exp, log, log1p and tanh of FLOAT are correctly rounded: exp and log for every input, the others on many.

The reference is the C library's DOUBLE function, trusted to 64 ulp only: where a value within 2^-46 of it could round
to another FLOAT, 300 bits of MPFR decide.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import gmpy2
import numpy as np
import pytest
from emu_kernels import build
from emu_kernels.call import call
from emu_kernels.variant import Variant
from numba import njit

F = np.float32
CHUNK = 1 << 24


def kernel_of(name: str, arch: str = "dav_2201") -> Callable[[np.ndarray], np.ndarray]:
    kernel = build.elementwise(name, Variant(arch, "FLOAT", False))

    def run(x: np.ndarray) -> np.ndarray:
        out = np.empty_like(x)
        call(kernel, (out, x), (), 0, x.size)
        return out

    return run


def checker(function: Callable[[float], float]) -> Callable[..., tuple[int, int]]:
    @njit(error_model="numpy")
    def check(x, y, wrong, near):  # type: ignore[no-untyped-def]
        # wrong: indices of results that are surely wrong; near: indices that need more bits.
        w = n = 0
        for i in range(len(x)):
            v = function(np.float64(x[i]))
            margin = abs(v) * 2.0**-46
            low, high = np.float32(v - margin), np.float32(v + margin)
            if v != v:
                if y[i] == y[i]:
                    wrong[w] = i
                    w += 1
            elif v == v + v and v != 0.0:  # an exact infinity
                if y[i] != np.float32(v):
                    wrong[w] = i
                    w += 1
            elif low != high:
                near[n] = i
                n += 1
            elif y[i] != low:
                wrong[w] = i
                w += 1
        return w, n

    return check


def exact(name: str, x: float) -> np.float32:
    """The correctly rounded FLOAT, subnormals included."""
    with gmpy2.context(precision=300):
        value = getattr(gmpy2, name)(gmpy2.mpfr(x))
    with gmpy2.context(precision=24, emin=-148, emax=128, subnormalize=True):
        return F(+value)


def patterns(first: int, stop: int, step: int) -> Iterator[np.ndarray]:
    for start in range(first, stop, CHUNK * step):
        yield np.arange(start, min(start + CHUNK * step, stop), step, dtype=np.uint64).astype(np.uint32).view(F)


def check_all(name: str, first: int, stop: int, step: int = 1) -> int:
    """Check every step-th pattern; returns how many were decided by MPFR."""
    run, check = kernel_of(name), checker(getattr(math, name))
    wrong, near = np.empty(CHUNK, np.int64), np.empty(CHUNK, np.int64)
    decided = 0
    for x in patterns(first, stop, step):
        y = run(x)
        w, n = check(x, y, wrong, near)
        assert w == 0, [(x[i].hex(), y[i].hex()) for i in wrong[: min(w, 5)]]
        for i in near[:n]:
            assert y[i] == exact(name, float(x[i])), float(x[i]).hex()
        decided += n
    return decided


def test_exp_of_every_float() -> None:
    run = kernel_of("exp")
    # |x| < 2^-25: 1 is nearest. Above 89 the result is inf, below -104 it is 0; NaN stays NaN.
    tiny, big = 0x33000000, 0x42D00000
    for first, want in ((0, 1.0), (0x80000000, 1.0)):
        for x in patterns(first, first + tiny, 1):
            assert (run(x) == want).all()
    for first, want in ((big, math.inf), (0x80000000 | big, 0.0)):
        for x in patterns(first, (first & 0x80000000) + 0x7F800001, 1):
            assert (run(x) == want).all()
        for x in patterns((first & 0x80000000) + 0x7F800001, (first & 0x80000000) + 0x80000000, 1):
            assert np.isnan(run(x)).all()
    decided = check_all("exp", tiny, big + 1) + check_all("exp", 0x80000000 | tiny, (0x80000000 | big) + 1)
    assert decided > 100  # the hard cases were there


def test_log_of_every_float() -> None:
    decided = check_all("log", 1, 0x7F800001)
    assert decided > 400
    run = kernel_of("log")
    assert (run(np.array([0.0, -0.0], F)) == -np.inf).all()
    for x in patterns(0x80000001, 0x100000000, 257):
        assert np.isnan(run(x)).all()


HARD = {
    # Results within 2^-52 of a tie, found by going through every input.
    "log1p": [0x35400003, 0x3710001B, 0x3EFD81AD, 0x65D890D3, 0xB53FFFFD, 0xB70FFFE5, 0xBB0EC8C4],
    "tanh": [0x39FFFFFF, 0x3A000000, 0x3F0C9F54, 0x41102CB3, 0x41102CB4],
}


@pytest.mark.parametrize("name", ["log1p", "tanh"])
def test_log1p_and_tanh(name: str) -> None:
    stop = 0xBF800000 if name == "log1p" else 0xFF800001
    check_all(name, 0, 0x7F800001, 251)
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
    for x in patterns(low, high, 1):
        kept = exp(x)
        assert (exp_3510(x) == np.where(kept < normal, F(0), kept)).all()
