"""What a launch moves and computes, and the terms of its cost."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import pytest

from emu.executor import prepare
from emu.model import copy_ns, rates, step_cost
from emu.model.calibration import steps_of
from emu.model.cost import Traffic, price, traffic_of
from emu.objects import Tensor
from emu.opdef.catalogue import OPERATORS
from emu.plan import bind
from emu.soc import known_socs, profile
from emu.types import DataType, Format

A2 = profile("Ascend910B2")
N = 1 << 20


def traffic(op: str, shape: tuple[int, ...], dtype: str, dim: int | None = None, soc: str = "Ascend910B2") -> Traffic:
    bound, (step,) = steps_of(op, shape, dtype, soc, dim)
    return traffic_of(step, bound.soc)


@pytest.mark.parametrize(
    ("op", "dtype", "read", "written", "operations"),
    [
        ("sigmoid", "FLOAT", 4, 4, 4),
        ("sigmoid", "FLOAT16", 2, 2, 6),
        ("gelu", "BF16", 2, 2, 10),
        ("exp", "FLOAT16", 2, 2, 3),
        ("selu_backward", "FLOAT", 8, 4, 5),
        ("selu_backward", "INT8", 2, 1, 8),
        ("log_sigmoid_backward", "FLOAT", 8, 4, 9),
        ("softmax_backward", "FLOAT", 8, 4, 4),
        ("softmax", "FLOAT16", 2, 2, 7),
    ],
)
def test_bytes_and_operations_per_element(op, dtype, read, written, operations):
    """The buffer of LogSigmoidBackward is never read and costs nothing."""
    assert traffic(op, (N // 64, 64), dtype)[:2] == (read * N, written * N)
    assert traffic(op, (N // 64, 64), dtype).operations == operations * N


def test_in_place_touches_half_the_memory():
    plain, inplace = traffic("exp", (N,), "FLOAT"), traffic("inplace_exp", (N,), "FLOAT")
    assert (inplace.read, inplace.written) == (plain.read, plain.written)
    assert inplace.footprint * 2 == plain.footprint == 8 * N


@pytest.mark.parametrize(
    ("shape", "dtype", "dim", "passes"),
    [
        ((64, 8192), "FLOAT", 1, 1),  # 64 KiB with its result
        ((64, 24576), "FLOAT", 1, 1),  # exactly 192 KiB
        ((64, 24577), "FLOAT", 1, 3),  # maximum, sum, result
        ((64, 24577), "FLOAT16", 1, 3),  # widened on chip
        ((3072, 64), "FLOAT", 0, 1),  # 32 bytes of every row
        ((3073, 64), "FLOAT", 0, 3),
        ((8192, 64), "FLOAT16", 0, 3),
    ],
)
def test_a_row_that_does_not_fit_is_read_once_for_each_pass(shape, dtype, dim, passes):
    size = shape[0] * shape[1] * (4 if dtype == "FLOAT" else 2)
    found = traffic("softmax", shape, dtype, dim)
    assert (found.read, found.written, found.footprint) == (passes * size, size, 2 * size)


def test_every_launch_of_a_call_is_priced():
    """A transposed input is made contiguous first, a different out dtype is a cast after: three launches."""
    bound = bind("aclnnSigmoid", A2.name)
    x = Tensor((64, 32), int(DataType.FLOAT16), (1, 64), 0, int(Format.ND), (2048,), 0)
    out = Tensor((64, 32), int(DataType.FLOAT), (32, 1), 0, int(Format.ND), (64, 32), 0)
    made = prepare(bound, [x, out], "device", True)
    found = [(s.name, traffic_of(s, A2)) for s in made.plan.steps]
    n = 64 * 32
    assert [t[:2] for _, t in found] == [(2 * n, 2 * n), (2 * n, 2 * n), (2 * n, 4 * n)]
    assert [t.operations for _, t in found] == [0, 6 * n, n]


def test_terms():
    r = rates(A2)
    assert price(Traffic(8, 8, 16, 8), 1, r).binds == "floor"
    big = price(Traffic(1 << 26, 1 << 26, 1 << 27, 0), 1, r)
    assert (big.binds, big.level, big.l2_share) == ("L2", "L2", 1.0)
    assert big.ns == pytest.approx(r.floor_ns + (1 << 27) / r.l2, abs=1)
    beyond = price(Traffic(A2.l2_bytes, A2.l2_bytes, 2 * A2.l2_bytes, 0), 1, r)
    assert (beyond.binds, beyond.l2_share) == ("L2+HBM", 0.5)
    assert beyond.ns == pytest.approx(r.floor_ns + A2.l2_bytes / r.l2 + A2.l2_bytes / r.hbm, abs=1)
    busy = price(Traffic(8, 8, 16, 1e9), 1, r)
    assert busy.binds == "vector"
    assert busy.ns == pytest.approx(r.floor_ns + 1e9 / r.vector, abs=1)


def test_no_jump_where_l2_ends():
    r = rates(A2)
    inside, outside = (price(Traffic(n // 2, n // 2, n, 0), 1, r).ns for n in (A2.l2_bytes, A2.l2_bytes + 64))
    assert 0 <= outside - inside <= 1


def test_copies():
    r = rates(A2)
    assert copy_ns(0, "link", r) == copy_ns(0, "device", r) == round(r.floor_ns)
    assert copy_ns(10**9, "link", r) == pytest.approx(r.floor_ns + 1e9 / 31.5, abs=1)
    assert copy_ns(10**9, "peer", r) == pytest.approx(r.floor_ns + 1e9 / 56, abs=1)
    no_hccs = rates(profile("Ascend310P3"))
    assert copy_ns(10**9, "peer", no_hccs) == copy_ns(10**9, "link", no_hccs)


@pytest.mark.parametrize("soc", known_socs())
def test_every_product_can_be_timed(soc):
    r = rates(profile(soc))
    assert 0 < r.hbm < r.hbm_peak
    assert 0 < r.l2 < r.l2_peak
    assert r.hbm_peak < r.l2_peak
    for op in OPERATORS:
        bound, steps = steps_of(op.python_name, (64, 64), op.dtypes[0], soc)
        assert all(step_cost(step, bound.soc).ns >= r.floor_ns for step in steps), op.name


@pytest.mark.parametrize("missing", ["l2_rate", "lanes_fp16", "pcie_gbs"])
def test_a_missing_rate_is_named(missing):
    poor = replace(A2, name="Ascend910X", rates={k: v for k, v in A2.rates.items() if k != missing})
    with pytest.raises(ValueError, match=rf"profiles\.toml has no {missing} for Ascend910X"):
        rates(poor)


@pytest.mark.parametrize("value", [0, -1.0, float("nan"), float("inf"), "x", True, [1]])
def test_a_rate_that_is_none_is_named(value):
    poor = replace(A2, name="Ascend910Z", rates={**A2.rates, "pcie_gbs": value})
    with pytest.raises(ValueError, match=r"profiles\.toml: pcie_gbs for Ascend910Z is .*, not a number above 0"):
        rates(poor)


@pytest.mark.parametrize("soc", known_socs())
def test_leaving_l2_makes_no_byte_faster(soc):
    """Of every product: a footprint beyond L2 takes at least as long for each byte as one that fits."""
    r = rates(profile(soc))
    assert r.l2 >= r.hbm
    inside, beyond = (price(Traffic(n // 2, n // 2, n, 0), 1, r).memory_ns / n for n in (r.soc.l2_bytes, 4 * r.soc.l2_bytes))
    assert beyond >= inside * (1 - 1e-9)


def test_where_rates_come_from():
    assert (rates(A2).source, rates(A2).l2_source) == ("fitted", "fitted")
    assumed = "assumed: fitted on Ascend910B2"
    assert {rates(profile(soc)).source for soc in known_socs() if soc != A2.name} == {assumed}
    raised = [soc for soc in known_socs() if rates(profile(soc)).l2_source == "assumed: no less than HBM's"]
    assert raised == [soc for soc in known_socs() if soc.startswith("Ascend950DT")]
    assert rates(profile("Ascend910B1")).l2_source == assumed


def test_a_missing_memory_rate_is_named():
    poor = replace(A2, name="Ascend910Y", rates={k: v for k, v in A2.rates.items() if k not in ("hbm_gbs", "ddr_rate")})
    with pytest.raises(ValueError, match=r"profiles\.toml has no ddr_rate for Ascend910Y"):
        rates(poor)


def test_unknown_product():
    with pytest.raises(ValueError, match="unknown SoC 'Ascend910B9': did you mean"):
        steps_of("exp", (8,), "FLOAT", "Ascend910B9")


@pytest.mark.parametrize(("section", "name"), [("fitted", "floor_ns"), ("host", "cpp_us")])
def test_a_missing_shared_number_is_named(monkeypatch, section, name):
    module = import_module("emu.soc.profile")  # the package has a function of this name
    raw = {**module._raw(), section: {k: v for k, v in module._raw()[section].items() if k != name}}
    monkeypatch.setattr(module, "_raw", lambda: raw)
    with pytest.raises(ValueError, match=rf"no {name} in \[{section}\]"):
        module.shared_numbers(section)[name]
