"""The bad-input matrix: which call gives which code, and which check comes first where two fail."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

buffer = ctypes.create_string_buffer(64)
HOST = ctypes.addressof(buffer)
GONE = 0x5A5A5A5A


def last(result: Any) -> int:
    """The code of a call, alone or behind its outputs."""
    return int(result[-1] if isinstance(result, tuple) else result)


NO_CONTEXT: dict[str, Callable[[Any], Any]] = {
    "aclrtMalloc": lambda rt: rt.malloc(16, 0),
    "aclrtMallocHost": lambda rt: rt.malloc_host(16),
    "aclrtMemcpy": lambda rt: rt.memcpy(HOST, 8, HOST + 8, 8, 0),
    "aclrtMemcpyAsync": lambda rt: rt.memcpy_async(HOST, 8, HOST + 8, 8, 0, 0),
    "aclrtMemset": lambda rt: rt.memset(HOST, 8, 0, 8),
    "aclrtCreateStream": lambda rt: rt.create_stream(),
    "aclrtCreateStreamWithConfig": lambda rt: rt.create_stream_with_config(0, 0),
    "aclrtSynchronizeStream": lambda rt: rt.synchronize_stream(0),
    "aclrtSynchronizeStreamWithTimeout": lambda rt: rt.synchronize_stream_with_timeout(0, 1),
    "aclrtStreamQuery": lambda rt: rt.stream_query(0),
    "aclrtSynchronizeDevice": lambda rt: rt.synchronize_device(),
    "aclrtRecordEvent": lambda rt: rt.record_event(GONE, 0),
    "aclrtStreamWaitEvent": lambda rt: rt.stream_wait_event(0, GONE),
    "aclrtCreateEvent": lambda rt: rt.create_event(),
    "aclrtGetDevice": lambda rt: rt.get_device(),
    "aclrtGetCurrentContext": lambda rt: rt.get_context(),
    "aclrtCtxGetCurrentDefaultStream": lambda rt: rt.ctx_get_current_default_stream(),
    "aclrtCtxSetSysParamOpt": lambda rt: rt.ctx_set_sys_param_opt(0, 1),
    "aclrtCtxGetSysParamOpt": lambda rt: rt.ctx_get_sys_param_opt(0),
    "aclrtGetMemInfo": lambda rt: rt.get_mem_info(1),
    "aclrtSetDeviceSatMode": lambda rt: rt.set_device_sat_mode(0),
    "aclrtLaunchHostFunc": lambda rt: rt.launch_host_func(0, print, 0),
    "aclrtHostRegister": lambda rt: rt.host_register(HOST, 64, 0),
}


@pytest.mark.parametrize("name", NO_CONTEXT)
def test_a_thread_without_a_context_gets_107002(npu, in_thread, name):
    npu.open()
    assert in_thread(lambda: (last(NO_CONTEXT[name](npu.rt)), npu.message().count(name))) == (107002, 1)
    assert npu.message() == "", "the message belongs to the other thread"


#: (what is called, code) with device 0 open, stream s, device block d of 64 bytes.
MATRIX: dict[str, tuple[Callable[[Any, int, int], Any], int]] = {
    "set_device(99)": (lambda rt, s, d: rt.set_device(99), 107001),
    "set_device(-1)": (lambda rt, s, d: rt.set_device(-1), 107001),
    "create_context(99)": (lambda rt, s, d: rt.create_context(99), 107001),
    "reset_device of one that is not set": (lambda rt, s, d: rt.reset_device(3), 507007),
    "malloc of nothing": (lambda rt, s, d: rt.malloc(0, 0), 100000),
    "malloc of more than free": (lambda rt, s, d: rt.malloc(1 << 40, 0), 207001),
    "malloc of a negative size": (lambda rt, s, d: rt.malloc(-1, 0), 207001),
    "malloc_host of nothing": (lambda rt, s, d: rt.malloc_host(0), 100000),
    "malloc_host of too much": (lambda rt, s, d: rt.malloc_host(1 << 60), 207001),
    "free(null)": (lambda rt, s, d: rt.free(0), 100000),
    "free(unknown)": (lambda rt, s, d: rt.free(d + 1), 107000),
    "free(host)": (lambda rt, s, d: rt.free(HOST), 107000),
    "free_host(null)": (lambda rt, s, d: rt.free_host(0), 100000),
    "free_host(unknown)": (lambda rt, s, d: rt.free_host(HOST), 107000),
    "free twice": (lambda rt, s, d: rt.free(d) or rt.free(d), 107000),
    "memcpy over destMax": (lambda rt, s, d: rt.memcpy(d, 4, HOST, 8, 1), 107000),
    "memcpy with destMax 0": (lambda rt, s, d: rt.memcpy(d, 0, HOST, 8, 1), 107000),
    "memcpy of nothing": (lambda rt, s, d: rt.memcpy(0, 0, 0, 0, 77), 0),
    "memcpy of kind 7": (lambda rt, s, d: rt.memcpy(d, 8, HOST, 8, 7), 100000),
    "memcpy of kind -1": (lambda rt, s, d: rt.memcpy(d, 8, HOST, 8, -1), 100000),
    "memcpy to itself": (lambda rt, s, d: rt.memcpy(GONE, 8, GONE, 8, 1), 0),
    "memcpy null dst": (lambda rt, s, d: rt.memcpy(0, 8, HOST, 8, 1), 100000),
    "memcpy null src": (lambda rt, s, d: rt.memcpy(d, 8, 0, 8, 1), 100000),
    "memcpy past the block": (lambda rt, s, d: rt.memcpy(HOST, 128, d, 65, 2), 107000),
    "memcpy async host to host": (lambda rt, s, d: rt.memcpy_async(HOST, 8, HOST + 8, 8, 0, s), 207000),
    "memcpy async of nothing": (lambda rt, s, d: rt.memcpy_async(0, 0, 0, 0, 77, 77), 0),
    "memcpy async over destMax": (lambda rt, s, d: rt.memcpy_async(d, 4, HOST, 8, 1, s), 107000),
    "memcpy async to a dead stream": (lambda rt, s, d: rt.memcpy_async(d, 8, HOST, 8, 1, GONE), 107017),
    "memset over the maximum": (lambda rt, s, d: rt.memset(d, 4, 0, 8), 107000),
    "memset of nothing": (lambda rt, s, d: rt.memset(0, 0, 0, 0), 0),
    "memset of null": (lambda rt, s, d: rt.memset(0, 8, 0, 8), 100000),
    "memset async over the maximum": (lambda rt, s, d: rt.memset_async(d, 4, 0, 8, s), 107000),
    "memset_d32 over the size": (lambda rt, s, d: rt.memset_d32(d, 7, 0, 2), 107000),
    "memcpy_2d wider than its pitch": (lambda rt, s, d: rt.memcpy_2d(d, 4, HOST, 8, 8, 2, 1), 100000),
    "memcpy_2d of kind 0": (lambda rt, s, d: rt.memcpy_2d(d, 8, HOST, 8, 8, 2, 0), 100000),
    "memcpy_2d of nothing": (lambda rt, s, d: rt.memcpy_2d(d, 8, HOST, 8, 0, 2, 1), 0),
    "destroy_stream(null)": (lambda rt, s, d: rt.destroy_stream(0), 100000),
    "destroy_stream twice": (lambda rt, s, d: rt.destroy_stream(s) or rt.destroy_stream(s), 107017),
    "destroy_stream of an event": (lambda rt, s, d: rt.destroy_stream(rt.create_event()[0]), 107017),
    "synchronize_stream(null)": (lambda rt, s, d: rt.synchronize_stream(0), 0),
    "synchronize_stream of a dead one": (lambda rt, s, d: rt.synchronize_stream(GONE), 107017),
    "synchronize_stream with timeout 0": (lambda rt, s, d: rt.synchronize_stream_with_timeout(s, 0), 107000),
    "synchronize_stream with timeout -2": (lambda rt, s, d: rt.synchronize_stream_with_timeout(s, -2), 107000),
    "synchronize_stream with timeout -1": (lambda rt, s, d: rt.synchronize_stream_with_timeout(s, -1), 0),
    "synchronize_device with timeout -2": (lambda rt, s, d: rt.synchronize_device_with_timeout(-2), 107000),
    "synchronize_event with timeout 0": (lambda rt, s, d: rt.synchronize_event_with_timeout(GONE, 0), 107000),
    "record_event(null)": (lambda rt, s, d: rt.record_event(0, s), 100000),
    "record_event of a dead one": (lambda rt, s, d: rt.record_event(GONE, s), 107017),
    "record_event on a dead stream": (lambda rt, s, d: rt.record_event(rt.create_event()[0], GONE), 107017),
    "elapsed time of unrecorded events": (lambda rt, s, d: rt.event_elapsed_time(*[rt.create_event()[0]] * 2), 507000),
    "time stamp of an unrecorded event": (lambda rt, s, d: rt.event_get_timestamp(rt.create_event()[0]), 507000),
    "destroy_event(null)": (lambda rt, s, d: rt.destroy_event(0), 100000),
    "create_event_with_flag(0)": (lambda rt, s, d: rt.create_event_with_flag(0), 107000),
    "create_stream_with_config of unknown flags": (lambda rt, s, d: rt.create_stream_with_config(0, 0x80), 107000),
    "destroy_context(null)": (lambda rt, s, d: rt.destroy_context(0), 100000),
    "destroy_context of the primary one": (lambda rt, s, d: rt.destroy_context(rt.get_context()[0]), 107002),
    "set_context(null)": (lambda rt, s, d: rt.set_context(0), 100000),
    "set_context of a dead one": (lambda rt, s, d: rt.set_context(GONE), 107002),
    "get_primary_ctx_state with flags": (lambda rt, s, d: rt.get_primary_ctx_state(0, 1), 107000),
    "ctx_get_sys_param_opt before set": (lambda rt, s, d: rt.ctx_get_sys_param_opt(0), 107021),
    "ctx_set_sys_param_opt of none": (lambda rt, s, d: rt.ctx_set_sys_param_opt(9, 0), 100000),
    "set_sys_param_opt of none": (lambda rt, s, d: rt.set_sys_param_opt(9, 0), 100000),
    "process_report(0)": (lambda rt, s, d: rt.process_report(0), 100000),
    "process_report(-2)": (lambda rt, s, d: rt.process_report(-2), 100000),
    "process_report unsubscribed": (lambda rt, s, d: rt.process_report(1), 107012),
    "launch_callback without a subscriber": (lambda rt, s, d: rt.launch_callback(print, 0, 1, s), 107015),
    "launch_callback of block type 2": (lambda rt, s, d: rt.launch_callback(print, 0, 2, s), 100000),
    "launch_callback(null)": (lambda rt, s, d: rt.launch_callback(None, 0, 0, s), 100000),
    "launch_host_func(null)": (lambda rt, s, d: rt.launch_host_func(s, None, 0), 100000),
    "peek_at_last_error of level 1": (lambda rt, s, d: rt.peek_at_last_error(1), 100000),
    "get_mem_info of none": (lambda rt, s, d: rt.get_mem_info(99), 100000),
    "get_device_info of none": (lambda rt, s, d: rt.get_device_info(0, 9), 100000),
    "get_device_info of device 99": (lambda rt, s, d: rt.get_device_info(99, 101), 107001),
    "set_device_sat_mode of none": (lambda rt, s, d: rt.set_device_sat_mode(5), 100000),
    "host_register of null": (lambda rt, s, d: rt.host_register(0, 8, 0), 100000),
    "host_register of type 4": (lambda rt, s, d: rt.host_register(HOST, 8, 4), 100000),
    "host_unregister of none": (lambda rt, s, d: rt.host_unregister(HOST), 507911),
    "pointer_get_attributes(null)": (lambda rt, s, d: rt.pointer_get_attributes(0), 100000),
    "memory pools": (lambda rt, s, d: rt.mem_pool_create(), 207000),
}


@pytest.mark.parametrize("name", MATRIX)
def test_matrix(npu, name):
    s = npu.open()
    d = npu.malloc(64)
    npu.message()
    call, code = MATRIX[name]
    assert last(call(npu.rt, s, d)) == code
    assert (npu.message() != "") == (code != 0), "every failure leaves a message, no success does"


def test_reset_once_too_often(npu):
    rt = npu.rt
    assert [rt.set_device(0), rt.set_device(0), rt.reset_device(0), rt.reset_device(0), rt.reset_device(0)] == [0, 0, 0, 0, 507007]
    assert [rt.set_device(0), rt.set_device(0), rt.reset_device_force(0), rt.reset_device_force(0)] == [0, 0, 0, 507007]


def test_init_and_finalize_twice(npu):
    acl = npu.acl
    assert [acl.init(), acl.init()] == [0, 100002]
    assert acl.finalize_reference() == (1, 0)
    assert [acl.finalize(), acl.finalize()] == [0, 100037]
    assert acl.finalize_reference() == (0, 100037)
    assert [acl.init(), acl.finalize()] == [0, 0]


def test_sync_with_timeout_of_longer_work(npu):
    s = npu.open()
    stop = npu.gate()
    npu.push(s, lambda: stop.wait(30))
    assert npu.rt.synchronize_stream_with_timeout(s, 1) == 507046
    assert npu.rt.synchronize_device_with_timeout(1) == 507046
    e = npu.event()
    assert npu.rt.record_event(e, s) == 0
    assert npu.rt.synchronize_event_with_timeout(e, 1) == 507047
    stop.set()
    assert npu.rt.synchronize_stream_with_timeout(s, 20_000) == 0
    assert npu.rt.synchronize_event_with_timeout(e, 1) == 0


def test_a_stream_of_another_context_is_107003_but_may_be_synchronised(npu):
    rt = npu.rt
    s0 = npu.open(0)
    s1 = npu.open(1)
    e1 = npu.event()
    d1 = npu.malloc(8)
    assert rt.destroy_stream(s0) == 107003
    assert rt.record_event(e1, s0) == 107003
    assert rt.stream_wait_event(s0, e1) == 107003
    assert rt.memset_async(d1, 8, 0, 8, s0) == 107003
    assert rt.stream_query(s0)[1] == 107003
    assert rt.launch_host_func(s0, print, 0) == 107003
    assert "current context" in npu.message()
    assert rt.synchronize_stream(s0) == 0
    assert rt.get_device() == (1, 0), "the switch is not seen outside"
    assert rt.set_device(0) == 0
    assert rt.record_event(e1, s0) == 107003, "an event of device 1 on a stream of device 0"
    assert rt.destroy_stream(s1) == 107003
    assert rt.destroy_stream(s0) == 0


def test_memcpy_check_order(npu, in_thread):
    """Each call breaks a check and every one after it: the first decides."""
    npu.open()
    order = [
        (lambda: npu.rt.memcpy(0, 0, 0, 0, 9), 0),
        (lambda: npu.rt.memcpy(0, 0, 0, 8, 9), 100000),
        (lambda: npu.rt.memcpy(HOST, 0, 0, 8, 9), 100000),
        (lambda: npu.rt.memcpy(HOST, 0, HOST, 8, 9), 100000),
        (lambda: npu.rt.memcpy(HOST, 0, HOST, 8, 0), 107000),
        (lambda: npu.rt.memcpy(HOST, 4, HOST, 8, 0), 107000),
        (lambda: npu.rt.memcpy(HOST, 8, HOST, 8, 0), 0),
        (lambda: npu.rt.memcpy(HOST, 8, 8, 8, 0), 107002),
    ]
    assert in_thread(lambda: [call() for call, _ in order]) == [code for _, code in order]
    wanted = ["dst", "src", "kind", "destMax", "count", "context"]
    found = in_thread(lambda: [(call(), npu.message())[1] for call, code in order if code])
    assert all(word in text for word, text in zip(wanted, found, strict=True))


def test_memcpy_async_check_order(npu, in_thread):
    s = npu.open()
    npu.open(1)
    order = [
        (lambda: npu.rt.memcpy_async(0, 0, 0, 0, 9, s), 0),
        (lambda: npu.rt.memcpy_async(0, 0, 0, 8, 9, s), 100000),
        (lambda: npu.rt.memcpy_async(HOST, 0, HOST, 8, 9, s), 100000),
        (lambda: npu.rt.memcpy_async(HOST, 4, HOST, 8, 0, s), 107000),
    ]
    assert in_thread(lambda: [call() for call, _ in order]) == [code for _, code in order]
    assert in_thread(lambda: npu.rt.memcpy_async(HOST, 8, HOST, 8, 0, s)) == 107002
    assert npu.rt.memcpy_async(HOST, 8, HOST, 8, 0, s) == 207000, "before dst == src and the stream's context"
    d = npu.malloc(8)
    assert npu.rt.memcpy_async(d, 8, d, 8, 3, s) == 0, "dst == src comes before the stream's context"
    assert npu.rt.memcpy_async(d, 8, HOST, 8, 1, s) == 107003
    assert npu.rt.memcpy_async(d, 8, 8, 8, 1, s) == 107000, "the address comes before the stream"
