from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import pytest

from bench.timing import Effort, Samples, interleave, spread, summary

QUICK = Effort(seconds=0.0, rounds=(4, 4), sample=0.0, settle=0.0, quiet=0.0)


def noting(log: list[tuple[str, int]], name: str) -> Callable[[int], None]:
    return lambda times: log.append((name, times))


def test_they_take_turns_and_the_order_turns():
    log: list[tuple[str, int]] = []
    found = interleave({n: noting(log, n) for n in "abc"}, QUICK, calls=7)
    timed = [name for name, times in log if times == 7]
    assert "".join(timed) == "abcbcacababc"
    assert all(len(s.taken()) == 4 and s.calls == 7 for s in found.values())


def test_rounds_end_with_the_budget_but_not_before_the_least():
    log: list[tuple[str, int]] = []
    interleave({"a": noting(log, "a")}, QUICK._replace(seconds=0.0, rounds=(3, 1000)), calls=5)
    assert sum(times == 5 for _, times in log) == 3


def test_a_slow_one_takes_part_in_few_rounds():
    log: list[tuple[str, int]] = []
    effort = QUICK._replace(rounds=(8, 8), rare=-1.0, rare_rounds=2)
    found = interleave({"a": noting(log, "a")}, effort, calls=5)
    assert len(found["a"].taken()) == 2
    assert len(found["a"].seconds) == 8


def test_each_is_warmed_by_its_own_calls():
    log: list[tuple[str, int]] = []
    interleave({n: noting(log, n) for n in "ab"}, QUICK._replace(settle=1e-4), calls=3)
    for before, now in pairwise(log):
        if now[1] == 3:
            assert before[0] == now[0]


def test_ratios_are_paired_by_round():
    samples = {"emu": Samples([1.0, 2.0, 4.0], 1), "torch": Samples([2.0, 4.0, 8.0], 1), "numpy": Samples([10.0, None, None], 1)}
    found = summary(samples)
    assert found["ratio"]["torch"] == {"median": 2.0, "q1": 2.0, "q3": 2.0, "worst": 2.0}
    assert found["ratio"]["numpy"]["median"] == 10.0
    assert "emu" not in found["ratio"]
    assert found["seconds"]["emu"]["median"] == 2.0
    assert found["seconds"]["numpy"]["samples"] == 1


def test_spread():
    assert spread([3.0]) == {"median": 3.0, "q1": 3.0, "q3": 3.0, "best": 3.0}
    assert spread([5.0, 1.0, 3.0, 2.0, 4.0]) == {"median": 3.0, "q1": 2.0, "q3": 4.0, "best": 1.0}
    with pytest.raises(ValueError, match="no sample"):
        spread([])
