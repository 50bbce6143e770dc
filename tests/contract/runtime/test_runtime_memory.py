"""Device memory, pinned memory, copies and fills."""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import random
import signal
import subprocess
import sys

import pytest

import emu
from emu.runtime import device, host, memory
from emu.runtime.memory import Memory
from emu.soc import profile
from emu.types import MemMallocPolicy


def run(code: str, **env: str) -> subprocess.CompletedProcess[str]:
    """A program of its own."""
    full = {**os.environ, **env}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=full, check=False)


@pytest.mark.parametrize(
    ("soc", "size", "policy", "reserved"),
    [
        ("Ascend910B1", 1, 0, 512),  # 1 + 32 pad → 64, then the 512-byte raster
        ("Ascend910B1", 448, 0, 512),
        ("Ascend910B1", 449, 0, 512),  # (449 + 63) // 32 * 32 = 512
        ("Ascend910B1", 481, 0, 1024),
        ("Ascend950PR_9599", 481, 0, 512),  # no pad
        ("Ascend950PR_9599", 512, 0, 512),
        ("Ascend910B1", 512, MemMallocPolicy.NORMAL_ONLY, 1024),
        ("Ascend910B1", 1 << 20, 0, (1 << 20) + 512),
        ("Ascend910B1", (1 << 20) + 1, 0, 2 << 20),
        ("Ascend910B1", 2 << 20, 0, 4 << 20),  # the pad tips it over
        ("Ascend950PR_9599", 2 << 20, 0, 2 << 20),
        ("Ascend910B1", 2 << 20, MemMallocPolicy.NORMAL_ONLY, (2 << 20) + 512),
        ("Ascend910B1", 5, MemMallocPolicy.HUGE1G_ONLY, 1 << 30),
        ("Ascend910B1", 1 << 30, MemMallocPolicy.HUGE1G_ONLY, 1 << 30),
        ("Ascend910B1", 1 << 30, MemMallocPolicy.HUGE_ONLY | MemMallocPolicy.TYPE_HIGH_BAND_WIDTH, (1 << 30) + (2 << 20)),
    ],
)
def test_what_a_block_takes(npu, soc, size, policy, reserved):
    npu.configure(soc=soc)
    npu.open()
    free, total, _ = npu.rt.get_mem_info(1)
    assert free == total == profile(soc).hbm_bytes
    ptr, ret = npu.rt.malloc(size, policy)
    assert ret == 0
    assert ptr % 512 == 0
    assert npu.rt.get_mem_info(1)[0] == total - reserved
    assert npu.rt.free(ptr) == 0
    assert npu.rt.get_mem_info(1)[0] == total


def test_align32_has_no_pad(npu):
    npu.open()
    total = npu.rt.get_mem_info(1)[1]
    ptr, _ = npu.rt.malloc_align32(512, 0)
    assert npu.rt.get_mem_info(1)[0] == total - 512
    assert npu.rt.free(ptr) == 0


def test_the_whole_device_and_not_a_byte_more(npu):
    npu.open()
    total = npu.rt.get_mem_info(1)[1]
    ptr, ret = npu.rt.malloc(total - 32, 0)
    assert ret == 0
    assert npu.rt.malloc(1, 0) == (0, 207001)
    assert str(total) in npu.message()
    assert npu.rt.free(ptr) == 0
    assert npu.rt.malloc(total - 31, 0) == (0, 207001)
    assert npu.rt.malloc(1, 0)[1] == 0


def test_holes_are_merged_when_a_block_needs_them(npu):
    """Freed blocks are kept by size; one that fits none of them takes their place all the same."""
    npu.open()
    total = npu.rt.get_mem_info(1)[1]
    eighth = total // 8 - (4 << 20)
    blocks = [npu.malloc(eighth) for _ in range(8)]
    for ptr in blocks[1:]:
        assert npu.rt.free(ptr) == 0
    big = npu.malloc(6 * eighth)
    assert big == blocks[1]
    assert npu.rt.free(big) == 0
    assert npu.rt.free(blocks[0]) == 0


def test_a_freed_block_is_used_again(npu):
    npu.open()
    small, large = npu.malloc(100), npu.malloc(3 << 20)
    for ptr, size in ((small, 100), (large, 3 << 20)):
        assert npu.rt.free(ptr) == 0
        assert npu.malloc(size) == ptr


def test_freed_pages_beyond_the_limit_go_back_to_the_system(npu, monkeypatch):
    monkeypatch.setattr(memory, "KEEP_BYTES", 32 << 20)
    npu.open()
    size = 16 << 20
    blocks = [npu.malloc(size) for _ in range(4)]
    for ptr in blocks:
        assert npu.rt.memset(ptr, size, 1, size) == 0

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    for ptr in blocks:
        assert npu.rt.free(ptr) == 0
    assert before - resident() >= 2 * size


def test_random_allocations_never_overlap(npu):
    npu.open()
    rng = random.Random(5)
    live: dict[int, int] = {}
    for _ in range(3000):
        if live and rng.random() < 0.45:
            ptr = rng.choice(list(live))
            assert npu.rt.free(ptr) == 0
            del live[ptr]
        else:
            size = rng.choice([1, 31, 512, 4096, 100_000, 1 << 20, (1 << 20) + 1, 5 << 20])
            live[npu.malloc(size)] = size
    ordered = sorted(live.items())
    assert all(a + size <= b for (a, size), (b, _) in itertools.pairwise(ordered))
    mem = device.machine().devices[0].memory
    assert [(b.base, b.size) for b in mem.blocks()] == ordered
    total = npu.rt.get_mem_info(1)[1]
    assert npu.rt.get_mem_info(1)[0] == total - sum(b.reserved for b in mem.blocks())


def test_interior_pointers_find_their_block(npu):
    npu.open()
    ptr = npu.malloc(100)
    mem = device.machine().devices[0].memory
    assert mem.find(ptr, 100) is mem.find(ptr + 99, 1) is mem.find(ptr + 10, 0)
    assert mem.find(ptr, 101) is mem.find(ptr + 100, 0) is mem.find(ptr - 1, 1) is mem.find(ptr, -1) is None
    assert "100 bytes" in mem.nearest(ptr + 200)
    assert "28 bytes after" in mem.nearest(ptr + 128)
    assert npu.rt.free(ptr) == 0
    assert mem.find(ptr, 1) is None
    assert "freed block" in mem.nearest(ptr + 4)


def test_free_says_what_is_wrong(npu):
    npu.open()
    ptr = npu.malloc(64)
    for address, word in ((ptr + 8, "8 bytes into"), (ptr + 4096, "after"), (0x10, "no device address")):
        assert npu.rt.free(address) == 107000
        assert word in npu.message()
    assert npu.rt.free(ptr) == 0
    assert npu.rt.free(ptr) == 107000
    assert "freed block" in npu.message()
    pinned, _ = npu.rt.malloc_host(64)
    assert npu.rt.free(pinned) == 107000
    assert "aclrtMallocHost" in npu.message()
    assert npu.rt.free_host(pinned) == 0
    assert npu.rt.free_host(pinned) == 107000


def test_device_addresses_start_at_0x12(npu):
    npu.open(0)
    npu.open(1)
    assert npu.malloc(1) >> 40 == 0x12
    assert npu.malloc(1) - memory.FIRST_ADDRESS >= memory.STRIDE, "device 1 has a range of its own"


def test_the_host_cannot_touch_device_memory():
    code = """
from emu import acl; import ctypes
acl.rt.set_device(0); p, _ = acl.rt.malloc(64, 0)
print("before", flush=True)
ctypes.string_at(p, 1)
print("after", flush=True)
"""
    done = run(code)
    assert done.stdout == "before\n"
    assert done.returncode == -signal.SIGSEGV


LIMITED = """
import resource
resource.setrlimit(resource.RLIMIT_AS, ({limit} << 20, {limit} << 20))
from emu import acl
print(acl.rt.set_device(0), acl.rt.get_mem_info(1)[1] >> 20)
p, ret = acl.rt.malloc(1 << 20, 0)
print(ret, acl.rt.malloc(60 << 30, 0)[1])
"""


def test_a_limit_on_the_address_space_makes_the_device_smaller():
    done = run(LIMITED.format(limit=20_000))
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()
    assert first == "0 8192"
    assert second == "0 207001"
    assert "8192 MiB instead of 65536" in done.stderr


def test_no_address_space_at_all_is_an_error_code():
    done = run(LIMITED.format(limit=200))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("507033 0\n107002 107002") or done.stdout.startswith("0 64")


def test_a_system_that_gives_no_memory_is_207001(npu, monkeypatch):
    npu.configure(devices=3)  # a new machine: nothing is committed yet
    npu.open()
    monkeypatch.setattr(host, "commit", lambda address, nbytes: False)
    assert npu.rt.malloc(8 << 20, 0) == (0, 207001)
    assert "system" in npu.message()


def test_memory_of_a_closed_device_is_forgotten(npu):
    npu.open()
    ptr = npu.put(b"secret")
    assert npu.rt.reset_device(0) == 0
    npu.open()
    out = ctypes.create_string_buffer(6)
    assert npu.rt.memcpy(ctypes.addressof(out), 6, ptr, 6, 2) == 107000
    again = npu.malloc(6)
    assert again == ptr
    assert npu.get(again, 6) == bytes(6), "pages were given back"


def test_explicit_contexts_keep_the_memory(npu):
    npu.open()
    ctx, ret = npu.rt.create_context(0)
    assert ret == 0
    ptr = npu.put(b"kept")
    assert npu.rt.reset_device(0) == 0
    assert npu.get(ptr, 4) == b"kept"
    assert npu.rt.destroy_context(ctx) == 0
    assert npu.rt.free(ptr) == 107000


def test_pointer_attributes(npu):
    npu.open(2)
    d = npu.malloc(3 << 20)
    attributes, ret = npu.rt.pointer_get_attributes(d + 5)
    assert (attributes.type, attributes.id, attributes.page_size, ret) == (1, 2, 2 << 20, 0)
    pinned, _ = npu.rt.malloc_host(8)
    assert npu.rt.pointer_get_attributes(pinned)[0].type == 0
    assert npu.rt.pointer_get_attributes(id(npu))[0].type == 2
    assert npu.rt.free(d) == 0
    assert npu.rt.pointer_get_attributes(d)[0].type == 2
    assert npu.rt.free_host(pinned) == 0


def test_frees_that_synchronise(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    ran: list[int] = []
    d = npu.malloc(8)
    pinned, _ = npu.rt.malloc_host(8)
    npu.push(s, lambda: ran.append(1))
    assert npu.rt.free_with_dev_sync(d) == 0
    assert ran == [1]
    npu.push(s, lambda: ran.append(2))
    assert npu.rt.free_host_with_dev_sync(pinned) == 0
    assert ran == [1, 2]
    assert [npu.rt.free_with_dev_sync(0), npu.rt.free_host_with_dev_sync(0)] == [100000, 100000]


def test_flush_and_invalidate(npu):
    npu.open()
    d, _ = npu.rt.malloc_cached(64, 0)
    assert [npu.rt.mem_flush(d, 64), npu.rt.mem_invalidate(d + 8, 8)] == [0, 0]
    assert [npu.rt.mem_flush(0, 8), npu.rt.mem_flush(d, 0), npu.rt.mem_flush(d, 65), npu.rt.mem_flush(8, 8)] == [
        100000, 100000, 107000, 107000,
    ]  # fmt: skip


def test_a_memory_object_alone():
    mem = Memory(profile("Ascend310B1"), -1)
    base, code = mem.malloc(100, 0)
    assert code == 0
    assert mem.holds(base)
    assert not mem.holds(base + mem.total)
    view = (ctypes.c_char * 4).from_address(base + mem.delta)
    view.raw = b"abcd"
    assert ctypes.string_at(base + mem.delta, 4) == b"abcd"
    mem.close()
    assert mem.malloc(1, 0)[1] == 207001
    assert emu.acl.get_recent_err_msg()
