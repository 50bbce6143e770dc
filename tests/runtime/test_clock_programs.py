"""Random legal programs: every schedule gives the times of the recurrence, written out here a second time."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from emu.model import step_cost
from emu.model.calibration import steps_of
from emu.soc import profile

SIZES = (1 << 10, 1 << 18, 1 << 20)
STREAMS = 3
EVENTS = 3

launches = st.tuples(st.just("launch"), st.integers(0, STREAMS - 1), st.integers(0, len(SIZES) - 1))
records = st.tuples(st.just("record"), st.integers(0, STREAMS - 1), st.integers(0, EVENTS - 1))
waits = st.tuples(st.just("wait"), st.integers(0, STREAMS - 1), st.integers(0, EVENTS - 1))
syncs = st.tuples(st.just("sync"), st.integers(0, STREAMS - 1), st.just(0))
programs = st.lists(st.one_of(launches, launches, records, waits, syncs), min_size=1, max_size=30)


def recurrence(program: list[tuple[str, int, int]], costs: list[int], issue: int) -> list[int]:
    """Times of all records, in order: start = max(stream free, host), wait = max, synchronise = host catches up."""
    host, streams, latest, times = 0, [0] * STREAMS, {}, []
    for what, s, k in program:
        if what == "launch":
            host += issue
            streams[s] = max(streams[s], host) + costs[k]
        elif what == "record":
            streams[s] = max(streams[s], host)
            latest[k] = streams[s], s
            times.append(streams[s])
        elif what == "wait" and k in latest:
            when, where = latest[k]
            if where != s:
                streams[s] = max(streams[s], host, when)
        elif what == "sync":
            host = max(host, streams[s])
    return times


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(program=programs, issue=st.sampled_from([0, 7_000]))
def test_every_schedule_gives_the_times_of_the_recurrence(card, program, issue):
    soc = profile("Ascend910B1")
    costs = []
    for n in SIZES:
        _, (step,) = steps_of("inplace_exp", (n,), "FLOAT", soc.name)
        costs.append(step_cost(step, soc).ns)
    expected = recurrence(program, costs, issue)
    for schedule in ("eager", "async", "lazy", "shuffle:4"):
        c = card(schedule=schedule, host=str(issue / 1000))
        assert run(c, program) == expected, schedule


def run(c, program) -> list[int]:
    from emu.runtime import clock, handles
    from emu.runtime.event import Event

    base = clock.host.ns
    streams = [c.stream() for _ in range(STREAMS)]
    events = [c.event() for _ in range(EVENTS)]
    tensors = [c.tensor(n) for n in SIZES]
    made = []
    recorded = set()
    for what, s, k in program:
        if what == "launch":
            c.launch("aclnnInplaceExp", streams[s], tensors[k])
        elif what == "record":
            assert c.rt.record_event(events[k], streams[s]) == 0
            made.append(handles.lookup(events[k], Event).record)
            recorded.add(k)
        elif what == "wait" and k in recorded:
            assert c.rt.stream_wait_event(streams[s], events[k]) == 0
        elif what == "sync":
            assert c.rt.synchronize_stream(streams[s]) == 0
    assert c.rt.synchronize_device() == 0
    assert all(record.done for record in made)
    return [record.sim_ns - base for record in made]


def test_a_deadlock_does_not_move_the_clock(card):
    c = card(schedule="lazy")
    s = c.stream()
    event, ret = c.rt.create_event_with_flag(1)
    assert ret == 0
    assert c.rt.stream_wait_event(s, event) == 0
    from emu.runtime import clock

    before = clock.host.ns
    assert c.rt.synchronize_stream(s) == 507046
    assert clock.host.ns == before


def test_the_recurrence_by_hand():
    program = [("launch", 0, 0), ("record", 0, 0), ("wait", 1, 0), ("launch", 1, 1), ("record", 1, 1), ("sync", 1, 0), ("record", 2, 2)]
    assert recurrence(program, [10, 5, 0], 0) == [10, 15, 15]
    assert recurrence(program, [10, 5, 0], 100) == [110, 205, 205]
    with pytest.raises(IndexError):
        recurrence([("launch", STREAMS, 0)], [1], 0)
