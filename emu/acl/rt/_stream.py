"""acl.rt: streams."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_argument, bad_value, find_stream, inside_callback, need_context, null
from emu.acl.rt._device import LEAST_PRIORITY
from emu.runtime import clock, errors, handles, reports
from emu.runtime.stream import Stream, bad_stream
from emu.status import Status
from emu.types import FailureMode, StreamAttr, StreamStatus

_NO_STREAM = int(Status.ACL_ERROR_RT_NO_STREAM_RESOURCE)
_OTHER_CONTEXT = int(Status.ACL_ERROR_RT_STREAM_CONTEXT)
_ALL_FLAGS = 0x3F


class StreamConfig:
    """aclrtStreamConfigHandle: what aclrtCreateStreamV2 reads."""

    def __init__(self) -> None:
        #: WORK_ADDR_PTR 0, WORK_SIZE 1, FLAG 2, PRIORITY 3.
        self.options: dict[int, int] = {}


def _create(function: str, priority: int, flags: int) -> tuple[int, int]:
    ctx = need_context(function)
    if isinstance(ctx, int):
        return 0, ctx
    if flags & ~_ALL_FLAGS:
        return 0, bad_argument(function, "flag", hex(flags), "has unknown bits")
    stream = ctx.create_stream(min(priority, LEAST_PRIORITY), flags)
    if stream is None:
        text = f"{function}: device {ctx.device.index} has its {ctx.device.profile.max_streams} streams already"
        return 0, errors.fail(_NO_STREAM, "EE1023", text)
    return stream.handle, 0


@entry("aclrtCreateStream(out aclrtStream stream)")
def create_stream() -> tuple[int, int]:
    """(stream, code). 107002: no context; 207008: the device has no more."""
    return _create("aclrtCreateStream", 0, 0)


@entry("aclrtCreateStreamWithConfig(out aclrtStream stream, uint32_t priority, uint32_t flag)")
def create_stream_with_config(priority: int, flag: int) -> tuple[int, int]:
    """(stream, code). A priority out of range is clamped; 107000 for unknown flags."""
    return _create("aclrtCreateStreamWithConfig", priority, flag)


@entry("aclrtCreateStreamConfigHandle()", c_known=False, returns="aclrtStreamConfigHandle*")
def create_stream_config_handle() -> int:
    """A configuration for create_stream_v2."""
    return handles.register(StreamConfig())


@entry("aclrtDestroyStreamConfigHandle(aclrtStreamConfigHandle* handle)", c_known=False)
def destroy_stream_config_handle(handle: int) -> int:
    """Forget it. 100000: null, or no such configuration."""
    if handles.lookup(handle, StreamConfig) is None:
        return null("aclrtDestroyStreamConfigHandle", "handle")
    handles.release(handle)
    return 0


@entry("aclrtSetStreamConfigOpt(aclrtStreamConfigHandle* handle, int32_t attr, uint64_t value)", c_known=False)
def set_stream_config_opt(handle: int, attr: int, value: int) -> int:
    """Set WORK_ADDR_PTR 0, WORK_SIZE 1, FLAG 2 or PRIORITY 3. 100000: null or no configuration, or another attribute."""
    found = handles.lookup(handle, StreamConfig)
    if found is None:
        return null("aclrtSetStreamConfigOpt", "handle")
    if not 0 <= attr <= 3:
        return bad_value("aclrtSetStreamConfigOpt", "attr", attr, "must be 0 to 3")
    found.options[attr] = value
    return 0


@entry("aclrtCreateStreamV2(out aclrtStream stream, const aclrtStreamConfigHandle* handle)")
def create_stream_v2(handle: int) -> tuple[int, int]:
    """(stream, code). 100000: null or no configuration; else as create_stream_with_config."""
    found = handles.lookup(handle, StreamConfig)
    if found is None:
        return 0, null("aclrtCreateStreamV2", "handle")
    return _create("aclrtCreateStreamV2", found.options.get(3, 0), found.options.get(2, 0))


def _destroy(function: str, handle: int, *, wait: bool) -> int:
    if not handle:
        return null(function, "stream")
    if reports.inside():
        return inside_callback(function)
    stream = find_stream(function, handle)
    if isinstance(stream, int):
        return stream
    if stream is stream.context.default_stream:
        return bad_argument(function, "stream", hex(handle), "is the default stream, which lives as long as its context")
    stream.destroy(wait=wait)
    return 0


@entry("aclrtDestroyStream(aclrtStream stream)")
def destroy_stream(stream: int) -> int:
    """Wait for what is queued and forget the stream.

    100000: null; 107002; 107003: another context's; 107017: destroyed; 107000: the default stream.
    """
    return _destroy("aclrtDestroyStream", stream, wait=True)


@entry("aclrtDestroyStreamForce(aclrtStream stream)")
def destroy_stream_force(stream: int) -> int:
    """As destroy_stream, but what is queued is dropped."""
    return _destroy("aclrtDestroyStreamForce", stream, wait=False)


def _any_stream(function: str, handle: int) -> Stream | int:
    """A live stream of whatever context; the current context's default stream for 0. 107002, 107017."""
    ctx = need_context(function)
    if isinstance(ctx, int):
        return ctx
    if not handle:
        return ctx.default_stream
    return handles.lookup(handle, Stream) or bad_stream(handle)


@entry("aclrtSynchronizeStream(aclrtStream stream)")
def synchronize_stream(stream: int) -> int:
    """Wait for all that was queued before, helping. 0 = the default stream; a stream of another context is waited for as well.

    107002: no context; 107017: destroyed; 107023: aborted; 507046: a deadlock, which would hang on a device; or the asynchronous fault of
    the stream's context. Streams that are PERSISTENT, CPU_SCHEDULE or DEVICE_USE_ONLY are not waited for.
    """
    found = _any_stream("aclrtSynchronizeStream", stream)
    if found.__class__ is not Stream:
        return found  # type: ignore[return-value]
    if not found.waited_for:
        return 0
    if reports.inside():
        return inside_callback("aclrtSynchronizeStream")
    return found.synchronize()


@entry("aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)")
def synchronize_stream_with_timeout(stream: int, timeout: int) -> int:
    """As synchronize_stream for at most ``timeout`` ms, without helping; -1 = no limit. 107000: 0 or below -1; 507046: it expired."""
    name = "aclrtSynchronizeStreamWithTimeout"
    if timeout < -1 or timeout == 0:
        return bad_argument(name, "timeout", timeout, "must be -1 or more, and not 0")
    found = _any_stream(name, stream)
    if isinstance(found, int):
        return found
    if not found.waited_for:
        return 0
    if reports.inside():
        return inside_callback(name)
    return found.synchronize() if timeout == -1 else found.synchronize_limited(timeout)


@entry("aclrtStreamQuery(aclrtStream stream, out aclrtStreamStatus status)")
def stream_query(stream: int) -> tuple[int, int]:
    """(COMPLETE 0 or NOT_READY 1, code): complete when the last task has ended. 107002, 107003, 107017."""
    found = find_stream("aclrtStreamQuery", stream)
    if isinstance(found, int):
        return int(StreamStatus.RESERVED), found
    if found.idle():
        clock.join(found.sim_ns)
        return int(StreamStatus.COMPLETE), 0
    found.schedule.query(found)
    if not found.idle():
        return int(StreamStatus.NOT_READY), 0
    clock.join(found.sim_ns)
    return int(StreamStatus.COMPLETE), 0


@entry("aclrtStreamAbort(aclrtStream stream)")
def stream_abort(stream: int) -> int:
    """Drop what is queued; later synchronisations give 107023. 100000: null; 107002, 107003, 107017."""
    if not stream:
        return null("aclrtStreamAbort", "stream")
    found = find_stream("aclrtStreamAbort", stream)
    if isinstance(found, int):
        return found
    found.abort()
    return 0


@entry("aclrtStreamGetId(aclrtStream stream, out int32_t streamId)")
def stream_get_id(stream: int) -> tuple[int, int]:
    """(number of the stream on its device, code). 107002, 107003, 107017."""
    found = find_stream("aclrtStreamGetId", stream)
    return (0, found) if isinstance(found, int) else (found.id, 0)


@entry("aclrtStreamGetPriority(aclrtStream stream, out uint32_t priority)")
def stream_get_priority(stream: int) -> tuple[int, int]:
    """(priority after clamping, code). 107002, 107003, 107017."""
    found = find_stream("aclrtStreamGetPriority", stream)
    return (0, found) if isinstance(found, int) else (found.priority, 0)


@entry("aclrtStreamGetFlags(aclrtStream stream, out uint32_t flags)")
def stream_get_flags(stream: int) -> tuple[int, int]:
    """(flags of aclrtCreateStreamWithConfig, code). 107002, 107003, 107017."""
    found = find_stream("aclrtStreamGetFlags", stream)
    return (0, found) if isinstance(found, int) else (found.flags, 0)


@entry("aclrtGetStreamAvailableNum(out uint32_t streamCount)")
def get_stream_available_num() -> tuple[int, int]:
    """(streams that the current device could still make, code). 107002."""
    ctx = need_context("aclrtGetStreamAvailableNum")
    return (0, ctx) if isinstance(ctx, int) else (ctx.device.profile.max_streams - ctx.device.stream_count, 0)


def _failure_mode(function: str, stream: Stream, mode: int) -> int:
    if mode not in (FailureMode.CONTINUE_ON_FAILURE, FailureMode.STOP_ON_FAILURE):
        return bad_argument(function, "mode", mode, "must be 0 (continue) or 1 (stop)")
    if stream is stream.context.default_stream:
        return bad_argument(function, "stream", hex(stream.handle), "is the default stream, whose failure mode is fixed")
    if StreamAttr.FAILURE_MODE in stream.attributes:
        return bad_argument(function, "stream", hex(stream.handle), "has its failure mode already: it can be set once")
    stream.attributes[int(StreamAttr.FAILURE_MODE)] = mode
    if mode == FailureMode.STOP_ON_FAILURE:
        stream.context.stop_on_failure = True
    return 0


@entry("aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)")
def set_stream_failure_mode(stream: int, mode: int) -> int:
    """CONTINUE_ON_FAILURE 0 (default), or STOP_ON_FAILURE 1: after a fault no task of the context runs any more.

    107000: another mode, the default stream, or set before; 107002, 107003, 107017.
    """
    found = find_stream("aclrtSetStreamFailureMode", stream)
    return found if isinstance(found, int) else _failure_mode("aclrtSetStreamFailureMode", found, mode)


@entry("aclrtSetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, uint64_t value)", c_known=False)
def set_stream_attribute(stream: int, stmAttrType: int, value: int) -> int:
    """Set FAILURE_MODE 1, FLOAT_OVERFLOW_CHECK 2, USER_CUSTOM_TAG 3, CACHE_OP_INFO 4 or PRIORITY 5 (clamped). 100000: another one."""
    name = "aclrtSetStreamAttribute"
    if not StreamAttr.FAILURE_MODE <= stmAttrType <= StreamAttr.PRIORITY:
        return bad_value(name, "stmAttrType", stmAttrType, "must be 1 to 5")
    found = find_stream(name, stream)
    if isinstance(found, int):
        return found
    if stmAttrType == StreamAttr.FAILURE_MODE:
        return _failure_mode(name, found, value)
    if stmAttrType == StreamAttr.PRIORITY:
        found.priority = min(value, LEAST_PRIORITY)
    else:
        found.attributes[stmAttrType] = value
    return 0


@entry("aclrtGetStreamAttribute(aclrtStream stream, aclrtStreamAttr stmAttrType, out uint64_t value)", c_known=False)
def get_stream_attribute(stream: int, stmAttrType: int) -> tuple[int, int]:
    """(value, 0 when it was not set; code). 100000: no such attribute."""
    if not StreamAttr.FAILURE_MODE <= stmAttrType <= StreamAttr.PRIORITY:
        return 0, bad_value("aclrtGetStreamAttribute", "stmAttrType", stmAttrType, "must be 1 to 5")
    found = find_stream("aclrtGetStreamAttribute", stream)
    if isinstance(found, int):
        return 0, found
    return (found.priority if stmAttrType == StreamAttr.PRIORITY else found.attributes.get(stmAttrType, 0)), 0


__all__ = [*names(__name__)]
