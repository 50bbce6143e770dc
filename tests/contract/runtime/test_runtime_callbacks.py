"""Host functions, callbacks and exception reports."""

from __future__ import annotations

import ctypes
import threading

import pytest

from emu.runtime.threads import RuntimeThread


def test_a_host_function_runs_in_order_on_a_thread_of_the_runtime(any_schedule):
    npu = any_schedule
    s = npu.open()
    seen: list[object] = []
    where: list[threading.Thread] = []

    def note(data: list[int]) -> None:
        seen.append(data)
        where.append(threading.current_thread())

    npu.push(s, lambda: seen.append("before"))
    assert npu.rt.launch_host_func(s, note, [1, 2]) == 0
    npu.push(s, lambda: seen.append("after"))
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == ["before", [1, 2], "after"]
    assert isinstance(where[0], RuntimeThread)


def test_host_functions_of_two_streams_do_not_wait_for_each_other(any_schedule):
    npu = any_schedule
    s, t = npu.open(), npu.stream()
    first = npu.gate()
    assert npu.rt.launch_host_func(s, lambda _: first.wait(30), 0) == 0
    assert npu.rt.launch_host_func(t, lambda _: first.set(), 0) == 0
    assert npu.rt.synchronize_stream(t) == 0
    assert npu.rt.synchronize_stream(s) == 0


def test_a_host_function_that_raises_is_a_fault(npu):
    s = npu.open()
    assert npu.rt.launch_host_func(s, lambda _: 1 // 0, 0) == 0
    assert npu.rt.synchronize_stream(s) == 507000
    assert "ZeroDivisionError" in npu.message()


def test_a_c_function_pointer_is_taken_as_well(npu):
    s = npu.open()
    seen: list[int] = []
    native = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(seen.append)
    assert npu.rt.launch_host_func(s, ctypes.cast(native, ctypes.c_void_p).value, 1234) == 0
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == [1234]


def test_a_host_function_may_not_wait_for_its_stream(npu):
    s = npu.open()
    ctx, _ = npu.rt.get_context()
    codes: list[object] = []

    def wrong(_: object) -> None:
        codes.append(npu.rt.set_context(ctx))
        e, _ret = npu.rt.create_event()
        codes.extend([npu.rt.synchronize_stream(s), npu.rt.synchronize_device(), npu.rt.destroy_stream(s)])
        codes.extend([npu.rt.synchronize_event(e), npu.rt.synchronize_stream_with_timeout(s, 10)])

    assert npu.rt.launch_host_func(s, wrong, 0) == npu.rt.synchronize_stream(s) == 0
    assert codes == [0, 107000, 107000, 107000, 107000, 107000]


def subscriber(npu, stream: int, ready: threading.Event, stop: threading.Event) -> threading.Thread:
    """A thread that runs the stream's callbacks until ``stop``."""
    ctx, _ = npu.rt.get_context()

    def serve() -> None:
        npu.rt.set_context(ctx)
        npu.rt.subscribe_report(threading.get_ident(), stream)
        ready.set()
        while not stop.is_set():
            npu.rt.process_report(10)
        npu.rt.unsubscribe_report(threading.get_ident(), stream)

    thread = threading.Thread(target=serve)
    thread.start()
    assert ready.wait(30)
    return thread


def test_callbacks_run_in_the_subscribers_thread(any_schedule):
    npu = any_schedule
    s = npu.open()
    stop = npu.gate()
    thread = subscriber(npu, s, npu.gate(), stop)
    seen: list[object] = []
    for n in range(20):
        assert npu.rt.launch_callback(lambda n: seen.append((n, threading.get_ident())), n, 1, s) == 0
        npu.push(s, lambda n=n: seen.append(n))
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == [entry for n in range(20) for entry in ((n, thread.ident), n)], "blocking callbacks hold the stream"
    assert npu.rt.subscribe_report(1, s) == 107011
    assert npu.rt.unsubscribe_report(1, s) == 107012
    stop.set()
    thread.join(30)
    assert npu.rt.launch_callback(print, 0, 1, s) == 107015
    assert npu.rt.synchronize_stream(s) == 0


def test_a_callback_that_does_not_block(npu):
    s = npu.open()
    me = threading.get_ident()
    seen: list[int] = []
    assert npu.rt.subscribe_report(me, s) == 0
    assert npu.rt.process_report(1) == 507012
    assert npu.rt.launch_callback(seen.append, 5, 0, s) == 0
    assert npu.rt.synchronize_stream(s) == 0, "the stream goes on"
    assert seen == []
    assert npu.rt.process_report(-1) == 0
    assert seen == [5]
    assert npu.rt.process_report(1) == 507012
    assert npu.rt.unsubscribe_report(me, s) == 0
    assert npu.rt.process_report(1) == 107012


def test_one_thread_may_launch_and_process(any_schedule):
    npu = any_schedule
    s = npu.open()
    seen: list[int] = []
    assert npu.rt.subscribe_report(threading.get_ident(), s) == 0
    assert npu.rt.launch_callback(seen.append, 1, 1, s) == 0
    npu.push(s, lambda: seen.append(2))
    assert npu.rt.process_report(30_000) == 0
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == [1, 2]


def test_waiting_in_the_only_thread_that_could_run_the_callback(any_schedule):
    npu = any_schedule
    s = npu.open()
    assert npu.rt.subscribe_report(threading.get_ident(), s) == 0
    assert npu.rt.launch_callback(print, 0, 1, s) == 0
    assert npu.rt.synchronize_stream(s) == 507046
    assert "callback" in npu.message()
    assert npu.rt.unsubscribe_report(threading.get_ident(), s) == 0
    assert npu.rt.synchronize_stream(s) == 0, "without a subscriber it is passed over"


def test_start_thread_as_pyacl_programs_use_it(npu):
    s = npu.open()
    ctx, _ = npu.rt.get_context()
    seen: list[int] = []
    going = [True]

    def serve(args: list[int]) -> None:
        context, timeout = args
        npu.rt.set_context(context)
        while going[0]:
            npu.rt.process_report(timeout)

    tid, ret = npu.acl.util.start_thread(serve, [ctx, 10])
    assert ret == 0
    assert npu.rt.subscribe_report(tid, s) == 0
    assert npu.rt.launch_callback(seen.append, 7, 1, s) == 0
    assert npu.rt.synchronize_stream(s) == 0
    assert seen == [7]
    assert npu.rt.unsubscribe_report(tid, s) == 0
    going[0] = False
    assert npu.acl.util.stop_thread(tid) == 0
    assert npu.acl.util.stop_thread(tid) == 100000


def test_exception_reports(npu):
    s = npu.open(1)
    got: list[object] = []
    arrived = npu.gate()
    assert npu.rt.set_exception_info_callback(lambda info: (got.append(info), arrived.set())) == 0

    def fail() -> None:
        raise ValueError("x")

    npu.push(s, fail)
    assert npu.rt.synchronize_stream(s) == 507000
    assert arrived.wait(30)
    info = got[0]
    assert npu.rt.get_error_code_from_exception_info(info) == 507000
    assert npu.rt.get_device_id_from_exception_info(info) == 1
    assert npu.rt.get_stream_id_from_exception_info(info) == npu.rt.stream_get_id(s)[0]
    assert npu.rt.get_task_id_from_exception_info(info) == 0
    assert npu.rt.get_thread_id_from_exception_info(info) > 0
    assert npu.rt.set_exception_info_callback(None) == 0
    npu.push(s, fail)
    assert npu.rt.synchronize_stream(s) == 507000
    assert len(got) == 1
    for name in ("task_id", "stream_id", "thread_id", "device_id", "error_code"):
        assert getattr(npu.rt, f"get_{name}_from_exception_info")(0) == 0xFFFFFFFF


@pytest.mark.parametrize("address", [1, 0x10, 2**47])
def test_an_address_without_code_is_refused(npu, address):
    """To call it would end the process."""
    npu.open()
    rt = npu.rt
    data = ctypes.create_string_buffer(64)
    for pointer in (address, ctypes.addressof(data)):
        assert rt.launch_host_func(0, pointer, 0) == 107000
        assert "no code" in npu.acl.get_recent_err_msg()
        assert rt.set_exception_info_callback(pointer) == 107000
        assert rt.launch_callback(pointer, 0, 1, 0) == 107000
