"""acl.rt: events."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import UNSUPPORTED, bad_argument, find_stream, inside_callback, need_context, null
from emu.runtime import clock, errors, event, handles, hooks, process, reports
from emu.runtime.event import Event
from emu.status import Status
from emu.types import EventRecordedStatus, EventStatus, EventWaitStatus

_NO_EVENT = int(Status.ACL_ERROR_RT_NO_EVENT_RESOURCE)
_BAD_HANDLE = int(Status.ACL_ERROR_RT_INVALID_HANDLE)
_NOT_RECORDED = int(Status.ACL_ERROR_RT_INTERNAL_ERROR)
_NO_TIME = int(Status.ACL_ERROR_RT_EVENT_TIMESTAMP_INVALID)
_SYNC_TIMEOUT = int(Status.ACL_ERROR_RT_EVENT_SYNC_TIMEOUT)
_OTHER_CONTEXT = int(Status.ACL_ERROR_RT_STREAM_CONTEXT)
_RT_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)


def _create(function: str, flags: int, *, ex: bool = False, plain: bool = False) -> tuple[int, int]:
    if not flags or flags & ~event.ALL_FLAGS:
        return 0, bad_argument(function, "flag", hex(flags), "must be one or more of the ACL_EVENT_ flags")
    ctx = need_context(function)
    if isinstance(ctx, int):
        return 0, ctx
    made = event.create(ctx, flags, ex=ex, plain=plain)
    if made is None:
        text = f"{function}: device {ctx.device.index} has its {ctx.device.profile.max_events} events already"
        return 0, errors.fail(_NO_EVENT, "EE1023", text)
    return made.handle, 0


@entry("aclrtCreateEvent(out aclrtEvent event)")
def create_event() -> tuple[int, int]:
    """(event for timing and waiting, code). 107002; 207007: the device has no more."""
    return _create("aclrtCreateEvent", event.PLAIN_FLAGS, plain=True)


@entry("aclrtCreateEventWithFlag(out aclrtEvent event, uint32_t flag)")
def create_event_with_flag(flag: int) -> tuple[int, int]:
    """(event, code). A wait for it before any record really waits. 107000: no or unknown flags; 107002; 207007."""
    return _create("aclrtCreateEventWithFlag", flag)


@entry("aclrtCreateEventExWithFlag(out aclrtEvent event, uint32_t flag)")
def create_event_ex_with_flag(flag: int) -> tuple[int, int]:
    """(Ex event, code). A wait for it before any record is none; it cannot be reset or queried the old way (207000)."""
    return _create("aclrtCreateEventExWithFlag", flag, ex=True)


def _find(function: str, handle: int) -> Event | int:
    """The live event, or 100000 for null, 107017 for no live event."""
    if not handle:
        return null(function, "event")
    found = handles.lookup(handle, Event)
    if found is None:
        return errors.fail(_BAD_HANDLE, "EE1017", f"{function}: {handle:#x} is no live event: destroyed, or no event at all")
    return found


def _not_for_ex(function: str, found: Event) -> int:
    if not found.ex:
        return 0
    return errors.fail(UNSUPPORTED, "EE1005", f"{function} does not support events of aclrtCreateEventExWithFlag")


@entry("aclrtDestroyEvent(aclrtEvent event)")
def destroy_event(event: int) -> int:
    """Forget the event; does not wait. 100000: null; 107017: destroyed."""
    found = _find("aclrtDestroyEvent", event)
    if isinstance(found, int):
        return found
    found.destroy()
    return 0


@entry("aclrtRecordEvent(aclrtEvent event, aclrtStream stream)")
def record_event(event: int, stream: int) -> int:
    """Queue a record (stream 0 = the default one); a later record replaces it. 100000: null event; 107002, 107003, 107017."""
    if not event:
        return null("aclrtRecordEvent", "event")
    target = find_stream("aclrtRecordEvent", stream)
    if isinstance(target, int):
        return target
    found = _find("aclrtRecordEvent", event)
    if isinstance(found, int):
        return found
    if found.context.device is not target.context.device:
        text = f"aclrtRecordEvent: the event belongs to device {found.context.device.index}, the stream to {target.context.device.index}"
        return errors.fail(_OTHER_CONTEXT, "EE1010", text)
    found.record_on(target)
    return 0


@entry("aclrtResetEvent(aclrtEvent event, aclrtStream stream)")
def reset_event(event: int, stream: int) -> int:
    """Make the event unrecorded for what is queued from now on. 100000: null event; 207000: an Ex event; 107002, 107003, 107017."""
    if not event:
        return null("aclrtResetEvent", "event")
    target = find_stream("aclrtResetEvent", stream)
    if isinstance(target, int):
        return target
    found = _find("aclrtResetEvent", event)
    if isinstance(found, int):
        return found
    code = _not_for_ex("aclrtResetEvent", found)
    if not code:
        found.reset_on(target)
    return code


def _wait(function: str, stream: int, event: int, timeout_s: int) -> int:
    if not event:
        return null(function, "event")
    target = find_stream(function, stream)
    if isinstance(target, int):
        return target
    found = _find(function, event)
    if isinstance(found, int):
        return found
    if not found.waitable:
        return errors.fail(UNSUPPORTED, "EE1005", f"{function}: the event was made without ACL_EVENT_SYNC: no stream can wait for it")
    if found.record is None:
        if found.ex:
            return 0
        if found.plain:
            return errors.fail(_RT_INVALID, "EE1018", f"{function}: the event has not been recorded")
    found.wait_on(target, timeout_s)
    return 0


@entry("aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)")
def stream_wait_event(stream: int, event: int) -> int:
    """Let ``stream`` (0 = the default one) wait for the event's present record; events of other devices are allowed.

    Never recorded: an Ex event is no wait, one of aclrtCreateEvent is 107000, one of aclrtCreateEventWithFlag is waited for until somebody
    records it. 100000: null event; 107002, 107003, 107017; 207000: made without ACL_EVENT_SYNC.
    """
    return _wait("aclrtStreamWaitEvent", stream, event, process.wait_timeout_s)


@entry("aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)")
def stream_wait_event_with_timeout(stream: int, event: int, timeout: int) -> int:
    """As stream_wait_event; the device gives up after ``timeout`` seconds (0 = never): 107019 at the next synchronisation. 107000: < 0."""
    if timeout < 0:
        return bad_argument("aclrtStreamWaitEventWithTimeout", "timeout", timeout, "must be 0 or more seconds")
    return _wait("aclrtStreamWaitEventWithTimeout", stream, event, timeout)


def _complete(found: Event) -> bool:
    """An event that was never recorded counts as complete when it is an Ex event."""
    record = found.record
    if record is None:
        return found.ex
    if not record.done:
        record.stream.schedule.query(record.stream, record)
    if record.done:
        clock.join(record.sim_ns)
    return record.done


@entry("aclrtQueryEventStatus(aclrtEvent event, out aclrtEventRecordedStatus status)")
def query_event_status(event: int) -> tuple[int, int]:
    """(NOT_READY 0 or COMPLETE 1, code): the opposite polarity of query_event. An Ex event without a record is complete. 100000, 107017."""
    found = _find("aclrtQueryEventStatus", event)
    if isinstance(found, int):
        return 0, found
    return int(EventRecordedStatus.COMPLETE if _complete(found) else EventRecordedStatus.NOT_READY), 0


@entry("aclrtQueryEvent(aclrtEvent event, out aclrtEventStatus status)")
def query_event(event: int) -> tuple[int, int]:
    """(COMPLETE 0 or NOT_READY 1, code); deprecated. 100000, 107017; 207000: an Ex event."""
    found = _find("aclrtQueryEvent", event)
    if isinstance(found, int):
        return int(EventStatus.RESERVED), found
    code = _not_for_ex("aclrtQueryEvent", found)
    if code:
        return int(EventStatus.RESERVED), code
    return int(EventStatus.COMPLETE if _complete(found) else EventStatus.NOT_READY), 0


@entry("aclrtQueryEventWaitStatus(aclrtEvent event, out aclrtEventWaitStatus status)")
def query_event_wait_status(event: int) -> tuple[int, int]:
    """(COMPLETE 0 when every queued wait for it has ended, else NOT_READY 1; code). 100000, 107017; 207000: an Ex event."""
    found = _find("aclrtQueryEventWaitStatus", event)
    if isinstance(found, int):
        return int(EventWaitStatus.RESERVED), found
    code = _not_for_ex("aclrtQueryEventWaitStatus", found)
    if code:
        return int(EventWaitStatus.RESERVED), code
    for stream in found.waiting_streams():
        stream.schedule.query(stream)
    return int(EventWaitStatus.COMPLETE if found.waits_done() else EventWaitStatus.NOT_READY), 0


def _synchronize(function: str, handle: int, ms: int) -> int:
    found = _find(function, handle)
    if isinstance(found, int):
        return found
    ctx = need_context(function)
    if isinstance(ctx, int):
        return ctx
    if reports.inside():
        return inside_callback(function)
    record = found.record
    if record is None:
        if found.ex:
            return 0
        return errors.fail(_NOT_RECORDED, "EE1018", f"{function}: the event has not been recorded")
    began = clock.now()
    if not record.done:
        schedule = record.stream.schedule
        if ms >= 0:
            if not schedule.wait_limited(record.stream, record, ms / 1000):
                return errors.fail(_SYNC_TIMEOUT, "EE1002", f"{function}: the event was not reached within {ms} ms")
        else:
            code = schedule.wait(record.stream, record)
            if code:
                return code
    clock.join(record.sim_ns)
    if hooks.active is not None:
        hooks.active.called(function, began)
        hooks.active.synchronised(record)
    return record.stream.outcome()


@entry("aclrtSynchronizeEvent(aclrtEvent event)")
def synchronize_event(event: int) -> int:
    """Wait for the event's present record, helping. An Ex event without one returns at once, another one gives 507000.

    100000, 107002, 107017; 107023 when the record's stream was aborted; 507046: a deadlock; or the asynchronous fault of that context.
    """
    return _synchronize("aclrtSynchronizeEvent", event, -1)


@entry("aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)")
def synchronize_event_with_timeout(event: int, timeout: int) -> int:
    """As synchronize_event for at most ``timeout`` ms, without helping; -1 = no limit. 107000: 0 or below -1; 507047: it expired."""
    if timeout < -1 or timeout == 0:
        return bad_argument("aclrtSynchronizeEventWithTimeout", "timeout", timeout, "must be -1 or more, and not 0")
    return _synchronize("aclrtSynchronizeEventWithTimeout", event, timeout)


def _moment(function: str, handle: int) -> tuple[int, int]:
    """(nanoseconds of the event's present record on the clock that the Config names, code)."""
    found = _find(function, handle)
    if isinstance(found, int):
        return 0, found
    record = found.record
    if record is None:
        return 0, errors.fail(_NOT_RECORDED, "EE1018", f"{function}: the event has not been recorded")
    if not found.timed:
        return 0, errors.fail(_NO_TIME, "EE1011", f"{function}: the event was made without ACL_EVENT_TIME_LINE")
    if not record.done:
        record.stream.schedule.query(record.stream, record)
        return 0, errors.fail(_NO_TIME, "EE1011", f"{function}: the event's record has not been reached yet: synchronise first")
    return record.sim_ns if clock.simulated else record.wall_ns, 0


@entry("aclrtEventElapsedTime(out float ms, aclrtEvent startEvent, aclrtEvent endEvent)")
def event_elapsed_time(startEvent: int, endEvent: int) -> tuple[float, int]:
    """(milliseconds from the start's record to the end's, negative when it came first; code). Simulated time, or wall time with
    ``emu.configure(clock="wall")``.

    100000, 107017; 507000: never recorded; 107006: not reached yet, or made without ACL_EVENT_TIME_LINE.
    """
    start, code = _moment("aclrtEventElapsedTime", startEvent)
    if code:
        return 0.0, code
    end, code = _moment("aclrtEventElapsedTime", endEvent)
    return (0.0, code) if code else ((end - start) / 1e6, 0)


@entry("aclrtEventGetTimestamp(aclrtEvent event, out uint64_t timestamp)")
def event_get_timestamp(event: int) -> tuple[int, int]:
    """(microseconds from the start of the device to the record, code); clock and codes as event_elapsed_time."""
    moment, code = _moment("aclrtEventGetTimestamp", event)
    if code:
        return 0, code
    found = handles.lookup(event, Event)
    if found is None:
        return 0, 0
    device = found.context.device
    return max(moment - (device.boot_sim_ns if clock.simulated else device.boot_ns), 0) // 1000, 0


__all__ = [*names(__name__)]
