"""The steps that a counterexample shows of a kernel: its source, run in Python, ends in the result of the machine code."""

from __future__ import annotations

import gmpy2
import numpy as np
import pytest
from emu_kernels import catalog as kernels
from emu_kernels.reference.formats import FORMATS, is_nan
from emu_kernels.variant import Variant

from emu.verify import catalog, judge, playback, report, samples, values
from emu.verify.provider import NativeKernels, Steps
from emu.verify.units import Example
from emu.verify.values import Value

KERNELS = NativeKernels()
PLAYED = "kernel, its source step by step"
ELEMENTWISE = [op for op in catalog.OPS if not op.rows]
ROWS = [op for op in catalog.OPS if op.rows]


def pattern(dtype: str, bits: int) -> int:
    """An unsigned pattern, with one for all NaNs."""
    if dtype in FORMATS and is_nan(FORMATS[dtype], bits):
        return FORMATS[dtype].nan
    return bits % (1 << {"INT8": 8, "INT32": 32}.get(dtype, 64))


@pytest.mark.parametrize("op", ELEMENTWISE, ids=lambda op: op.name)
def test_every_elementwise_source_ends_in_the_kernels_result(op: catalog.Op) -> None:
    for v in catalog.variants(op):
        rng = np.random.default_rng(51)
        pool = samples.directed(v.dtype)
        inputs = [np.concatenate([rng.choice(pool, 5), samples.random(v.dtype, 7, rng)]) for _ in range(op.inputs)]
        got = KERNELS.elementwise(op.flow, v, *inputs)
        for k, out in enumerate(got.tolist()):
            case = Example(tuple(int(a[k]) for a in inputs), out, out)
            how, steps = KERNELS.steps(op.flow, v, case)
            assert how == PLAYED, (v, case)
            assert len(steps) >= 3
            assert steps[-1].name.startswith("out")
            assert pattern(v.dtype, steps[-1].bits) == pattern(v.dtype, out), (v, case)


@pytest.mark.parametrize("op", ROWS, ids=lambda op: op.name)
def test_every_source_over_rows_ends_in_the_kernels_result(op: catalog.Op) -> None:
    for v in catalog.variants(op):
        for last, r in ((True, 1), (True, 70), (False, 9)):
            inputs = [a[:, 0] for a in samples.row_block(v.dtype, r, 1, op.inputs, seed=r)]
            got = KERNELS.rows(op.flow, v, last, *(a.reshape(1, -1, 1) for a in inputs)).ravel()
            case = Example(tuple(a.tolist() for a in inputs), int(got[r // 2]), 0, last, r // 2)
            how, steps = KERNELS.steps(op.flow, v, case)
            assert how == PLAYED, (v, last, r)
            assert pattern(v.dtype, steps[-1].bits) == pattern(v.dtype, case.got), (v, last, r)


@pytest.mark.parametrize(("last", "r"), [(True, 700), (False, 200), (True, 17), (False, 166)])
@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
def test_both_sides_list_the_same_additions(arch: str, last: bool, r: int) -> None:
    """So a wrong order of the sum shows where it begins. What is added first within a step of a tree is free."""
    v = Variant(arch, "FLOAT", False)
    rng = np.random.default_rng(52)
    inputs = tuple(samples.values("FLOAT", rng.standard_normal(r)).tolist() for _ in range(2))
    _, trace = judge.scalar("softmax_backward", v, inputs, last)
    played = playback.rows(playback.KERNELS, "softmax", "softmax_backward", v, last, inputs, 3)
    sides = [sorted(s.bits for s in steps if s.name.startswith("sum: ")) for steps in (trace, played)]
    assert len(sides[0]) == r - 1
    assert sides[0] == sides[1]


def test_a_long_row_is_only_observed() -> None:
    v = Variant("dav_2201", "BF16", False)
    row = [0x3F80] * (playback.MOST + 1)
    how, steps = KERNELS.steps("softmax_backward", v, Example((row, row), 0, 0, True, 1))
    assert how == f"kernel, as far as it can be observed (a row of more than {playback.MOST} elements takes too long in Python)"
    assert [s.name for s in steps] == ["FLOAT kernel"]


def test_another_result_of_the_machine_code_is_said() -> None:
    v = Variant("dav_2201", "BF16", False)
    assert KERNELS.steps("selu_backward", v, Example((0x4000, 0xBF80), 0x3FC3, 0)).how.startswith(f"{PLAYED}; the machine code")


def test_steps_of_an_elementwise_kernel() -> None:
    _, steps = KERNELS.steps("selu_backward", Variant("dav_2201", "BF16", False), Example((0x4000, 0xBF80), 0x3FC2, 0))
    assert [(s.name, report.readable(s.format, s.bits)) for s in steps] == [
        ("in1 = 0xbf80 to FLOAT", "0xbf800000 (-1.0)"),  # an operand is read when it is needed first
        ("0xbf800000 + 0x3fe10966", "0x3f4212cc (0.7580993175506592)"),
        ("0xbf800000 < 0x00000000", "true"),
        ("in0 = 0x4000 to FLOAT", "0x40000000 (2.0)"),
        ("0x40000000 * 0x3f4212cc", "0x3fc212cc (1.5161986351013184)"),
        ("0x3fc212cc + 0x00000000", "0x3fc212cc (1.5161986351013184)"),
        ("out = 0x3fc212cc to BF16", "0x3fc2 (1.515625)"),
    ]


def test_a_long_sum_is_shortened() -> None:
    v = Variant("dav_2201", "FLOAT", False)
    rng = np.random.default_rng(53)
    inputs = tuple(samples.values("FLOAT", rng.standard_normal(60)).tolist() for _ in range(2))
    row = {"flow": "softmax_backward", "variant": v}
    found = report.explain(row, Example(inputs, 0, 0, False, 3), KERNELS)
    for side in ("reference_steps", "kernel_steps"):
        names = [name for name, _ in found[side]]
        assert sum(n.startswith("sum: ") for n in names) == report.PARTIAL_SUMS + report.LAST_SUMS
        assert "… 39 more additions" in names


@pytest.mark.parametrize("kind", ["f32", "f64"])
def test_fused_multiply_add_rounds_once(kind: str) -> None:
    real = values.FLOATS[kind]
    limits = {"f32": (24, 128, -148), "f64": (53, 1024, -1073)}[kind]
    rng = np.random.default_rng(54)
    wide = 40 if kind == "f32" else 300
    a, b = (rng.standard_normal((2, 3000)) * 2.0 ** rng.integers(-wide, wide, (2, 3000))).astype(real)
    c = np.where(rng.integers(2, size=3000), -(a * b), rng.standard_normal(3000).astype(real) * 2.0**-30).astype(real)
    with gmpy2.context(precision=limits[0], emax=limits[1], emin=limits[2], subnormalize=True):
        for x, y, z in zip(a, b, c, strict=True):
            got = values.fma(kind, Value(kind, x), Value(kind, y), Value(kind, z)).x
            assert float(got) == float(gmpy2.fma(gmpy2.mpfr(float(x)), gmpy2.mpfr(float(y)), gmpy2.mpfr(float(z)))), (x, y, z)


def test_integers_compute_in_64_bits_and_are_cut_when_converted() -> None:
    wrapped = Value("u16", 0x8000) - Value("u16", 0x8001)
    assert (wrapped.kind, wrapped.x) == ("u64", 2**64 - 1)
    assert values.convert("u16", wrapped).x == 0xFFFF
    assert values.convert("i8", Value("i32", 200)).x == -56
    assert values.convert("i32", Value("f32", np.float32(-2.75))).x == -2


def test_every_flow_of_the_command_has_a_source() -> None:
    assert all(kernels.FLOWS[op.flow].family for op in catalog.OPS)
    assert isinstance(KERNELS.steps("exp", Variant("dav_2201", "FLOAT", False), Example((0,), 0x3F800000, 0)), Steps)
