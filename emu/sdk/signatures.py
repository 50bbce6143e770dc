"""Every C function that the libraries export, as data: its prototype, its library and its header.

A prototype is C with two words added before a parameter: ``out`` (a pointer through which one value comes back; null is refused) and
``outopt`` (the same, null allowed). An Async function that public references write in short takes a stream as its last parameter.
Names that are known without a signature stand in :data:`ABSENT`; they are not declared, because a guessed signature would be
worse than a missing one.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

BASE = """
aclError aclInit(const char *configPath)
aclError aclFinalize(void)
aclError aclFinalizeReference(outopt uint64_t *refCount)
const char *aclGetRecentErrMsg(void)
aclError aclsysGetCANNVersion(aclCANNPackageName name, aclCANNPackageVersion *version)
aclError aclsysGetVersionStr(char *pkgName, char *versionStr)
aclError aclsysGetVersionNum(char *pkgName, out int32_t *versionNum)
float aclFloat16ToFloat(aclFloat16 value)
aclFloat16 aclFloatToFloat16(float value)
size_t aclDataTypeSize(aclDataType dataType)
aclDataBuffer *aclCreateDataBuffer(void *data, size_t size)
aclError aclGetDeviceCapability(uint32_t deviceId, aclDeviceInfo deviceInfo, out int64_t *value)
"""

RUNTIME = """
aclError aclrtPeekAtLastError(aclrtLastErrLevel level)
aclError aclrtGetLastError(aclrtLastErrLevel level)
aclError aclrtGetVersion(out int32_t *majorVersion, out int32_t *minorVersion, out int32_t *patchVersion)
aclError aclrtSetExceptionInfoCallback(aclrtExceptionInfoCallback callback)
uint32_t aclrtGetTaskIdFromExceptionInfo(const aclrtExceptionInfo *info)
uint32_t aclrtGetStreamIdFromExceptionInfo(const aclrtExceptionInfo *info)
uint32_t aclrtGetThreadIdFromExceptionInfo(const aclrtExceptionInfo *info)
uint32_t aclrtGetDeviceIdFromExceptionInfo(const aclrtExceptionInfo *info)
uint32_t aclrtGetErrorCodeFromExceptionInfo(const aclrtExceptionInfo *info)

aclError aclrtSetDevice(int32_t deviceId)
aclError aclrtResetDevice(int32_t deviceId)
aclError aclrtResetDeviceForce(int32_t deviceId)
aclError aclrtGetDevice(out int32_t *deviceId)
aclError aclrtGetDeviceCount(out uint32_t *count)
aclError aclrtGetRunMode(out aclrtRunMode *runMode)
const char *aclrtGetSocName(void)
aclError aclrtGetDeviceInfo(uint32_t deviceId, aclrtDevAttr attr, out int64_t *value)
aclError aclrtSynchronizeDevice(void)
aclError aclrtSynchronizeDeviceWithTimeout(int32_t timeout)
aclError aclrtQueryDeviceStatus(int32_t deviceId, out aclrtDeviceStatus *deviceStatus)
aclError aclrtDeviceGetStreamPriorityRange(out int32_t *leastPriority, out int32_t *greatestPriority)
aclError aclrtSetDeviceSatMode(aclrtFloatOverflowMode mode)
aclError aclrtSetDeviceResLimit(int32_t deviceId, aclrtDevResLimitType type, uint32_t value)

aclError aclrtCreateContext(out aclrtContext *context, int32_t deviceId)
aclError aclrtDestroyContext(aclrtContext context)
aclError aclrtSetCurrentContext(aclrtContext context)
aclError aclrtGetCurrentContext(out aclrtContext *context)
aclError aclrtCtxGetCurrentDefaultStream(out aclrtStream *stream)
aclError aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t *flags, out int32_t *active)
aclError aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)
aclError aclrtCtxGetSysParamOpt(aclSysParamOpt opt, out int64_t *value)
aclError aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)
aclError aclrtGetSysParamOpt(aclSysParamOpt opt, out int64_t *value)

aclError aclrtCreateStream(out aclrtStream *stream)
aclError aclrtCreateStreamWithConfig(out aclrtStream *stream, uint32_t priority, uint32_t flag)
aclError aclrtCreateStreamV2(out aclrtStream *stream, const aclrtStreamConfigHandle *handle)
aclError aclrtDestroyStream(aclrtStream stream)
aclError aclrtDestroyStreamForce(aclrtStream stream)
aclError aclrtSynchronizeStream(aclrtStream stream)
aclError aclrtSynchronizeStreamWithTimeout(aclrtStream stream, int32_t timeout)
aclError aclrtStreamQuery(aclrtStream stream, out aclrtStreamStatus *status)
aclError aclrtSetStreamFailureMode(aclrtStream stream, uint64_t mode)
aclError aclrtStreamAbort(aclrtStream stream)
aclError aclrtStreamGetId(aclrtStream stream, out int32_t *streamId)
aclError aclrtStreamGetPriority(aclrtStream stream, out uint32_t *priority)
aclError aclrtStreamGetFlags(aclrtStream stream, out uint32_t *flags)
aclError aclrtGetStreamAvailableNum(out uint32_t *streamCount)
aclError aclrtSetOpExecuteTimeOut(uint32_t timeout)
aclError aclrtSetOpExecuteTimeOutV2(uint64_t timeout, out uint64_t *actualTimeout)
aclError aclrtGetOpExecuteTimeout(out uint32_t *timeout)
aclError aclrtSetOpWaitTimeout(uint32_t timeout)

aclError aclrtCreateEvent(out aclrtEvent *event)
aclError aclrtCreateEventWithFlag(out aclrtEvent *event, uint32_t flag)
aclError aclrtCreateEventExWithFlag(out aclrtEvent *event, uint32_t flag)
aclError aclrtDestroyEvent(aclrtEvent event)
aclError aclrtRecordEvent(aclrtEvent event, aclrtStream stream)
aclError aclrtResetEvent(aclrtEvent event, aclrtStream stream)
aclError aclrtStreamWaitEvent(aclrtStream stream, aclrtEvent event)
aclError aclrtStreamWaitEventWithTimeout(aclrtStream stream, aclrtEvent event, int32_t timeout)
aclError aclrtQueryEventStatus(aclrtEvent event, out aclrtEventRecordedStatus *status)
aclError aclrtQueryEvent(aclrtEvent event, out aclrtEventStatus *status)
aclError aclrtQueryEventWaitStatus(aclrtEvent event, out aclrtEventWaitStatus *status)
aclError aclrtSynchronizeEvent(aclrtEvent event)
aclError aclrtSynchronizeEventWithTimeout(aclrtEvent event, int32_t timeout)
aclError aclrtEventElapsedTime(out float *ms, aclrtEvent startEvent, aclrtEvent endEvent)
aclError aclrtEventGetTimestamp(aclrtEvent event, out uint64_t *timestamp)

aclError aclrtMalloc(out void **devPtr, size_t size, aclrtMemMallocPolicy policy)
aclError aclrtMallocWithCfg(out void **devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig *cfg)
aclError aclrtMallocHost(out void **hostPtr, size_t size)
aclError aclrtFree(void *devPtr)
aclError aclrtFreeHost(void *hostPtr)
aclError aclrtMemcpy(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind)
aclError aclrtMemcpyAsync(void *dst, size_t destMax, const void *src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)
aclError aclrtMemset(void *devPtr, size_t maxCount, int32_t value, size_t count)
aclError aclrtMemsetAsync(void *devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)
aclError aclrtMemsetD32(void *devPtr, size_t memSize, uint32_t value, size_t num)
aclError aclrtMemsetD32Async(void *devPtr, size_t memSize, uint32_t value, size_t num, aclrtStream stream)
aclError aclrtMemcpy2d(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind)
aclError aclrtMemcpy2dAsync(void *dst, size_t dpitch, const void *src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, aclrtStream stream)
aclError aclrtGetMemInfo(aclrtMemAttr attr, out size_t *free, out size_t *total)
aclError aclrtPointerGetAttributes(const void *ptr, aclrtPtrAttributes *attributes)
aclError aclrtHostRegister(void *ptr, uint64_t size, aclrtHostRegisterType type, out void **devPtr)
aclError aclrtHostRegisterV2(void *ptr, uint64_t size, uint32_t flag)
aclError aclrtMemPoolCreate(out aclrtMemPool *memPool, const aclrtMemPoolProps *poolProps)
aclError aclrtMemPoolMallocAsync(out void **ptr, size_t size, aclrtMemPool memPool, aclrtStream stream)
aclError aclrtMemPoolFreeAsync(void *ptr, aclrtStream stream)
aclError aclrtMemPoolTrimTo(aclrtMemPool memPool, size_t minBytesToKeep)

aclError aclrtLaunchCallback(aclrtCallback fn, void *userData, aclrtCallbackBlockType blockType, aclrtStream stream)
aclError aclrtSubscribeReport(uint64_t threadId, aclrtStream stream)
aclError aclrtUnSubscribeReport(uint64_t threadId, aclrtStream stream)
aclError aclrtProcessReport(int32_t timeout)
aclError aclrtLaunchHostFunc(aclrtStream stream, aclrtHostFunc fn, void *args)
"""  # noqa: E501

META = """
aclTensor *aclCreateTensor(const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum, void *tensorData)
aclScalar *aclCreateScalar(void *value, aclDataType dataType)
aclIntArray *aclCreateIntArray(const int64_t *value, uint64_t size)
aclFloatArray *aclCreateFloatArray(const float *value, uint64_t size)
aclBoolArray *aclCreateBoolArray(const bool *value, uint64_t size)
aclTensorList *aclCreateTensorList(const aclTensor *const *value, uint64_t size)
aclScalarList *aclCreateScalarList(const aclScalar *const *value, uint64_t size)
aclnnStatus aclDestroyTensor(const aclTensor *tensor)
aclnnStatus aclDestroyScalar(const aclScalar *scalar)
aclnnStatus aclDestroyIntArray(const aclIntArray *array)
aclnnStatus aclDestroyFloatArray(const aclFloatArray *array)
aclnnStatus aclDestroyBoolArray(const aclBoolArray *array)
aclnnStatus aclDestroyTensorList(const aclTensorList *array)
aclnnStatus aclDestroyScalarList(const aclScalarList *array)
aclnnStatus aclInitTensor(aclTensor *tensor, const int64_t *viewDims, uint64_t viewDimsNum, aclDataType dataType, const int64_t *stride, int64_t offset, aclFormat format, const int64_t *storageDims, uint64_t storageDimsNum, void *tensorDataAddr)
aclnnStatus aclGetViewShape(const aclTensor *tensor, int64_t **viewDims, uint64_t *viewDimsNum)
aclnnStatus aclGetStorageShape(const aclTensor *tensor, int64_t **storageDims, uint64_t *storageDimsNum)
aclnnStatus aclGetViewStrides(const aclTensor *tensor, int64_t **stridesValue, uint64_t *stridesNum)
aclnnStatus aclGetViewOffset(const aclTensor *tensor, out int64_t *offset)
aclnnStatus aclGetFormat(const aclTensor *tensor, out aclFormat *format)
aclnnStatus aclGetDataType(const aclTensor *tensor, out aclDataType *dataType)
aclnnStatus aclGetIntArraySize(const aclIntArray *array, out uint64_t *size)
aclnnStatus aclGetFloatArraySize(const aclFloatArray *array, out uint64_t *size)
aclnnStatus aclGetBoolArraySize(const aclBoolArray *array, out uint64_t *size)
aclnnStatus aclGetTensorListSize(const aclTensorList *tensorList, out uint64_t *size)
aclnnStatus aclGetScalarListSize(const aclScalarList *scalarList, out uint64_t *size)
aclnnStatus aclGetRawTensorAddr(const aclTensor *tensor, out void **addr)
aclnnStatus aclSetRawTensorAddr(aclTensor *tensor, void *addr)
"""  # noqa: E501

EXECUTOR = """
aclnnStatus aclnnInit(const char *configPath)
aclnnStatus aclnnFinalize(void)
aclnnStatus aclSetAclOpExecutorRepeatable(aclOpExecutor *executor)
aclnnStatus aclDestroyAclOpExecutor(aclOpExecutor *executor)
aclnnStatus aclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus aclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus aclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus aclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus aclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus aclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus AclSetInputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus AclSetOutputTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus AclSetTensorAddr(aclOpExecutor *executor, const size_t index, aclTensor *tensor, void *addr)
aclnnStatus AclSetDynamicInputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus AclSetDynamicOutputTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus AclSetDynamicTensorAddr(aclOpExecutor *executor, size_t irIndex, const size_t relativeIndex, aclTensorList *tensors, void *addr)
aclnnStatus aclDumpOpTensors(const char *opType, const char *opName, aclTensor **tensors, size_t inputTensorNum, size_t outputTensorNum, aclrtStream stream)
"""  # noqa: E501

#: Known by name only.
ABSENT = (
    "aclUpdateDataBuffer", "aclrtGetDeviceUtilizationRate", "aclrtDeviceCanAccessPeer", "aclrtDeviceEnablePeerAccess",
    "aclrtDeviceDisablePeerAccess", "aclrtResetDeviceResLimit", "aclrtCreateStreamConfigHandle", "aclrtDestroyStreamConfigHandle",
    "aclrtSetStreamConfigOpt", "aclrtSetStreamAttribute", "aclrtGetStreamAttribute", "aclrtMemFlush", "aclrtMemInvalidate",
    "aclrtMemcpyBatch", "aclrtMemcpyBatchV2", "aclrtMemcpyBatchAsync", "aclrtMemcpyBatchAsyncV2", "aclrtReserveMemAddress",
    "aclrtReleaseMemAddress", "aclrtMallocPhysical", "aclrtFreePhysical", "aclrtMapMem", "aclrtUnmapMem",
    "aclrtMemGetAllocationGranularity", "aclrtSetOpExecuteTimeOutWithMs", "aclrtMemPoolDestroy", "aclrtMemPoolSetAttr",
    "aclrtMemPoolGetAttr", "aclDestroyDataBuffer", "aclGetDataBufferAddr", "aclGetDataBufferSize", "aclGetDataBufferSizeV2",
    "aclrtGetDeviceSatMode", "aclrtGetDeviceResLimit", "aclrtMallocAlign32", "aclrtMallocCached", "aclrtFreeWithDevSync",
    "aclrtFreeHostWithDevSync", "aclrtHostUnregister", "aclnnInplaceZero", "aclnnInplaceZeroGetWorkspaceSize",
)  # fmt: skip


class Parameter(NamedTuple):
    """``ctype`` is the C type as declared; ``direction`` is "in", "out" or "outopt"."""

    ctype: str
    name: str
    direction: str

    @property
    def declaration(self) -> str:
        """``const int64_t *viewDims``."""
        return f"{self.ctype}{self.name}" if self.ctype.endswith("*") else f"{self.ctype} {self.name}"


class Function(NamedTuple):
    """One exported function. ``library`` is "ascendcl", "nnopbase" or "opapi"; ``header`` its path below include/."""

    name: str
    result: str
    params: tuple[Parameter, ...]
    library: str
    header: str

    @property
    def prototype(self) -> str:
        """The C prototype without its semicolon."""
        star = "" if self.result.endswith("*") else " "
        return f"{self.result}{star}{self.name}({', '.join(p.declaration for p in self.params) or 'void'})"

    @property
    def abi(self) -> str:
        """The type of its slot, in exact-width words: pointers that come in are uintptr_t, what goes out keeps its pointer."""
        return f"{_word(self.result)}({', '.join(_slot_type(p) for p in self.params)})"


_WORDS = {
    "int64_t": "int64_t", "uint64_t": "uint64_t", "size_t": "size_t", "uint32_t": "uint32_t", "int32_t": "int32_t",
    "float": "float", "aclFloat16": "uint16_t", "double": "double", "bool": "_Bool",
}  # fmt: skip
#: Types that are pointers without a star: handles and functions.
HANDLES = ("aclrtStream", "aclrtEvent", "aclrtContext", "aclrtMemPool")
_FUNCTIONS = ("aclrtCallback", "aclrtHostFunc", "aclrtExceptionInfoCallback")


def _word(ctype: str) -> str:
    plain = ctype.removeprefix("const ").strip()
    if plain.endswith("*") or plain in HANDLES or plain in _FUNCTIONS:
        return "uintptr_t"
    # What is left is an enumeration or a return code: 32 bits.
    return _WORDS.get(plain, "int32_t")


def _slot_type(p: Parameter) -> str:
    return _word(p.ctype) if p.direction == "in" else _word(p.ctype.strip().removesuffix("*")) + " *"


_PROTOTYPE = re.compile(r"(?P<result>.*?[ *])(?P<name>\w+)\((?P<params>.*)\)$")
_PARAMETER = re.compile(r"(?:(?P<direction>out|outopt) )?(?P<ctype>.*?[ *])(?P<name>\w+)$")


def parse(text: str, library: str, header: str) -> list[Function]:
    """The functions of a block of prototypes, one a line."""
    functions = []
    for line in filter(None, map(str.strip, text.splitlines())):
        match = _PROTOTYPE.match(line)
        if match is None:
            raise ValueError(f"no prototype: {line}")
        params = []
        for item in match["params"].split(", ") if match["params"] != "void" else ():
            part = _PARAMETER.match(item)
            if part is None:
                raise ValueError(f"no parameter: {item} in {line}")
            params.append(Parameter(part["ctype"].strip(), part["name"], part["direction"] or "in"))
        functions.append(Function(match["name"], match["result"].strip(), tuple(params), library, header))
    return functions


@cache
def operators() -> tuple[Function, ...]:
    """Two functions for each declared operator."""
    from emu.opdef.catalogue import OPERATORS

    phase_two = "(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream)"
    functions: list[Function] = []
    for op in OPERATORS:
        params = ", ".join(p.c_declaration for p in op.params)
        text = (
            f"aclnnStatus {op.name}GetWorkspaceSize({params}, out uint64_t *workspaceSize, out aclOpExecutor **executor)\n"
            f"aclnnStatus {op.name}{phase_two}"
        )
        functions += parse(text, "opapi", f"aclnnop/aclnn_{op.stem}.h")
    return tuple(functions)


@cache
def functions() -> tuple[Function, ...]:
    """Everything that the libraries export, in the order of the slots."""
    return (
        *parse(BASE, "ascendcl", "acl/acl_base.h"),
        *parse(RUNTIME, "ascendcl", "acl/acl_rt.h"),
        *parse(META, "nnopbase", "aclnn/acl_meta.h"),
        *parse(EXECUTOR, "nnopbase", "aclnn/aclnn_base.h"),
        *operators(),
    )


@cache
def by_name() -> dict[str, Function]:
    return {f.name: f for f in functions()}
