"""Events of every kind, waits, and waits that can never end."""

from __future__ import annotations

import itertools
import threading
import time

import pytest

from emu.runtime import device, schedule

SYNC, TIME_LINE = 0x1, 0x8


def test_a_wait_orders_two_streams(any_schedule):
    npu = any_schedule
    s = npu.open()
    t = npu.stream()
    e = npu.event()
    seen: list[str] = []
    npu.push(s, lambda: seen.append("first"))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == 0
    npu.push(t, lambda: seen.append("second"))
    assert npu.rt.synchronize_stream(t) == 0
    assert seen == ["first", "second"]


def test_a_wait_is_bound_to_the_record_it_was_queued_for(npu):
    """Recorded again, on another stream, between the wait's enqueue and its run: the wait is for the first record."""
    npu.configure(schedule="lazy")
    s, t, u = npu.open(), npu.stream(), npu.stream()
    e = npu.event()
    seen: list[str] = []
    npu.push(s, lambda: seen.append("s"))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == 0
    npu.push(u, lambda: seen.append("u"))
    assert npu.rt.record_event(e, u) == 0
    npu.push(t, lambda: seen.append("t"))
    assert npu.rt.synchronize_stream(t) == 0
    assert seen == ["s", "t"]
    assert npu.rt.query_event_status(e)[0] == 0, "the event itself follows its latest record"
    assert npu.rt.synchronize_event(e) == 0
    assert seen == ["s", "t", "u"]


def test_waits_before_any_record_by_the_kind_of_event(npu):
    s = npu.open()
    plain = npu.event()
    assert npu.rt.stream_wait_event(s, plain) == 107000
    assert "not been recorded" in npu.message()
    ex, _ = npu.rt.create_event_ex_with_flag(SYNC)
    assert npu.rt.stream_wait_event(s, ex) == 0
    assert npu.rt.synchronize_stream(s) == 0, "an Ex event is no wait"
    flagged, _ = npu.rt.create_event_with_flag(SYNC)
    assert npu.rt.stream_wait_event(s, flagged) == 0
    assert npu.rt.stream_query(s) == (1, 0), "a real wait"
    assert npu.rt.query_event_wait_status(flagged) == (1, 0)
    t = npu.stream()
    assert npu.rt.record_event(flagged, t) == 0
    assert npu.rt.synchronize_stream(s) == 0
    assert npu.rt.query_event_wait_status(flagged) == (0, 0)


def test_a_real_wait_is_freed_by_another_thread(any_schedule):
    npu = any_schedule
    s = npu.open()
    ctx, _ = npu.rt.get_context()
    e, _ = npu.rt.create_event_with_flag(SYNC)
    seen: list[int] = []
    assert npu.rt.stream_wait_event(s, e) == 0
    npu.push(s, lambda: seen.append(1))
    may_record = threading.Event()

    def record() -> None:
        npu.rt.set_context(ctx)
        may_record.wait(30)
        npu.rt.record_event(e, npu.stream())

    thread = threading.Thread(target=record)
    thread.start()
    assert npu.rt.synchronize_stream_with_timeout(s, 20) == 507046
    may_record.set()
    assert npu.rt.synchronize_stream(s) == 0
    thread.join(30)
    assert seen == [1]


def test_what_ex_events_do_not_do(npu):
    s = npu.open()
    ex, _ = npu.rt.create_event_ex_with_flag(SYNC | TIME_LINE)
    assert npu.rt.query_event_status(ex) == (1, 0), "unrecorded counts as complete"
    assert npu.rt.synchronize_event(ex) == 0
    assert npu.rt.reset_event(ex, s) == 207000
    assert npu.rt.query_event(ex)[1] == npu.rt.query_event_wait_status(ex)[1] == 207000
    untimed, _ = npu.rt.create_event_ex_with_flag(SYNC)
    unwaited, _ = npu.rt.create_event_ex_with_flag(TIME_LINE)
    for e in (ex, untimed, unwaited):
        assert npu.rt.record_event(e, s) == 0
    assert npu.rt.synchronize_stream(s) == 0
    assert npu.rt.stream_wait_event(s, unwaited) == 207000
    assert npu.rt.event_elapsed_time(ex, unwaited)[1] == 0
    assert npu.rt.event_elapsed_time(ex, untimed)[1] == 107006
    assert "TIME_LINE" in npu.message()


def test_waits_need_the_sync_flag(npu):
    s = npu.open()
    e, _ = npu.rt.create_event_with_flag(TIME_LINE)
    assert npu.rt.stream_wait_event(s, e) == 207000
    assert npu.rt.record_event(e, s) == 0
    assert npu.rt.stream_wait_event(s, e) == 207000


def test_the_two_queries_have_opposite_polarity(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    e = npu.event()
    assert (npu.rt.query_event(e), npu.rt.query_event_status(e)) == ((1, 0), (0, 0)), "unrecorded"
    for _ in range(3):
        npu.push(s, lambda: None)
    assert npu.rt.record_event(e, s) == 0
    assert (npu.rt.query_event(e), npu.rt.query_event_status(e)) == ((1, 0), (0, 0))
    assert npu.rt.synchronize_event(e) == 0
    assert (npu.rt.query_event(e), npu.rt.query_event_status(e)) == ((0, 0), (1, 0))
    assert npu.rt.reset_event(e, s) == 0
    assert (npu.rt.query_event(e), npu.rt.query_event_status(e)) == ((1, 0), (0, 0))
    assert npu.rt.stream_wait_event(s, e) == 107000
    assert npu.rt.synchronize_event(e) == 507000, "nothing to wait for"


def test_elapsed_time(npu):
    npu.configure(clock="wall")
    s = npu.open()
    a, b = npu.event(), npu.event()
    assert npu.rt.event_elapsed_time(a, b) == (0.0, 507000)
    assert npu.rt.record_event(a, s) == 0
    npu.push(s, lambda: time.sleep(0.002))
    assert npu.rt.record_event(b, s) == 0
    assert npu.rt.synchronize_stream(s) == 0
    forward, ret = npu.rt.event_elapsed_time(a, b)
    assert ret == 0
    assert forward >= 2
    assert npu.rt.event_elapsed_time(b, a) == (-forward, 0), "no check of the order"
    first, second = npu.rt.event_get_timestamp(a)[0], npu.rt.event_get_timestamp(b)[0]
    assert 0 < first < second
    assert abs((second - first) / 1000 - forward) < 0.01
    stop = npu.gate()
    npu.push(s, lambda: stop.wait(30))
    assert npu.rt.record_event(b, s) == 0
    assert npu.rt.event_elapsed_time(a, b) == (0.0, 107006), "recorded again, and not there yet"


def test_destroying_an_event_does_not_wait(npu):
    npu.configure(schedule="lazy")
    s, t = npu.open(), npu.stream()
    e = npu.event()
    seen: list[str] = []
    npu.push(s, lambda: seen.append("s"))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == npu.rt.destroy_event(e) == 0
    assert seen == []
    npu.push(t, lambda: seen.append("t"))
    assert npu.rt.synchronize_stream(t) == 0, "what is queued keeps what it needs"
    assert seen == ["s", "t"]
    for call in (
        lambda: npu.rt.record_event(e, s),
        lambda: npu.rt.stream_wait_event(s, e),
        lambda: npu.rt.query_event_status(e)[1],
        lambda: npu.rt.synchronize_event(e),
        lambda: npu.rt.event_elapsed_time(e, e)[1],
        lambda: npu.rt.destroy_event(e),
    ):
        assert call() == 107017
        assert "destroyed" in npu.message()


def test_as_many_events_as_the_product_has(npu):
    npu.configure(soc="Ascend310P3")
    npu.open()
    events = [npu.event() for _ in range(1023)]
    assert npu.rt.create_event() == (0, 207007)
    assert npu.rt.destroy_event(events[0]) == 0
    npu.event()


def test_waits_across_devices(any_schedule):
    npu = any_schedule
    s = npu.open(0)
    e = npu.event()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(0))
    assert npu.rt.record_event(e, s) == 0
    t = npu.open(1)
    assert npu.rt.stream_wait_event(t, e) == 0
    npu.push(t, lambda: seen.append(1))
    assert npu.rt.synchronize_stream(t) == 0
    assert seen == [0, 1]


@pytest.mark.parametrize("schedule_name", ["async", "lazy", "eager", "shuffle:1"])
def test_a_device_side_wait_with_a_limit(npu, schedule_name):
    npu.configure(schedule=schedule_name)
    s = npu.open()
    e, _ = npu.rt.create_event_with_flag(SYNC)
    seen: list[int] = []
    assert npu.rt.stream_wait_event_with_timeout(s, e, -1) == 107000
    assert npu.rt.set_op_wait_timeout(1) == 0
    assert npu.rt.stream_wait_event(s, e) == 0
    assert npu.rt.set_op_wait_timeout(0) == 0
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.synchronize_stream(s) == 107019
    assert "longer than" in npu.message()
    assert seen == [1], "the stream goes on"


DEADLOCKS = ["never recorded", "a circle", "destroyed", "own later record"]


def queue_deadlock(npu, kind: str) -> tuple[int, str]:
    """A stream that can never end, and a word of the message."""
    s, t = npu.open(), npu.stream()
    e, _ = npu.rt.create_event_with_flag(SYNC)
    assert npu.rt.stream_wait_event(s, e) == 0
    if kind == "a circle":
        f = npu.event()
        assert npu.rt.record_event(f, s) == npu.rt.stream_wait_event(t, f) == npu.rt.record_event(e, t) == 0
        return s, "circle"
    if kind == "destroyed":
        assert npu.rt.destroy_event(e) == 0
        return s, "destroyed"
    if kind == "own later record":
        assert npu.rt.record_event(e, s) == 0
        return s, "circle"
    return s, "nothing queued records"


@pytest.mark.parametrize("kind", DEADLOCKS)
def test_a_deadlock_is_reported_and_not_slept_through(any_schedule, kind):
    npu = any_schedule
    s, word = queue_deadlock(npu, kind)
    npu.push(s, lambda: None)
    assert npu.rt.synchronize_stream(s) == 507046
    assert word in npu.message()
    assert npu.rt.synchronize_device() == 507046
    e = npu.event()
    assert npu.rt.record_event(e, s) == 0
    assert npu.rt.synchronize_event(e) == 507046
    assert npu.rt.synchronize_stream_with_timeout(s, 5) == 507046
    assert npu.rt.destroy_stream(s) == 0, "it can be destroyed all the same"
    assert npu.rt.reset_device(0) == 0


def test_a_sure_deadlock_is_reported_beside_other_threads(npu):
    s, word = queue_deadlock(npu, "a circle")
    stop = threading.Event()
    other = threading.Thread(target=stop.wait, args=(30,))
    other.start()
    try:
        assert npu.rt.synchronize_stream(s) == 507046
        assert word in npu.message()
    finally:
        stop.set()
        other.join()


def test_what_another_thread_might_free_is_waited_for_until_the_limit(npu, monkeypatch):
    monkeypatch.setattr(schedule, "DEADLOCK_LIMIT_S", 0.3)
    s, _ = queue_deadlock(npu, "never recorded")
    stop = threading.Event()
    other = threading.Thread(target=stop.wait, args=(30,))
    other.start()
    try:
        before = time.monotonic()
        assert npu.rt.synchronize_stream(s) == 507046
        assert time.monotonic() - before >= 0.3
    finally:
        stop.set()
        other.join()


def test_a_long_chain_of_waits(any_schedule):
    """Each stream waits for the one before: no recursion, no quadratic search."""
    npu = any_schedule
    streams = [npu.open(), *(npu.stream() for _ in range(300))]
    gate, _ = npu.rt.create_event_with_flag(SYNC)
    seen: list[int] = []
    assert npu.rt.stream_wait_event(streams[0], gate) == 0
    for n, (first, second) in enumerate(itertools.pairwise(streams)):
        npu.push(first, lambda n=n: seen.append(n))
        e = npu.event()
        assert npu.rt.record_event(e, first) == npu.rt.stream_wait_event(second, e) == 0
    other = npu.stream()
    assert npu.rt.record_event(gate, other) == 0
    assert npu.rt.synchronize_stream(streams[-1]) == 0
    assert seen == list(range(300))


def test_events_end_with_their_context(npu):
    npu.open()
    e = npu.event()
    assert npu.rt.reset_device(0) == 0
    npu.open()
    assert npu.rt.record_event(e, 0) == 107017
    assert npu.rt.destroy_event(e) == 107017
    mine = device.get(0)
    assert mine is not None
    assert mine.event_count == 0
