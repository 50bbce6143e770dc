"""The host leaves no trace in a result: not its flush-to-zero bits, in any thread, and not the length of a tail."""

from __future__ import annotations

import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from emu_kernels.reference.formats import FORMATS
from emu_kernels.variant import Variant

from emu.verify import judge, samples
from emu.verify.provider import NativeKernels

x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="MXCSR is x86-64's")

KERNELS = NativeKernels()
CASES = [
    ("selu_backward", Variant("dav_2201", "FLOAT16", False), 2),
    ("selu_backward", Variant("dav_3510", "BF16", False), 2),
    ("selu_backward", Variant("dav_2201", "FLOAT", False), 2),
    ("log_sigmoid_backward", Variant("dav_2201", "FLOAT", False), 2),
    ("log_sigmoid_backward", Variant("dav_3510", "FLOAT", False), 2),
    ("log_sigmoid_backward", Variant("dav_1001", "FLOAT16", True), 2),
    ("log_sigmoid", Variant("dav_2201", "FLOAT", False), 1),
]


def inputs(v: Variant, count: int) -> tuple[np.ndarray, ...]:
    """Directed and random patterns; the odd length leaves a tail."""
    rng = np.random.default_rng(31)
    n = 20011
    pool = samples.directed(v.dtype)
    return tuple(np.concatenate([rng.choice(pool, n // 2), samples.random(v.dtype, n - n // 2, rng)]) for _ in range(count))


def alike(v: Variant, out: np.ndarray) -> np.ndarray:
    """All NaN as zero: their payloads are not defined."""
    fmt = FORMATS[v.dtype]
    return np.where((out & out.dtype.type(fmt.sign - 1)) > fmt.inf, out.dtype.type(0), out)


class _Fenv(ctypes.Structure):
    """glibc's fenv_t on x86-64: 28 bytes of the x87, then MXCSR."""

    _fields_ = (("x87", ctypes.c_uint32 * 7), ("mxcsr", ctypes.c_uint32))


@contextmanager
def flushing() -> Iterator[None]:
    """This thread flushes subnormal results and operands (MXCSR FTZ and DAZ), as do the threads that it starts."""
    libm = ctypes.CDLL("libm.so.6")
    before, changed = _Fenv(), _Fenv()
    libm.fegetenv(ctypes.byref(before))
    libm.fegetenv(ctypes.byref(changed))
    changed.mxcsr |= 0x8040
    libm.fesetenv(ctypes.byref(changed))
    try:
        yield
    finally:
        libm.fesetenv(ctypes.byref(before))


def subnormal_inputs(v: Variant, count: int, n: int) -> tuple[np.ndarray, ...]:
    """Values whose products and quotients are subnormal, and subnormal values."""
    rng = np.random.default_rng(32)
    tiny = samples.values(v.dtype, rng.standard_normal(n) * 2.0 ** -rng.integers(118, 148, n))
    wide = samples.values(v.dtype, rng.standard_normal(n) * 30)
    return (tiny, wide)[:count] if count == 2 else (wide,)


ROWS = [
    ("softmax_backward", Variant("dav_2201", "FLOAT", False), 2),
    ("softmax_backward", Variant("dav_3510", "BF16", False), 2),
    ("softmax", Variant("dav_2201", "FLOAT", False), 1),
    ("log_softmax", Variant("dav_2201", "FLOAT", False), 1),
    ("log_softmax_backward", Variant("dav_2201", "FLOAT", False), 2),
]
by_case = pytest.mark.parametrize(("flow", "v", "count"), ROWS, ids=lambda x: "-".join(x[:2]) if isinstance(x, tuple) else str(x))
by_dim = pytest.mark.parametrize("last", [True, False], ids=["last", "other"])


def rows_of(v: Variant, count: int, last: bool, r: int, n: int) -> tuple[np.ndarray, ...]:
    """n rows or columns of r elements, whose products, exponentials and quotients are subnormal in part."""
    shape = (n, r, 1) if last else (1, r, n)
    rng = np.random.default_rng(33)
    tiny = samples.values(v.dtype, rng.standard_normal(shape) * 2.0 ** -rng.integers(138, 148, shape))
    wide = samples.values(v.dtype, rng.standard_normal(shape) * 40)
    return (tiny, wide)[2 - count :]


@x86_only
@by_case
@by_dim
def test_flush_bits_of_the_caller_do_not_leak_into_rows(flow: str, v: Variant, count: int, last: bool) -> None:
    arrays = rows_of(v, count, last, 67, 40)
    want = judge.expected_rows(flow, v, last, *arrays)
    KERNELS.rows(flow, v, last, *arrays)
    with flushing():
        got = KERNELS.rows(flow, v, last, *arrays)
    assert not judge.mismatches(v.dtype, got, want).any()
    if v == Variant("dav_2201", "FLOAT", False) and flow in ("softmax", "softmax_backward"):
        magnitude = want & 0x7FFFFFFF
        assert int(((magnitude > 0) & (magnitude < 0x800000)).sum()) > 50  # there is something to lose


@by_case
@by_dim
def test_rows_are_equal_wherever_they_lie(flow: str, v: Variant, count: int, last: bool) -> None:
    """Widths up to 130 columns and up to nine rows, from each of two starts: body and tail of the vectors give the same."""
    n, r = (9, 131) if last else (140, 9)
    arrays = rows_of(v, count, last, r, n)
    axis = 0 if last else 2
    whole = alike(v, KERNELS.rows(flow, v, last, *arrays))
    for size in range(1, n - 2) if last else range(1, 131):
        for start in (0, 3):
            cut = (
                (slice(start, start + size), slice(None), slice(None))
                if axis == 0
                else (slice(None), slice(None), slice(start, start + size))
            )
            part = KERNELS.rows(flow, v, last, *(a[cut] for a in arrays))
            assert np.array_equal(alike(v, part), whole[cut]), (size, start)


@by_case
def test_any_length_of_a_row_is_right(flow: str, v: Variant, count: int) -> None:
    """Rows of 1 to 130 elements against the reference: every length of a tail."""
    for r in range(1, 131):
        arrays = rows_of(v, count, True, r, 3)
        want = judge.expected_rows(flow, v, True, *arrays)
        assert not judge.mismatches(v.dtype, KERNELS.rows(flow, v, True, *arrays), want).any(), r


@x86_only
@pytest.mark.parametrize(("flow", "v", "count"), CASES, ids=lambda x: "-".join(x[:2]) if isinstance(x, tuple) else str(x))
def test_flush_bits_of_the_caller_do_not_leak_in(flow: str, v: Variant, count: int) -> None:
    arrays = subnormal_inputs(v, count, 4099)
    want = judge.expected(flow, v, *arrays)
    KERNELS.elementwise(flow, v, *arrays)  # compile first: that is not the kernel's arithmetic
    with flushing():
        got = KERNELS.elementwise(flow, v, *arrays)
        # The mode is the caller's own again afterwards.
        still = bool((np.array([2.0**-149], np.float32) * np.float32(1)).view(np.uint32)[0] == 0)
    assert still
    assert not judge.mismatches(v.dtype, got, want).any()


POOL = """
import sys
import numpy as np
sys.path.insert(0, sys.argv[1])
import test_host_independence as t
from emu.verify import judge
v = t.Variant("dav_2201", "FLOAT", False)
tiny, x = t.subnormal_inputs(v, 2, 1 << 20)
want = judge.expected("log_sigmoid_backward", v, tiny, x)
with t.flushing():
    import emu
    emu.configure(threads=2, soc="Ascend910B1")
    out = emu.ops.log_sigmoid_backward(tiny.view(np.float32), x.view(np.float32))
flushed = int((out.view(np.uint32) & 0x7FFFFFFF == 0).sum())
print(int(judge.mismatches("FLOAT", out.view(np.uint32), want).sum()), int((np.abs(out) < 2.0**-126).sum()) - flushed)
"""


@x86_only
def test_flush_bits_of_the_pool_do_not_leak_in() -> None:
    """The device's threads are started by a thread that flushes, and inherit it."""
    here = os.path.dirname(os.path.abspath(__file__))
    done = subprocess.run([sys.executable, "-c", POOL, here], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    differ, subnormal = map(int, done.stdout.split()[-2:])
    assert differ == 0
    assert subnormal > 100000


@pytest.mark.parametrize(("flow", "v", "count"), CASES, ids=lambda x: "-".join(x[:2]) if isinstance(x, tuple) else str(x))
def test_vector_body_and_tail_are_equal(flow: str, v: Variant, count: int) -> None:
    """Sizes 1 to 130, from each of two alignments: the same value wherever an element lies."""
    arrays = inputs(v, count)
    whole = alike(v, KERNELS.elementwise(flow, v, *arrays))
    for n in range(1, 131):
        for start in (0, 7):
            part = KERNELS.elementwise(flow, v, *(a[start : start + n] for a in arrays))
            assert np.array_equal(alike(v, part), whole[start : start + n]), (n, start)
