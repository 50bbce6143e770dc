"""Anything for an argument, on every public function: an error code or a TypeError, never a crash."""

from __future__ import annotations

import ctypes
import math
import random
from typing import Any

import numpy as np
import pytest

from emu.acl._entry import ENTRIES, Entry, Parameter
from emu.acl.rt import NOT_EMULATED

#: These end the machine under the other calls, or wait for ever by design.
LAST = {"aclFinalize", "aclFinalizeReference", "aclrtResetDevice", "aclrtResetDeviceForce"}
NUMBERS = [0, 1, -1, 2, 7, 8, 64, 99, 4096, 1 << 20, (1 << 31) - 1, 1 << 31, -(1 << 31), 1 << 32, 1 << 40, (1 << 40) + 1,
           0x120000000000, 0x120000000001, (1 << 47) - 1, 1 << 48, (1 << 63) - 1, 1 << 63, (1 << 64) - 1]  # fmt: skip
WRONG: list[Any] = [None, "text", b"bytes", 1.5, [], {}, object(), 1j, 1 << 64, -(1 << 64), 1 << 200, math.nan, np.zeros(3)]


def fine(result: Any, entry: Entry) -> None:
    """What a call may return: the outputs and a code, or what the prototype says it returns."""
    if entry.returns == "aclError":
        code = result[-1] if isinstance(result, tuple) else result
        assert type(code) is int
        assert 0 <= code <= 600_000
        assert (len(result) if isinstance(result, tuple) else 1) == len(entry.outputs) + 1
    else:
        assert result is None or isinstance(result, (int, float, str))


class Pool:
    """Live and dead handles, live and freed addresses, mapped host memory."""

    def __init__(self, npu: Any) -> None:
        npu.open()
        npu.rt.subscribe_report(0xABCDEF, 0)
        self.host = ctypes.create_string_buffer(4096)
        self.stream, self.dead_stream = npu.stream(), npu.stream()
        self.event, self.dead_event = npu.event(), npu.event()
        self.block, self.freed = npu.malloc(4096), npu.malloc(4096)
        self.pinned = npu.rt.malloc_host(4096)[0]
        self.buffer = npu.acl.create_data_buffer(self.block, 4096)
        self.config = npu.rt.create_stream_config_handle()
        npu.rt.destroy_stream(self.dead_stream)
        npu.rt.destroy_event(self.dead_event)
        npu.rt.free(self.freed)
        host = ctypes.addressof(self.host)
        self.values = [self.stream, self.dead_stream, self.event, self.dead_event, self.block, self.block + 100, self.block + 4095,
                       self.freed, self.pinned, self.buffer, self.config, host, host + 4000]  # fmt: skip

    def close(self) -> None:
        self.host.raw = b"\0" * 4096


def argument(rng: random.Random, parameter: Parameter, pool: Pool) -> Any:
    roll = rng.random()
    if roll < 0.05:
        return rng.choice(WRONG)
    if parameter.ctype in ("aclrtCallback", "aclrtHostFunc", "aclrtExceptionInfoCallback"):
        return rng.choice([None, len, int])
    if parameter.ctype == "const char*":
        return rng.choice([None, "", "/nowhere", "CANN", "\0", "x" * 5000])
    if parameter.name in ("timeout", "ms"):
        return rng.choice([-2, 0, 1, 2])  # -1 and long ones would wait
    return rng.choice(pool.values) if roll < 0.5 else rng.choice(NUMBERS)


@pytest.mark.parametrize("c_name", [name for name in ENTRIES if name not in LAST])
def test_wild_arguments(npu, c_name):
    entry = ENTRIES[c_name]
    module = npu.rt if entry.python_name.startswith("acl.rt.") else npu.acl
    function = getattr(module, entry.function.__name__)
    rng = random.Random(c_name)
    pool = Pool(npu)
    for n in range(150 if entry.inputs else 3):
        if n == 75:
            pool = Pool(npu)  # what was destroyed is dead now
        args = [argument(rng, parameter, pool) for parameter in entry.inputs]
        try:
            result = function(*args)
        except TypeError as error:
            if "args parse failed" not in str(error):
                raise
            continue
        fine(result, entry)
        npu.message()
    npu.rt.set_device(0)
    npu.rt.set_op_wait_timeout(0)
    npu.rt.set_exception_info_callback(None)


@pytest.mark.parametrize("c_name", ENTRIES)
def test_wrong_counts_and_types(npu, c_name):
    entry = ENTRIES[c_name]
    module = npu.rt if entry.python_name.startswith("acl.rt.") else npu.acl
    function = getattr(module, entry.function.__name__)
    count = len(entry.inputs)
    for args in ([1] * (count + 1), [1] * (count + 5)):
        with pytest.raises(TypeError, match=f"{entry.python_name} args parse failed: takes {count} arguments"):
            function(*args)
    if count and c_name != "aclInit":
        with pytest.raises(TypeError, match="args parse failed"):
            function()
    for position, parameter in enumerate(entry.inputs):
        if parameter.ctype in ("any*", "const aclrtExceptionInfo*"):
            continue
        args = [0 if p.ctype != "const char*" else "" for p in entry.inputs]
        args[position] = object()
        with pytest.raises(TypeError, match=f"args parse failed: {parameter.name} "):
            function(*args)


def test_numpy_integers_and_enumerators_are_numbers(npu):
    from emu.types import MemMallocPolicy

    npu.open()
    ptr, ret = npu.rt.malloc(np.int64(64), MemMallocPolicy.HUGE_FIRST)
    assert ret == 0
    assert npu.rt.memset(np.uint64(ptr), np.uint32(64), True, 64) == 0
    assert npu.get(ptr, 64) == b"\1" * 64
    with pytest.raises(TypeError):
        npu.rt.malloc(64.0, 0)


@pytest.mark.parametrize("name", NOT_EMULATED)
def test_functions_that_are_not_emulated_say_so(npu, name):
    function = getattr(npu.rt, name)
    for args in ((), (1, 2, 3), ("x",)):
        assert function(*args) == 207000
        assert NOT_EMULATED[name] in npu.message()


def test_a_name_that_is_none(npu):
    with pytest.raises(AttributeError, match="no attribute 'mallloc'"):
        _ = npu.rt.mallloc
