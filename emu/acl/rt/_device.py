"""acl.rt: devices."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import UNSUPPORTED, bad_argument, bad_value, inside_callback, need_context
from emu.runtime import clock, context, device, errors, hooks, reports
from emu.runtime.device import Device
from emu.status import Status
from emu.types import DevAttr, FloatOverflowMode

_BAD_DEVICE = int(Status.ACL_ERROR_RT_INVALID_DEVICEID)
_SETUP = int(Status.ACL_ERROR_RT_DEV_SETUP_ERROR)
_RELEASE = int(Status.ACL_ERROR_RT_CONTEXT_RELEASE_ERROR)
_TIMEOUT = int(Status.ACL_ERROR_RT_STREAM_SYNC_TIMEOUT)
#: Priorities run from 0 (highest, the default) to 7.
LEAST_PRIORITY = 7
_RUN_MODE_HOST = 1
_ARCH_NUMBER = {"dav_1001": 1001, "dav_2002": 2002, "dav_2201": 2201, "dav_3002": 3002, "dav_3510": 3510}


def find_device(function: str, device_id: int) -> Device | int:
    """The device, or 107001."""
    found = device.get(device_id)
    if found is None:
        text = f"{function}: device {device_id} does not exist: there are {len(device.machine().devices)} visible devices"
        return errors.fail(_BAD_DEVICE, "EE1003", text)
    return found


@entry("aclrtSetDevice(int32_t deviceId)")
def set_device(deviceId: int) -> int:
    """Retain a device's primary context and make it current in this thread. 107001: no such device. 507033: it cannot be opened."""
    if context.forked():
        return errors.fail(_SETUP, "EE1019", "aclrtSetDevice: this process was forked from one with an open device")
    found = find_device("aclrtSetDevice", deviceId)
    if isinstance(found, int):
        return found
    try:
        context.set_current(found.retain())
    except MemoryError as error:
        return errors.fail(_SETUP, "EE1019", f"aclrtSetDevice: device {deviceId} cannot be opened: {error}")
    return 0


def _reset(function: str, device_id: int, *, force: bool) -> int:
    found = find_device(function, device_id)
    if isinstance(found, int):
        return found
    if not found.release(force=force):
        return errors.fail(_RELEASE, "EE1018", f"{function}: device {device_id} is not set, or was reset as often as it was set")
    return 0


@entry("aclrtResetDevice(int32_t deviceId)")
def reset_device(deviceId: int) -> int:
    """One user of the device fewer; the last one waits for its work and ends its primary context. 107001, 507007 when once too often."""
    return _reset("aclrtResetDevice", deviceId, force=False)


@entry("aclrtResetDeviceForce(int32_t deviceId)")
def reset_device_force(deviceId: int) -> int:
    """End the device's primary context whatever the count, without waiting. 107001, 507007 when it is not set."""
    return _reset("aclrtResetDeviceForce", deviceId, force=True)


@entry("aclrtGetDevice(out int32_t deviceId)")
def get_device() -> tuple[int, int]:
    """(device of the current context, code). 107002 without a context."""
    ctx = need_context("aclrtGetDevice")
    return (0, ctx) if isinstance(ctx, int) else (ctx.device.index, 0)


@entry("aclrtGetDeviceCount(out uint32_t count)")
def get_device_count() -> tuple[int, int]:
    """(visible devices, 0)."""
    return len(device.machine().devices), 0


@entry("aclrtGetRunMode(out aclrtRunMode runMode)")
def get_run_mode() -> tuple[int, int]:
    """(ACL_HOST, 0): the program runs on the host of a PCIe card."""
    return _RUN_MODE_HOST, 0


@entry("aclrtGetSocName()", returns="const char*")
def get_soc_name() -> str | None:
    """The SoC of device 0, as in Ascend910B1; None when no device is visible. Needs no context."""
    devices = device.machine().devices
    return devices[0].profile.name if devices else None


def _attribute(found: Device, attr: int) -> int | None:
    soc = found.profile
    ids = (DevAttr.SMP_ID, DevAttr.SUPER_POD_DEVICE_ID, DevAttr.SUPER_POD_SERVER_ID, DevAttr.SUPER_POD_ID)
    zeros = (*ids, DevAttr.IS_VIRTUAL, DevAttr.CUST_OP_PRIVILEGE, DevAttr.MAINBOARD_ID, DevAttr.HD_CONNECT_TYPE)
    values: dict[int, int] = {
        DevAttr.AICORE_CORE_NUM: soc.ai_cores,
        DevAttr.CUBE_CORE_NUM: soc.cube_cores,
        DevAttr.VECTOR_CORE_NUM: soc.vector_cores,
        DevAttr.UBUF_PER_VECTOR_CORE: soc.ub_bytes,
        DevAttr.TOTAL_GLOBAL_MEM_SIZE: soc.hbm_bytes,
        DevAttr.L2_CACHE_SIZE: soc.l2_bytes,
        DevAttr.PHY_CHIP_ID: found.index,
        DevAttr.NPU_ARCH: _ARCH_NUMBER[soc.arch],
        **dict.fromkeys(zeros, 0),
    }
    return values.get(attr)


@entry("aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, out int64_t value)")
def get_device_info(deviceId: int, attr: int) -> tuple[int, int]:
    """(value, code). 107001: no such device; 100000: no such attribute; 207000: one whose value is not public for the product."""
    found = find_device("aclrtGetDeviceInfo", deviceId)
    if isinstance(found, int):
        return 0, found
    value = _attribute(found, attr)
    if value is not None:
        return value, 0
    if attr in DevAttr._value2member_map_:
        text = f"aclrtGetDeviceInfo: {DevAttr(attr).name} has no public value for {found.profile.name}"
        return 0, errors.fail(UNSUPPORTED, "EE1005", text)
    return 0, bad_value("aclrtGetDeviceInfo", "attr", attr, "no such attribute")


@entry("aclrtQueryDeviceStatus(int32_t deviceId, out aclrtDeviceStatus deviceStatus)")
def query_device_status(deviceId: int) -> tuple[int, int]:
    """(NORMAL 0, or ABNORMAL 1 after an asynchronous fault; code). 107001: no such device."""
    found = find_device("aclrtQueryDeviceStatus", deviceId)
    if isinstance(found, int):
        return 0, found
    return int(any(ctx.fault for ctx in found.contexts)), 0


def _synchronize(function: str, ms: int) -> int:
    ctx = need_context(function)
    if isinstance(ctx, int):
        return ctx
    if reports.inside():
        return inside_callback(function)
    streams = [stream for member in ctx.device.contexts for stream in member.all_streams()]
    failed = 0
    began = clock.now()
    marks = [(stream, stream.mark()) for stream in streams if stream.queue and stream.waited_for]
    for stream, mark in marks:
        if ms >= 0:
            if not stream.schedule.wait_limited(stream, mark, ms / 1000):
                return errors.fail(_TIMEOUT, "EE1002", f"{function}: the device has not finished within {ms} ms")
        else:
            failed = stream.schedule.wait(stream, mark) or failed
    if failed:
        return failed
    for stream in streams:
        if stream.waited_for:
            clock.join(stream.sim_ns)
    if hooks.active is not None:
        hooks.active.called(function, began)
        hooks.active.synchronised(ctx.device)
    return ctx.fault and errors.fail(ctx.fault, "EZ2001", ctx.fault_text)


@entry("aclrtSynchronizeDevice()")
def synchronize_device() -> int:
    """Wait for every stream of the current context's device; 107002, or what went wrong asynchronously in the current context."""
    return _synchronize("aclrtSynchronizeDevice", -1)


@entry("aclrtSynchronizeDeviceWithTimeout(int32_t timeout)")
def synchronize_device_with_timeout(timeout: int) -> int:
    """As synchronize_device for ``timeout`` ms; -1 = no limit. 107000 below -1, 507046 when it expires."""
    if timeout < -1:
        return bad_argument("aclrtSynchronizeDeviceWithTimeout", "timeout", timeout, "must be -1 or more")
    return _synchronize("aclrtSynchronizeDeviceWithTimeout", timeout)


@entry("aclrtDeviceGetStreamPriorityRange(out int32_t leastPriority, out int32_t greatestPriority)")
def device_get_stream_priority_range() -> tuple[int, int, int]:
    """(7, 0, code): the least and the greatest priority. 107002 without a context."""
    ctx = need_context("aclrtDeviceGetStreamPriorityRange")
    return (0, 0, ctx) if isinstance(ctx, int) else (LEAST_PRIORITY, 0, 0)


@entry("aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)")
def set_device_sat_mode(mode: int) -> int:
    """Overflow mode of streams made from now on: SATURATION 0 or INFNAN 1.

    100000: neither of them; 107002: no context; 207000: the product lacks it (950 has INFNAN only, 310P and 910A SATURATION only).
    """
    if mode not in (FloatOverflowMode.SATURATION, FloatOverflowMode.INFNAN):
        return bad_value("aclrtSetDeviceSatMode", "mode", mode, "must be 0 (saturation) or 1 (inf/nan)")
    ctx = need_context("aclrtSetDeviceSatMode")
    if isinstance(ctx, int):
        return ctx
    name = "saturation" if mode == FloatOverflowMode.SATURATION else "infnan"
    if name not in ctx.device.profile.overflow_modes:
        text = f"aclrtSetDeviceSatMode: {ctx.device.profile.name} has no {name} mode, only {', '.join(ctx.device.profile.overflow_modes)}"
        return errors.fail(UNSUPPORTED, "EE1005", text)
    ctx.device.saturate = mode == FloatOverflowMode.SATURATION
    return 0


@entry("aclrtGetDeviceSatMode(out aclrtFloatOverflowMode mode)", c_known=False)
def get_device_sat_mode() -> tuple[int, int]:
    """(SATURATION 0 or INFNAN 1, code). 107002 without a context."""
    ctx = need_context("aclrtGetDeviceSatMode")
    if isinstance(ctx, int):
        return 0, ctx
    return int(FloatOverflowMode.SATURATION if ctx.device.saturate else FloatOverflowMode.INFNAN), 0


def _peer(function: str, peer: int) -> tuple[Device, Device] | int:
    ctx = need_context(function)
    if isinstance(ctx, int):
        return ctx
    other = find_device(function, peer)
    if isinstance(other, int):
        return other
    if other is ctx.device:
        return bad_argument(function, "peerDeviceId", peer, "is the current device itself")
    return ctx.device, other


@entry("aclrtDeviceCanAccessPeer(out int32_t canAccessPeer, int32_t deviceId, int32_t peerDeviceId)", c_known=False)
def device_can_access_peer(deviceId: int, peerDeviceId: int) -> tuple[int, int]:
    """(1 for two different devices, code). 107001: no such device; 107000: the same one twice."""
    for number in (deviceId, peerDeviceId):
        found = find_device("aclrtDeviceCanAccessPeer", number)
        if isinstance(found, int):
            return 0, found
    if deviceId == peerDeviceId:
        return 0, bad_argument("aclrtDeviceCanAccessPeer", "peerDeviceId", peerDeviceId, "is the device itself")
    return 1, 0


@entry("aclrtDeviceEnablePeerAccess(int32_t peerDeviceId, uint32_t flags)", c_known=False)
def device_enable_peer_access(peerDeviceId: int, flags: int) -> int:
    """Let the current device reach another one; copies between devices work without it, too. 107000: ``flags`` is not 0, or itself."""
    if flags:
        return bad_argument("aclrtDeviceEnablePeerAccess", "flags", flags, "is reserved and must be 0")
    pair = _peer("aclrtDeviceEnablePeerAccess", peerDeviceId)
    if isinstance(pair, int):
        return pair
    pair[0].peers.add(peerDeviceId)
    return 0


@entry("aclrtDeviceDisablePeerAccess(int32_t peerDeviceId)", c_known=False)
def device_disable_peer_access(peerDeviceId: int) -> int:
    """End it; 107000 when it was not enabled."""
    pair = _peer("aclrtDeviceDisablePeerAccess", peerDeviceId)
    if isinstance(pair, int):
        return pair
    if peerDeviceId not in pair[0].peers:
        return bad_argument("aclrtDeviceDisablePeerAccess", "peerDeviceId", peerDeviceId, "is not enabled")
    pair[0].peers.remove(peerDeviceId)
    return 0


def _limit(function: str, device_id: int, kind: int) -> tuple[Device, int] | int:
    """The device and how many such cores it has."""
    if kind not in (0, 1):
        return bad_value(function, "type", kind, "must be 0 (cube cores) or 1 (vector cores)")
    found = find_device(function, device_id)
    if isinstance(found, int):
        return found
    return found, found.profile.vector_cores if kind else found.profile.cube_cores


@entry("aclrtGetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, out uint32_t value)", c_known=False)
def get_device_res_limit(deviceId: int, type: int) -> tuple[int, int]:
    """(cores that operators may use, code): all of them unless set. 107001, 100000 for another type."""
    found = _limit("aclrtGetDeviceResLimit", deviceId, type)
    return (0, found) if isinstance(found, int) else (found[0].limits.get(type, found[1]), 0)


@entry("aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)")
def set_device_res_limit(deviceId: int, type: int, value: int) -> int:
    """Limit the cores; results never depend on it. 107000: 0, or more than there are."""
    found = _limit("aclrtSetDeviceResLimit", deviceId, type)
    if isinstance(found, int):
        return found
    if not 1 <= value <= found[1]:
        return bad_argument("aclrtSetDeviceResLimit", "value", value, f"must be 1 to {found[1]}")
    found[0].limits[type] = value
    return 0


@entry("aclrtResetDeviceResLimit(int32_t deviceId)", c_known=False)
def reset_device_res_limit(deviceId: int) -> int:
    """All cores again. 107001: no such device."""
    found = find_device("aclrtResetDeviceResLimit", deviceId)
    if isinstance(found, int):
        return found
    found.limits.clear()
    return 0


__all__ = [*names(__name__)]
