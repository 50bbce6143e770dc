"""acl and acl.util: numbers, data buffers, arrays and addresses; the cores and the hooks behind acl.rt."""

from __future__ import annotations

import ctypes
import itertools
import math
import struct
import threading
from typing import Any

import numpy as np
import pytest

from emu.acl._entry import ENTRIES
from emu.runtime import cores, hooks


def test_from_half_is_not_ieee_at_the_edge(npu):
    f = npu.acl.float16_to_float
    halves = np.arange(0x10000, dtype=np.uint32).astype(np.uint16)
    finite = halves[np.isfinite(halves.view(np.float16))]
    assert all(f(int(h)) == float(h.view(np.float16)) for h in finite)
    assert math.copysign(1, f(0x8000)) == -1
    assert [f(0x7C00), f(0xFC00), f(0x7E00), f(0xFFFF)] == [65536.0, -65536.0, 98304.0, -(1 + 1023 / 1024) * 65536]


def test_to_half_saturates(npu):
    f = npu.acl.float_to_float16
    halves = np.arange(0x10000, dtype=np.uint32).astype(np.uint16)
    finite = halves[np.isfinite(halves.view(np.float16))]
    assert all(f(float(h.view(np.float16))) == int(h) for h in finite)
    assert [f(math.inf), f(-math.inf), f(math.nan), f(65504.1), f(1e300), f(-1e300)] == [0x7BFF, 0xFBFF, 0x7BFF, 0x7BFF, 0x7BFF, 0xFBFF]
    nan = struct.unpack("<d", struct.pack("<Q", 0xFFF8 << 48))[0]
    assert f(nan) == 0xFBFF
    for value in np.random.default_rng(1).standard_normal(2000).astype(np.float32) * 100:
        assert f(float(value)) == int(value.astype(np.float16).view(np.uint16)), "nearest even"
    assert f(1.0 + 2**-11) == 0x3C00
    assert f(1.0 + 3 * 2**-11) == 0x3C02
    assert f(1) == 0x3C00


def test_sizes_of_types(npu):
    wanted = {
        0: 4,
        1: 2,
        2: 1,
        3: 4,
        4: 1,
        6: 2,
        7: 2,
        8: 4,
        9: 8,
        10: 8,
        11: 8,
        12: 1,
        16: 8,
        17: 16,
        27: 2,
        33: 4,
        -1: 0,
        13: 0,
        5: 0,
        99: 0,
    }
    assert {code: npu.acl.data_type_size(code) for code in wanted} == wanted


def test_data_buffers(npu):
    b = npu.acl.create_data_buffer(0x1234, (1 << 32) + 8)
    assert [npu.acl.get_data_buffer_addr(b), npu.acl.get_data_buffer_size(b)] == [0x1234, 8]
    assert npu.acl.get_data_buffer_size_v2(b) == (1 << 32) + 8
    assert npu.acl.update_data_buffer(b, 0, 0) == npu.acl.get_data_buffer_addr(b) == 0
    assert [npu.acl.destroy_data_buffer(b), npu.acl.destroy_data_buffer(b), npu.acl.update_data_buffer(b, 1, 1)] == [0, 100000, 100000]
    assert npu.acl.get_data_buffer_addr(b) == npu.acl.get_data_buffer_size(0) == 0


def test_arrays_and_addresses(npu):
    util = npu.acl.util
    a = np.arange(12, dtype=np.int32).reshape(3, 4)
    assert util.numpy_to_ptr(a) == util.numpy_contiguous_to_ptr(a) == a.ctypes.data
    with pytest.warns(UserWarning, match="not contiguous"):
        assert util.numpy_to_ptr(a.T) == a.ctypes.data
    with pytest.raises(TypeError, match="args parse failed"):
        util.numpy_contiguous_to_ptr(a[:, ::2])
    view = util.ptr_to_numpy(a.ctypes.data, (3, 4), 5)
    view[1, 2] = 77
    assert a[1, 2] == 77
    assert util.ptr_to_numpy(a.ctypes.data, (0, 4), 23).shape == (0, 4)
    data = b"some bytes"
    assert util.ptr_to_bytes(util.bytes_to_ptr(data), len(data)) == data
    assert util.ptr_to_bytes(util.bytes_to_ptr(data), 0) == b""


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("numpy_to_ptr", ([1, 2],)),
        ("numpy_contiguous_to_ptr", (b"x",)),
        ("bytes_to_ptr", ("text",)),
        ("bytes_to_ptr", (bytearray(b"x"),)),
        ("ptr_to_numpy", ("x", (1,), 11)),
        ("ptr_to_numpy", (4096, (-1,), 11)),
        ("ptr_to_numpy", (4096, ("a",), 11)),
        ("ptr_to_numpy", (4096, 5, 11)),
        ("ptr_to_numpy", (4096, (1,), 999)),
        ("ptr_to_numpy", (4096, (1,), 17)),
        ("ptr_to_bytes", (4096, -1)),
        ("ptr_to_bytes", (4096, "x")),
        ("start_thread", (3, [])),
        ("stop_thread", ("x",)),
    ],
)
def test_util_refuses_wrong_types(npu, name, args):
    with pytest.raises(TypeError, match=f"acl.util.{name} args parse failed"):
        getattr(npu.acl.util, name)(*args)


def test_util_refuses_device_and_wild_addresses(npu):
    npu.open()
    d = npu.malloc(64)
    with pytest.raises(ValueError, match="device address"):
        npu.acl.util.ptr_to_numpy(d, (4,), 11)
    with pytest.raises(ValueError, match="device address"):
        npu.acl.util.ptr_to_bytes(d + 4096, 4)
    for address in (8, 4096, 1 << 46, -8):
        with pytest.raises(ValueError, match="no memory"):
            npu.acl.util.ptr_to_numpy(address, (4,), 11)
        with pytest.raises(ValueError, match="no memory"):
            npu.acl.util.ptr_to_bytes(address, 1 << 60)


def test_an_array_over_pinned_memory_outlives_the_free(npu):
    npu.open()
    pinned, _ = npu.rt.malloc_host(4096)
    array = npu.acl.util.ptr_to_numpy(pinned, (1024,), 11)
    array[:] = 2.5
    assert npu.rt.free_host(pinned) == 0
    part = array[100:200]
    del array
    assert (part == 2.5).all()
    del part
    with pytest.raises(ValueError, match="no memory"):
        npu.acl.util.ptr_to_bytes(pinned, 1)


KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("total", [0, 1, 63, 64, 65, 1000, 4096, 100_001])
@pytest.mark.parametrize(("block", "border"), [(0, 64), (1, 1), (5, 1), (64, 64), (10_000, 64), (100_000, 1)])
def test_a_launch_is_split_into_whole_blocks(npu, threads, total, block, border):
    npu.configure(threads=threads)
    ranges: list[tuple[int, int]] = []
    kernel = KERNEL(lambda args, start, stop: ranges.append((start, stop)))
    args = (ctypes.c_int64 * 1)(5)
    cores.run(address_of(kernel), args, total, 64, block, border)
    first = sorted(ranges)
    ranges.clear()
    cores.run(address_of(kernel), args, total, 64, block, border)
    assert sorted(ranges) == first, "the same blocks each time"
    assert first[0][0] == 0
    assert first[-1][1] == total
    assert all(a[1] == b[0] for a, b in itertools.pairwise(first))
    assert all(start % border == 0 for start, _ in first)
    parts = min(threads, total // 64)
    if parts < 2:
        assert len(first) == 1
    elif block == 0:
        assert len(first) <= parts
    elif total >= cores.MANY * block:
        assert {stop - start for start, stop in first[:-1]} == {-(-block // border) * border}
    else:
        assert len(first) <= parts * cores.SHARES


@pytest.mark.parametrize("threads", [2, 3, 5])
def test_every_thread_of_a_launch_takes_blocks(npu, threads):
    """Nobody passes the first block before all have one: so there are as many threads, more than there are CPUs too."""
    npu.configure(threads=threads)
    barrier = threading.Barrier(threads)
    seen: set[int] = set()

    def work(args: int, start: int, stop: int) -> None:
        if threading.get_ident() not in seen:
            seen.add(threading.get_ident())
            barrier.wait(60)

    kernel = KERNEL(work)
    for _ in range(20):
        seen.clear()
        cores.run(address_of(kernel), (ctypes.c_int64 * 1)(0), 64 * cores.WAKING * threads, 64, 64)
        assert len(seen) == threads


def test_launches_at_once_and_inside_each_other(npu):
    """Two threads use the cores, and a kernel launches another one: never a deadlock, every element once."""
    npu.configure(threads=2)
    counts = np.zeros(200_000, np.int64)

    def work(args: int, start: int, stop: int) -> None:
        counts[start:stop] += 1

    inner = KERNEL(work)
    inner_address = address_of(inner)
    args = (ctypes.c_int64 * 1)(0)
    outer = KERNEL(lambda a, start, stop: cores.run(inner_address, args, 0, 1) if start else cores.run(inner_address, args, 100_000, 64))
    outer_address = address_of(outer)

    def launch() -> None:
        for _ in range(50):
            cores.run(outer_address, args, 1000, 64)

    threads = [threading.Thread(target=launch) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    launch()
    assert (counts[100_000:] == 0).all()
    assert counts[:100_000].min() > 0


class Recorder(hooks.Hooks):
    """Writes every report down."""

    def __init__(self) -> None:
        self.seen: list[str] = []


def _note(name: str) -> Any:
    return lambda self, *args, **kwargs: self.seen.append(name)


for _name in [n for n, value in vars(hooks.Hooks).items() if callable(value)]:
    setattr(Recorder, _name, _note(_name))


def test_hooks_report_what_happens(npu):
    npu.configure(schedule="lazy")
    first, second = Recorder(), Recorder()
    hooks.install(first)
    hooks.install(second)
    try:
        s = npu.open()
        t = npu.stream()
        d = npu.put(b"12345678")
        e = npu.event()
        npu.push(s, lambda: None)
        npu.rt.memset_async(d, 8, 0, 8, s)
        npu.rt.record_event(e, s)
        npu.rt.stream_wait_event(t, e)
        npu.rt.synchronize_stream(t)
        npu.rt.destroy_event(e)
        npu.rt.destroy_stream(t)
        npu.rt.free(d)
    finally:
        hooks.remove(first)
        hooks.remove(second)
    assert hooks.active is None
    wanted = {"allocated", "freed", "copied", "filled", "enqueued", "finished", "recorded", "waited", "synchronised", "created",
              "destroyed"}  # fmt: skip
    assert wanted <= set(first.seen)
    assert second.seen == first.seen
    count = len(first.seen)
    npu.malloc(8)
    assert len(first.seen) == count
    with pytest.raises(ValueError, match="not in list"):
        hooks.remove(first)


def test_every_function_is_declared_once_and_documented(npu):
    assert len(ENTRIES) > 100
    for c_name, entry in ENTRIES.items():
        module = npu.rt if entry.python_name.startswith("acl.rt.") else npu.acl
        public = getattr(module, entry.function.__name__)
        assert public.__wrapped__ is entry.function
        assert public.__doc__, c_name
        names = entry.function.__code__.co_varnames[: entry.function.__code__.co_argcount]
        assert list(names) == [p.name for p in entry.inputs], c_name
