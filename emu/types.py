"""The enumerations of the ACL headers as ``IntEnum``: the field's names without their C prefix, the C values.

Every function takes a plain int as well. :data:`C_ENUMS` says how each one is spelled in C.
"""

from __future__ import annotations

from enum import IntEnum, IntFlag


class DataType(IntEnum):
    """aclDataType (C: ``ACL_`` + name; UNDEFINED is ``ACL_DT_UNDEFINED``)."""

    UNDEFINED = -1
    FLOAT = 0
    FLOAT16 = 1
    INT8 = 2
    INT32 = 3
    UINT8 = 4
    INT16 = 6
    UINT16 = 7
    UINT32 = 8
    INT64 = 9
    UINT64 = 10
    DOUBLE = 11
    BOOL = 12
    STRING = 13
    COMPLEX64 = 16
    COMPLEX128 = 17
    BF16 = 27
    INT4 = 29
    UINT1 = 30
    COMPLEX32 = 33
    HIFLOAT8 = 34
    FLOAT8_E5M2 = 35
    FLOAT8_E4M3FN = 36
    FLOAT8_E8M0 = 37
    FLOAT6_E3M2 = 38
    FLOAT6_E2M3 = 39
    FLOAT4_E2M1 = 40
    FLOAT4_E1M2 = 41


class Format(IntEnum):
    """aclFormat (C: ``ACL_FORMAT_`` + name; FRACTAL_Z_3D is ``ACL_FRACTAL_Z_3D``)."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33
    NC = 35
    NCL = 47
    FRACTAL_NZ_C0_16 = 50
    FRACTAL_NZ_C0_32 = 51
    FRACTAL_NZ_C0_2 = 52
    FRACTAL_NZ_C0_4 = 53
    FRACTAL_NZ_C0_8 = 54


class RunMode(IntEnum):
    DEVICE = 0
    HOST = 1


class MemcpyKind(IntEnum):
    HOST_TO_HOST = 0
    HOST_TO_DEVICE = 1
    DEVICE_TO_HOST = 2
    DEVICE_TO_DEVICE = 3
    DEFAULT = 4
    HOST_TO_BUF_TO_DEVICE = 5
    INNER_DEVICE_TO_DEVICE = 6
    INTER_DEVICE_TO_DEVICE = 7


class MemMallocPolicy(IntFlag):
    HUGE_FIRST = 0
    HUGE_ONLY = 1
    NORMAL_ONLY = 2
    HUGE_FIRST_P2P = 3
    HUGE_ONLY_P2P = 4
    NORMAL_ONLY_P2P = 5
    HUGE1G_ONLY = 6
    HUGE1G_ONLY_P2P = 7
    TYPE_LOW_BAND_WIDTH = 0x100
    TYPE_HIGH_BAND_WIDTH = 0x1000
    ACCESS_USER_SPACE_READONLY = 0x100000


class MemAttr(IntEnum):
    DDR_MEM = 0
    HBM_MEM = 1
    DDR_MEM_HUGE = 2
    DDR_MEM_NORMAL = 3
    HBM_MEM_HUGE = 4
    HBM_MEM_NORMAL = 5
    DDR_MEM_P2P_HUGE = 6
    DDR_MEM_P2P_NORMAL = 7
    HBM_MEM_P2P_HUGE = 8
    HBM_MEM_P2P_NORMAL = 9
    HBM_MEM_HUGE1G = 10
    HBM_MEM_P2P_HUGE1G = 11


class MemLocationType(IntEnum):
    HOST = 0
    DEVICE = 1
    UNREGISTERED = 2
    HOST_NUMA = 4


class StreamStatus(IntEnum):
    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 0xFFFF


class EventRecordedStatus(IntEnum):
    NOT_READY = 0
    COMPLETE = 1


class EventStatus(IntEnum):
    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 2


class EventWaitStatus(IntEnum):
    COMPLETE = 0
    NOT_READY = 1
    RESERVED = 0xFFFF


class CallbackBlockType(IntEnum):
    NO_BLOCK = 0
    BLOCK = 1


class SysParamOpt(IntEnum):
    DETERMINISTIC = 0
    ENABLE_DEBUG_KERNEL = 1
    STRONG_CONSISTENCY = 2


class LastErrLevel(IntEnum):
    THREAD_LEVEL = 0


class FloatOverflowMode(IntEnum):
    SATURATION = 0
    INFNAN = 1
    UNDEF = 2


class DeviceStatus(IntEnum):
    NORMAL = 0
    ABNORMAL = 1


class DeviceInfo(IntEnum):
    UNDEFINED = -1
    AI_CORE_NUM = 0
    VECTOR_CORE_NUM = 1
    L2_SIZE = 2


class DevAttr(IntEnum):
    AICPU_CORE_NUM = 1
    AICORE_CORE_NUM = 101
    CUBE_CORE_NUM = 102
    VECTOR_CORE_NUM = 201
    WARP_SIZE = 202
    MAX_THREAD_PER_VECTOR_CORE = 203
    UBUF_PER_VECTOR_CORE = 204
    MAX_GRID_DIM_X = 205
    MAX_GRID_DIM_Y = 206
    MAX_GRID_DIM_Z = 207
    MAX_BLOCK_PER_GRID = 208
    MAX_THREADS_PER_BLOCK = 209
    MAX_BLOCK_DIM_X = 210
    MAX_BLOCK_DIM_Y = 211
    MAX_BLOCK_DIM_Z = 212
    TOTAL_GLOBAL_MEM_SIZE = 301
    L2_CACHE_SIZE = 302
    SMP_ID = 401
    PHY_CHIP_ID = 402
    SUPER_POD_DEVICE_ID = 403
    SUPER_POD_SERVER_ID = 404
    SUPER_POD_ID = 405
    CUST_OP_PRIVILEGE = 406
    MAINBOARD_ID = 407
    HD_CONNECT_TYPE = 408
    IS_VIRTUAL = 501
    NPU_ARCH = 601


class DevResLimitType(IntEnum):
    CUBE_CORE = 0
    VECTOR_CORE = 1


class StreamAttr(IntEnum):
    FAILURE_MODE = 1
    FLOAT_OVERFLOW_CHECK = 2
    USER_CUSTOM_TAG = 3
    CACHE_OP_INFO = 4
    PRIORITY = 5


class HostRegisterType(IntEnum):
    MAPPED = 0
    IOMEMORY = 4
    READONLY = 8


class MemType(IntEnum):
    DEVICE = 0
    HOST = 1
    HOST_COMPILE_INDEPENDENT = 2


class CANNPackageName(IntEnum):
    CANN = 0
    RUNTIME = 1
    COMPILER = 2
    HCCL = 3
    TOOLKIT = 4
    OPP = 5
    OPP_KERNEL = 6
    DRIVER = 7


class EventFlag(IntFlag):
    SYNC = 0x1
    CAPTURE_STREAM_PROGRESS = 0x2
    TIME_LINE = 0x8
    DEVICE_USE_ONLY = 0x10
    EXTERNAL = 0x20
    IPC = 0x40


class StreamFlag(IntFlag):
    FAST_LAUNCH = 0x1
    FAST_SYNC = 0x2
    PERSISTENT = 0x4
    HUGE = 0x8
    CPU_SCHEDULE = 0x10
    DEVICE_USE_ONLY = 0x20


class FailureMode(IntEnum):
    CONTINUE_ON_FAILURE = 0
    STOP_ON_FAILURE = 1


#: C type -> (Python class, prefix of the enumerators); names that do not follow the prefix stand in C_NAMES.
C_ENUMS: dict[str, tuple[type[IntEnum] | type[IntFlag], str]] = {
    "aclDataType": (DataType, "ACL_"),
    "aclFormat": (Format, "ACL_FORMAT_"),
    "aclrtRunMode": (RunMode, "ACL_"),
    "aclrtMemcpyKind": (MemcpyKind, "ACL_MEMCPY_"),
    "aclrtMemMallocPolicy": (MemMallocPolicy, "ACL_MEM_MALLOC_"),
    "aclrtMemAttr": (MemAttr, "ACL_"),
    "aclrtMemLocationType": (MemLocationType, "ACL_MEM_LOCATION_TYPE_"),
    "aclrtStreamStatus": (StreamStatus, "ACL_STREAM_STATUS_"),
    "aclrtEventRecordedStatus": (EventRecordedStatus, "ACL_EVENT_RECORDED_STATUS_"),
    "aclrtEventStatus": (EventStatus, "ACL_EVENT_STATUS_"),
    "aclrtEventWaitStatus": (EventWaitStatus, "ACL_EVENT_WAIT_STATUS_"),
    "aclrtCallbackBlockType": (CallbackBlockType, "ACL_CALLBACK_"),
    "aclSysParamOpt": (SysParamOpt, "ACL_OPT_"),
    "aclrtLastErrLevel": (LastErrLevel, "ACL_RT_"),
    "aclrtFloatOverflowMode": (FloatOverflowMode, "ACL_RT_OVERFLOW_MODE_"),
    "aclrtDeviceStatus": (DeviceStatus, "ACL_RT_DEVICE_STATUS_"),
    "aclDeviceInfo": (DeviceInfo, "ACL_DEVICE_INFO_"),
    "aclrtDevAttr": (DevAttr, "ACL_DEV_ATTR_"),
    "aclrtDevResLimitType": (DevResLimitType, "ACL_RT_DEV_RES_"),
    "aclrtStreamAttr": (StreamAttr, "ACL_STREAM_ATTR_"),
    "aclrtHostRegisterType": (HostRegisterType, "ACL_HOST_REGISTER_"),
    "aclMemType": (MemType, "ACL_MEMTYPE_"),
    "aclCANNPackageName": (CANNPackageName, "ACL_PKG_NAME_"),
}

#: Enumerators whose C name is not prefix + name.
C_NAMES: dict[tuple[str, str], str] = {
    ("aclDataType", "UNDEFINED"): "ACL_DT_UNDEFINED",
    ("aclFormat", "FRACTAL_Z_3D"): "ACL_FRACTAL_Z_3D",
    ("aclrtMemMallocPolicy", "TYPE_LOW_BAND_WIDTH"): "ACL_MEM_TYPE_LOW_BAND_WIDTH",
    ("aclrtMemMallocPolicy", "TYPE_HIGH_BAND_WIDTH"): "ACL_MEM_TYPE_HIGH_BAND_WIDTH",
    ("aclrtMemMallocPolicy", "ACCESS_USER_SPACE_READONLY"): "ACL_MEM_ACCESS_USER_SPACE_READONLY",
}

#: C macros: name prefix -> class.
C_MACROS: dict[str, type[IntEnum] | type[IntFlag]] = {
    "ACL_EVENT_": EventFlag,
    "ACL_STREAM_": StreamFlag,
    "ACL_": FailureMode,
}

#: Bytes of one element; 0 for a type that has no whole number of bytes, or none at all (as aclDataTypeSize).
ITEMSIZE: dict[int, int] = {
    DataType.FLOAT: 4,
    DataType.FLOAT16: 2,
    DataType.INT8: 1,
    DataType.INT32: 4,
    DataType.UINT8: 1,
    DataType.INT16: 2,
    DataType.UINT16: 2,
    DataType.UINT32: 4,
    DataType.INT64: 8,
    DataType.UINT64: 8,
    DataType.DOUBLE: 8,
    DataType.BOOL: 1,
    DataType.COMPLEX64: 8,
    DataType.COMPLEX128: 16,
    DataType.BF16: 2,
    DataType.COMPLEX32: 4,
    DataType.HIFLOAT8: 1,
    DataType.FLOAT8_E5M2: 1,
    DataType.FLOAT8_E4M3FN: 1,
    DataType.FLOAT8_E8M0: 1,
}

_DTYPE_NAMES = {int(t): t.name for t in DataType}
_DT_SPELLING = {"BF16": "DT_BFLOAT16", "FLOAT": "DT_FLOAT", "UNDEFINED": "DT_UNDEFINED"}


def dtype_name(code: int) -> str:
    """``FLOAT16`` for 1; the number itself where no type has it."""
    return _DTYPE_NAMES.get(code, str(code))


def dt(code: int) -> str:
    """A data type as CANN's messages spell it: ``DT_FLOAT16``, ``DT_BFLOAT16``; ``DT_UNKNOWN(n)`` for no type."""
    name = _DTYPE_NAMES.get(code)
    if name is None:
        return f"DT_UNKNOWN({code})"
    return _DT_SPELLING.get(name, f"DT_{name}")
