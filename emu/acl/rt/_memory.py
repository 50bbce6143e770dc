"""acl.rt: allocation, host memory, questions about addresses."""

from __future__ import annotations

from typing import NamedTuple

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_value, need_context, null
from emu.acl.rt._device import synchronize_device
from emu.runtime import device, errors, host, pinned
from emu.status import Status
from emu.types import MemAttr, MemLocationType

_RT_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)
_OWN_PINNED = 0x10000000
_REGISTER_FLAGS = 0x2 | 0x4 | 0x8 | _OWN_PINNED


class PtrAttributes(NamedTuple):
    """aclrtPtrAttributes: where an address lies (MemLocationType), on which device, and the page size there."""

    type: int
    id: int
    page_size: int


def _malloc(function: str, size: int, policy: int, padding: int | None) -> tuple[int, int]:
    if size == 0:
        return 0, bad_value(function, "size", size, "must not be 0")
    ctx = need_context(function)
    if isinstance(ctx, int):
        return 0, ctx
    return ctx.device.memory.malloc(size, policy, padding)


@entry("aclrtMalloc(out void* devPtr, size_t size, aclrtMemMallocPolicy policy)")
def malloc(size: int, policy: int) -> tuple[int, int]:
    """(device address, code). Content is undefined; the address a multiple of 64 (here 512), of 2 MiB for blocks of 2 MiB and more.

    100000: size 0; 107002: no context; 207001: no room. Any policy is accepted.
    """
    return _malloc("aclrtMalloc", size, policy, None)


@entry("aclrtMallocAlign32(out void* devPtr, size_t size, aclrtMemMallocPolicy policy)", c_known=False)
def malloc_align32(size: int, policy: int) -> tuple[int, int]:
    """As malloc, without the 32-byte pad."""
    return _malloc("aclrtMallocAlign32", size, policy, 0)


@entry("aclrtMallocCached(out void* devPtr, size_t size, aclrtMemMallocPolicy policy)", c_known=False)
def malloc_cached(size: int, policy: int) -> tuple[int, int]:
    """As malloc; the cache that mem_flush and mem_invalidate are about is not modelled."""
    return _malloc("aclrtMallocCached", size, policy, None)


@entry("aclrtMallocWithCfg(out void* devPtr, size_t size, aclrtMemMallocPolicy policy, aclrtMallocConfig* cfg)")
def malloc_with_cfg(size: int, policy: int, cfg: int) -> tuple[int, int]:
    """As malloc; the configuration's hints (0 = none) change nothing here."""
    return _malloc("aclrtMallocWithCfg", size, policy, None)


def _cache(function: str, addr: int, size: int) -> int:
    if not addr:
        return null(function, "devPtr")
    if size == 0:
        return bad_value(function, "size", size, "must not be 0")
    owner = device.owner(addr)
    if owner is None or owner.memory.find(addr, size) is None:
        where = owner.memory.nearest(addr) if owner is not None else "it is no device address"
        return errors.fail(_RT_INVALID, "EL0003", f"{function}: {addr:#x} with {size} bytes is in no live block: {where}")
    return 0


@entry("aclrtMemFlush(void* devPtr, size_t size)", c_known=False)
def mem_flush(devPtr: int, size: int) -> int:
    """Nothing to do: the host never holds device data back. 100000: null or size 0; 107000: in no live block."""
    return _cache("aclrtMemFlush", devPtr, size)


@entry("aclrtMemInvalidate(void* devPtr, size_t size)", c_known=False)
def mem_invalidate(devPtr: int, size: int) -> int:
    """As mem_flush."""
    return _cache("aclrtMemInvalidate", devPtr, size)


@entry("aclrtFree(void* devPtr)")
def free(devPtr: int) -> int:
    """Free a block at once, without waiting for streams. 100000: null; 107000: no live block starts there."""
    if not devPtr:
        return null("aclrtFree", "devPtr")
    owner = device.owner(devPtr)
    if owner is None:
        kind = "a block of aclrtMallocHost" if pinned.find(devPtr, 1) is not None else "no device address"
        return errors.fail(_RT_INVALID, "EL0003", f"aclrtFree: {devPtr:#x} is {kind}")
    return owner.memory.free(devPtr)


@entry("aclrtFreeWithDevSync(void* devPtr)", c_known=False)
def free_with_dev_sync(devPtr: int) -> int:
    """Wait for the device first. Codes of free, 107002, or the asynchronous fault."""
    if not devPtr:
        return null("aclrtFreeWithDevSync", "devPtr")
    return synchronize_device() or free(devPtr)


@entry("aclrtMallocHost(out void* hostPtr, size_t size)")
def malloc_host(size: int) -> tuple[int, int]:
    """(address of pinned host memory, code). 100000: size 0; 107002: no context; 207001: more than the host has."""
    if size == 0:
        return 0, bad_value("aclrtMallocHost", "size", size, "must not be 0")
    ctx = need_context("aclrtMallocHost")
    return (0, ctx) if isinstance(ctx, int) else pinned.malloc(size)


@entry("aclrtFreeHost(void* hostPtr)")
def free_host(hostPtr: int) -> int:
    """Free a block of malloc_host, without waiting: its pages live until queued copies that use it have run. 100000: null; 107000."""
    return pinned.free(hostPtr) if hostPtr else null("aclrtFreeHost", "hostPtr")


@entry("aclrtFreeHostWithDevSync(void* hostPtr)", c_known=False)
def free_host_with_dev_sync(hostPtr: int) -> int:
    """Wait for the device first. Codes of free_host, 107002, or the asynchronous fault."""
    if not hostPtr:
        return null("aclrtFreeHostWithDevSync", "hostPtr")
    return synchronize_device() or pinned.free(hostPtr)


@entry("aclrtGetMemInfo(aclrtMemAttr attr, out size_t free, out size_t total)")
def get_mem_info(attr: int) -> tuple[int, int, int]:
    """(free bytes, total bytes, code) of the current device, whichever kind is asked for. 100000: no such kind; 107002."""
    if not MemAttr.DDR_MEM <= attr <= MemAttr.HBM_MEM_P2P_HUGE1G:
        return 0, 0, bad_value("aclrtGetMemInfo", "attr", attr, "must be 0 to 11")
    ctx = need_context("aclrtGetMemInfo")
    if isinstance(ctx, int):
        return 0, 0, ctx
    memory = ctx.device.memory
    return memory.total - memory.used, memory.total, 0


@entry("aclrtPointerGetAttributes(const void* ptr, out aclrtPtrAttributes attributes)")
def pointer_get_attributes(ptr: int) -> tuple[PtrAttributes, int]:
    """(where the address lies, code): DEVICE for a live block, HOST for pinned memory, UNREGISTERED for everything else. 100000: null."""
    unknown = PtrAttributes(int(MemLocationType.UNREGISTERED), 0, 0)
    if not ptr:
        return unknown, null("aclrtPointerGetAttributes", "ptr")
    owner = device.owner(ptr)
    if owner is not None:
        block = owner.memory.find(ptr, 1)
        if block is None:
            return unknown, 0
        page = host.HUGE if block.reserved >= host.HUGE else host.PAGE
        return PtrAttributes(int(MemLocationType.DEVICE), owner.index, page), 0
    if pinned.find(ptr, 1) is not None:
        return PtrAttributes(int(MemLocationType.HOST), 0, host.PAGE), 0
    return unknown, 0


def _register(function: str, ptr: int, size: int) -> int:
    if not ptr:
        return null(function, "ptr")
    if size == 0:
        return bad_value(function, "size", size, "must not be 0")
    ctx = need_context(function)
    return ctx if isinstance(ctx, int) else pinned.register(ptr, size)


@entry("aclrtHostRegister(void* ptr, uint64_t size, aclrtHostRegisterType type, out void* devPtr)")
def host_register(ptr: int, size: int, type: int) -> tuple[int, int]:
    """(address for copies, here the host address itself; code): asynchronous copies from and to the range need no wait any more.

    Kernels cannot use it. 100000: null, size 0 or another type than 0; 107002; 107000: not mapped; 507910: registered already.
    """
    if ptr and size and type != 0:
        return 0, bad_value("aclrtHostRegister", "type", type, "must be 0 (mapped)")
    code = _register("aclrtHostRegister", ptr, size)
    return (0, code) if code else (ptr, 0)


@entry("aclrtHostRegisterV2(void* ptr, uint64_t size, uint32_t flag)")
def host_register_v2(ptr: int, size: int, flag: int) -> int:
    """As host_register, without an address. Flags MAPPED 2, IOMEMORY 4, READONLY 8, PINNED 0x10000000; 100000 for others."""
    if ptr and size and (not flag or flag & ~_REGISTER_FLAGS):
        return bad_value("aclrtHostRegisterV2", "flag", hex(flag), "has no or unknown bits")
    return _register("aclrtHostRegisterV2", ptr, size)


@entry("aclrtHostUnregister(void* ptr)", c_known=False)
def host_unregister(ptr: int) -> int:
    """End it. 100000: null; 507911: no registered range starts there."""
    return pinned.unregister(ptr) if ptr else null("aclrtHostUnregister", "ptr")


__all__ = ["PtrAttributes", *names(__name__)]
