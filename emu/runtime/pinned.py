"""Host memory that the device may copy to and from by itself: aclrtMallocHost blocks and aclrtHostRegister ranges."""

from __future__ import annotations

import os
import threading
from bisect import bisect_right, insort

from emu.runtime import errors, host
from emu.status import Status

_OOM = int(Status.ACL_ERROR_RT_MEMORY_ALLOCATION)
_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)
_REGISTERED = int(Status.ACL_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
_UNREGISTERED = int(Status.ACL_ERROR_HOST_MEMORY_NOT_REGISTERED)


class Pinned:
    """[base, base + size): ours (``mapped`` bytes of pages) or the user's (``mapped`` 0). ``users`` counts queued copies."""

    __slots__ = ("base", "freed", "mapped", "size", "users")

    def __init__(self, base: int, size: int, mapped: int) -> None:
        self.base = base
        self.size = size
        self.mapped = mapped
        self.users = 0
        self.freed = False


_lock = threading.Lock()
_bases: list[int] = []
_blocks: dict[int, Pinned] = {}


def _physical() -> int:
    return os.sysconf("SC_PHYS_PAGES") * host.PAGE


def malloc(size: int) -> tuple[int, int]:
    """(address, 0), or (0, 207001) when it is more than the machine's memory."""
    mapped = (size + host.PAGE - 1) & -host.PAGE
    base = host.map_pages(mapped) if mapped <= _physical() else 0
    if not base:
        return 0, errors.fail(_OOM, "EE1013", f"aclrtMallocHost: the host has no {size} bytes to pin")
    if mapped >= 2 * host.HUGE:
        host.use_huge_pages(base, mapped)
    _add(Pinned(base, size, mapped))
    return base, 0


def _add(block: Pinned) -> None:
    with _lock:
        _blocks[block.base] = block
        insort(_bases, block.base)


def _take(addr: int, *, ours: bool) -> Pinned | None:
    with _lock:
        block = _blocks.get(addr)
        if block is None or (block.mapped > 0) != ours:
            return None
        del _blocks[addr]
        _bases.remove(addr)
        block.freed = True
        unused = block.users == 0
    if ours and unused:
        host.unmap(block.base, block.mapped)
    return block


def free(addr: int) -> int:
    """0, or 107000 for an address that aclrtMallocHost did not give or that was freed. Does not wait for queued copies."""
    if _take(addr, ours=True) is None:
        return errors.fail(_INVALID, "EL0003", f"aclrtFreeHost: {addr:#x} is no block of aclrtMallocHost (freed before?)")
    return 0


def find(addr: int, nbytes: int) -> Pinned | None:
    """The pinned block that holds all of [addr, addr + nbytes)."""
    with _lock:
        index = bisect_right(_bases, addr) - 1
        block = _blocks[_bases[index]] if index >= 0 else None
    return block if block is not None and addr + nbytes <= block.base + block.size else None


def use(block: Pinned) -> None:
    """A queued copy needs the pages from now on, freed or not."""
    with _lock:
        block.users += 1


def done(block: Pinned) -> None:
    """The copy has run or was dropped."""
    with _lock:
        block.users -= 1
        last = block.freed and block.users == 0 and block.mapped > 0
    if last:
        host.unmap(block.base, block.mapped)


def register(addr: int, size: int) -> int:
    """Pin the user's own memory: 107000 for a range that is not mapped, 507910 when any of it is pinned already."""
    if not host.writable(addr, size):
        return errors.fail(_INVALID, "EL0003", f"aclrtHostRegister: [{addr:#x}, +{size}) is not mapped")
    with _lock:
        if any(b.base < addr + size and addr < b.base + b.size for b in _blocks.values()):
            return errors.fail(_REGISTERED, "EL0003", f"aclrtHostRegister: [{addr:#x}, +{size}) is pinned already")
    _add(Pinned(addr, size, 0))
    return 0


def unregister(addr: int) -> int:
    """0, or 507911 when no registered range starts at ``addr``."""
    if _take(addr, ours=False) is None:
        return errors.fail(_UNREGISTERED, "EL0003", f"aclrtHostUnregister: no registered range starts at {addr:#x}")
    return 0


def forget_after_fork() -> None:
    """In a forked child nobody holds the lock any more."""
    global _lock
    _lock = threading.Lock()
