"""acl: initialisation, versions, messages, numbers, data buffers."""

from __future__ import annotations

import struct

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_value, null
from emu.runtime import device, errors, handles, process
from emu.types import ITEMSIZE, CANNPackageName, DeviceInfo

#: ACL's own version, as in the headers that the emulator follows.
VERSION = (1, 17, 0)
_PACKAGE_VERSION = "9.0.0"
_INF_EXPONENT = 31
_HALF_MAX = 65504.0


@entry("aclInit(const char* configPath)", name="acl", optional=1)
def init(configPath: str | None = None) -> int:
    """Start ACL. None, "" or a file that holds {} mean no configuration; 100002 (ignorable) when it was called before; 100000, 100003,
    100005, 100006, 100009, 100010, 148048, 107001 for what is wrong with the file; 500000 in a forked child."""
    return process.init(configPath)


@entry("aclFinalize()", name="acl")
def finalize() -> int:
    """End ACL: every device is closed. 100037 the second time."""
    return process.finalize()


@entry("aclFinalizeReference(out uint64_t refCount)", name="acl")
def finalize_reference() -> tuple[int, int]:
    """(remaining count, code): one user fewer; the last one finalizes; 100037 once too often."""
    return process.finalize_reference()


@entry("aclrtGetVersion(out int32_t majorVersion, out int32_t minorVersion, out int32_t patchVersion)", name="acl")
def get_version() -> tuple[int, int, int, int]:
    """(major, minor, patch, 0) of ACL."""
    return (*VERSION, 0)


@entry("aclsysGetCANNVersion(aclCANNPackageName name, out const char* version)", name="acl")
def get_cann_version(name: int) -> tuple[str, int]:
    """(version of a package, code): the emulator follows CANN 9. 100000 for no such package."""
    if not CANNPackageName.CANN <= name <= CANNPackageName.DRIVER:
        return "", bad_value("aclsysGetCANNVersion", "name", name, "must be 0 to 7")
    return _PACKAGE_VERSION, 0


def _package(function: str, name: str | None) -> int:
    if not name:
        return null(function, "pkgName")
    if name.upper() not in CANNPackageName.__members__:
        return bad_value(function, "pkgName", name, f"must be one of {', '.join(CANNPackageName.__members__)}")
    return 0


@entry("aclsysGetVersionStr(const char* pkgName, out const char* versionStr)", name="acl")
def get_version_str(pkgName: str | None) -> tuple[str, int]:
    """(version of a package by its name, code). 100000 for null or no such package."""
    code = _package("aclsysGetVersionStr", pkgName)
    return ("", code) if code else (_PACKAGE_VERSION, 0)


@entry("aclsysGetVersionNum(const char* pkgName, out int32_t versionNum)", name="acl")
def get_version_num(pkgName: str | None) -> tuple[int, int]:
    """(major * 10000000 + minor * 100000 + patch * 1000, code). 100000 for null or no such package."""
    code = _package("aclsysGetVersionNum", pkgName)
    if code:
        return 0, code
    major, minor, patch = (int(part) for part in _PACKAGE_VERSION.split("."))
    return major * 10_000_000 + minor * 100_000 + patch * 1000, 0


@entry("aclGetRecentErrMsg()", name="acl", returns="const char*")
def get_recent_err_msg() -> str | None:
    """This thread's pending messages (the process's in err_msg_mode "1"), newest first; None when there are none. They are gone then."""
    return errors.recent_message()


@entry("aclDataTypeSize(aclDataType dataType)", name="acl", returns="size_t")
def data_type_size(dataType: int) -> int:
    """Bytes of one element; 0 for an unknown type, or one without a whole number of bytes."""
    return ITEMSIZE.get(dataType, 0)


@entry("aclFloat16ToFloat(uint16_t value)", name="acl", returns="float")
def float16_to_float(value: int) -> float:
    """The runtime's own conversion, not IEEE at the edge: exponent 31 is an ordinary one, so +Inf gives 65536 and NaN 0x7e00 98304."""
    exponent, fraction = value >> 10 & 0x1F, value & 0x3FF
    if exponent == _INF_EXPONENT:
        magnitude = (1 + fraction / 1024) * 65536.0
        return -magnitude if value >> 15 else magnitude
    result: float = struct.unpack("<e", struct.pack("<H", value))[0]
    return result


@entry("aclFloatToFloat16(float value)", name="acl", returns="uint16_t")
def float_to_float16(value: float) -> int:
    """Round to nearest even, saturating: what is larger than 65504, Inf and NaN give 65504 with their sign."""
    # The argument is a C float: FLOAT64 rounds to FLOAT first. A double beyond FLOAT has no FLOAT but infinity.
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        single = value
    if not abs(single) <= _HALF_MAX:
        sign: int = struct.unpack("<Q", struct.pack("<d", single))[0] >> 63
        return sign << 15 | 0x7BFF
    result: int = struct.unpack("<H", struct.pack("<e", single))[0]
    return result


@entry("aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, out int64_t value)", name="acl")
def get_device_capability(deviceId: int, deviceInfo: int) -> tuple[int, int]:
    """(AI cores 0, vector cores 1 or bytes of L2 2; code). 100000: no such device or figure."""
    found = device.get(deviceId)
    if found is None:
        return 0, bad_value("aclGetDeviceCapability", "deviceId", deviceId, "no such device")
    soc = found.profile
    figures: dict[int, int] = {
        DeviceInfo.AI_CORE_NUM: soc.ai_cores,
        DeviceInfo.VECTOR_CORE_NUM: soc.vector_cores,
        DeviceInfo.L2_SIZE: soc.l2_bytes,
    }
    value = figures.get(deviceInfo)
    if value is None:
        return 0, bad_value("aclGetDeviceCapability", "deviceInfo", deviceInfo, "must be 0 to 2")
    return value, 0


class DataBuffer:
    """aclDataBuffer: an address and a size."""

    __slots__ = ("addr", "size")

    def __init__(self, addr: int, size: int) -> None:
        self.addr = addr
        self.size = size


@entry("aclCreateDataBuffer(void* data, size_t size)", name="acl", returns="aclDataBuffer*")
def create_data_buffer(data: int, size: int) -> int:
    """A data buffer; nothing is copied or checked."""
    return handles.register(DataBuffer(data, size))


@entry("aclDestroyDataBuffer(aclDataBuffer* dataBuffer)", name="acl", c_known=False)
def destroy_data_buffer(dataBuffer: int) -> int:
    """Forget it, not the memory. 100000: null or no data buffer."""
    if handles.lookup(dataBuffer, DataBuffer) is None:
        return null("aclDestroyDataBuffer", "dataBuffer")
    handles.release(dataBuffer)
    return 0


@entry("aclUpdateDataBuffer(aclDataBuffer* dataBuffer, void* data, size_t size)", c_known=False, name="acl")
def update_data_buffer(dataBuffer: int, data: int, size: int) -> int:
    """Another address and size. 100000: null or no data buffer."""
    found = handles.lookup(dataBuffer, DataBuffer)
    if found is None:
        return null("aclUpdateDataBuffer", "dataBuffer")
    found.addr, found.size = data, size
    return 0


@entry("aclGetDataBufferAddr(const aclDataBuffer* dataBuffer)", name="acl", returns="void*", c_known=False)
def get_data_buffer_addr(dataBuffer: int) -> int:
    """Its address; 0 for null or no data buffer."""
    found = handles.lookup(dataBuffer, DataBuffer)
    return 0 if found is None else found.addr


@entry("aclGetDataBufferSize(const aclDataBuffer* dataBuffer)", name="acl", returns="uint32_t", c_known=False)
def get_data_buffer_size(dataBuffer: int) -> int:
    """The low 32 bits of its size; 0 for null or no data buffer."""
    return get_data_buffer_size_v2(dataBuffer) & 0xFFFFFFFF


@entry("aclGetDataBufferSizeV2(const aclDataBuffer* dataBuffer)", name="acl", returns="size_t", c_known=False)
def get_data_buffer_size_v2(dataBuffer: int) -> int:
    """Its size; 0 for null or no data buffer."""
    found = handles.lookup(dataBuffer, DataBuffer)
    return 0 if found is None else found.size


__all__ = ["VERSION", *names(__name__)]
