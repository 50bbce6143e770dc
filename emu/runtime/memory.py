"""Device memory: a range that the host cannot touch, a range of the same size that backs it, and the blocks in it.

Device address + ``Memory.delta`` = backing address. Freed blocks are kept for reuse by their size; beyond :data:`KEEP_BYTES` they are
merged and their pages given back to the system.
"""

from __future__ import annotations

import os
import threading
from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict

from emu.runtime import errors, hooks, host
from emu.soc import SocProfile
from emu.status import Status

#: Device addresses of device i start at FIRST_ADDRESS + i * STRIDE where that is free (official diagnosis: "device addresses start 0x12").
FIRST_ADDRESS = 0x12_0000_0000_00
STRIDE = 1 << 38
#: Freed bytes that keep their pages for the next aclrtMalloc of the same size.
KEEP_BYTES = 256 << 20
#: Freed blocks that messages still know.
REMEMBER = 1024
#: aclrtMalloc promises 64; real cards give 512.
ALIGN = 512
#: Above this a block takes whole 2 MiB granules unless the policy says normal pages.
SMALL_LIMIT = 1 << 20
_SMALLEST = 64 << 20
_HUGE1G = (6, 7)
_NORMAL = (2, 5)

_OOM = int(Status.ACL_ERROR_RT_MEMORY_ALLOCATION)
_INVALID = int(Status.ACL_ERROR_RT_PARAM_INVALID)


class Allocation:
    """One block: [base, base + size) as asked for; ``reserved`` bytes are taken from the device."""

    __slots__ = ("base", "device", "freed", "reserved", "size")

    def __init__(self, base: int, size: int, reserved: int, device: int) -> None:
        self.base = base
        self.size = size
        self.reserved = reserved
        self.device = device
        self.freed = False

    def __str__(self) -> str:
        return f"{self.size} bytes at {self.base:#x}"


class Memory:
    """The memory of one device; thread safe. Raises MemoryError when not even 64 MiB of address space can be reserved."""

    def __init__(self, profile: SocProfile, device: int) -> None:
        self.profile = profile
        self.device = device
        self.total = profile.hbm_bytes
        self.base = self.end = self.delta = 0
        self._reserve()
        self._lock = threading.RLock()
        self._bases: list[int] = []
        self._live: dict[int, Allocation] = {}
        self._forget()

    def _reserve(self) -> None:
        size = (self.total + host.HUGE - 1) & -host.HUGE
        while size >= _SMALLEST:
            wish = FIRST_ADDRESS + self.device * STRIDE if self.device >= 0 else 0
            base = host.reserve(size, wish)
            backing = host.reserve(size + host.HUGE) if base else 0
            if backing:
                break
            if base:
                host.unmap(base, size)
            size = (size // 2) & -host.HUGE
        else:
            raise MemoryError("the system refuses even 64 MiB of address space (see ulimit -v)")
        if size < self.total:
            text = f"emu: device {self.device} has {size >> 20} MiB instead of {self.total >> 20}: address space is limited (ulimit -v)\n"
            os.write(2, text.encode())
            self.total = size
        self._mapping = (base, size, backing, size + host.HUGE)
        self.base = (base + host.HUGE - 1) & -host.HUGE if base % host.HUGE else base
        self.end = base + size
        # The same offset from a 2 MiB boundary on both sides: a huge-page block is aligned in both.
        self.delta = ((backing + host.HUGE - 1) & -host.HUGE) - self.base

    def _forget(self) -> None:
        self._bases.clear()
        self._live.clear()
        self._bins: dict[int, list[int]] = {}
        self._kept = 0
        self._spans: list[tuple[int, int]] = [(self.base, self.end)]
        self._committed = self.base
        self._recent: OrderedDict[int, Allocation] = OrderedDict()
        self.used = 0

    # -- allocation ------------------------------------------------------------------------------------------------------

    def reserved_for(self, size: int, policy: int, padding: int | None = None) -> int:
        """Bytes that a block of ``size`` takes: ((size + pad + 31) // 32) * 32, then whole pages of its kind."""
        kind = policy & 0xFF
        pad = 0 if kind in _HUGE1G else self.profile.malloc_padding if padding is None else padding
        rounded = (size + pad + 31) // 32 * 32
        if kind in _HUGE1G:
            return (rounded + (1 << 30) - 1) & -(1 << 30)
        if size > SMALL_LIMIT and kind not in _NORMAL:
            return (rounded + host.HUGE - 1) & -host.HUGE
        return (rounded + ALIGN - 1) & -ALIGN

    def malloc(self, size: int, policy: int, padding: int | None = None) -> tuple[int, int]:
        """(address, 0), or (0, 207001) when the device has no room. Content is undefined. ``size`` >= 1."""
        reserved = self.reserved_for(size, policy, padding)
        with self._lock:
            if reserved > self.total - self.used:
                return 0, self._no_room(size, f"{self.total - self.used} of {self.total} bytes are free")
            kept = self._bins.get(reserved)
            if kept:
                base = kept.pop()
                self._kept -= reserved
            else:
                base = self._carve(reserved) or (self._trim() and self._carve(reserved)) or 0
                if not base:
                    return 0, self._no_room(size, "no free range is long enough, or the system gives no more memory")
            self.used += reserved
            block = Allocation(base, size, reserved, self.device)
            self._live[base] = block
            insort(self._bases, base)
            self._recent.pop(base, None)
        if hooks.active is not None:
            hooks.active.allocated(self, block)
        return base, 0

    def _no_room(self, size: int, why: str) -> int:
        text = f"device {self.device} cannot allocate {size} bytes: {why}"
        return errors.fail(_OOM, "EL0004", text)

    def _carve(self, reserved: int) -> int:
        """First fit; 0 when no span is long enough or the kernel refuses to back it."""
        align = host.HUGE if reserved >= host.HUGE else ALIGN
        spans = self._spans
        for index, (start, end) in enumerate(spans):
            base = (start + align - 1) & -align
            if base + reserved > end:
                continue
            if not self._commit(base + reserved):
                return 0
            rest = []
            if base > start:
                rest.append((start, base))
            if base + reserved < end:
                rest.append((base + reserved, end))
            spans[index : index + 1] = rest
            if reserved >= host.HUGE:
                host.use_huge_pages(base + self.delta, reserved & -host.HUGE)
            return base
        return 0

    def _commit(self, end: int) -> bool:
        if end > self._committed:
            top = min((end + host.HUGE - 1) & -host.HUGE, self.end)
            if not host.commit(self._committed + self.delta, top - self._committed):
                return False
            self._committed = top
        return True

    def free(self, addr: int) -> int:
        """0, or 107000 for an address that no live block starts at. Does not wait for queued work."""
        with self._lock:
            block = self._live.pop(addr, None)
            if block is None:
                return errors.fail(_INVALID, "EL0003", f"aclrtFree: {addr:#x} is no live block: {self.nearest(addr)}")
            block.freed = True
            del self._bases[bisect_left(self._bases, addr)]
            self._bins.setdefault(block.reserved, []).append(addr)
            self._kept += block.reserved
            self.used -= block.reserved
            self._recent[addr] = block
            if len(self._recent) > REMEMBER:
                self._recent.popitem(last=False)
            if self._kept > KEEP_BYTES:
                self._trim()
        if hooks.active is not None:
            hooks.active.freed(self, block)
        return 0

    def _trim(self) -> bool:
        """Merge every kept block with its free neighbours and give the pages back; True when there was any."""
        if not self._kept:
            return False
        freed = [(base, base + size) for size, bases in self._bins.items() for base in bases]
        for start, end in freed:
            if end - start >= host.PAGE:
                low, high = (start + host.PAGE - 1) & -host.PAGE, end & -host.PAGE
                if high > low:
                    host.discard(low + self.delta, high - low)
        merged: list[tuple[int, int]] = []
        for start, end in sorted(self._spans + freed):
            if merged and merged[-1][1] == start:
                merged[-1] = (merged[-1][0], end)
            else:
                merged.append((start, end))
        self._spans = merged
        self._bins = {}
        self._kept = 0
        return True

    # -- questions -------------------------------------------------------------------------------------------------------

    def holds(self, addr: int) -> bool:
        """True for every address of the device's range, allocated or not."""
        return self.base <= addr < self.end

    def find(self, addr: int, nbytes: int) -> Allocation | None:
        """The one live block that holds all of [addr, addr + nbytes); None when there is none."""
        block = self._live.get(addr)
        if block is None:
            with self._lock:
                index = bisect_right(self._bases, addr) - 1
                if index < 0:
                    return None
                block = self._live[self._bases[index]]
        if nbytes < 0 or addr + nbytes > block.base + block.size or addr >= block.base + block.size:
            return None
        return block

    def nearest(self, addr: int) -> str:
        """Where ``addr`` lies, for messages: in which block, freed block, or beside which one."""
        with self._lock:
            return self._nearest(addr)

    def _nearest(self, addr: int) -> str:
        for block in reversed(self._recent.values()):
            if block.base <= addr < block.base + block.reserved:
                return f"it lies in the freed block of {block}"
        index = bisect_right(self._bases, addr)
        beside = [self._live[base] for base in self._bases[max(0, index - 1) : index + 1] if base in self._live]
        if not beside:
            return f"device {self.device} has no live block"
        best = min(beside, key=lambda b: max(b.base - addr, addr - b.base - b.size, 0))
        if best.base <= addr < best.base + best.size:
            return f"it lies {addr - best.base} bytes into the block of {best}"
        side = f"{addr - best.base - best.size} bytes after" if addr > best.base else f"{best.base - addr} bytes before"
        return f"it lies {side} the nearest block, {best}"

    def blocks(self) -> list[Allocation]:
        """The live blocks by address."""
        with self._lock:
            return [self._live[base] for base in self._bases]

    # -- life ------------------------------------------------------------------------------------------------------------

    def reset(self) -> None:
        """Forget every block and give all pages back. The range stays usable: a copy under way in another thread must not crash."""
        with self._lock:
            top = self._committed
            if top > self.base:
                host.discard(self.base + self.delta, top - self.base)
            self._forget()
            self._committed = top

    def close(self) -> None:
        """Give the address ranges back."""
        base, size, backing, backing_size = self._mapping
        with self._lock:
            self._forget()
            self._spans = []
            host.unmap(base, size)
            host.unmap(backing, backing_size)
            self.total = 0
