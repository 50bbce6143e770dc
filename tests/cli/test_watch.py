"""emu info --watch: a look into another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

PROGRAM = """
import sys, emu
emu.configure(schedule="lazy")
from emu import acl, aclnn
assert acl.rt.set_device(0) == 0
s, _ = acl.rt.create_stream()
p, _ = acl.rt.malloc(8 << 20, 0)
t = aclnn.aclCreateTensor((1024,), 0, None, 0, 2, (1024,), p)
def launch(n):
    for _ in range(n):
        size, executor, code = aclnn.aclnnInplaceExpGetWorkspaceSize(t)
        assert aclnn.aclnnInplaceExp(0, size, executor, s) == 0
launch(2)
assert acl.rt.synchronize_stream(s) == 0
launch(3)
print("ready", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def process() -> Iterator[subprocess.Popen[str]]:
    """A process with three launches queued and an 8 MiB block."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("EMU_") or k == "EMU_CACHE_DIR"}
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM], env={**env, "EMU_WATCH": "1"}, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdin is not None
    assert child.stdout.readline() == "ready\n"
    yield child
    child.stdin.close()
    child.wait(60)
    child.stdout.close()


def test_it_sees_memory_streams_and_queues(emu, process):
    ran = emu("info", "--watch", "--pid", str(process.pid), "--count", "2", "--interval", "0.05", "--json")
    assert ran.code == 0
    first, second = map(json.loads, ran.out.splitlines())
    assert first["emulated"] is True
    assert first["pid"] == process.pid
    (device,) = first["devices"]
    assert (device["device"], device["name"], device["allocations"], device["largest"]) == (0, "Ascend910B1", 1, [8 << 20])
    assert 8 << 20 <= device["hbm_used"] < 9 << 20 or device["hbm_used"] == 10 << 20
    default, other = device["streams"]
    assert (default["queued"], default["head"]) == (0, "")
    assert (other["queued"], other["head"]) == (3, "aclnnInplaceExp")
    assert other["simulated_us"] == pytest.approx(2 * 3.366, abs=0.01)
    assert second["devices"] == first["devices"], "looking changes nothing"
    text = emu("info", "--watch", "--pid", str(process.pid), "--count", "1")
    assert text.out.startswith("EMULATED by aclnn-emu")
    for part in ("Device 0 Ascend910B1", "in 1 blocks (largest: 8.0 MB)", "aclnnInplaceExp", "clock, µs (simulated)"):
        assert part in text.out


def test_a_process_that_ends_or_was_never_there(emu, process):
    pid = str(process.pid)
    process.stdin.close()
    process.wait(60)
    ran = emu("info", "--watch", "--pid", pid)
    assert ran.code == 1
    assert f"process {pid} cannot be watched" in ran.err
