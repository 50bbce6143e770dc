"""aclInit's rules, messages, visible devices, the end of the process, forks, emu.install."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

import emu
from emu.runtime.device import visible


def run(code: str, *, timeout: float = 60, **env: str) -> subprocess.CompletedProcess[str]:
    """A program of its own; a hang is a failure."""
    full = {**os.environ, **env}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=timeout, env=full, check=False)


def good(code: str, **env: str) -> list[str]:
    """Its output lines; it must end well and say nothing on stderr."""
    done = run(code, **env)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        ("{}", 0),
        ("", 0),
        ("  ", 0),
        ("{", 100006),
        ("[]", 100006),
        ('{"a": ' + "[" * 11 + "]" * 11 + "}", 100006),
        ('{"a": ' * 10 + "1" + "}" * 10, 0),
        ('{"a": ' * 11 + "1" + "}" * 11, 100006),
        ('{"a": "{{{{{{{{{{{{[[[[[[[[[[["}', 0),
        ('{"a": "\\"{{{{{{{{{{{{"}', 0),
        ('{"dump": 1}', 100009),
        ('{"profiler": []}', 100010),
        ('{"max_opqueue_num": "20000"}', 0),
        ('{"max_opqueue_num": 0}', 148048),
        ('{"max_opqueue_num": "many"}', 148048),
        ('{"err_msg_mode": "2"}', 100000),
        ('{"StackSize": {"aicore_stack_size": 32768}}', 0),
        ('{"StackSize": {"aicore_stack_size": 1000}}', 100000),
        ('{"StackSize": 5}', 100000),
        ('{"defaultDevice": {"default_device": "0"}}', 0),
        ('{"defaultDevice": {"default_device": "99"}}', 107001),
        ('{"defaultDevice": {"default_device": "x"}}', 100000),
        ('{"defaultDevice": 0}', 100000),
    ],
)
def test_what_a_configuration_may_say(npu, tmp_path, content, code):
    path = tmp_path / "acl.json"
    path.write_text(content)
    assert npu.acl.init(str(path)) == code
    assert (npu.message() != "") == (code != 0)


def test_files_that_cannot_be_read(npu, tmp_path, monkeypatch):
    from emu.runtime import process

    assert npu.acl.init(str(tmp_path / "absent.json")) == 100003
    assert npu.acl.init(str(tmp_path)) == 100003
    assert npu.acl.init("\0") == 100003
    monkeypatch.setattr(process, "MAX_CONFIG_BYTES", 10)
    (tmp_path / "big.json").write_text('{"a": "12345678"}')
    assert npu.acl.init(str(tmp_path / "big.json")) == 100005
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    assert npu.acl.init(str(tmp_path / "binary.json")) == 100003
    assert npu.acl.init("") == npu.acl.finalize() == npu.acl.init(None) == 0


def test_a_second_init_must_have_the_same_configuration(npu, tmp_path):
    first, second = tmp_path / "1.json", tmp_path / "2.json"
    first.write_text('{"max_opqueue_num": 5}')
    second.write_text('{ "max_opqueue_num" : 5 }')
    assert [npu.acl.init(str(first)), npu.acl.init(str(second)), npu.acl.init()] == [0, 100002, 100000]
    assert npu.acl.finalize_reference() == (1, 0)
    assert npu.acl.finalize() == 0
    assert npu.acl.init() == 0, "after the end another one is allowed"


def test_the_default_device(npu, tmp_path, in_thread):
    path = tmp_path / "acl.json"
    path.write_text(json.dumps({"defaultDevice": {"default_device": "3"}}))
    assert npu.rt.get_device() == (0, 107002)
    assert npu.acl.init(str(path)) == 0
    assert npu.rt.get_device() == (3, 0)
    assert in_thread(lambda: npu.rt.create_stream()[1]) == 0
    assert npu.rt.set_device(1) == 0
    assert npu.rt.get_device() == (1, 0)


def test_finalize_before_any_init_succeeds_once():
    code = "from emu import acl; print(acl.finalize(), acl.finalize(), acl.init(), acl.finalize(), acl.finalize())"
    assert good(code) == ["0 100037 0 0 100037"]


def test_finalize_ends_the_devices_after_their_work(any_schedule):
    npu = any_schedule
    assert npu.acl.init() == 0
    s = npu.open()
    seen: list[int] = []
    npu.push(s, lambda: seen.append(1))
    assert npu.acl.finalize() == 0
    assert seen == [1]
    assert npu.rt.synchronize_stream(s) == 107002
    assert npu.rt.reset_device(0) == 507007


def test_messages_are_per_thread_and_newest_first(npu, in_thread):
    npu.rt.free(0)
    npu.rt.get_device()
    assert in_thread(npu.acl.get_recent_err_msg) is None
    first, second = npu.message().splitlines()
    assert "aclrtGetDevice" in first
    assert first.startswith("EE1010: [PID: ")
    assert "aclrtFree" in second
    assert npu.acl.get_recent_err_msg() is None, "asking takes them"


def test_messages_of_the_process(npu, in_thread, tmp_path):
    path = tmp_path / "acl.json"
    path.write_text('{"err_msg_mode": "1"}')
    assert npu.acl.init(str(path)) == 0
    npu.rt.free(0)
    assert "aclrtFree" in in_thread(npu.acl.get_recent_err_msg)


def test_the_last_error(npu, in_thread):
    npu.rt.get_last_error(0)
    assert npu.rt.peek_at_last_error(0) == 0
    npu.rt.free(0)
    assert npu.rt.set_device(0) == 0, "a success does not clear it"
    assert [npu.rt.peek_at_last_error(0), in_thread(lambda: npu.rt.peek_at_last_error(0))] == [100000, 0]
    assert [npu.rt.get_last_error(0), npu.rt.peek_at_last_error(0)] == [100000, 0]


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        (None, list(range(8))),
        ("", list(range(8))),
        ("2", [2]),
        ("1,3,7", [1, 3, 7]),
        ("1,3,2,5", [1, 3]),
        ("1,1", [1]),
        ("0, 1", [0]),
        ("0,8,1", [0]),
        ("0,x,1", [0]),
        ("-1", []),
        ("x", []),
        ("²", []),
    ],
)
def test_visible_devices(npu, monkeypatch, text, seen):
    assert visible(8, text) == seen
    if text is None:
        monkeypatch.delenv("ASCEND_RT_VISIBLE_DEVICES", raising=False)
    else:
        monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", text)
    assert npu.rt.get_device_count() == (len(seen), 0)
    assert npu.rt.set_device(len(seen)) == 107001
    assert [npu.rt.set_device(n) for n in range(len(seen))] == [0] * len(seen), "numbered from 0 again"
    if not seen:
        assert npu.rt.get_soc_name() is None


def test_an_open_device_keeps_its_visible_devices(npu, monkeypatch):
    npu.open()
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0")
    assert npu.rt.get_device_count() == (8, 0)
    assert npu.rt.reset_device(0) == 0
    assert npu.rt.get_device_count() == (1, 0)


def test_versions(npu):
    assert npu.acl.get_version() == (1, 17, 0, 0)
    assert npu.acl.get_cann_version(0)[1] == npu.acl.get_version_str("runtime")[1] == npu.acl.get_version_num("CANN")[1] == 0
    assert npu.acl.get_cann_version(8)[1] == npu.acl.get_version_str("none")[1] == npu.acl.get_version_num(None)[1] == 100000


BUSY = """
import time
from emu import acl
from emu.runtime import handles
from emu.runtime.stream import Stream
class Task:
    work = 10**9; name = "busy"
    def run(self): time.sleep(0.01)
acl.rt.set_device(0)
streams = [acl.rt.create_stream()[0] for _ in range(4)]
for h in streams:
    for _ in range(1000): handles.lookup(h, Stream).enqueue(Task())
"""


@pytest.mark.parametrize("schedule", ["async", "lazy", "shuffle:1"])
@pytest.mark.parametrize("end", ["", "raise SystemExit(3)", "acl.rt.launch_host_func(streams[0], time.sleep, 1000)", "blocked"])
def test_exit_with_busy_streams(schedule, end):
    if end == "blocked":
        end = "e, _ = acl.rt.create_event_with_flag(1); acl.rt.stream_wait_event(streams[1], e); acl.rt.stream_query(streams[1])"
    if schedule.startswith("shuffle"):
        end = "streams = [acl.rt.create_stream()[0]]\n" + end
        code = BUSY.replace("range(1000)", "range(3)") + end.replace("streams[1]", "streams[0]")
    else:
        code = BUSY + end
    done = run(code, timeout=30, EMU_SCHEDULE=schedule)
    assert (done.returncode, done.stderr) == (3 if "SystemExit" in end else 0, "")


def test_exit_in_the_middle_of_a_deadlock():
    code = """
from emu import acl
acl.rt.set_device(0)
e, _ = acl.rt.create_event_with_flag(1)
s, _ = acl.rt.create_stream()
acl.rt.stream_wait_event(s, e)
print(acl.rt.synchronize_stream(s), acl.rt.reset_device(0), acl.finalize())
"""
    assert good(code) == ["507046 0 0"]


FORK = """
import os, sys
from emu import acl
{before}
pid = os.fork()
if pid == 0:
    {child}
    os._exit(0)
os.waitpid(pid, 0)
{after}
"""


@pytest.mark.parametrize("schedule", ["async", "lazy"])
def test_a_forked_child_gets_errors_and_the_parent_goes_on(schedule):
    code = FORK.format(
        before="acl.rt.set_device(0); s = acl.rt.create_stream()[0]; p = acl.rt.malloc(8, 0)[0]; acl.rt.memset_async(p, 8, 1, 8, s)",
        child="""print(acl.rt.synchronize_stream(s), acl.rt.malloc(8, 0)[1], acl.rt.set_device(0), acl.rt.create_context(0)[1], acl.init(),
        acl.rt.free(p), acl.rt.create_event()[1], acl.get_recent_err_msg().count("forked"), flush=True)""",
        after="print(acl.rt.synchronize_stream(s), acl.rt.malloc(8, 0)[1], acl.rt.free(p), acl.rt.reset_device(0))",
    )
    assert good(code, EMU_SCHEDULE=schedule) == ["107002 107002 507033 507033 500000 107000 107002 6", "0 0 0 0"]


def test_a_fork_before_the_first_device_is_harmless():
    work = (
        "s = (acl.rt.set_device(0), acl.rt.create_stream()[0])[1]; print(acl.rt.synchronize_stream(s), acl.rt.reset_device(0), flush=True)"
    )
    code = FORK.format(before="acl.rt.get_device_count()", child=work, after=work)
    assert good(code) == ["0 0", "0 0"]
    code = FORK.format(before=f"acl.init(); {work}", child=work, after=work)
    assert good(code) == ["0 0", "0 0", "0 0"]


def test_an_interrupt_reaches_the_program():
    code = """
import os, signal, threading
from emu import acl
from emu.runtime import handles
from emu.runtime.stream import Stream
acl.rt.set_device(0)
s, _ = acl.rt.create_stream()
stop = threading.Event()
acl.rt.launch_host_func(s, lambda _: stop.wait(60), 0)
timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
timer.start()
try:
    acl.rt.synchronize_stream(s)
except KeyboardInterrupt:
    print("interrupted")
stop.set()
print(acl.rt.synchronize_stream(s))
"""
    assert good(code) == ["interrupted", "0"]


def test_install_serves_an_unchanged_program():
    code = """
import emu
emu.install()
import acl
import acl.rt
from acl import util
import numpy as np
ret = acl.init()
ret |= acl.rt.set_device(0)
a = np.arange(6, dtype=np.float32)
ptr, r = acl.rt.malloc(a.nbytes, 0)
ret |= r | acl.rt.memcpy(ptr, a.nbytes, util.numpy_to_ptr(a), a.nbytes, 1)
host, r = acl.rt.malloc_host(a.nbytes)
ret |= r | acl.rt.memcpy(host, a.nbytes, ptr, a.nbytes, 2)
print(ret, acl.util.ptr_to_numpy(host, (2, 3), 11).tolist())
ret = acl.rt.free(ptr) | acl.rt.free_host(host) | acl.rt.reset_device(0) | acl.finalize()
print(ret)
"""
    assert good(code) == ["0 [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]", "0"]


def test_uninstall(monkeypatch):
    from emu.install import uninstall

    for name in ("acl", "acl.rt", "acl.util"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    emu.install()
    assert sys.modules["acl"] is emu.acl
    assert sys.modules["acl.rt"] is emu.acl.rt
    uninstall()
    assert "acl" not in sys.modules


def test_nothing_heavy_is_imported():
    code = "import sys, emu.acl; print('numba' in sys.modules, 'torch' in sys.modules, 'numpy' in sys.modules)"
    assert good(code) == ["False False False"]
