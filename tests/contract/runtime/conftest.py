"""A fresh simulated machine for each runtime test, and tiny tasks that need no kernels."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

import pytest

import emu
from emu import acl as acl_module
from emu.runtime import context, handles, hooks, schedule, threads
from emu.runtime.stream import Stream
from emu.runtime.threads import RuntimeThread

HOST_TO_DEVICE, DEVICE_TO_HOST, DEVICE_TO_DEVICE = 1, 2, 3


class Call:
    """A task that calls ``function``."""

    name = "call"

    def __init__(self, function: Callable[[], Any], work: int = 1000) -> None:
        self.function = function
        self.work = work

    def run(self) -> None:
        self.function()


class Machine:
    """Short forms for what the tests do all the time; every call goes through the public functions."""

    call = Call

    def __init__(self) -> None:
        self.acl = acl_module
        self.rt = acl_module.rt
        self._events: list[threading.Event] = []

    def configure(self, **changes: Any) -> None:
        emu.configure(**changes)

    def open(self, device: int = 0) -> int:
        """Set the device and make a stream."""
        assert self.rt.set_device(device) == 0
        return self.stream()

    def stream(self) -> int:
        handle, ret = self.rt.create_stream()
        assert ret == 0, self.message()
        return int(handle)

    def event(self) -> int:
        handle, ret = self.rt.create_event()
        assert ret == 0, self.message()
        return int(handle)

    def malloc(self, nbytes: int) -> int:
        ptr, ret = self.rt.malloc(nbytes, 0)
        assert ret == 0, self.message()
        return int(ptr)

    def put(self, data: bytes) -> int:
        ptr = self.malloc(len(data))
        assert self.rt.memcpy(ptr, len(data), self.acl.util.bytes_to_ptr(data), len(data), HOST_TO_DEVICE) == 0, self.message()
        return ptr

    def get(self, ptr: int, nbytes: int) -> bytes:
        out = ctypes.create_string_buffer(nbytes)
        assert self.rt.memcpy(ctypes.addressof(out), nbytes, ptr, nbytes, DEVICE_TO_HOST) == 0, self.message()
        return out.raw

    def push(self, stream: int, function: Callable[[], Any], work: int = 1000) -> None:
        """Queue ``function`` on a stream, as the executor queues launches."""
        found = handles.lookup(stream, Stream)
        if found is None:
            ctx = context.current()
            assert ctx is not None
            assert stream == 0
            found = ctx.default_stream
        found.enqueue(Call(function, work))

    def gate(self) -> threading.Event:
        """An event for tasks to wait for; set at the end of the test whatever happens."""
        event = threading.Event()
        self._events.append(event)
        return event

    def message(self) -> str:
        return self.acl.get_recent_err_msg() or ""

    def close(self) -> None:
        for event in self._events:
            event.set()
        for index in range(self.rt.get_device_count()[0]):
            self.rt.reset_device_force(index)
        self.acl.init()  # a finalize without an init ends nothing
        assert self.acl.finalize() == 0
        context.set_current(None)
        context.exception_listener = None
        hooks.active = None
        self.message()


@pytest.fixture(autouse=True)
def _no_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Threads that other tests left behind call nothing here: with them every deadlock would be waited for, not seen."""
    before = set(threading.enumerate())
    seen = schedule.strangers

    def strangers() -> bool:
        me = threading.current_thread()
        own = (t for t in threading.enumerate() if t not in before and t is not me and not isinstance(t, RuntimeThread))
        return seen() and (threads.foreign_host or any(t.is_alive() for t in own))

    monkeypatch.setattr(schedule, "strangers", strangers)


@pytest.fixture
def npu() -> Iterator[Machine]:
    """Eight A2 devices, none open."""
    before = emu.configure()
    card = Machine()
    yield card
    card.close()
    emu.configure(**{f.name: getattr(before, f.name) for f in fields(before)})


@pytest.fixture(params=["eager", "async", "lazy", "shuffle:1", "shuffle:2"])
def any_schedule(npu: Machine, request: pytest.FixtureRequest) -> Machine:
    """The same under each schedule."""
    npu.configure(schedule=request.param)
    return npu


@pytest.fixture
def in_thread() -> Callable[[Callable[[], Any]], Any]:
    """Run a function in a new thread, which has no context, and return its result."""

    def run(function: Callable[[], Any]) -> Any:
        results: list[Any] = []
        thread = threading.Thread(target=lambda: results.append(function()))
        thread.start()
        thread.join(60)
        assert results, "the thread did not finish"
        return results[0]

    return run
