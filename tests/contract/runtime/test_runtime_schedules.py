"""The schedules: the same results, each in its own order."""

from __future__ import annotations

import random
import threading
import time

import numpy as np
import pytest

import emu
from emu.runtime import device, schedule
from emu.runtime.gates import Gate
from emu.runtime.stream import Stream


def program(npu, seed: int) -> bytes:
    """A random program over four streams whose order is fixed by its events; returns what it computed."""
    rng = random.Random(seed)
    streams = [npu.open(), *(npu.stream() for _ in range(3))]
    cells = npu.malloc(16 * 8)
    assert npu.rt.memset(cells, 128, 0, 128) == 0
    mem = device.machine().devices[0].memory
    view = np.frombuffer((np.ctypeslib.ctypes.c_char * 128).from_address(cells + mem.delta), np.int64)
    last: dict[int, int] = {}  # cell -> event of its latest use

    def use(stream: int, cell: int) -> None:
        if cell in last:
            assert npu.rt.stream_wait_event(stream, last[cell]) == 0

    for step in range(200):
        stream = rng.choice(streams)
        target, source = rng.sample(range(16), 2)
        use(stream, target)
        use(stream, source)

        def task(target: int = target, source: int = source, step: int = step) -> None:
            view[target] = (int(view[target]) * 31 + int(view[source]) + step) % (1 << 40)

        npu.push(stream, task, work=rng.choice([100, 100_000]))
        event = npu.event()
        assert npu.rt.record_event(event, stream) == 0
        last[target] = last[source] = event
        if rng.random() < 0.05:
            assert npu.rt.synchronize_stream(rng.choice(streams)) == 0
    assert npu.rt.synchronize_device() == 0
    result = npu.get(cells, 128)
    assert npu.rt.reset_device(0) == 0
    return result


@pytest.mark.parametrize("seed", range(3))
def test_the_same_result_under_each_schedule(npu, seed):
    results = set()
    for mode in ("eager", "async", "lazy", "shuffle:1", "shuffle:2", "shuffle:3"):
        npu.configure(schedule=mode)
        results.add(program(npu, seed))
    assert len(results) == 1
    assert results.pop() != bytes(128)


def order(npu, schedule: str) -> list[tuple[int, int]]:
    """The order in which the tasks of three independent streams run."""
    npu.configure(schedule=schedule)
    streams = [npu.open(), npu.stream(), npu.stream()]
    seen: list[tuple[int, int]] = []
    for n in range(20):
        for k, stream in enumerate(streams):
            npu.push(stream, lambda k=k, n=n: seen.append((k, n)))
    assert npu.rt.synchronize_device() == 0
    assert npu.rt.reset_device(0) == 0
    return seen


def test_eager_runs_at_enqueue(npu):
    assert order(npu, "eager") == [(k, n) for n in range(20) for k in range(3)]
    s = npu.open()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(1))
    assert seen == [1]


def test_lazy_runs_nothing_before_it_must(npu):
    npu.configure(schedule="lazy")
    s, t = npu.open(), npu.stream()
    seen: list[str] = []
    d = npu.put(b"a")
    npu.push(s, lambda: seen.append("s1"))
    npu.push(t, lambda: seen.append("t1"))
    e = npu.event()
    assert npu.rt.record_event(e, t) == npu.rt.stream_wait_event(s, e) == 0
    npu.push(t, lambda: seen.append("t2"))
    npu.push(s, lambda: seen.append("s2"))
    assert npu.get(d, 1) == b"a", "a synchronous copy waits for no stream"
    assert seen == []
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == ["s1", "t1", "s2"], "t only as far as s waits for it"
    assert npu.rt.synchronize_device() == 0
    assert seen == ["s1", "t1", "s2", "t2"]


def test_a_missing_wait_shows_under_lazy(npu):
    """The consumer's stream does not wait for the producer's: lazy makes the mistake visible each time."""
    npu.configure(schedule="lazy")
    producer, consumer = npu.open(), npu.stream()
    d = npu.put(b"old")
    pinned, _ = npu.rt.malloc_host(3)
    assert npu.rt.memset_async(d, 3, ord("n"), 3, producer) == 0
    assert npu.rt.memcpy_async(pinned, 3, d, 3, 2, consumer) == npu.rt.synchronize_stream(consumer) == 0
    assert npu.acl.util.ptr_to_bytes(pinned, 3) == b"old"


def test_shuffle_is_legal_varied_and_replayable(npu):
    orders = [order(npu, f"shuffle:{seed}") for seed in range(6)]
    for seen in orders:
        assert sorted(seen) == [(k, n) for k in range(3) for n in range(20)]
        for k in range(3):
            assert [n for stream, n in seen if stream == k] == list(range(20))
    assert len({tuple(seen) for seen in orders}) >= 5
    assert [order(npu, f"shuffle:{seed}") for seed in range(6)] == orders
    assert order(npu, "shuffle:5") == orders[5], "the same machine, opened again"


def test_timed_waits_make_progress_under_every_schedule(any_schedule):
    npu = any_schedule
    s, t = npu.open(), npu.stream()
    e = npu.event()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(1))
    assert npu.rt.record_event(e, s) == npu.rt.stream_wait_event(t, e) == 0
    npu.push(t, lambda: seen.append(2))
    assert npu.rt.synchronize_stream_with_timeout(t, 30_000) == 0
    assert seen == [1, 2]


def test_async_runs_small_work_without_being_asked(npu):
    s = npu.open()
    done = npu.gate()
    npu.push(s, done.set, work=10)
    assert done.wait(30)


def test_async_wakes_again_after_a_long_sleep(npu, monkeypatch):
    monkeypatch.setattr(schedule, "POLLS_BEFORE_SLEEP", 2)
    s = npu.open()
    mode = device.machine().schedule
    for _ in range(3):
        done = npu.gate()
        npu.push(s, done.set, work=10)
        assert done.wait(30)
        while not mode.asleep:
            pass


def test_the_schedule_cannot_change_while_a_device_is_open(npu):
    npu.open()
    assert npu.acl.init() == 0
    with pytest.raises(emu.AclError, match="device 0 is open"):
        npu.configure(schedule="lazy")
    npu.configure()
    assert npu.rt.reset_device(0) == 0
    npu.configure(schedule="lazy")
    assert npu.rt.set_device(0) == 0
    with pytest.raises(emu.AclError):
        npu.configure(soc="Ascend310P3")
    npu.acl.finalize()
    npu.configure(soc="Ascend310P3")
    assert npu.rt.get_soc_name() == "Ascend310P3"
    assert npu.rt.set_device(0) == 0
    assert npu.rt.get_mem_info(1)[1] == 24_000_000_000


def test_waiting_threads_sleep(npu, monkeypatch):
    """Two threads that wait for a blocked stream do not keep each other awake."""
    looks = [0]
    original = schedule.Schedule.help

    def counted(self: schedule.Schedule, stream: Stream, goal: Gate) -> bool:
        looks[0] += 1
        return original(self, stream, goal)

    monkeypatch.setattr(schedule.Schedule, "help", counted)
    s = npu.open()
    ctx, _ = npu.rt.get_context()
    stop = npu.gate()
    assert npu.rt.launch_host_func(s, lambda _: stop.wait(30), 0) == 0
    codes: list[int] = []
    threads = [threading.Thread(target=lambda: codes.append(npu.rt.set_context(ctx) or npu.rt.synchronize_stream(s))) for _ in range(2)]
    for thread in threads:
        thread.start()
    while looks[0] < 10:
        time.sleep(0.01)
    began = looks[0]
    time.sleep(0.2)
    looked = looks[0] - began
    stop.set()
    for thread in threads:
        thread.join(30)
    assert codes == [0, 0]
    assert looked < 1000, "some ten are due in this time, a thread that does not sleep makes tens of thousands"
