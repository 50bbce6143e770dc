"""Reading a trace: what is no trace, what is cut off, and every rule of the format broken once."""

from __future__ import annotations

import copy
import json
import re

import pytest

from emu.timeline import reader

ABOUT = {"clock": "simulated", "soc": "Ascend910B1", "emulated": True}


def meta(pid, tid=None):
    name = {"ph": "M", "name": "process_name" if tid is None else "thread_name", "pid": pid, "args": {"name": "x"}}
    return name if tid is None else {**name, "tid": tid}


def slice_(name, pid, tid, ts, dur, cat="kernel", **args):
    return {"ph": "X", "name": name, "cat": cat, "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}


def arrow(number, tid, start, stream, end):
    base = {"name": "HostToDevice", "cat": "HostToDevice", "id": number}
    return [{**base, "ph": "s", "pid": 1, "tid": tid, "ts": start}, {**base, "ph": "f", "bp": "e", "pid": 1000, "tid": stream, "ts": end}]


GOOD = [
    meta(1), meta(1000), meta(1, 1), meta(1000, 2),
    slice_("aclnnExp", 1, 1, 0.0, 2.0, "host"),
    slice_("aclnnExp", 1000, 2, 2.0, 5.0, connection_id=1),
    *arrow(1, 1, 0.5, 2, 2.0),
    slice_("aclnnExp", 1, 1, 2.0, 2.0, "host"),
    slice_("aclnnExp", 1000, 2, 7.0, 5.0, connection_id=2),
    *arrow(2, 1, 2.5, 2, 7.0),
]  # fmt: skip


def write(path, events, about=ABOUT):
    path.write_text(json.dumps({"otherData": about, "traceEvents": events}))
    return path


def found(path, events):
    return reader.problems(reader.load(write(path, events)))


def test_a_good_trace(tmp_path):
    trace = reader.load(write(tmp_path / "t.json", GOOD))
    assert reader.problems(trace) == []
    assert (trace.clock, trace.complete, trace.device_rows(), trace.host_rows()) == ("simulated", True, [(1000, 2)], [1])


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda e: e[4].update(ph="Q"), "unknown kind 'Q'"),
        (lambda e: e[5].pop("dur"), "event 5 .X.: dur missing"),
        (lambda e: e[5].update(ts="2"), "event 5 .X.: ts missing or of the wrong type"),
        (lambda e: e[5].update(dur=-1.0), "event 5 .X.: negative time"),
        (lambda e: e[5].update(ts=float("nan")), "event 5 .X.: ts or dur is no time"),
        (lambda e: e[5].update(dur=float("inf")), "event 5 .X.: ts or dur is no time"),
        (lambda e: e[5].update(ts=10**400), "event 5 .X.: ts or dur is no time"),
        (lambda e: e[5].update(tid=1 << 64), "event 5 .X.: tid missing or of the wrong type"),
        (lambda e: e[5]["args"].clear(), "event 5 .X.: args.connection_id missing or of the wrong type"),
        (lambda e: e[5].update(name="event wait"), "event 5 .X.: args.waited_for_stream, args.waited_for_device missing"),
        (lambda e: e.insert(0, 3), "event 0: unknown kind 'None' or no name"),
        (lambda e: e[9].update(ts=6.0), "begins before the slice ahead of it ends"),
        (lambda e: e.pop(0), "row 1 of layer 1 has no name"),
        (lambda e: e.pop(3), "row 2 of layer 1000 has no name"),
        (lambda e: e[6].update(ts=50.0), "arrow 1 .s. at 50.0 lies in no slice"),
        (lambda e: e[7].update(id=9), "arrow 9 ends before it starts"),
    ],
)
def test_every_rule_once(tmp_path, change, text):
    events = copy.deepcopy(GOOD)
    change(events)
    problems = found(tmp_path / "t.json", events)
    assert any(re.search(text, p) for p in problems), problems


def test_negative_times_are_those_of_clocks_behind(tmp_path):
    """A host thread may be earlier than the one that began the trace, in simulated time; in wall time nothing is."""
    events = copy.deepcopy(GOOD)
    for e in events:
        if "ts" in e:
            e["ts"] -= 100.0
    assert found(tmp_path / "t.json", events) == []
    trace = reader.load(write(tmp_path / "w.json", events, {**ABOUT, "clock": "wall"}))
    assert reader.problems(trace)[0] == "event 4 (X): negative time"


def test_names_are_cut_and_can_be_shown(tmp_path):
    events = copy.deepcopy(GOOD)
    for place, name in ((4, "x" * 100_000), (5, "a\ud800b\nc\x1b[2J"), (8, "größe")):
        events[place]["name"] = name
    trace = reader.load(write(tmp_path / "t.json", events, {**ABOUT, "soc": "\ud800"}))
    assert [trace.events[k]["name"] for k in (4, 5, 8)] == ["x" * reader.LETTERS + "…", "a?b?c?[2J", "größe"]
    assert trace.about["soc"] == "?"


def test_a_byte_order_mark(tmp_path):
    path = write(tmp_path / "t.json", GOOD)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert reader.load(path).complete


def test_an_arrow_back_in_wall_time(tmp_path):
    events = copy.deepcopy(GOOD)
    events[6]["ts"] = 2.5
    assert found(tmp_path / "t.json", events) == []
    trace = reader.load(write(tmp_path / "w.json", events, {**ABOUT, "clock": "wall"}))
    assert any("ends before it starts" in p for p in reader.problems(trace))


def test_a_file_without_its_end(tmp_path):
    lines = ",\n".join(json.dumps(e) for e in GOOD)
    whole = '{"displayTimeUnit":"ns","otherData":' + json.dumps(ABOUT) + ',"traceEvents":[\n' + lines
    for cut in (whole, whole + ",\n", whole + ",\n" + json.dumps(GOOD[5])[:30]):
        (tmp_path / "t.json").write_text(cut)
        trace = reader.load(tmp_path / "t.json")
        assert not trace.complete
        assert trace.events[: len(GOOD) - 1] == GOOD[:-1]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is no JSON"),
        ("hello\nworld", "is no JSON"),
        ("[" * 100_000, "is nested too deeply"),
        ('{"otherData": 3, "traceEvents": []}', "does not say whether"),
        ("[1, 2]", "has no list traceEvents"),
        ('{"traceEvents": 3}', "has no list traceEvents"),
        ('{"traceEvents": []}', "does not say whether its times are simulated or wall"),
    ],
)
def test_what_is_no_trace(tmp_path, text, message):
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(reader.TraceError, match=message):
        reader.load(tmp_path / "t.json")
