"""exp and log of DOUBLE, and the FLOAT64 softmax flows on them."""

from __future__ import annotations

import math

import gmpy2
import numpy as np
import pytest
from emu_kernels import build
from emu_kernels.call import call
from emu_kernels.variant import Variant
from numba import njit


@pytest.fixture(scope="module")
def functions():  # type: ignore[no-untyped-def]
    from emu_kernels.double import exp64, log64

    @njit(error_model="numpy")
    def run(x, e, g):  # type: ignore[no-untyped-def]
        for i in range(len(x)):
            e[i] = exp64(x[i])
            g[i] = log64(x[i])

    def both(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        e, g = np.empty_like(x), np.empty_like(x)
        run(x, e, g)
        return e, g

    return both


def exact(name: str, x: float) -> float:
    with gmpy2.context(precision=200):
        value = getattr(gmpy2, name)(gmpy2.mpfr(x))
    with gmpy2.context(precision=53, emin=-1073, emax=1024, subnormalize=True):
        return float(+value)


def test_exp_is_correctly_rounded_on_many_inputs(functions) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(3)
    x = np.concatenate(
        [
            rng.uniform(-745.2, 709.8, 3000), rng.uniform(-745.2, -708, 3000), rng.standard_normal(3000),
            rng.standard_normal(1000) * 2.0 ** rng.integers(-60, 0, 1000), math.log(2) * (np.arange(-50, 50) + 0.5),
            [0.0, -0.0, 5e-324, 709.782712893384, 709.7827128933841, -745.1332191019411, -745.1332191019412, -708.3964185322641],
        ]
    )  # fmt: skip
    got, _ = functions(x)
    assert got.tolist() == [exact("exp", v) for v in x.tolist()]


def test_log_is_correctly_rounded_on_many_inputs(functions) -> None:  # type: ignore[no-untyped-def]
    rng = np.random.default_rng(4)
    x = np.concatenate(
        [
            rng.integers(1, 0x7FF0 << 48, 4000, dtype=np.uint64).view(np.float64), 1 + rng.uniform(-1e-3, 1e-3, 3000),
            1 + rng.uniform(-1, 1, 2000) * 2.0 ** rng.integers(-52, -10, 2000), rng.uniform(0, 70000, 2000),
            [1.0, 5e-324, 2.0**-1022, 2.0**-1023, np.nextafter(1, 0), np.nextafter(1, 2), 2**0.5, 0.5**0.5, 1.7976931348623157e308],
        ]
    )  # fmt: skip
    _, got = functions(x)
    assert got.tolist() == [exact("log", v) for v in x.tolist()]


def test_special_values(functions) -> None:  # type: ignore[no-untyped-def]
    e, g = functions(np.array([np.inf, -np.inf, np.nan, 0.0, -0.0, -1.0]))
    assert e[:2].tolist() == [np.inf, 0.0]
    assert np.isnan(e[2])
    assert g[0] == np.inf
    assert np.isnan(g[[1, 2, 5]]).all()
    assert (g[3:5] == -np.inf).all()


@pytest.mark.parametrize("last", [True, False], ids=["last", "other"])
def test_softmax_in_double(last: bool) -> None:
    rng = np.random.default_rng(5)
    x = rng.standard_normal((3, 100, 1)) * 10
    m = x.max(axis=1, keepdims=True)
    e = np.exp(x - m)
    for flow, want in (("softmax", e / e.sum(1, keepdims=True)), ("log_softmax", x - m - np.log(e.sum(1, keepdims=True)))):
        out = np.zeros_like(x)
        call(build.rows(flow, Variant("dav_2201", "DOUBLE", False), last), (out, x), (3, 100, 1), 0, 3)
        assert np.allclose(out, want, rtol=1e-14, atol=1e-14)
