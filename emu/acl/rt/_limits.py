"""acl.rt: time limits of kernels and of waits on the device."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import need_context
from emu.runtime import process


def _execute_timeout(function: str, microseconds: int) -> int:
    ctx = need_context(function)
    if isinstance(ctx, int):
        return ctx
    process.execute_timeout_us = microseconds
    return 0


@entry("aclrtSetOpExecuteTimeOut(uint32_t timeout)")
def set_op_execute_time_out(timeout: int) -> int:
    """Limit of one kernel in seconds, 0 = the product's default. Remembered only: simulated kernels end. 107002."""
    return _execute_timeout("aclrtSetOpExecuteTimeOut", timeout * 1_000_000)


@entry("aclrtSetOpExecuteTimeOutWithMs(uint32_t timeout)", c_known=False)
def set_op_execute_time_out_with_ms(timeout: int) -> int:
    """As set_op_execute_time_out, in milliseconds."""
    return _execute_timeout("aclrtSetOpExecuteTimeOutWithMs", timeout * 1000)


@entry("aclrtSetOpExecuteTimeOutV2(uint64_t timeout, out uint64_t actualTimeout)")
def set_op_execute_time_out_v2(timeout: int) -> tuple[int, int]:
    """(microseconds in force, code)."""
    code = _execute_timeout("aclrtSetOpExecuteTimeOutV2", timeout)
    return (0, code) if code else (timeout, 0)


@entry("aclrtGetOpExecuteTimeout(out uint32_t timeoutMs)")
def get_op_execute_timeout() -> tuple[int, int]:
    """(limit of one kernel in milliseconds, code). 107002."""
    ctx = need_context("aclrtGetOpExecuteTimeout")
    if isinstance(ctx, int):
        return 0, ctx
    return min(process.execute_timeout_us // 1000 or ctx.device.profile.op_timeout_s * 1000, 0xFFFFFFFF), 0


@entry("aclrtSetOpWaitTimeout(uint32_t timeout)")
def set_op_wait_timeout(timeout: int) -> int:
    """Seconds that a stream's wait for an event queued from now on may last (0 = no limit): 107019 at the next synchronisation. 107002."""
    ctx = need_context("aclrtSetOpWaitTimeout")
    if isinstance(ctx, int):
        return ctx
    process.wait_timeout_s = timeout
    return 0


__all__ = [*names(__name__)]
