"""The acceptance rules on results made by hand: each fails alone."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from emu.study import acceptance, numbers
from emu.study.exact import Golden
from emu.study.measure import Tally, measure, ulp_edges


def judged(result: list[float], golden: list[float], dtype: str = "FLOAT16", peer: list[float] | None = None) -> dict[tuple[str, str], Any]:
    tally = tally_of(result, golden, dtype)
    other = None if peer is None else tally_of(peer, golden, dtype)
    found = acceptance.verdicts(dtype, tally.sums, tally.tops, None if other is None else (other.sums, other.tops))
    return {(v.rule, v.level): v for v in found}


def tally_of(result: list[float], golden: list[float], dtype: str = "FLOAT16") -> Tally:
    g = np.array(golden, np.float64)
    zero = np.zeros_like(g)
    a = numbers.from_values(dtype, np.array(result, np.float64))
    return measure(dtype, a, Golden(g, zero, zero), numbers.from_values(dtype, g), (a,), dtype, 0)


def test_equal_results_pass_everything() -> None:
    found = judged([1.0, -2.0, 0.0], [1.0, -2.0, 0.0], peer=[1.0, -2.0, 0.0])
    assert all(v.passed for v in found.values())
    assert {level for rule, level in found if rule == "MARE ratio"} == {"L0", "L1", "L2"}


def test_without_a_peer_the_dual_rules_are_not_judged() -> None:
    found = judged([1.0], [1.0])
    assert found["MERE ratio", "L1"].passed is None
    assert "--peer" in found["MERE ratio", "L1"].why


@pytest.mark.parametrize(("ratio", "levels"), [(1.1, "L0 L1 L2"), (1.4, "L0 L1"), (1.9, "L0"), (2.2, "")])
def test_levels_of_the_dual_benchmark(ratio: float, levels: str) -> None:
    golden = [1.0] * 64
    peer = [1.0 + 64 * 2.0**-10] * 64
    ours = [1.0 + round(64 * ratio) * 2.0**-10] * 64
    found = judged(ours, golden, peer=peer)
    assert " ".join(level for level in ("L0", "L1", "L2") if found["MERE ratio", level].passed) == levels


def test_one_bad_element_of_many() -> None:
    golden = [1.0] * 2000
    result = [1.0 + 0.05] + [1.0] * 1999
    found = judged(result, golden)
    passed = {rule for (rule, _), v in found.items() if v.passed}
    assert {"MERE", "mixed tolerance", "one thousandth twice"} <= passed
    assert not {"MARE", "torch.testing defaults", "bit equal"} & passed


def test_cap_of_the_mixed_tolerance() -> None:
    found = judged([2.0] + [1.0] * 999, [1.0] * 1000)
    assert found["mixed tolerance", "-"].passed is False
    assert "1 beyond the cap" in found["mixed tolerance", "-"].measured


def test_misplaced_nan_fails_every_rule() -> None:
    found = judged([np.nan, 1.0], [1.0, 1.0])
    assert not any(v.passed for (rule, _), v in found.items() if rule != "determinism")
    assert "the values alone pass" in found["MERE", "single benchmark"].why


def test_integers_are_bit_equal_or_wrong() -> None:
    found = judged([3, 4], [3, 5], "INT8")
    assert {rule for rule, _ in found} == {"bit equal", "determinism"}
    assert found["bit equal", "-"].passed is False


def test_classes_steps_and_bias() -> None:
    ulp = 2.0**-10
    inf = np.inf
    m = tally_of([1 + ulp, 1 - ulp / 2, np.nan, inf, 1, 0.0, 2.0**-24, -inf, np.nan], [1, 1, 1, 1, inf, 2.0**-24, 0, inf, np.nan]).metrics()
    assert (m["n"], m["compared"]) == (9, 4)
    assert (m["nan_result"], m["inf_result"], m["inf_golden"], m["zero_result"], m["zero_golden"]) == (1, 2, 1, 1, 1)
    assert (m["subnormal_result"], m["subnormal_golden"]) == (1, 1)
    assert (m["wrong_by_one"], m["steps_max"], m["ulp_max"]) == (4, 1, 1.0)
    assert m["bias_ulp"] == pytest.approx((1 - 0.5 - 1 + 1) / 4)


def test_percentiles_are_edges_of_bins() -> None:
    golden = [1.0] * 100
    t = tally_of([1.0] * 90 + [1 + 2.0**-10] * 9 + [1 + 40 * 2.0**-10], golden)
    assert t.percentile(0.5) == 0
    assert t.percentile(0.99) == 1.0
    assert t.percentile(1.0) == pytest.approx(40, rel=0.03)
    assert t.ulp_hist.sum() == 100
    assert (np.diff(ulp_edges()) > 0).all()


def test_onset_is_the_input_nearest_to_zero() -> None:
    g = np.array([1.0, 1.0, 1.0, 1.0])
    a = numbers.from_values("FLOAT16", np.array([1.02, 1.05, 1.0, 1.2]))
    x = numbers.from_values("FLOAT16", np.array([-3.0, -5.0, -1.0, 2.0]))
    m = measure("FLOAT16", a, Golden(g, 0 * g, 0 * g), numbers.from_values("FLOAT16", g), (x,), "FLOAT16", 0).metrics()
    assert (m["onset_negative"], m["onset_positive"]) == (-3.0, 2.0)


def test_zeros_begin_at_the_input_nearest_to_zero() -> None:
    g = np.array([1.0, 1.0, 0.0, 1.0, 1.0])
    a = numbers.from_values("FLOAT16", np.array([0.0, -0.0, 0.0, 1.0, 0.0]))
    x = numbers.from_values("FLOAT16", np.array([-9.0, -7.0, -1.0, -0.5, 3.0]))
    m = measure("FLOAT16", a, Golden(g, 0 * g, 0 * g), numbers.from_values("FLOAT16", g), (x,), "FLOAT16", 0).metrics()
    assert (m["zero_from_negative"], m["zero_from_positive"], m["zero_result"]) == (-7.0, 3.0, 3)
    assert np.isnan(measure("FLOAT16", a, Golden(0 * g, 0 * g, 0 * g), a, (x,), "FLOAT16", 0).metrics()["zero_from_negative"])
