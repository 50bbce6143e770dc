"""What tracing does when it cannot go on: the program is never the one to suffer, and no two write one file."""

from __future__ import annotations

import errno
import os
import subprocess
import sys

import pytest

import emu
from emu.runtime import hooks
from emu.timeline import events, reader
from emu.timeline.events import CANN, HARDWARE
from emu.timeline.recorder import CHUNK
from emu.types import MemcpyKind


class Disk:
    """Stands for os.write: takes so many bytes of traces, then is full."""

    def __init__(self, room: int) -> None:
        self.room = room
        self._write = os.write

    def __call__(self, fd: int, data: bytes) -> int:
        if fd == 2:
            return self._write(fd, data)
        if not self.room:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = self._write(fd, bytes(data)[: self.room])
        self.room -= count
        return count


@pytest.mark.parametrize("what", ["launches", "copies", "allocations"])
def test_a_full_disk_is_one_line_and_no_code(card, tmp_path, monkeypatch, capfd, what):
    c = card(schedule="eager")
    s, x = c.stream(), c.tensor(64)
    host, ret = c.rt.malloc_host(64)
    assert ret == 0
    p = c.malloc(64)
    path = tmp_path / "out.json"
    with emu.trace(path) as recorder:
        monkeypatch.setattr(events.os, "write", Disk(100_000))
        for _ in range(12 * CHUNK):
            if what == "launches":
                c.launch("aclnnInplaceExp", s, x)  # asserts its codes
            elif what == "copies":
                assert c.rt.memcpy(p, 64, host, 64, MemcpyKind.HOST_TO_DEVICE) == 0
            else:
                q, ret = c.rt.malloc(64, 0)
                assert (ret, c.rt.free(q)) == (0, 0)
        assert hooks.active is None, "nothing more is traced"
        assert recorder.lost
        assert c.rt.synchronize_stream(s) == 0
    monkeypatch.undo()
    assert capfd.readouterr().err == f"emu: trace {path}: No space left on device; the file has no end, and nothing more is traced\n"
    assert path.stat().st_size == 100_000 + len_of_head(tmp_path)
    trace = reader.load(path)
    assert not trace.complete
    assert reader.problems(trace) == [], "what is there can be read"
    assert c.rt.free_host(host) == 0


def len_of_head(tmp_path):
    """Bytes that a trace has written when it begins."""
    with emu.trace(tmp_path / "head.json"):
        return (tmp_path / "head.json").stat().st_size


def test_a_disk_that_is_full_at_the_end(card, tmp_path, monkeypatch, capfd):
    c = card()
    s, x = c.stream(), c.tensor(64)
    with emu.trace(tmp_path / "out.json"):
        c.launch("aclnnInplaceExp", s, x)
        assert c.rt.synchronize_stream(s) == 0
        monkeypatch.setattr(events.os, "write", Disk(0))
    monkeypatch.undo()
    assert capfd.readouterr().err.count("\n") == 1
    assert hooks.active is None
    assert not reader.load(tmp_path / "out.json").complete


def test_a_disk_that_is_full_at_the_beginning(tmp_path, monkeypatch):
    monkeypatch.setattr(events.os, "write", Disk(10))
    with pytest.raises(OSError, match="No space left"), emu.trace(tmp_path / "out.json"):
        pytest.fail("the block must not run")
    assert hooks.active is None
    monkeypatch.undo()
    with emu.trace(tmp_path / "out.json"):
        pass  # the failed one has let go of the file


def test_two_traces_to_one_file(card, tmp_path):
    path = tmp_path / "out.json"
    c = card()
    s, x = c.stream(), c.tensor(64)
    with emu.trace(path):
        c.launch("aclnnInplaceExp", s, x)
        with pytest.raises(OSError, match="another trace is being written to this file"), emu.trace(path):
            pytest.fail("the block must not run")
        assert c.rt.synchronize_stream(s) == 0
    trace = reader.load(path)
    assert trace.complete
    assert [e["name"] for e in trace.slices(HARDWARE)] == ["aclnnInplaceExp"]
    with emu.trace(path):
        pass
    assert reader.load(path).slices() == [], "one after the other is no conflict"


def test_a_process_started_with_the_same_name_says_so_and_runs(tmp_path):
    code = "import emu.acl as acl; print(acl.rt.set_device(0))"
    path = tmp_path / "out.json"
    env = {**os.environ, "EMU_TRACE": str(path)}
    with emu.trace(path):
        ran = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False, timeout=120)
    assert (ran.returncode, ran.stdout) == (0, "0\n")
    assert ran.stderr == f"emu: EMU_TRACE={path}: another trace is being written to this file; nothing is traced\n"
    assert reader.load(path).complete


@pytest.mark.parametrize("name", ["/dev/full", "/dev/null", "pipe"])
def test_only_files(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    with pytest.raises(OSError, match=r"not a regular file|No such device"), emu.trace(name):
        pytest.fail("the block must not run")


def test_a_forked_child_leaves_the_file_alone(card, tmp_path):
    """Neither its end of the block nor what it notes reaches the file, whether it writes in between or not."""
    c = card()
    s, x = c.stream(), c.tensor(64)
    path = tmp_path / "out.json"
    for writes in (False, True):
        with emu.trace(path) as recorder:
            c.launch("aclnnInplaceExp", s, x)
            assert c.rt.synchronize_stream(s) == 0
            child = os.fork()
            if not child:
                try:
                    recorder.called("aclrtSynchronizeStream", (0, 0))
                    if writes:
                        recorder.flush()
                    recorder.stop()
                finally:
                    os._exit(0 if hooks.active is None and not recorder.lost else 1)
            assert os.waitpid(child, 0)[1] == 0
            with pytest.raises(OSError, match="another trace"):
                os.close(events.claim(path))
        text = path.read_text()
        assert text.count("]}\n") == 1
        trace = reader.load(path)
        assert (trace.complete, reader.problems(trace)) == (True, [])
        assert [e["name"] for e in trace.slices(CANN)] == ["aclnnInplaceExp", "aclrtSynchronizeStream"]


@pytest.mark.parametrize("alike", [False, True])
def test_what_is_still_queued_is_counted_and_its_calls_are_written(card, tmp_path, capfd, alike):
    c = card(schedule="lazy", host="cpp")
    s, x, y = c.stream(), c.tensor(64), c.tensor(64)
    p, q, e = c.malloc(64), c.malloc(64), c.event()
    path = tmp_path / "out.json"
    with emu.trace(path) as recorder:
        if alike:  # launches like one that is written leave nothing but numbers
            c.launch("aclnnInplaceExp", s, x)
            assert c.rt.synchronize_stream(s) == 0
            recorder.flush()
        for _ in range(50):
            c.launch("aclnnInplaceExp", s, x)
        c.launch("aclnnSigmoid", s, x, y)
        assert c.rt.memcpy_async(p, 64, q, 64, MemcpyKind.DEVICE_TO_DEVICE, s) == 0
        assert c.rt.record_event(e, s) == 0
    assert capfd.readouterr().err == f"emu: trace {path}: 53 tasks were still queued at its end and left out; synchronise before\n"
    trace = reader.load(path)
    assert reader.problems(trace) == []
    assert len(trace.slices(HARDWARE)) == alike
    calls = ["aclnnInplaceExp"] * 50 + ["aclnnSigmoid", "aclrtMemcpyAsync", "aclrtRecordEvent"]
    assert [call["name"] for call in trace.slices(CANN)] == ["aclnnInplaceExp", "aclrtSynchronizeStream"] * alike + calls
    assert [call["dur"] for call in trace.slices(CANN)][-53:-2] == [37.0] * 51
    assert c.rt.synchronize_stream(s) == 0
