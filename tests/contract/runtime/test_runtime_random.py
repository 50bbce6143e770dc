"""Random legal programs: a state machine in one thread, and two host threads with a stream each."""

from __future__ import annotations

import ctypes
import random
import threading
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, initialize, invariant, precondition, rule

import emu
from emu import acl
from emu.runtime import context, handles
from emu.runtime.stream import Stream

rt = acl.rt
CELL = 64


class Bump:
    """Adds 1 to every byte of device memory."""

    work = 1000
    name = "bump"

    def __init__(self, real: int) -> None:
        self.real = real

    def run(self) -> None:
        view = np.frombuffer((ctypes.c_char * CELL).from_address(self.real), np.uint8)
        view += 1


class StreamsEventsCopies(RuleBasedStateMachine):
    """Every stream has a block of its own, so that the model needs no order between streams except through events.

    The model of a block is what it holds when everything queued so far has run. Reading it needs a synchronisation; each kind is a rule.
    """

    schedule = "async"
    streams = Bundle("streams")
    events = Bundle("events")

    def __init__(self) -> None:
        super().__init__()
        self.before = emu.configure().schedule
        emu.configure(schedule=self.schedule)
        assert rt.set_device(0) == 0
        self.block: dict[int, int] = {}
        self.model: dict[int, int] = {}
        #: event -> stream of its latest record
        self.recorded: dict[int, int] = {}
        self.out = ctypes.create_string_buffer(CELL)

    @initialize(target=streams)
    def first(self) -> int:
        return self._stream()

    def _stream(self) -> int:
        stream, ret = rt.create_stream()
        assert ret == 0
        self.block[stream], ret = rt.malloc(CELL, 0)
        assert ret == 0
        assert rt.memset(self.block[stream], CELL, 0, CELL) == 0
        self.model[stream] = 0
        return int(stream)

    @rule(target=streams)
    def create(self) -> int:
        return self._stream()

    @rule(target=events, kind=st.sampled_from(["plain", "flag", "ex"]))
    def create_event(self, kind: str) -> int:
        made = {"plain": rt.create_event, "flag": lambda: rt.create_event_with_flag(9), "ex": lambda: rt.create_event_ex_with_flag(9)}
        event, ret = made[kind]()
        assert ret == 0
        return int(event)

    @rule(stream=streams, count=st.integers(1, 5))
    def bump(self, stream: int, count: int) -> None:
        ctx = context.current()
        found = handles.lookup(stream, Stream)
        assert ctx is not None
        assert found is not None
        for _ in range(count):
            found.enqueue(Bump(self.block[stream] + ctx.device.memory.delta))
        self.model[stream] += count

    @rule(stream=streams, value=st.integers(0, 255))
    def fill(self, stream: int, value: int) -> None:
        assert rt.memset_async(self.block[stream], CELL, value, CELL, stream) == 0
        self.model[stream] = value

    @rule(target_stream=streams, source=streams)
    def copy(self, target_stream: int, source: int) -> None:
        """Across streams: an event orders the copy behind the source's work, and the source's next work behind the copy."""
        if target_stream == source:
            return
        for first, second in ((source, target_stream), (target_stream, source)):
            if second == source:
                assert rt.memcpy_async(self.block[target_stream], CELL, self.block[source], CELL, 3, target_stream) == 0
            event, ret = rt.create_event()
            assert ret == 0
            assert rt.record_event(event, first) == rt.stream_wait_event(second, event) == rt.destroy_event(event) == 0
        self.model[target_stream] = self.model[source]

    @rule(stream=streams, event=events)
    def record(self, stream: int, event: int) -> None:
        assert rt.record_event(event, stream) == 0
        self.recorded[event] = stream

    @rule(stream=streams, event=events)
    def wait(self, stream: int, event: int) -> None:
        if event in self.recorded:
            assert rt.stream_wait_event(stream, event) == 0

    @rule(event=consumes(events))
    def destroy_event(self, event: int) -> None:
        assert rt.destroy_event(event) == 0
        assert rt.destroy_event(event) == 107017

    @rule(stream=streams)
    def synchronize_and_read(self, stream: int) -> None:
        assert rt.synchronize_stream(stream) == 0
        assert rt.stream_query(stream) == (0, 0)
        self._read(stream)

    @rule(stream=streams)
    def read_by_a_pageable_copy(self, stream: int) -> None:
        assert rt.memcpy_async(ctypes.addressof(self.out), CELL, self.block[stream], CELL, 2, stream) == 0
        assert self.out.raw == bytes([self.model[stream] % 256]) * CELL

    @rule(event=events)
    def synchronize_event(self, event: int) -> None:
        if event in self.recorded:
            assert rt.synchronize_event(event) == 0
            assert rt.query_event_status(event) == (1, 0)

    @rule()
    def synchronize_device(self) -> None:
        assert rt.synchronize_device() == 0
        for stream in self.block:
            self._read(stream)

    @rule(stream=streams)
    def query(self, stream: int) -> None:
        assert rt.stream_query(stream) in ((0, 0), (1, 0))

    @rule(stream=consumes(streams))
    @precondition(lambda self: len(self.block) > 1)
    def destroy(self, stream: int) -> None:
        assert rt.destroy_stream(stream) == 0
        self._read(stream)
        assert rt.free(self.block.pop(stream)) == 0
        assert rt.synchronize_stream(stream) == 107017

    def _read(self, stream: int) -> None:
        assert rt.memcpy(ctypes.addressof(self.out), CELL, self.block[stream], CELL, 2) == 0
        assert self.out.raw == bytes([self.model[stream] % 256]) * CELL

    @invariant()
    def no_fault(self) -> None:
        ctx = context.current()
        assert ctx is not None
        assert ctx.fault == 0

    def teardown(self) -> None:
        assert rt.synchronize_device() == 0
        for stream in self.block:
            self._read(stream)
        assert rt.reset_device_force(0) == 0
        context.set_current(None)
        acl.get_recent_err_msg()
        emu.configure(schedule=self.before)


@pytest.mark.parametrize("schedule", ["eager", "async", "lazy", "shuffle:11"])
def test_streams_events_and_copies_follow_the_model(schedule):
    machine = type("Machine", (StreamsEventsCopies,), {"schedule": schedule})
    quiet = settings(max_examples=25, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck))
    machine.TestCase.settings = quiet
    machine.TestCase("runTest").runTest()


class Program:
    """A seeded random legal program of one host thread: its own streams, events and blocks, and a model of every block."""

    def __init__(self, seed: int, ctx: int) -> None:
        self.rng = random.Random(seed)
        self.ctx = ctx
        self.problems: list[Any] = []
        self.log: list[str] = []

    def check(self, ok: bool, what: str) -> None:
        if not ok:
            self.problems.append((len(self.log), what, acl.get_recent_err_msg()))

    def run(self, calls: int) -> None:
        try:
            rt.set_context(self.ctx)
            self.setup()
            while len(self.log) < calls and not self.problems:
                action = self.rng.choice(self.actions)
                self.log.append(action.__name__)
                action()
            self.synchronize()
        except Exception as error:  # a thread's exception must not be lost
            self.problems.append((len(self.log), repr(error)))

    def setup(self) -> None:
        self.stream = rt.create_stream()[0]
        self.size = 256
        self.blocks = {rt.malloc(self.size, 0)[0]: bytes(self.size) for _ in range(4)}
        for block in self.blocks:
            rt.memset(block, self.size, 0, self.size)
        self.pinned = rt.malloc_host(self.size)[0]
        self.event = rt.create_event()[0]
        self.recorded = False
        self.out = ctypes.create_string_buffer(self.size)
        self.actions = [self.fill, self.bump, self.copy, self.upload, self.download, self.download_pinned, self.record, self.wait,
                        self.query, self.synchronize, self.reallocate, self.renew_event, self.second_stream]  # fmt: skip

    def pick(self) -> int:
        return self.rng.choice(list(self.blocks))

    def fill(self) -> None:
        block, value = self.pick(), self.rng.randrange(256)
        self.check(rt.memset_async(block, self.size, value, self.size, self.stream) == 0, "memset")
        self.blocks[block] = bytes([value]) * self.size

    def bump(self) -> None:
        block = self.pick()
        ctx, stream = context.current(), handles.lookup(self.stream, Stream)
        assert ctx is not None
        assert stream is not None
        stream.enqueue(Bump(block + ctx.device.memory.delta))
        data = np.frombuffer(self.blocks[block], np.uint8).copy()
        data[:CELL] += 1
        self.blocks[block] = data.tobytes()

    def copy(self) -> None:
        dst, src = self.pick(), self.pick()
        self.check(rt.memcpy_async(dst, self.size, src, self.size, 3, self.stream) == 0, "copy")
        self.blocks[dst] = self.blocks[src]

    def upload(self) -> None:
        block, data = self.pick(), self.rng.randbytes(self.size)
        self.check(rt.memcpy_async(block, self.size, acl.util.bytes_to_ptr(data), self.size, 1, self.stream) == 0, "upload")
        self.blocks[block] = data

    def download(self) -> None:
        block = self.pick()
        self.check(rt.memcpy_async(ctypes.addressof(self.out), self.size, block, self.size, 2, self.stream) == 0, "download")
        self.check(self.out.raw == self.blocks[block], "value by a pageable copy")

    def download_pinned(self) -> None:
        block = self.pick()
        self.check(rt.memcpy_async(self.pinned, self.size, block, self.size, 2, self.stream) == 0, "download")
        self.synchronize()
        self.check(acl.util.ptr_to_bytes(self.pinned, self.size) == self.blocks[block], "value by a pinned copy")

    def record(self) -> None:
        self.check(rt.record_event(self.event, self.stream) == 0, "record")
        self.recorded = True

    def wait(self) -> None:
        if self.recorded:
            self.check(rt.synchronize_event(self.event) == 0, "synchronize_event")
            self.check(rt.query_event_status(self.event) == (1, 0), "status")

    def query(self) -> None:
        self.check(rt.stream_query(self.stream)[1] == 0, "query")

    def synchronize(self) -> None:
        self.check(rt.synchronize_stream(self.stream) == 0, "synchronize")

    def reallocate(self) -> None:
        self.synchronize()
        block = self.pick()
        del self.blocks[block]
        self.check(rt.free(block) == 0, "free")
        block, ret = rt.malloc(self.size, 0)
        self.check(ret == 0 and block not in self.blocks, "malloc")
        self.check(rt.memset(block, self.size, 0, self.size) == 0, "memset")
        self.blocks[block] = bytes(self.size)

    def renew_event(self) -> None:
        self.check(rt.destroy_event(self.event) == 0, "destroy_event")
        self.event, self.recorded = rt.create_event()[0], False

    def second_stream(self) -> None:
        other, block = rt.create_stream()[0], self.pick()
        go, back = rt.create_event()[0], rt.create_event()[0]
        codes = [
            rt.record_event(go, self.stream),
            rt.stream_wait_event(other, go),
            rt.memset_async(block, self.size, 7, self.size, other),
            rt.record_event(back, other),
            rt.stream_wait_event(self.stream, back),
            rt.destroy_event(go),
            rt.destroy_event(back),
            rt.destroy_stream(other),
        ]
        self.check(codes == [0] * 8, f"second stream {codes}")
        self.blocks[block] = b"\7" * self.size


@pytest.mark.parametrize(("schedule", "calls"), [("async", 10_000), ("lazy", 1500), ("eager", 1500), ("shuffle:5", 1500)])
def test_two_threads_of_random_legal_calls(npu, schedule, calls):
    npu.configure(schedule=schedule)
    assert rt.set_device(0) == 0
    ctx, _ = rt.get_context()
    programs = [Program(seed, ctx) for seed in (1, 2)]
    threads = [threading.Thread(target=program.run, args=(calls,)) for program in programs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert not any(thread.is_alive() for thread in threads), "a thread hangs"
    assert [program.problems for program in programs] == [[], []]
    assert all(len(program.log) >= calls for program in programs)


def test_the_generator_is_replayable(npu):
    logs = []
    for _ in range(2):
        assert rt.set_device(0) == 0
        program = Program(3, rt.get_context()[0])
        program.run(300)
        assert program.problems == []
        logs.append((program.log, sorted(program.blocks.values())))
        assert rt.reset_device(0) == 0
    assert logs[0] == logs[1]
