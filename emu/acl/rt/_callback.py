"""acl.rt: callbacks, host functions, exception reports."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_value, caller, find_stream, no_function, null
from emu.runtime import context, errors, handles, reports, threads
from emu.runtime.reports import Callback, HostFunction, Reports
from emu.runtime.stream import Stream
from emu.status import Status

_NO_SUBSCRIBER = int(Status.ACL_ERROR_RT_STREAM_NO_CB_REG)
_REPEAT = int(Status.ACL_ERROR_RT_STREAM_SUBSCRIBE)
_NOT_SUBSCRIBED = int(Status.ACL_ERROR_RT_THREAD_SUBSCRIBE)
_NOTHING = int(Status.ACL_ERROR_RT_REPORT_TIMEOUT)
_UNKNOWN = 0xFFFFFFFF


@entry("aclrtLaunchCallback(aclrtCallback fn, any* userData, aclrtCallbackBlockType blockType, aclrtStream stream)")
def launch_callback(fn: Any, userData: Any, blockType: int, stream: int) -> int:
    """Queue fn(userData) for the thread that subscribed to the stream; BLOCK 1 holds the stream up until it has returned, NO_BLOCK 0 not.

    100000: null function or another block type; 107015: nobody subscribed to the stream; 107002, 107003, 107017.
    """
    if not fn:
        return null("aclrtLaunchCallback", "fn")
    if code := no_function("aclrtLaunchCallback", "fn", fn):
        return code
    if blockType not in (0, 1):
        return bad_value("aclrtLaunchCallback", "blockType", blockType, "must be 0 or 1")
    target = find_stream("aclrtLaunchCallback", stream)
    if isinstance(target, int):
        return target
    subscriber = target.reports
    if not isinstance(subscriber, Reports):
        return errors.fail(_NO_SUBSCRIBER, "EE1018", f"aclrtLaunchCallback: no thread is subscribed to stream {target.id}")
    target.enqueue(Callback(caller(fn, userData), blockType == 1, subscriber))
    return 0


@entry("aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, any* args)")
def launch_host_func(stream: int, fn: Any, args: Any) -> int:
    """Queue fn(args) for a thread of the runtime; the stream goes on when it has returned. 100000: null; 107002, 107003, 107017."""
    if not fn:
        return null("aclrtLaunchHostFunc", "fn")
    if code := no_function("aclrtLaunchHostFunc", "fn", fn):
        return code
    target = find_stream("aclrtLaunchHostFunc", stream)
    if isinstance(target, int):
        return target
    target.enqueue(HostFunction(caller(fn, args)))
    return 0


@entry("aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)")
def subscribe_report(threadId: int, stream: int) -> int:
    """Let the thread (pthread_self's number) run the stream's callbacks. 107011: the stream has a subscriber; 107002, 107003, 107017."""
    target = find_stream("aclrtSubscribeReport", stream)
    if isinstance(target, int):
        return target
    if not reports.subscribe(threadId, target):
        text = f"aclrtSubscribeReport: stream {target.id} has a subscriber already, or {reports.MAX_THREADS} threads are subscribed"
        return errors.fail(_REPEAT, "EE1018", text)
    return 0


@entry("aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)")
def unsubscribe_report(threadId: int, stream: int) -> int:
    """End it. 107012: that thread is not the stream's subscriber; 107002, 107003, 107017."""
    target = find_stream("aclrtUnSubscribeReport", stream)
    if isinstance(target, int):
        return target
    if not reports.unsubscribe(threadId, target):
        text = f"aclrtUnSubscribeReport: thread {threadId} is not subscribed to stream {target.id}"
        return errors.fail(_NOT_SUBSCRIBED, "EE1018", text)
    return 0


@entry("aclrtProcessReport(int32_t timeout)")
def process_report(timeout: int) -> int:
    """Run the next callback of this thread, waiting at most ``timeout`` ms for it; -1 = without limit.

    100000: 0 or below -1; 107012: this thread is subscribed to no stream; 507012: none arrived.
    """
    if timeout < -1 or timeout == 0:
        return bad_value("aclrtProcessReport", "timeout", timeout, "must be -1 or more, and not 0")
    mine = reports.of_thread(threading.get_ident())
    if mine is None:
        return errors.fail(_NOT_SUBSCRIBED, "EE1018", "aclrtProcessReport: this thread is subscribed to no stream")
    if not mine.process(None if timeout == -1 else timeout / 1000):
        return errors.fail(_NOTHING, "EE1002", f"aclrtProcessReport: no callback arrived within {timeout} ms")
    return 0


class ExceptionInfo(NamedTuple):
    """aclrtExceptionInfo: what an exception callback gets."""

    task_id: int
    stream_id: int
    thread_id: int
    device_id: int
    error_code: int


@entry("aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)")
def set_exception_info_callback(callback: Any) -> int:
    """Call callback(info) on a thread of the runtime at each asynchronous fault; None ends that."""
    if not callback:
        context.exception_listener = None
        return 0
    if code := no_function("aclrtSetExceptionInfoCallback", "callback", callback):
        return code
    function: Callable[[Any], None] = callback if callable(callback) else lambda info: caller(callback, info)()
    as_handle = not callable(callback)

    def listen(code: int, stream: Stream | None, device_id: int) -> None:
        number = stream.id if stream is not None else _UNKNOWN
        info = ExceptionInfo(0, number, threading.get_ident() & _UNKNOWN, device_id & _UNKNOWN, code)
        threads.pool.submit(lambda: function(handles.register(info) if as_handle else info))

    context.exception_listener = listen
    return 0


def _field(info: Any, name: str) -> int:
    found = handles.lookup(info, ExceptionInfo) if isinstance(info, int) else info
    return int(getattr(found, name)) if isinstance(found, ExceptionInfo) else _UNKNOWN


@entry("aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo* info)", returns="uint32_t")
def get_task_id_from_exception_info(info: Any) -> int:
    """Number of the task; 0xFFFFFFFF for no information."""
    return _field(info, "task_id")


@entry("aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo* info)", returns="uint32_t")
def get_stream_id_from_exception_info(info: Any) -> int:
    """Number of the stream; 0xFFFFFFFF for no information."""
    return _field(info, "stream_id")


@entry("aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo* info)", returns="uint32_t")
def get_thread_id_from_exception_info(info: Any) -> int:
    """Number of the host thread that ran the task; 0xFFFFFFFF for no information."""
    return _field(info, "thread_id")


@entry("aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo* info)", returns="uint32_t")
def get_device_id_from_exception_info(info: Any) -> int:
    """Number of the device; 0xFFFFFFFF for no information."""
    return _field(info, "device_id")


@entry("aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo* info)", returns="uint32_t")
def get_error_code_from_exception_info(info: Any) -> int:
    """The asynchronous error's code; 0xFFFFFFFF for no information."""
    return _field(info, "error_code")


@entry("aclrtPeekAtLastError(aclrtLastErrLevel level)")
def peek_at_last_error(level: int) -> int:
    """Code of this thread's last failure, 0 for none. 100000 for another level than 0 (thread)."""
    return errors.peek_last() if level == 0 else bad_value("aclrtPeekAtLastError", "level", level, "must be 0 (thread)")


@entry("aclrtGetLastError(aclrtLastErrLevel level)")
def get_last_error(level: int) -> int:
    """As peek_at_last_error, and forget it."""
    return errors.take_last() if level == 0 else bad_value("aclrtGetLastError", "level", level, "must be 0 (thread)")


__all__ = ["ExceptionInfo", *names(__name__)]
