"""The reference's arithmetic against NumPy, MPFR and published values; its array form against its scalar form."""

from __future__ import annotations

import ctypes
import ctypes.util
import math
import platform
import struct
from typing import Any

import gmpy2
import numpy as np
import pytest
from emu_kernels.assumptions import ASSUMPTIONS, chosen
from emu_kernels.reference import array_sums, arrays, formats, sums
from emu_kernels.reference.arith import Arith
from emu_kernels.reference.formats import DOUBLE, FLOAT, FLOAT16
from emu_kernels.reference.operators import log_sigmoid_backward, selu, selu_backward
from emu_kernels.variant import Variant

from emu.verify import catalog, judge, samples

V = Variant("dav_2201", "FLOAT", False)
F = Arith(FLOAT, V)
H = Arith(FLOAT16, V._replace(dtype="FLOAT16"))
SATURATING = Arith(FLOAT16, V._replace(dtype="FLOAT16", saturate=True))
F3510 = Arith(FLOAT, V._replace(arch="dav_3510"))
INF, NAN16 = 0x7F800000, 0x7E00
PATTERNS = np.arange(1 << 16, dtype=np.uint16)


def bits(x: float) -> int:
    """FLOAT pattern of a Python float that FLOAT holds."""
    return int(struct.unpack("<I", struct.pack("<f", x))[0])


def value(pattern: int) -> float:
    """Value of a FLOAT pattern."""
    return float(struct.unpack("<f", struct.pack("<I", pattern))[0])


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div"])
@pytest.mark.parametrize(("f", "dtype"), [(F, "FLOAT"), (H, "FLOAT16"), (Arith(DOUBLE, V), "DOUBLE")], ids=["f32", "f16", "f64"])
def test_operations_are_ieee(op: str, f: Arith, dtype: str) -> None:
    rng = np.random.default_rng(11)
    kind: Any = {"FLOAT": np.float32, "FLOAT16": np.float16, "DOUBLE": np.float64}[dtype]
    edges = np.unique(samples.directed(dtype)[::7])[:2000] if dtype == "FLOAT16" else samples.directed(dtype)
    a = np.concatenate([samples.random(dtype, 4000, rng), rng.choice(edges, 4000)])
    b = np.concatenate([samples.random(dtype, 4000, rng), rng.choice(edges, 4000)])
    ufunc = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide}[op]
    with np.errstate(all="ignore"):
        want = ufunc(a.view(kind), b.view(kind)).view(a.dtype)
    got = np.array([getattr(f, op)(int(x), int(y)) for x, y in zip(a, b, strict=True)], a.dtype)
    assert np.flatnonzero(judge.mismatches(dtype, got, want)).tolist() == []


def test_fma_rounds_once() -> None:
    rng = np.random.default_rng(12)
    a, b, c = (rng.choice(np.concatenate([samples.directed("FLOAT"), samples.random("FLOAT", 2000, rng)]), 6000) for _ in "abc")
    # Addends that nearly cancel the product, where a second rounding would show.
    with np.errstate(all="ignore"):
        c[::2] = (-(a[::2].view(np.float32) * b[::2].view(np.float32))).view(np.uint32)
        fused = array_sums.fma(a.view(np.float32), b.view(np.float32), c.view(np.float32)).view(np.uint32)
    finite = 0
    for x, y, z, quick in zip(a.tolist(), b.tolist(), c.tolist(), fused.tolist(), strict=True):
        got = F.fma(x, y, z)
        assert got == quick or (formats.is_nan(FLOAT, got) and formats.is_nan(FLOAT, quick))
        if all(math.isfinite(value(t)) for t in (x, y, z)):
            finite += 1
            with gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True):
                want = gmpy2.fma(gmpy2.mpfr(value(x)), gmpy2.mpfr(value(y)), gmpy2.mpfr(value(z)))
            assert value(got) == float(want), (hex(x), hex(y), hex(z))
    assert finite > 3000
    assert F.fma(bits(1 + 2**-12), bits(1 + 2**-12), bits(-(1 + 2**-11))) == bits(2**-24)


@pytest.mark.parametrize("name", ["exp", "log", "log1p"])
def test_elementary_functions_against_mpfr(name: str) -> None:
    """MPFR rounds to FLOAT itself here, with its own subnormals: another way than the interval of the reference."""
    rng = np.random.default_rng(13)
    cases = np.concatenate([samples.directed("FLOAT"), samples.random("FLOAT", 3000, rng)])
    context = gmpy2.context(precision=24, emax=128, emin=-148, subnormalize=True)
    quick = arrays.elementary(name, cases.view(np.float32), V).view(np.uint32)
    for case, array_form in zip(cases.tolist(), quick.tolist(), strict=True):
        got = getattr(F, name)(case)
        with gmpy2.context(context):
            want = float(getattr(gmpy2, name)(gmpy2.mpfr(value(case))))
        assert value(got) == want or (math.isnan(want) and formats.is_nan(FLOAT, got)), hex(case)
        assert array_form == got or (math.isnan(want) and formats.is_nan(FLOAT, array_form)), hex(case)


def test_elementary_special_values() -> None:
    assert [F.exp(b) for b in (0, 0x80000000, INF, 0xFF800000)] == [bits(1), bits(1), INF, 0]
    assert [F.log(b) for b in (0, 0x80000000, bits(1), INF)] == [0xFF800000, 0xFF800000, 0, INF]
    assert formats.is_nan(FLOAT, F.log(bits(-1)))
    assert [F.log1p(b) for b in (0, 0x80000000, bits(-1), INF)] == [0, 0x80000000, 0xFF800000, INF]
    assert formats.is_nan(FLOAT, F.log1p(bits(-1.5)))


def test_dav_3510_flushes_subnormals_of_exp_log_and_div_only() -> None:
    tiny = 0x00000001
    assert F.exp(bits(-100)) != 0
    assert F3510.exp(bits(-100)) == 0
    assert F3510.log(tiny) == 0xFF800000
    assert value(F.log(tiny)) == pytest.approx(-103.27893)
    assert F3510.div(bits(1), tiny) == INF
    assert F3510.div(0x80000000 | bits(1e-38), bits(2)) == 0x80000000
    assert F3510.mul(tiny, bits(1)) == tiny
    assert F3510.add(tiny, tiny) == 2
    assert Arith(FLOAT, V._replace(arch="dav_1001", assume=(("exp_subnormal", "flushed"),))).exp(bits(-100)) == 0


def test_saturation() -> None:
    one, big, inf = 0x3C00, 0x7BFF, 0x7C00
    assert SATURATING.add(big, big) == 0x7BFF
    assert SATURATING.mul(inf, 0xBC00) == 0xFBFF  # a real infinity inside, written as the largest value
    assert SATURATING.sub(inf, inf) == 0
    assert SATURATING.mul(inf, 0) == 0
    assert SATURATING.add(NAN16, one) == 0
    assert SATURATING.max(NAN16, one) == NAN16  # compare and select do not touch values
    assert H.add(big, big) == inf
    assert Arith(FLOAT, V._replace(saturate=True)).add(bits(3e38), bits(3e38)) == INF  # FLOAT never saturates
    for arch, bf16 in (("dav_2201", 0x7F7F), ("dav_3510", 0x7F80)):
        fmt = formats.BF16
        assert formats.encode(fmt, formats.Exact("inf"), saturate=formats.saturates(fmt, arch, True)) == bf16


def test_constants_are_the_published_ones() -> None:
    assert [F.const(c) for c in (selu.SCALE, selu.SCALE_ALPHA)] == [0x3F867D5F, 0x3FE10966]
    assert [H.const(c) for c in (selu.SCALE, selu.SCALE_ALPHA)] == [0x3C34, 0x3F08]
    assert value(F.const(selu_backward.ALPHA)) == float(np.float32(1.6732632423543772))


def test_compare_and_extremes() -> None:
    order = [0xFF800000, bits(-1), 0x80000001, 0, 1, bits(1), INF]
    for i, a in enumerate(order):
        for j, b in enumerate(order):
            assert F.lt(a, b) == (i < j)
            assert F.le(a, b) == (i <= j)
            assert (F.max(a, b), F.min(a, b)) == (order[max(i, j)], order[min(i, j)])
        for compare in (F.lt, F.le):
            assert not compare(a, 0x7FC00000)
            assert not compare(0x7FC00000, a)
    assert F.le(0x80000000, 0)
    assert not F.lt(0x80000000, 0)


def test_sums_by_hand() -> None:
    """Addends of which only one order keeps the small ones: 2**24 swallows a lone 1."""
    big, one = bits(2.0**24), bits(1)
    assert value(sums.sequential(F, [big, one, one])) == 2.0**24
    assert value(sums.halving(F, [big, one, one])) == 2.0**24  # (big + 1) + 1
    assert value(sums.halving(F, [big, one, 0, one])) == 2.0**24 + 2  # (big + 0) + (1 + 1)
    assert value(sums.register(F, [big, 0, one, one])) == 2.0**24 + 2
    assert value(sums.lanes64(F, [big, 0, one] + [0] * 61 + [0, 0, one])) == 2.0**24 + 2
    assert sums.register(F, [0x80000000] * 3) == 0
    assert sums.register(F, [0x80000000] * 64) == 0x80000000
    assert sums.halving(F, [0x80000000] * 3) == 0x80000000
    assert sums.sequential(F, [0x80000000] * 3) == 0
    assert [sums.power_below(n) for n in (1, 2, 3, 4, 5, 165, 256)] == [1, 1, 2, 2, 4, 128, 128]


def test_one_item_is_its_own_sum() -> None:
    for arch in ("dav_2201", "dav_3510"):
        for last in (True, False):
            assert sums.row_sum(Arith(FLOAT, V._replace(arch=arch)), [0x80000000], last) == 0x80000000


@pytest.mark.parametrize("wide", [True, False])
@pytest.mark.parametrize("last", [True, False])
def test_array_sums_equal_scalar_sums(wide: bool, last: bool) -> None:
    rng = np.random.default_rng(14)
    lengths = (1, 2, 3, 8, 9, 16, 17, 63, 64, 65, 123, 124, 128, 129, 165, 166, 300, 1025, 4097)
    for arch in ("dav_2201", "dav_3510"):
        v = Variant(arch, "FLOAT" if wide else "BF16", False)
        for n in (*lengths, *((10513, 16385, 40000) if last and arch == "dav_3510" else ())):
            x = (rng.standard_normal((1, n)) * 2.0 ** rng.integers(-8, 8, (1, n))).astype(np.float32)
            want = sums.row_sum(Arith(FLOAT, v), x[0].view(np.uint32).tolist(), last)
            assert int(array_sums.row_sum_array(x, v, last).view(np.uint32)[0, 0]) == want, n


@pytest.mark.parametrize("op", [op for op in catalog.OPS if not op.rows], ids=lambda op: op.name)
def test_array_form_equals_scalar_form(op: catalog.Op) -> None:
    for v in catalog.variants(op):
        rng = np.random.default_rng(15)
        n = 60
        inputs = []
        for _ in range(op.inputs):
            pool = samples.directed(v.dtype)
            inputs.append(np.concatenate([rng.choice(pool, n), samples.random(v.dtype, n, rng)]))
        got = judge.expected(op.flow, v, *inputs)
        cases = zip(*(a.tolist() for a in inputs), strict=True)
        want = np.array([judge.scalar(op.flow, v, case)[0] for case in cases]).astype(got.dtype)
        assert np.flatnonzero(judge.mismatches(v.dtype, got, want)).tolist() == [], v


@pytest.mark.parametrize("arch", ["dav_1001", "dav_2201", "dav_3510"])
def test_table_of_factors_equals_scalar_form(arch: str) -> None:
    """A sweep multiplies these by every g; `emu verify` has no other source for them. The swept ones are the next test's."""
    v = Variant(arch, "FLOAT16" if arch == "dav_1001" else "BF16", False)
    for numerics in ("device", "document"):
        v = v._replace(numerics=numerics)
        table = log_sigmoid_backward.log_sigmoid_backward_array(np.full(1 << 16, arrays.narrow(np.ones(1, np.float32), v)[0]), PATTERNS, v)
        for b in range(0, 1 << 16, 61):
            want = log_sigmoid_backward.log_sigmoid_backward(int(arrays.narrow(np.ones(1, np.float32), v)[0]), b, v)
            assert table[b] == want or formats.is_nan(formats.FORMATS[v.dtype], want), hex(b)


@pytest.mark.parametrize("dtype", ["BF16", "FLOAT16"])
def test_every_factor_of_the_sweeps_equals_the_scalar_form(dtype: str) -> None:
    """All 65,536 factors of dav_2201, which the runs over 2^32 pairs multiply by every g: compared in FLOAT, before any rounding."""
    v = Variant("dav_2201", dtype, False)
    assert ("log_sigmoid_backward", dtype, "dav_2201") in catalog.EXHAUSTIVE
    table = log_sigmoid_backward.factors(v)
    assert table.shape == (1 << 16,)
    for b, got in enumerate(table.view(np.uint32).tolist()):
        want = log_sigmoid_backward.factor(b, v)
        assert got == want or (formats.is_nan(FLOAT, want) and formats.is_nan(FLOAT, got)), hex(b)


@pytest.mark.parametrize("op", [op for op in catalog.OPS if op.rows], ids=lambda op: op.name)
def test_array_rows_equal_scalar_rows(op: catalog.Op) -> None:
    for v in catalog.variants(op):
        if v.dtype == "DOUBLE":
            continue
        for last, r in ((True, 1), (True, 67), (False, 9), (True, 9)):
            inputs = samples.row_block(v.dtype, r, 6, op.inputs, seed=r)
            got = judge.expected_rows(op.flow, v, last, *(np.ascontiguousarray(a.T[:, :, None]) for a in inputs))[:, :, 0]
            for c in range(6):
                want = np.array(judge.scalar(op.flow, v, tuple(a[:, c].tolist() for a in inputs), last)[0], got.dtype)
                assert np.flatnonzero(judge.mismatches(v.dtype, got[c], want)).tolist() == [], (v, last, r, c)


def test_a_host_that_flushes_is_refused() -> None:
    torch = pytest.importorskip("torch", reason="sets the host's flush mode")
    if not torch.set_flush_denormal(True):
        pytest.skip("this CPU cannot flush subnormals")
    try:
        with pytest.raises(RuntimeError, match="flushes subnormals"):
            arrays.check_host()
    finally:
        torch.set_flush_denormal(False)
    arrays.check_host()


#: FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO of <fenv.h>.
ROUNDINGS = {"x86_64": (0x800, 0x400, 0xC00), "aarch64": (0x400000, 0x800000, 0xC00000)}


@pytest.mark.skipif(platform.machine() not in ROUNDINGS, reason="the numbers of the rounding modes are not known")
@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_host_that_does_not_round_to_nearest_is_refused(which: int) -> None:
    libm = ctypes.CDLL(ctypes.util.find_library("m"))
    assert libm.fesetround(ROUNDINGS[platform.machine()][which]) == 0
    try:
        with pytest.raises(arrays.HostError, match="does not round to nearest"):
            arrays.check_host()
    finally:
        libm.fesetround(0)
    arrays.check_host()


def test_assumptions_are_a_closed_table() -> None:
    for entry in ASSUMPTIONS:
        assert entry.default in entry.values
        assert chosen((), entry.name) == entry.default
        assert chosen(((entry.name, entry.values[-1]),), entry.name) == entry.values[-1]
        with pytest.raises(LookupError, match="known"):
            chosen(((entry.name, "something else"),), entry.name)
    with pytest.raises(LookupError, match="unknown assumption"):
        chosen((), "no_such_name")
