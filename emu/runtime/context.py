"""Contexts: what streams, events and faults belong to. The current one is per thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from emu.runtime import clock, errors, handles, hooks
from emu.runtime.event import Event
from emu.runtime.stream import Stream
from emu.status import Status

if TYPE_CHECKING:
    from emu.runtime.device import Device

_NO_CONTEXT = int(Status.ACL_ERROR_RT_CONTEXT_NULL)


class Context:
    """A device's primary context or an explicit one. ``fault`` is the first asynchronous error, sticky; 0 when there is none."""

    __slots__ = (
        "__weakref__", "alive", "default_stream", "device", "fault", "fault_text", "halted", "handle", "primary", "stop_on_failure",
        "streams", "sys_params",
    )  # fmt: skip

    def __init__(self, device: Device, *, primary: bool) -> None:
        self.device = device
        self.primary = primary
        self.alive = True
        self.fault = 0
        self.fault_text = ""
        #: True after a fault when a stream asked for STOP_ON_FAILURE: tasks are passed over.
        self.halted = False
        self.stop_on_failure = False
        self.sys_params: dict[int, int] = {}
        self.streams: dict[int, Stream] = {}
        self.handle = handles.register(self)
        self.default_stream = Stream(self, device.next_stream_id())
        device.contexts.append(self)
        clock.opened()
        if hooks.active is not None:
            hooks.active.created(self)

    def create_stream(self, priority: int = 0, flags: int = 0) -> Stream | None:
        """A new stream; None when the device has no more."""
        device = self.device
        with device.lock:
            if device.stream_count >= device.profile.max_streams:
                return None
            device.stream_count += 1
            stream = Stream(self, device.next_stream_id(), priority, flags)
            self.streams[stream.handle] = stream
        if hooks.active is not None:
            hooks.active.created(stream)
        return stream

    def forget(self, stream: Stream) -> None:
        """A stream was destroyed."""
        with self.device.lock:
            if self.streams.pop(stream.handle, None) is not None:
                self.device.stream_count -= 1

    def all_streams(self) -> list[Stream]:
        """The default stream and the others."""
        return [self.default_stream, *self.streams.values()]

    def record_fault(self, code: int, text: str, stream: Stream | None = None) -> None:
        """An asynchronous failure: every later synchronising call in this context returns ``code``."""
        if not self.fault:
            self.fault_text = text
            self.fault = code
        if self.stop_on_failure:
            self.halted = True
        if exception_listener is not None:
            exception_listener(code, stream, self.device.index)

    def clear_fault(self) -> None:
        """aclrtResetDevice brought the device's count to zero."""
        self.fault = 0
        self.fault_text = ""
        self.halted = False

    def destroy(self, *, wait: bool = True) -> None:
        """End the context with its streams; ``wait`` lets what is queued run first."""
        if not self.alive:
            return
        handles.release(self.handle)
        for stream in self.all_streams():
            stream.destroy(wait=wait)
        for event in handles.live(Event):
            if event.context is self:
                event.destroy()
        self.alive = False
        if self in self.device.contexts:
            self.device.contexts.remove(self)
        if hooks.active is not None:
            hooks.active.destroyed(self)


class _Local(threading.local):
    context: Context | None = None


_local = _Local()

#: Called with (code, stream or None, device index) at each asynchronous failure: aclrtSetExceptionInfoCallback.
exception_listener: Callable[[int, Stream | None, int], None] | None = None
#: aclInit's defaultDevice: gives a thread that has no context that device's primary one.
default_context: Callable[[], Context | None] | None = None


def current() -> Context | None:
    """The calling thread's context; None when it has none, or when its context was destroyed."""
    context = _local.context
    if context is not None and context.alive:
        return context
    if default_context is not None and not _forked_pid:
        context = _local.context = default_context()
        return context
    return None


def set_current(context: Context | None) -> None:
    """Make ``context`` current in the calling thread."""
    _local.context = context
    if context is not None:
        clock.join(context.device.boot_sim_ns)


@contextmanager
def use(context: Context) -> Iterator[Context]:
    """Make ``context`` current in this thread for a while, whatever was current before."""
    before = _local.context
    _local.context = context
    try:
        yield context
    finally:
        _local.context = before


def no_context(function: str) -> int:
    """107002 for a call in a thread without a context."""
    if forked():
        text = f"{function}: this process was forked from one with an open device; a device cannot be used on both sides of a fork"
    elif _local.context is not None:
        text = f"{function}: the context of this thread was destroyed; call aclrtSetDevice or aclrtSetCurrentContext"
    else:
        text = f"{function}: context is empty: this thread has called neither aclrtSetDevice nor aclrtSetCurrentContext"
    return errors.fail(_NO_CONTEXT, "EE1010", text)


_forked_pid = 0


def mark_forked() -> None:
    """This is a forked child of a process with an open device."""
    global _forked_pid
    _forked_pid = os.getpid()
    _local.context = None


def forked() -> bool:
    """True in a forked child of a process with an open device."""
    return _forked_pid != 0
