"""Copies and fills: directions, bad addresses, pageable and pinned host memory."""

from __future__ import annotations

import ctypes
import mmap
import os

import numpy as np
import pytest

from emu.runtime import host


@pytest.mark.parametrize("nbytes", [1, 7, 4095, 4096, 4097, 65536, 3 << 20])
def test_copies_in_all_directions(npu, nbytes):
    npu.open()
    data = np.random.default_rng(nbytes).integers(0, 256, nbytes, np.uint8).tobytes()
    first = npu.put(data)
    second = npu.malloc(nbytes)
    assert npu.rt.memcpy(second, nbytes, first, nbytes, 3) == 0
    assert npu.get(second, nbytes) == data
    pinned, _ = npu.rt.malloc_host(nbytes)
    assert npu.rt.memcpy(pinned, nbytes, second, nbytes, 0) == 0, "the kind is not looked at"
    assert npu.acl.util.ptr_to_bytes(pinned, nbytes) == data
    out = ctypes.create_string_buffer(nbytes)
    assert npu.rt.memcpy(ctypes.addressof(out), nbytes, pinned, nbytes, 0) == 0
    assert out.raw == data
    assert npu.rt.free_host(pinned) == 0


def test_copies_between_devices(npu):
    npu.open(0)
    first = npu.put(b"across")
    npu.open(1)
    second = npu.malloc(6)
    assert npu.rt.memcpy(second, 6, first, 6, 3) == 0
    assert npu.get(second, 6) == b"across"
    s = npu.stream()
    assert npu.rt.memset(second, 6, 0, 6) == 0
    assert npu.rt.memcpy_async(second, 6, first, 6, 3, s) == npu.rt.synchronize_stream(s) == 0
    assert npu.get(second, 6) == b"across"


WILD = [8, 4096, 0x5A5A5A5A5000, (1 << 47) - 8, 1 << 56, (1 << 64) - 8, (1 << 64) - 1]


@pytest.mark.parametrize("address", WILD, ids=hex)
@pytest.mark.parametrize("nbytes", [1, 4096, 1 << 20])
def test_wild_host_addresses_are_refused(npu, address, nbytes):
    npu.open()
    d = npu.malloc(1 << 20)
    assert npu.rt.memset(d, 1 << 20, 3, 1 << 20) == 0
    assert npu.rt.memcpy(d, nbytes, address, nbytes, 1) == 107000
    assert hex(address) in npu.message()
    assert npu.rt.memcpy(address, nbytes, d, nbytes, 2) == 107000
    assert npu.rt.memset(address, nbytes, 0, nbytes) == 107000
    assert npu.rt.memcpy_async(d, nbytes, address, nbytes, 1, 0) == 107000
    assert npu.rt.host_register(address, nbytes, 0)[1] == 107000
    assert npu.get(d, 1 << 20) == b"\3" * (1 << 20), "no memory changed"


@pytest.mark.parametrize("nbytes", [1 << 30, 1 << 47, 1 << 63, (1 << 64) - 1, -1])
def test_huge_sizes_are_refused(npu, nbytes):
    npu.open()
    d = npu.malloc(16)
    buffer = ctypes.create_string_buffer(16)
    h = ctypes.addressof(buffer)
    for dst, src in ((d, h), (h, d), (d, d + 8), (h, h + 8)):
        assert npu.rt.memcpy(dst, nbytes, src, nbytes, 0) == 107000
    assert npu.rt.memset(d, nbytes, 1, nbytes) == 107000
    assert npu.rt.memset(h, nbytes, 1, nbytes) == 107000
    assert npu.rt.memset_async(d, nbytes, 1, nbytes, 0) == 107000
    assert npu.rt.memcpy_2d(d, nbytes, h, nbytes, 8, nbytes, 1) == 107000


def test_a_range_that_ends_in_unmapped_memory_is_refused_as_a_whole(npu):
    npu.open()
    area = mmap.mmap(-1, 8 * mmap.PAGESIZE)
    base = ctypes.addressof(ctypes.c_char.from_buffer(area))
    libc = ctypes.CDLL(None)
    assert libc.munmap(ctypes.c_void_p(base + 4 * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE)) == 0
    d = npu.malloc(8 * mmap.PAGESIZE)
    assert npu.rt.memcpy(d, 4 * mmap.PAGESIZE, base, 4 * mmap.PAGESIZE, 1) == 0
    assert npu.rt.memcpy(d, 8 * mmap.PAGESIZE, base, 4 * mmap.PAGESIZE + 1, 1) == 107000
    assert npu.rt.memcpy(base, 8 * mmap.PAGESIZE, d, 8 * mmap.PAGESIZE, 2) == 107000
    assert npu.rt.memcpy(base + 5 * mmap.PAGESIZE, 8, d, 8, 2) == 0
    # Put the hole's page back, so that the mapping can be closed as a whole.
    assert libc.mmap(ctypes.c_void_p(base + 4 * mmap.PAGESIZE), ctypes.c_size_t(mmap.PAGESIZE), 3, 0x32, -1, 0) != -1


def test_read_only_memory_may_be_read(npu):
    npu.open()
    area = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ)
    view = np.frombuffer(area, np.uint8)
    address = view.ctypes.data
    d = npu.malloc(mmap.PAGESIZE)
    assert npu.rt.memcpy(d, 64, address, 64, 1) == 0
    assert npu.rt.memcpy(address, 64, d, 64, 2) == 107000


def test_without_the_probe_of_newer_kernels(npu, monkeypatch):
    """Linux before 5.14: the same answers through process_vm_readv and process_vm_writev."""
    monkeypatch.setattr(host, "_can_probe", False)
    npu.open()
    data = os.urandom(10_000)
    d = npu.put(data)
    assert npu.get(d, 10_000) == data
    for address in WILD:
        assert npu.rt.memcpy(d, 8192, address, 8192, 1) == 107000
        assert npu.rt.memcpy(address, 8192, d, 8192, 2) == 107000
    assert npu.get(d, 10_000) == data


def test_fills(any_schedule):
    npu = any_schedule
    s = npu.open()
    d = npu.malloc(64)
    assert npu.rt.memset(d, 64, 0x1FF, 64) == 0
    assert npu.get(d, 64) == b"\xff" * 64
    assert npu.rt.memset_async(d, 64, 0x101, 10, s) == 0
    assert npu.rt.memset_d32_async(d + 16, 48, 0xDEADBEEF, 5, s) == npu.rt.synchronize_stream(s) == 0
    assert npu.get(d, 64) == b"\x01" * 10 + b"\xff" * 6 + (0xDEADBEEF).to_bytes(4, "little") * 5 + b"\xff" * 28
    assert npu.rt.memset_d32(d, 64, 0x01020304, 16) == 0
    assert npu.get(d, 64) == bytes([4, 3, 2, 1]) * 16
    assert npu.rt.memset_d32(d + 2, 8, 1, 1) == 107000
    buffer = ctypes.create_string_buffer(8)
    assert npu.rt.memset_async(ctypes.addressof(buffer), 8, 7, 8, s) == 0
    assert buffer.raw == b"\7" * 8, "host memory is filled at once"


@pytest.mark.parametrize("asynchronous", [False, True])
def test_2d_copies_leave_the_gaps_alone(any_schedule, asynchronous):
    npu = any_schedule
    s = npu.open()
    source = np.arange(5 * 10, dtype=np.uint8).reshape(5, 10)
    d = npu.malloc(5 * 12)
    assert npu.rt.memset(d, 60, 0xEE, 60) == 0
    args = (d, 12, source.ctypes.data, 10, 7, 5, 1)
    assert (npu.rt.memcpy_2d_async(*args, s) if asynchronous else npu.rt.memcpy_2d(*args)) == 0
    assert npu.rt.synchronize_stream(s) == 0
    got = np.frombuffer(npu.get(d, 60), np.uint8).reshape(5, 12)
    assert (got[:, :7] == source[:, :7]).all()
    assert (got[:, 7:] == 0xEE).all()
    assert npu.rt.memcpy_2d(d, 12, source.ctypes.data, 10, 11, 5, 1) == 100000
    assert npu.rt.memcpy_2d(d, 12, source.ctypes.data, 10, 7, 6, 1) == 107000, "the last row is past the block"


def test_a_pageable_copy_waits_for_the_stream_and_is_done(any_schedule):
    npu = any_schedule
    s = npu.open()
    d = npu.put(b"old!")
    order: list[str] = []
    npu.push(s, lambda: order.append("task"))
    data = bytearray(b"new!")
    pointer = ctypes.addressof(ctypes.c_char.from_buffer(data))
    assert npu.rt.memcpy_async(d, 4, pointer, 4, 1, s) == 0
    data[:] = b"gone"
    assert order == ["task"]
    assert npu.get(d, 4) == b"new!", "the runtime made the copy synchronous: the buffer may go at once"


def test_a_pinned_copy_is_asynchronous(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    d = npu.put(b"old!")
    pinned, _ = npu.rt.malloc_host(4)
    view = npu.acl.util.ptr_to_numpy(pinned, (4,), 1)
    view[:] = 1
    assert npu.rt.memcpy_async(d, 4, pinned, 4, 1, s) == 0
    assert npu.get(d, 4) == b"old!", "aclrtMemcpy does not wait for the stream"
    view[:] = 2
    assert npu.rt.synchronize_stream(s) == 0
    assert npu.get(d, 4) == b"\2\2\2\2", "the copy read the buffer when it ran"


def test_pinned_memory_freed_under_a_queued_copy(npu):
    """A real card may read anything; here the pages stay until the copy has run, and the process lives."""
    npu.configure(schedule="lazy")
    s = npu.open()
    size = 1 << 20
    d = npu.malloc(size)
    pinned, _ = npu.rt.malloc_host(size)
    assert npu.rt.memset(pinned, size, 9, size) == 0
    assert npu.rt.memcpy_async(d, size, pinned, size, 1, s) == 0
    assert npu.rt.free_host(pinned) == 0
    assert npu.rt.memcpy(d, 8, pinned, 8, 1) in (0, 107000)
    assert npu.rt.synchronize_stream(s) == 0
    assert npu.get(d, size) == b"\x09" * size
    assert npu.rt.memcpy(d, 8, pinned, 8, 1) == 107000, "now they are gone"


def test_registered_memory_that_goes_away_is_an_asynchronous_error(npu):
    npu.configure(schedule="lazy")
    s = npu.open()
    address = host.map_pages(mmap.PAGESIZE)
    d = npu.malloc(16)
    assert npu.rt.host_register(address, mmap.PAGESIZE, 0) == (address, 0)
    assert npu.rt.host_register(address, 16, 0) == (0, 507910)
    assert npu.rt.host_register_v2(address + 16, 16, 2) == 507910
    assert npu.rt.memcpy_async(d, 16, address, 16, 1, s) == 0
    host.unmap(address, mmap.PAGESIZE)
    assert npu.rt.synchronize_stream(s) == 507013
    assert "unmapped" in npu.message()
    assert npu.rt.host_unregister(address) == 0
    assert npu.rt.host_unregister(address) == 507911
