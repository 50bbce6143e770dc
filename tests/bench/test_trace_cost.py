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


def on_path():
    return [getattr(owner, name) for owner, name in trace_cost.PATH]


def test_both_sides_run_and_the_path_is_put_back():
    seen = []
    found = trace_cost.of_hooks(lambda n: seen.append((n, tuple(on_path()))), 1400, 3)
    assert on_path() == FUNCTIONS
    assert len(found.base) == len(found.other) == 3
    without, with_tests = seen[0][1], seen[1][1]
    assert not set(without) & set(with_tests)
    assert not {*without, *with_tests} & set(FUNCTIONS)
    assert [path for _, path in seen[2:]].count(without) == [path for _, path in seen[2:]].count(with_tests) == 14
    assert {n for n, _ in seen[2:]} == {trace_cost.SHORT}


def test_the_path_is_put_back_after_an_error():
    def fail(launches):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        trace_cost.of_hooks(fail, 1000, 1)
    assert on_path() == FUNCTIONS


@pytest.mark.parametrize("chunks", [1, 3])
def test_one_trace_in_chunks(chunks):
    seen = []
    found = trace_cost.of_trace(lambda n: seen.append((n, hooks.active)), chunks * trace_cost.CHUNK)
    assert [n for n, _ in seen] == [1000] * 8 * chunks
    turns = [{hook for _, hook in seen[k : k + 4]} for k in range(0, len(seen), 4)]
    assert turns[0] not in ({None}, set())
    assert turns == [turns[0], {None}] * chunks
    assert len(found.base) == len(found.other) == chunks
    assert hooks.active is None


@pytest.mark.parametrize(
    "arguments", [["--launches", "10"], ["--launches", "6000"], ["--launches", "4000", "--pairs", "41"], ["--pairs", "0"]]
)
def test_too_few_launches_are_refused(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        trace_cost.main(arguments)
    assert stopped.value.code == 2
    assert "--launches" in capsys.readouterr().err


def test_an_interrupt_is_one_line(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(trace_cost, "measure", interrupted)
    assert trace_cost.main([]) == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert "interrupted" in line


def test_the_difference():
    text = trace_cost.Pairs([1e-6, 2e-6, 3e-6, 9e-6, 4e-6], [5e-6, 6e-6, 7e-6, 8e-6, 9e-6]).difference()
    assert "untraced 3.00 us, traced 7.00 us" in text
    assert "+4.00 us (median), +4.00 to +4.00 us (quartiles), +3.20 us (mean)" in text


def test_the_ratio_is_a_geometric_mean():
    assert trace_cost.Pairs([1.0, 2.0], [2.0, 16.0]).ratio == pytest.approx(4.0)


def test_both_figures_are_printed(capsys):
    assert trace_cost.main(["--launches", "4000", "--pairs", "2"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(":")[0] for line in lines] == ["trace", "hooks, nothing traced"]
    assert "quartiles" in lines[0]
    assert "medians of 2" in lines[1]
    assert "(geometric mean)" in lines[1]
    assert hooks.active is None
