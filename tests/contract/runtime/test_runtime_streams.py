"""Streams, contexts, asynchronous faults."""

from __future__ import annotations

import threading

import pytest

import emu
from emu.runtime import context
from emu.soc import profile


def test_tasks_run_once_and_in_order(any_schedule):
    npu = any_schedule
    s = npu.open()
    seen: list[int] = []
    for n in range(500):
        npu.push(s, lambda n=n: seen.append(n))
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == list(range(500))


def test_each_synchronisation_waits(any_schedule):
    npu = any_schedule
    s = npu.open()
    t = npu.stream()
    e = npu.event()
    seen: list[int] = []
    waits = [
        lambda: npu.rt.synchronize_stream(s),
        lambda: npu.rt.synchronize_stream_with_timeout(s, -1),
        lambda: npu.rt.synchronize_stream_with_timeout(s, 60_000),
        lambda: npu.rt.synchronize_device(),
        lambda: npu.rt.synchronize_device_with_timeout(60_000),
        lambda: npu.rt.record_event(e, s) or npu.rt.synchronize_event(e),
        lambda: npu.rt.record_event(e, s) or npu.rt.synchronize_event_with_timeout(e, 60_000),
        lambda: npu.rt.record_event(e, s) or npu.rt.stream_wait_event(t, e) or npu.rt.synchronize_stream(t),
    ]
    for n, wait in enumerate(waits):
        npu.push(s, lambda n=n: seen.append(n))
        assert wait() == 0
        assert seen == list(range(n + 1))
    npu.push(s, lambda: seen.append(-1))
    assert npu.rt.destroy_stream(s) == 0
    assert seen[-1] == -1, "destroying waits"


def test_a_query_says_complete_only_after_the_last_task_has_ended(npu):
    s = npu.open()
    started, stop = threading.Event(), npu.gate()
    npu.push(s, lambda: (started.set(), stop.wait(30)), work=10**9)
    assert started.wait(30)
    assert npu.rt.stream_query(s) == (1, 0), "its last task is running"
    stop.set()
    while npu.rt.stream_query(s) == (1, 0):
        pass
    assert npu.rt.stream_query(s) == (0, 0)


@pytest.mark.parametrize("schedule", ["eager", "async", "lazy", "shuffle:3"])
def test_polling_gets_there(npu, schedule):
    npu.configure(schedule=schedule)
    s = npu.open()
    t = npu.stream()
    e = npu.event()
    seen: list[int] = []
    for n in range(5):
        npu.push(s, lambda n=n: seen.append(n))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == 0
    npu.push(t, lambda: seen.append(9))
    while npu.rt.query_event_status(e) == (0, 0):
        pass
    assert seen[:5] == [0, 1, 2, 3, 4]
    while npu.rt.stream_query(t) == (1, 0):
        pass
    assert seen == [0, 1, 2, 3, 4, 9]
    assert npu.rt.query_event_wait_status(e) == (0, 0)


def test_flags_priority_and_number(npu):
    npu.open()
    assert npu.rt.device_get_stream_priority_range() == (7, 0, 0)
    s, ret = npu.rt.create_stream_with_config(99, 0x3)
    assert ret == 0
    assert npu.rt.stream_get_priority(s) == (7, 0)
    assert npu.rt.stream_get_flags(s) == (3, 0)
    assert npu.rt.stream_get_id(s)[0] > npu.rt.stream_get_id(0)[0]
    config = npu.rt.create_stream_config_handle()
    assert [npu.rt.set_stream_config_opt(config, 2, 1), npu.rt.set_stream_config_opt(config, 3, 5)] == [0, 0]
    t, ret = npu.rt.create_stream_v2(config)
    assert (ret, npu.rt.stream_get_flags(t)[0], npu.rt.stream_get_priority(t)[0]) == (0, 1, 5)
    assert npu.rt.set_stream_config_opt(config, 4, 0) == 100000
    assert [npu.rt.destroy_stream_config_handle(config), npu.rt.destroy_stream_config_handle(config)] == [0, 100000]
    assert npu.rt.create_stream_v2(config) == (0, 100000)


@pytest.mark.parametrize("flag", [0x4, 0x10, 0x20])
def test_streams_that_the_host_never_waits_for(npu, flag):
    npu.open()
    s, _ = npu.rt.create_stream_with_config(0, flag)
    stop = npu.gate()
    npu.push(s, lambda: stop.wait(30), work=10**9)
    assert npu.rt.synchronize_stream(s) == 0
    assert npu.rt.synchronize_stream_with_timeout(s, 60_000) == 0
    assert npu.rt.synchronize_device() == 0
    assert npu.rt.stream_query(s) == (1, 0)


@pytest.mark.parametrize("soc", ["Ascend910B1", "Ascend310B1", "Ascend310P3", "Ascend910A"])
def test_as_many_streams_as_the_product_has(npu, soc):
    npu.configure(soc=soc)
    assert npu.rt.set_device(0) == 0
    limit = profile(soc).max_streams
    assert npu.rt.get_stream_available_num() == (limit, 0)
    streams = [npu.stream() for _ in range(limit)]
    assert npu.rt.get_stream_available_num() == (0, 0)
    assert npu.rt.create_stream() == (0, 207008)
    assert npu.rt.destroy_stream(streams[0]) == 0
    npu.stream()


def test_handles_are_never_reused(npu):
    npu.open()
    first = npu.stream()
    assert npu.rt.destroy_stream(first) == 0
    later = [npu.stream() for _ in range(50)]
    assert first not in later
    assert npu.rt.stream_query(first)[1] == npu.rt.record_event(npu.event(), first) == 107017


def test_the_default_stream_cannot_be_destroyed(npu):
    npu.open()
    default, ret = npu.rt.ctx_get_current_default_stream()
    assert ret == 0
    assert npu.rt.destroy_stream(default) == npu.rt.destroy_stream_force(default) == 107000
    assert npu.rt.set_stream_failure_mode(default, 1) == 107000
    assert npu.rt.synchronize_stream(default) == 0


def test_an_abort_drops_what_is_queued(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    t = npu.stream()
    e = npu.event()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == 0
    npu.push(t, lambda: seen.append(2))
    assert npu.rt.stream_abort(s) == 0
    assert npu.rt.stream_query(s) == (0, 0)
    assert npu.rt.synchronize_stream(s) == npu.rt.synchronize_stream(s) == 107023
    assert npu.rt.synchronize_event(e) == 107023
    assert npu.rt.synchronize_stream(t) == 0, "a wait for a dropped record does not hang"
    assert seen == [2]
    assert npu.rt.stream_abort(0) == 100000


def test_destroying_by_force_drops(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.destroy_stream_force(s) == 0
    assert npu.rt.synchronize_device() == 0
    assert seen == []


def boom() -> None:
    raise ValueError("boom")


def test_a_fault_is_sticky_until_the_device_is_reset(any_schedule):
    npu = any_schedule
    s = npu.open()
    t = npu.stream()
    e = npu.event()
    seen: list[int] = []
    assert npu.rt.set_device(0) == 0
    npu.push(s, boom)
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.record_event(e, s) == 0
    assert npu.rt.synchronize_stream(s) == 507000
    assert "boom" in npu.message()
    assert seen == [1], "later tasks still run"
    waits = [
        lambda: npu.rt.synchronize_stream(t),
        lambda: npu.rt.synchronize_stream_with_timeout(t, 1000),
        lambda: npu.rt.synchronize_device(),
        lambda: npu.rt.synchronize_device_with_timeout(1000),
        lambda: npu.rt.synchronize_event(e),
    ]
    for wait in waits:
        assert wait() == 507000
        assert "boom" in npu.message()
    assert npu.rt.query_device_status(0) == (1, 0)
    assert npu.rt.reset_device(0) == 0
    assert npu.rt.synchronize_stream(t) == 507000, "the count is not zero yet"
    assert npu.rt.reset_device(0) == 0
    t = npu.open()
    assert npu.rt.synchronize_stream(t) == 0
    assert npu.rt.query_device_status(0) == (0, 0)


def test_a_fault_with_a_code_of_its_own(npu):
    s = npu.open()

    def fail() -> None:
        raise emu.AclError(507035, "operand out at 0x10")

    npu.push(s, fail)
    assert npu.rt.synchronize_stream(s) == 507035
    assert "operand out" in npu.message()


def test_faults_stay_in_their_context(npu):
    s = npu.open(0)
    npu.push(s, boom)
    assert npu.rt.synchronize_stream(s) == 507000
    ctx, _ = npu.rt.create_context(0)
    assert npu.rt.synchronize_device() == 0, "another context of the same device"
    own = npu.stream()
    npu.push(own, boom)
    assert npu.rt.synchronize_stream(own) == 507000
    npu.open(1)
    assert npu.rt.synchronize_device() == 0
    assert npu.rt.reset_device(0) == 0
    assert npu.rt.set_context(ctx) == 0
    assert npu.rt.synchronize_stream(own) == 0, "the reset cleared explicit contexts, too"


def test_stop_on_failure(any_schedule):
    npu = any_schedule
    s = npu.open()
    t = npu.stream()
    seen: list[int] = []
    assert npu.rt.set_stream_failure_mode(s, 2) == 107000
    assert npu.rt.set_stream_failure_mode(s, 1) == 0
    assert npu.rt.set_stream_failure_mode(s, 0) == 107000, "once per stream"
    npu.push(s, boom)
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.synchronize_stream(s) == 507000
    npu.push(t, lambda: seen.append(2))
    assert npu.rt.synchronize_stream(t) == 507000
    assert seen == [], "every stream of the context stops"


def test_attributes(npu):
    s = npu.open()
    assert npu.rt.get_stream_attribute(s, 3) == (0, 0)
    assert [npu.rt.set_stream_attribute(s, 3, 77), npu.rt.set_stream_attribute(s, 5, 50)] == [0, 0]
    assert npu.rt.get_stream_attribute(s, 3) == (77, 0)
    assert npu.rt.get_stream_attribute(s, 5) == npu.rt.stream_get_priority(s) == (7, 0)
    assert npu.rt.set_stream_attribute(s, 1, 1) == 0
    assert npu.rt.set_stream_attribute(s, 1, 1) == 107000
    assert npu.rt.set_stream_attribute(s, 6, 0) == npu.rt.get_stream_attribute(s, 0)[1] == 100000


def test_two_threads_with_a_stream_each(any_schedule):
    npu = any_schedule
    npu.open()
    ctx, _ = npu.rt.get_context()
    problems: list[object] = []

    def work(number: int) -> None:
        npu.rt.set_context(ctx)
        s = npu.stream()
        seen: list[int] = []
        for n in range(300):
            npu.push(s, lambda n=n: seen.append(n), work=n * 1000)
            if n % 7 == 0 and npu.rt.synchronize_stream(s) != 0:
                problems.append(npu.message())
        if npu.rt.destroy_stream(s) or seen != list(range(300)):
            problems.append((number, seen))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert problems == []


def test_two_threads_on_one_stream(any_schedule):
    npu = any_schedule
    s = npu.open()
    ctx, _ = npu.rt.get_context()
    seen: list[tuple[int, int]] = []

    def work(number: int) -> None:
        npu.rt.set_context(ctx)
        for n in range(500):
            npu.push(s, lambda n=n: seen.append((number, n)))
            if n % 50 == 0:
                npu.rt.synchronize_stream(s)
        npu.rt.synchronize_stream(s)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert npu.rt.synchronize_stream(s) == 0
    assert sorted(seen) == [(t, n) for t in range(2) for n in range(500)]
    for number in range(2):
        assert [n for t, n in seen if t == number] == list(range(500)), "each thread's own order holds"


def test_a_private_device_for_the_array_face(npu):
    from emu.runtime import device

    ctx = device.private(profile("Ascend950PR_9599"))
    npu.open()
    with context.use(ctx):
        ptr = npu.put(b"private")
        assert npu.get(ptr, 7) == b"private"
    assert npu.rt.get_device() == (0, 0)
    assert npu.rt.reset_device(0) == 0
    npu.configure(devices=4)  # it does not count as open
    ctx.device.close()
