"""The helpers of the simulated cores: native code that claims blocks, sleeps and is woken."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pytest

from emu.runtime.crew import Crew
from emu.runtime.crew_native import source

KERNEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)
ARGS = (ctypes.c_int64 * 1)(0)


def address_of(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def ended(crew: Crew) -> bool:
    crew.close()
    for thread in crew.threads:
        thread.join(60)
    return not any(thread.is_alive() for thread in crew.threads)


@pytest.mark.parametrize(("machine", "pause"), [("x86_64", '"pause"'), ("aarch64", '"yield"'), ("riscv64", '""')])
def test_the_text_is_valid_for_every_cpu(machine, pause):
    from llvmlite import binding

    text = source(machine)
    assert f"asm sideeffect {pause}" in text
    binding.parse_assembly(text).verify()


@pytest.mark.parametrize("spin_ns", [0, 2_000, 50_000])
@pytest.mark.parametrize("helpers", [1, 2])
def test_helpers_are_woken_at_any_moment_of_falling_asleep(spin_ns, helpers):
    """Every block once in each of many launches, with pauses around the time that the helpers look for work."""
    crew = Crew(helpers, spin_ns)
    crew.grow(helpers)
    counts = np.zeros(640, np.int64)

    def work(args: int, start: int, stop: int) -> None:
        counts[start:stop] += 1

    kernel = KERNEL(work)
    for k in range(1000):
        crew.launch(address_of(kernel), ARGS, 640, 64, helpers)
        assert (counts == k + 1).all()
        until = time.perf_counter_ns() + (k % 7) * spin_ns // 3
        while time.perf_counter_ns() < until:
            pass
    assert ended(crew)


def test_a_launch_that_wakes_nobody_runs_all_the_same():
    crew = Crew(2, 0)
    crew.grow(2)
    ranges: list[tuple[int, int]] = []
    kernel = KERNEL(lambda args, start, stop: ranges.append((start, stop)))
    for _ in range(100):
        crew.launch(address_of(kernel), ARGS, 1000, 64, 0)
    assert sorted(ranges) == sorted([(k, min(k + 64, 1000)) for k in range(0, 1000, 64)] * 100)
    assert ended(crew)


def test_idle_helpers_use_no_cpu():
    """CPU time of the process while the helpers have nothing to do: far less than one that looks for work the whole time."""
    crew = Crew(2)
    crew.grow(2)
    kernel = KERNEL(lambda args, start, stop: None)
    crew.launch(address_of(kernel), ARGS, 640, 64, 2)
    before, began = time.process_time(), time.monotonic()
    time.sleep(0.4)
    assert time.process_time() - before < 0.5 * (time.monotonic() - began)
    assert ended(crew)


def test_signals_do_not_end_a_sleep_or_a_launch():
    """The helpers' sleep is interrupted by signals that the process handles; the launch that the caller is in stays whole."""
    seen = []
    before = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    crew = Crew(1, 0)
    crew.grow(1)
    counts = np.zeros(640, np.int64)

    def work(args: int, start: int, stop: int) -> None:
        counts[start:stop] += 1

    kernel = KERNEL(work)
    try:
        for k in range(200):
            signal.pthread_kill(crew.threads[0].ident or 0, signal.SIGUSR1)
            os.kill(os.getpid(), signal.SIGUSR1)
            crew.launch(address_of(kernel), ARGS, 640, 64, 1)
            assert (counts == k + 1).all()
    finally:
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # forgets those that a thread has not been given yet
        signal.signal(signal.SIGUSR1, before)
    assert seen
    assert ended(crew)


_FORK = """
import os, sys, threading, warnings
import numpy as np
import emu
from emu import ops
warnings.simplefilter("ignore")
emu.configure(threads=3)
g = np.ones(1 << 20, np.float32)
want = ops.selu_backward(g, g)
stop = []
def launches():
    while not stop:
        ops.selu_backward(g, g)
busy = threading.Thread(target=launches)
busy.start()
for k in range(20):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if (ops.selu_backward(g, g) == want).all() else 3)
    if os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]):
        os._exit(4)
stop.append(1)
busy.join()
print("done", (ops.selu_backward(g, g) == want).all())
"""


def test_forked_children_have_cores_of_their_own():
    """Without a device, and while another thread's launch has the helpers."""
    done = subprocess.run([sys.executable, "-c", _FORK], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, "done True\n"), done.stderr


def test_a_process_ends_while_its_helpers_look_for_work():
    code = "import numpy, emu; from emu import ops; emu.configure(threads=2); a = numpy.ones(1 << 20, 'f'); ops.selu_backward(a, a)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
