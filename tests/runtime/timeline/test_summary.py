"""The summary of a trace whose numbers can be checked by hand, and the picture of it."""

from __future__ import annotations

import pytest

from emu.timeline import summary
from emu.timeline.reader import Trace
from emu.timeline.summary import summarise


def event(name, stream, ts, dur, number, cat="kernel", **args):
    return {
        "ph": "X", "name": name, "cat": cat, "pid": 1000, "tid": stream, "ts": ts, "dur": dur, "args": {"connection_id": number, **args},
    }  # fmt: skip


def call(name, ts, dur):
    return {"ph": "X", "name": name, "cat": "host", "pid": 1, "tid": 1, "ts": ts, "dur": dur, "args": {}}


def start(number, ts):
    return {"ph": "s", "name": "HostToDevice", "cat": "HostToDevice", "id": number, "pid": 1, "tid": 1, "ts": ts}


#: Stream 1: 0-10 exp, 10-20 gelu, nothing, 50-60 exp after the host had synchronised until 50. Stream 2: waits for stream 1 until 10, then
#: 10-40 gelu.
EVENTS = [
    event("aclnnExp", 1, 0.0, 10.0, 1), start(1, 0.0),
    event("aclnnGelu", 1, 10.0, 10.0, 2), start(2, 0.0),
    event("event wait", 2, 0.0, 10.0, 3, "sync", waited_for_stream=1, waited_for_device=0),
    event("aclnnGelu", 2, 10.0, 30.0, 4), start(4, 0.0),
    call("aclrtSynchronizeStream", 0.0, 50.0),
    event("aclnnExp", 1, 50.0, 10.0, 5), start(5, 50.0),
]  # fmt: skip
TRACE = Trace("simulated", {"clock": "simulated", "soc": "Ascend910B1"}, EVENTS, True)


def test_by_hand():
    found = summarise(TRACE)
    assert (found.clock, found.span) == ("simulated", 60.0)
    assert [(o.name, o.times, o.total, o.mean, o.longest) for o in found.operators] == [
        ("aclnnGelu", 2, 40.0, 20.0, 30.0),
        ("aclnnExp", 2, 20.0, 10.0, 10.0),
    ]
    assert [o.share for o in found.operators] == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert [tuple(s) for s in found.streams] == [("stream 1", 3, 30.0, 0.0, 30.0), ("stream 2", 1, 30.0, 10.0, 20.0)]
    assert [tuple(g) for g in found.gaps] == [
        ("stream 1", 20.0, 30.0, "aclnnExp", "the host (thread 1, longest in aclrtSynchronizeStream)"),
        ("stream 2", 0.0, 10.0, "aclnnGelu", "an event of stream 1"),
    ]


def test_only_the_longest_gaps():
    assert [g.length for g in summarise(TRACE, gaps=1).gaps] == [30.0]
    assert summarise(TRACE, gaps=0).gaps == []


def test_only_gaps_that_are_shown_are_explained(monkeypatch):
    """A reason looks at every host call: for each launch of a long trace that would take minutes."""
    explained = []
    monkeypatch.setattr(summary, "_reason", lambda task, *_: explained.append(task) or "the host")
    long = [event("aclnnExp", 1, 10.0 * k, 5.0, k) for k in range(100)]
    assert len(summarise(Trace("simulated", {}, long, True), gaps=3).gaps) == len(explained) == 3


def test_what_failed_did_not_run():
    failed = event("aclnnExp", 1, 60.0, 0.0, 6, failed=True)
    assert summarise(Trace(TRACE.clock, TRACE.about, [*EVENTS, failed], True)) == summarise(TRACE)


def test_other_devices_are_named():
    moved = [{**e, "pid": 1003} if e["pid"] == 1000 else e for e in EVENTS]
    found = summarise(Trace("wall", {"clock": "wall"}, moved, True))
    assert [s.stream for s in found.streams] == ["device 3 stream 1", "device 3 stream 2"]
    assert found.clock == "wall"


def test_a_trace_without_device_tasks():
    found = summarise(Trace("simulated", {}, [call("aclrtMemcpy", 0.0, 1.0)], True))
    assert (found.span, found.operators, found.streams, found.gaps) == (0.0, [], [], [])


def test_the_picture_says_which_clock(tmp_path):
    figure = pytest.importorskip("matplotlib.figure", reason="drawing needs matplotlib")
    from emu.timeline import plot

    axes = figure.Figure().subplots()
    plot.draw(TRACE, axes, "two streams", {})
    assert axes.get_xlabel() == "simulated time, µs"
    assert axes.get_title(loc="left") == "two streams (EMULATED Ascend910B1, simulated time)"
    assert [label.get_text() for label in axes.get_yticklabels()] == ["host thread 1", "stream 1", "stream 2"]
    assert sum(len(found.get_paths()) for found in axes.collections) == 6, "one bar for each slice"
    assert [text.get_text() for text in axes.texts] == ["SynchronizeStream", "Exp", "Gelu", "Exp", "event wait", "Gelu"]
    plot.save([("a", TRACE), ("b", TRACE)], tmp_path / "out.svg")
    assert b"<svg" in (tmp_path / "out.svg").read_bytes()
