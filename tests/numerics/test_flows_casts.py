"""The conversion kernels, bit for bit against the reference's conversions by integers."""

from __future__ import annotations

import numpy as np
import pytest
from emu_kernels.reference import formats
from emu_kernels.variant import Variant

from emu import kernel_cache
from emu.verify import judge, samples
from emu.verify.provider import call

FLOATS = ("FLOAT16", "BF16", "FLOAT", "DOUBLE")
TARGETS = (*FLOATS, "COMPLEX64", "COMPLEX128", *formats.INTEGERS, "BOOL")
VARIANTS = [Variant("dav_2201", "FLOAT", True), Variant("dav_3510", "FLOAT", False)]


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    if dtype in formats.FORMATS:
        return formats.FORMATS[dtype].bits // 8
    return {"COMPLEX64": 8, "COMPLEX128": 16, "BOOL": 1}.get(dtype) or int(dtype.lstrip("UINT")) // 8


def sources(src: str) -> np.ndarray:
    """Patterns to convert: directed and random ones, the double-rounding trap, edges of the integer ranges."""
    rng = np.random.default_rng(41)
    pool = samples.directed(src)
    edges = [s * (2.0**k + d) for k in (7, 8, 15, 16, 31, 32, 53, 63, 64) for d in (-1.0, -0.5, 0.0, 0.5) for s in (1, -1)]
    values = np.array([*edges, 1 + 2**-8 + 2**-40, 2.5, 3.5, -2.5, 65519.0, 65520.0, 3.3961775e38, 1e39, 1e308])
    with np.errstate(over="ignore"):
        return np.concatenate([pool, samples.random(src, 3000, rng), samples.values(src, values)])


def converted(src: str, dst: str, v: Variant, patterns: np.ndarray) -> np.ndarray:
    """The kernel's output as unsigned words; COMPLEX128 as pairs of 64-bit words."""
    size = itemsize(dst)
    word = np.dtype(f"u{min(size, 8)}")
    out = np.empty(patterns.size * size // word.itemsize, word)
    call(kernel_cache.build().cast(src, dst, v), [out.ctypes.data, patterns.ctypes.data], 0, patterns.size)
    return out


@pytest.mark.parametrize(("src", "dst"), [(s, d) for s in FLOATS for d in TARGETS if s != d])
def test_cast_kernel_equals_reference(src: str, dst: str) -> None:
    patterns = sources(src)
    for v in VARIANTS:
        want = [formats.cast(formats.FORMATS[src], dst, b, v.arch, v.saturate) for b in patterns.tolist()]
        got = converted(src, dst, v, patterns)
        if dst.startswith("COMPLEX"):
            part = {"COMPLEX64": "FLOAT", "COMPLEX128": "DOUBLE"}[dst]
            halves = got.view(np.uint32 if part == "FLOAT" else np.uint64).reshape(-1, 2)
            assert not halves[:, 1].any()
            got, kind = halves[:, 0], part
        else:
            kind = dst
        expected = np.array(want, got.dtype)
        wrong = np.flatnonzero(judge.mismatches(kind, got, expected))
        first = [(hex(patterns[i]), hex(got[i]), hex(expected[i])) for i in wrong[:5]]
        assert wrong.size == 0, f"{v} {src} to {dst}: {wrong.size} differ; input, kernel, reference: {first}"


@pytest.mark.parametrize(("src", "dst"), [("FLOAT", "FLOAT16"), ("FLOAT", "BF16"), ("BF16", "FLOAT16"), ("DOUBLE", "BF16")])
def test_infinities_and_nan_stay_in_inf_nan_mode(src: str, dst: str) -> None:
    v = Variant("dav_2201", "FLOAT", False)
    patterns = sources(src)
    want = np.array([formats.cast(formats.FORMATS[src], dst, b, v.arch, False) for b in patterns.tolist()], np.uint16)
    assert not judge.mismatches(dst, converted(src, dst, v, patterns), want).any()
