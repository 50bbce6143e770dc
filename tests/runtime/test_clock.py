"""Simulated time on the card: what events report, and what moves the clocks."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import emu
from emu.model import copy_ns, rates, step_cost
from emu.model.calibration import steps_of
from emu.runtime import clock
from emu.soc import profile
from emu.types import MemcpyKind

N = 1 << 20
SOC = "Ascend910B1"
SCHEDULES = ("eager", "async", "lazy", "shuffle:1", "shuffle:2")


def cost_of(op: str, n: int = N) -> int:
    _, (step,) = steps_of(op, (n,), "FLOAT", SOC)
    return step_cost(step, profile(SOC)).ns


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_launches_on_one_stream_add_up(card, schedule):
    c = card(schedule=schedule)
    s, x, y = c.stream(), c.tensor(N), c.tensor(N)
    a, b = c.event(), c.event()
    assert c.rt.record_event(a, s) == 0
    for _ in range(3):
        c.launch("aclnnExp", s, x, y)
    c.launch("aclnnInplaceSigmoid", s, y)
    assert c.rt.record_event(b, s) == 0
    assert c.rt.synchronize_stream(s) == 0
    assert c.elapsed(a, b) * 1e6 == pytest.approx(3 * cost_of("exp") + cost_of("inplace_sigmoid"), abs=0.5)
    assert c.elapsed(b, a) == -c.elapsed(a, b)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_streams_overlap_and_waits_join(card, schedule):
    c = card(schedule=schedule)
    s, t = c.stream(), c.stream()
    x, y, z = c.tensor(N), c.tensor(N), c.tensor(4 * N)
    start, mid, end_s, end_t = (c.event() for _ in range(4))
    assert c.rt.record_event(start, s) == 0
    c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(mid, s) == 0
    c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(end_s, s) == 0
    assert c.rt.stream_wait_event(t, mid) == 0
    c.launch("aclnnInplaceExp", t, z)
    assert c.rt.record_event(end_t, t) == 0
    assert c.rt.synchronize_device() == 0
    small, big = cost_of("exp"), cost_of("inplace_exp", 4 * N)
    assert c.elapsed(start, end_s) * 1e6 == pytest.approx(2 * small, abs=0.5)
    assert c.elapsed(start, end_t) * 1e6 == pytest.approx(small + big, abs=0.5), "t began when the first launch was over, beside the second"


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_wait_for_a_complete_record_still_joins(card, schedule):
    c = card(schedule=schedule)
    s, t, x, y = c.stream(), c.stream(), c.tensor(N), c.tensor(N)
    before, done, after = c.event(), c.event(), c.event()
    assert c.rt.record_event(before, t) == 0
    c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(done, s) == 0
    if schedule == "eager":
        assert c.rt.query_event_status(done) == (1, 0), "by now the record is complete"
    assert c.rt.stream_wait_event(t, done) == 0
    assert c.rt.record_event(after, t) == 0
    assert c.rt.synchronize_stream(t) == 0
    assert c.elapsed(before, after) * 1e6 == pytest.approx(cost_of("exp"), abs=0.5)


def test_a_synchronised_host_issues_later(card):
    c = card()
    s, t, x, y = c.stream(), c.stream(), c.tensor(N), c.tensor(N)
    a, b = c.event(), c.event()
    assert c.rt.record_event(a, s) == 0
    c.launch("aclnnExp", s, x, y)
    assert c.rt.synchronize_stream(s) == 0
    assert c.rt.record_event(b, t) == 0
    assert c.rt.synchronize_stream(t) == 0
    assert c.elapsed(a, b) * 1e6 == pytest.approx(cost_of("exp"), abs=0.5), "stream t was free, but the host had waited"


@pytest.mark.parametrize(("host", "ns"), [("none", 0), ("cpp", 37_000), ("python", 135_000), ("12.5", 12_500)])
def test_host_issue_time_is_a_term_of_its_own(card, host, ns):
    c = card(host=host)
    s, x, y = c.stream(), c.tensor(N), c.tensor(N)
    a, b = c.event(), c.event()
    assert c.rt.record_event(a, s) == 0
    for _ in range(5):
        c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(b, s) == 0
    assert c.rt.synchronize_stream(s) == 0
    exp = cost_of("exp")
    # The device waits for the host, or the host runs ahead of the device.
    assert c.elapsed(a, b) * 1e6 == pytest.approx(max(5 * ns + exp, ns + 5 * exp), abs=0.5)


def test_copies_and_fills_take_time(card):
    c = card()
    s = c.stream()
    p, q = c.malloc(4 * N), c.malloc(4 * N)
    host, ret = c.rt.malloc_host(4 * N)
    assert ret == 0
    r = rates(profile(SOC))
    marks = [c.event() for _ in range(5)]
    for k, enqueue in enumerate(
        (
            lambda: c.rt.memcpy_async(p, 4 * N, host, 4 * N, MemcpyKind.HOST_TO_DEVICE, s),
            lambda: c.rt.memcpy_async(q, 4 * N, p, 4 * N, MemcpyKind.DEVICE_TO_DEVICE, s),
            lambda: c.rt.memset_async(q, 4 * N, 0, 4 * N, s),
        )
    ):
        assert c.rt.record_event(marks[k], s) == 0
        assert enqueue() == 0
    assert c.rt.record_event(marks[3], s) == 0
    assert c.rt.synchronize_stream(s) == 0
    took = [round(c.elapsed(marks[k], marks[k + 1]) * 1e6) for k in range(3)]
    assert took == [copy_ns(4 * N, "link", r), copy_ns(4 * N, "device", r), copy_ns(4 * N, "fill", r)]
    assert took[0] > took[1] > took[2], "the host link is slower than the device's own memory; a fill reads nothing"
    before = clock.host.ns
    c.write(p, np.zeros(N, np.float32))
    assert clock.host.ns - before == copy_ns(4 * N, "link", r), "a blocking copy keeps the host busy"
    assert c.rt.free_host(host) == 0


def test_wall_clock(card):
    c = card(clock="wall")
    s, x, y = c.stream(), c.tensor(N), c.tensor(N)
    a, b = c.event(), c.event()
    assert c.rt.record_event(a, s) == 0
    c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(b, s) == 0
    assert c.rt.synchronize_stream(s) == 0
    from emu.runtime import handles
    from emu.runtime.event import Event

    first, second = (handles.lookup(e, Event).record for e in (a, b))
    assert c.elapsed(a, b) == (second.wall_ns - first.wall_ns) / 1e6
    assert second.sim_ns - first.sim_ns == cost_of("exp"), "both clocks are kept in every record"
    stamps = [c.rt.event_get_timestamp(e)[0] for e in (a, b)]
    assert stamps[1] - stamps[0] == pytest.approx((second.wall_ns - first.wall_ns) / 1000, abs=1)


def test_time_stamps_count_from_the_device_start(card):
    c = card()
    s, x, y, e = c.stream(), c.tensor(N), c.tensor(N), c.event()
    c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(e, s) == 0
    assert c.rt.synchronize_stream(s) == 0
    assert c.rt.event_get_timestamp(e) == (cost_of("exp") // 1000, 0)


@pytest.mark.parametrize("settings", [{"clock": "wall"}, {"host": "python"}, {"host": "0.001", "schedule": "lazy"}])
def test_results_do_not_depend_on_the_clock(card, settings):
    x = np.random.default_rng(5).standard_normal(4096).astype(np.float32)
    results = []
    for changes in ({}, settings):
        c = card(**{"clock": "simulated", "host": "none", "schedule": "async", **changes})
        s, p = c.stream(), c.malloc(x.nbytes)
        c.write(p, x)
        c.launch("aclnnInplaceSigmoid", s, c.tensor(4096, p))
        assert c.rt.synchronize_stream(s) == 0
        out = np.empty_like(x)
        assert c.rt.memcpy(out.ctypes.data, out.nbytes, p, out.nbytes, MemcpyKind.DEVICE_TO_HOST) == 0
        results.append(out.tobytes())
    assert results[0] == results[1]


def test_host_functions_pass_the_time_on(card):
    c = card()
    s, x, y = c.stream(), c.tensor(N), c.tensor(N)
    seen: list[int] = []
    before = clock.host.ns
    c.launch("aclnnExp", s, x, y)
    from emu.acl import rt

    assert rt.launch_host_func(s, lambda _: seen.append(clock.host.ns), None) == 0
    assert c.rt.synchronize_stream(s) == 0
    assert seen == [before + cost_of("exp")], "it runs when the stream has come to it"


def test_a_new_thread_is_no_earlier_than_the_device(card):
    clock.host.ns += 5_000
    c = card()
    ctx, ret = c.rt.get_context()
    assert ret == 0
    seen: list[int] = []

    def work() -> None:
        assert c.rt.set_context(ctx) == 0
        seen.append(clock.host.ns)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0] >= 5_000


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"clock": "real"}, "clock must be"),
        ({"host": "perl"}, "host must be"),
        ({"host": "-1"}, "host must be"),
        ({"host": [3]}, "host must be str"),
    ],
)
def test_wrong_settings_are_refused(changes, text):
    with pytest.raises(ValueError, match=text):
        emu.configure(**changes)


def test_a_flow_that_cannot_be_counted_runs_all_the_same(card, monkeypatch, capfd):
    from emu_kernels import counting

    from emu.plan import bind

    def refuse(*args, **named):
        raise counting.CountError("exp FLOAT on dav_2201: it does something new")

    c = card()
    s, x = c.stream(), c.tensor(321)
    bound = bind("aclnnInplaceExp", SOC)
    monkeypatch.setattr(counting, "work", refuse)
    monkeypatch.setattr(bound, "costs", {})
    monkeypatch.setattr(bound, "plain", {})
    monkeypatch.setattr(clock, "_said", set())
    a, b = c.event(), c.event()
    assert c.rt.record_event(a, s) == 0
    for _ in range(2):
        c.launch("aclnnInplaceExp", s, x)
    assert c.rt.record_event(b, s) == 0
    assert c.rt.synchronize_stream(s) == 0
    assert c.elapsed(a, b) == 0
    said = capfd.readouterr().err
    assert said.count("emu: no simulated time for aclnnInplaceExp: exp FLOAT on dav_2201: it does something new") == 1
