"""acl.rt: contexts and system parameters."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_argument, bad_value, need_context, null
from emu.acl.rt._device import find_device
from emu.runtime import context, errors, handles, process
from emu.runtime.context import Context
from emu.status import Status

_NO_CONTEXT = int(Status.ACL_ERROR_RT_CONTEXT_NULL)
_SETUP = int(Status.ACL_ERROR_RT_DEV_SETUP_ERROR)
_NOT_SET = int(Status.ACL_ERROR_RT_SYSPARAMOPT_NOT_SET)
#: The options that a context has; the process has one more, 3 (early start of kernels).
_CONTEXT_OPTIONS = (0, 1, 2)
_PROCESS_OPTIONS = (0, 1, 2, 3)


@entry("aclrtCreateContext(out aclrtContext context, int32_t deviceId)")
def create_context(deviceId: int) -> tuple[int, int]:
    """(explicit context, code); it becomes current in this thread. 107001: no such device; 507033: it cannot be opened."""
    if context.forked():
        return 0, errors.fail(_SETUP, "EE1019", "aclrtCreateContext: this process was forked from one with an open device")
    found = find_device("aclrtCreateContext", deviceId)
    if isinstance(found, int):
        return 0, found
    try:
        made = found.create_context()
    except MemoryError as error:
        return 0, errors.fail(_SETUP, "EE1019", f"aclrtCreateContext: device {deviceId} cannot be opened: {error}")
    context.set_current(made)
    return made.handle, 0


@entry("aclrtDestroyContext(aclrtContext context)")
def destroy_context(context: int) -> int:
    """Wait for the work of an explicit context and end it with its streams. 100000: null; 107002: primary, destroyed or no context."""
    if not context:
        return null("aclrtDestroyContext", "context")
    found = handles.lookup(context, Context)
    if found is None:
        return errors.fail(_NO_CONTEXT, "EE1017", f"aclrtDestroyContext: {context:#x} is no live context (destroyed before?)")
    if found.primary:
        text = "aclrtDestroyContext: the primary context is aclrtSetDevice's; aclrtResetDevice ends it"
        return errors.fail(_NO_CONTEXT, "EE1017", text)
    found.device.destroy_context(found)
    return 0


@entry("aclrtSetCurrentContext(aclrtContext context)")
def set_context(context: int) -> int:
    """Make a context current in this thread. 100000: null; 107002: no live context."""
    from emu.runtime.context import set_current

    if not context:
        return null("aclrtSetCurrentContext", "context")
    found = handles.lookup(context, Context)
    if found is None:
        return errors.fail(_NO_CONTEXT, "EE1017", f"aclrtSetCurrentContext: {context:#x} is no live context")
    set_current(found)
    return 0


@entry("aclrtGetCurrentContext(out aclrtContext context)")
def get_context() -> tuple[int, int]:
    """(this thread's context, code). 107002 when it has none."""
    ctx = need_context("aclrtGetCurrentContext")
    return (0, ctx) if isinstance(ctx, int) else (ctx.handle, 0)


@entry("aclrtCtxGetCurrentDefaultStream(out aclrtStream stream)")
def ctx_get_current_default_stream() -> tuple[int, int]:
    """(default stream of this thread's context, code). 107002 when it has none."""
    ctx = need_context("aclrtCtxGetCurrentDefaultStream")
    return (0, ctx) if isinstance(ctx, int) else (ctx.default_stream.handle, 0)


@entry("aclrtGetPrimaryCtxState(int32_t deviceId, uint32_t* flags, out int32_t active)")
def get_primary_ctx_state(deviceId: int, flags: int) -> tuple[int, int]:
    """(1 when the device's primary context exists, code). 107000: ``flags`` is reserved and must be null; 107001: no such device."""
    if flags:
        return 0, bad_argument("aclrtGetPrimaryCtxState", "flags", hex(flags), "is reserved and must be null")
    found = find_device("aclrtGetPrimaryCtxState", deviceId)
    return (0, found) if isinstance(found, int) else (int(found.primary is not None), 0)


@entry("aclrtCtxSetSysParamOpt(aclSysParamOpt opt, int64_t value)")
def ctx_set_sys_param_opt(opt: int, value: int) -> int:
    """Set an option of the current context. 100000: no such option; 107002: no context."""
    if opt not in _CONTEXT_OPTIONS:
        return bad_value("aclrtCtxSetSysParamOpt", "opt", opt, "must be 0 to 2")
    ctx = need_context("aclrtCtxSetSysParamOpt")
    if isinstance(ctx, int):
        return ctx
    ctx.sys_params[opt] = value
    return 0


@entry("aclrtCtxGetSysParamOpt(aclSysParamOpt opt, out int64_t value)")
def ctx_get_sys_param_opt(opt: int) -> tuple[int, int]:
    """(value, code). 100000: no such option; 107002: no context; 107021: not set in this context."""
    if opt not in _CONTEXT_OPTIONS:
        return 0, bad_value("aclrtCtxGetSysParamOpt", "opt", opt, "must be 0 to 2")
    ctx = need_context("aclrtCtxGetSysParamOpt")
    if isinstance(ctx, int):
        return 0, ctx
    if opt not in ctx.sys_params:
        return 0, errors.fail(_NOT_SET, "EE1003", f"aclrtCtxGetSysParamOpt: option {opt} was not set in this context")
    return ctx.sys_params[opt], 0


@entry("aclrtSetSysParamOpt(aclSysParamOpt opt, int64_t value)")
def set_sys_param_opt(opt: int, value: int) -> int:
    """Set an option of the process: what aclnn reads in phase 1. 100000: no such option."""
    if opt not in _PROCESS_OPTIONS:
        return bad_value("aclrtSetSysParamOpt", "opt", opt, "must be 0 to 3")
    process.sys_params[opt] = value
    return 0


@entry("aclrtGetSysParamOpt(aclSysParamOpt opt, out int64_t value)")
def get_sys_param_opt(opt: int) -> tuple[int, int]:
    """(value, code); 0 when it was never set. 100000: no such option."""
    if opt not in _PROCESS_OPTIONS:
        return 0, bad_value("aclrtGetSysParamOpt", "opt", opt, "must be 0 to 3")
    return process.sys_params.get(opt, 0), 0


__all__ = [*names(__name__)]
