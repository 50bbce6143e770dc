"""The picture of a timeline, however long it is."""

from __future__ import annotations

import pytest

from emu.timeline import plot
from emu.timeline.reader import Trace


def piece(ts, dur, name="aclnnExp", pid=1000, tid=1):
    return {"ph": "X", "name": name, "cat": "kernel", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": {"connection_id": 1}}


def trace(*events):
    return Trace("simulated", {"clock": "simulated", "soc": "Ascend910B1"}, list(events), True)


def test_wide_slices_are_bars_of_their_own():
    slices = [piece(0.0, 10.0), piece(10.0, 1.0), piece(12.0, 0.0)]
    assert plot.bars(slices, ["red", "blue", "blue"], 1.0) == [(0.0, 10.0, "red", slices[0]), (10.0, 1.0, "blue", slices[1])]


def test_narrow_slices_become_columns_of_the_colour_that_took_most_of_them():
    slices = [piece(0.1, 0.2), piece(0.3, 0.5), piece(1.0, 0.4), piece(2.0, 0.4), piece(2.5, 0.3), piece(7.5, 0.1), piece(9.0, 0.0)]
    colours = ["red", "blue", "blue", "red", "blue", "red", "red"]
    assert plot.bars(slices, colours, 1.0) == [(0.0, 2.0, "blue", None), (2.0, 1.0, "red", None), (7.0, 1.0, "red", None)]


def test_a_long_trace_is_drawn_with_no_more_bars_than_columns():
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    events = [piece(k * 1.0, 0.6, ("aclnnExp", "aclnnGelu")[k // 500 % 2]) for k in range(20_000)]
    plot.draw(trace(*events, piece(20_000.0, 5_000.0, "aclnnSoftmax")), axes, "long", {})
    (narrow, wide) = axes.collections
    assert len(narrow.get_paths()) == 40, "one bar for 500 slices alike"
    assert len(wide.get_paths()) == 1
    assert [text.get_text() for text in axes.texts] == ["Softmax"]
    begin, end = axes.get_xlim()
    assert begin == 0.0
    assert end == pytest.approx(25_000.0 * 1.01)


def test_times_before_the_trace_are_in_the_picture():
    assert plot.extent(trace(piece(-50.0, 10.0))) == (-50.0, -40.0)
    assert plot.extent(trace(piece(20.0, 10.0)), trace(piece(5.0, 1.0))) == (0.0, 30.0)
    assert plot.extent(trace()) == (0.0, 1.0)


@pytest.mark.parametrize("name", ["x" * 100, "\U0001f600", "$x_{", "_hidden", "a\nb"])
def test_any_name_can_be_drawn(tmp_path, name):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    plot.save([(name, trace(piece(0.0, 10.0, name)))], tmp_path / "out.png")
    assert (tmp_path / "out.png").read_bytes()[:4] == b"\x89PNG"


def test_nothing_to_draw(tmp_path):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    for empty in (trace(), trace(piece(0.0, 0.0))):
        with pytest.raises(ValueError, match="t: nothing in this trace takes any time"):
            plot.save([("s", trace(piece(0.0, 1.0))), ("t", empty)], tmp_path / "out.png")
    assert not (tmp_path / "out.png").exists()
