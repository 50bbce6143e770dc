"""The cost of tracing: the launch path made anew is the real one, without its tests for hooks or with them; the figures come out."""

from __future__ import annotations

import dis

import pytest

from bench import trace_cost
from emu.runtime import hooks

FUNCTIONS = [getattr(owner, name) for owner, name in trace_cost.PATH]


def used(function):
    """The names that its instructions use."""
    return {i.argval for i in dis.get_instructions(function) if isinstance(i.argval, str)}


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__qualname__)
def test_the_path_made_anew(function):
    same, bare = (used(trace_cost.compiled(function, tests=tests)) for tests in (True, False))
    assert same == used(function)
    assert {"hooks", "active"} <= same
    assert not {"hooks", "active", "called", "finished", "synchronised"} & bare


def test_the_path_is_put_back():
    with trace_cost.path(tests=False):
        assert all(getattr(owner, name) is not f for (owner, name), f in zip(trace_cost.PATH, FUNCTIONS, strict=True))
    assert [getattr(owner, name) for owner, name in trace_cost.PATH] == FUNCTIONS


def test_the_ratio_is_a_geometric_mean():
    assert trace_cost.Pairs([1.0, 2.0], [2.0, 16.0]).ratio == pytest.approx(4.0)


def test_both_figures_are_printed(capsys):
    assert trace_cost.main(["--launches", "40", "--pairs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trace", "hooks, nothing traced"]
    assert all("medians of 2" in line and "(geometric mean)" in line for line in lines)
    assert hooks.active is None
