"""Processes and dask.distributed: the same outcomes, none of other sources, and nothing is left behind when one of them ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from emu.verify import engine, provider, workers
from emu.verify.units import Unit
from emu.verify.workers import SchedulerError, WorkerError


def test_processes_and_this_process_agree(small: list[Unit]) -> None:
    kernels = provider.NativeKernels()
    here = engine.execute(small, kernels, jobs=1)
    there = engine.execute(small, kernels, jobs=2)
    assert [o._replace(seconds=0) for o in here] == [o._replace(seconds=0) for o in there]
    assert sum(o.cases for o in here) == 4 << 17
    assert sum(o.mismatches for o in here) == 0


def test_a_process_with_another_stamp_is_refused(monkeypatch: pytest.MonkeyPatch, small: list[Unit]) -> None:
    mine = workers.stamp()
    monkeypatch.setenv("NUMBA_CPU_NAME", "generic")  # the workers compile for another target
    monkeypatch.setenv("NUMBA_CPU_FEATURES", "")
    with pytest.raises(WorkerError, match=f"has the stamp [0-9a-f]{{16}}, this process {mine}: give both the same") as refused:
        engine.execute(small, provider.NativeKernels(), jobs=2)
    assert str(refused.value).count(mine) == 1


@pytest.fixture
def cluster() -> Any:
    distributed = pytest.importorskip("distributed", reason="the extra named dask is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        yield cluster


@pytest.mark.filterwarnings("default")
def test_dask_scheduler(cluster: Any, small: list[Unit]) -> None:
    outcomes = engine.execute(small, provider.NativeKernels(), scheduler=cluster.scheduler_address)
    assert [o.key for o in outcomes] == [u.key for u in small]
    assert sum(o.cases for o in outcomes) == 4 << 17
    assert sum(o.mismatches for o in outcomes) == 0


@pytest.mark.filterwarnings("default")
def test_a_dask_worker_with_another_stamp_is_refused(cluster: Any, monkeypatch: pytest.MonkeyPatch, small: list[Unit]) -> None:
    here = threading.current_thread()
    monkeypatch.setattr(workers, "stamp", lambda: "ours" if threading.current_thread() is here else "theirs")
    with pytest.raises(WorkerError, match="has the stamp theirs, this process ours"):
        engine.execute(small, provider.NativeKernels(), scheduler=cluster.scheduler_address)


class Absent:
    """A provider of a module that the worker has not."""

    def __reduce__(self) -> tuple[Any, ...]:
        return import_module, ("emu.verify.nowhere",)


@pytest.mark.filterwarnings("default")
def test_a_dask_worker_without_the_package_is_an_error(cluster: Any, small: list[Unit]) -> None:
    with pytest.raises(WorkerError, match=r"cannot compare: No module named 'emu.verify.nowhere'"):
        engine.execute(small, Absent(), scheduler=cluster.scheduler_address)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("default")
def test_a_scheduler_that_is_lost(cluster: Any, small: list[Unit]) -> None:
    units = [unit._replace(low=low, high=low + 1) for unit in small[:1] for low in range(200)]
    with pytest.raises(WorkerError, match="are lost"):
        engine.execute(units, provider.NativeKernels(), scheduler=cluster.scheduler_address, finished=lambda u, o: cluster.close())


def test_missing_dask_says_what_to_install(monkeypatch: pytest.MonkeyPatch, counting: Any, small: list[Unit]) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(workers, "import_module", missing)
    with pytest.raises(ImportError, match=r"aclnn-emu\[dask\]"):
        engine.execute(small, counting(), scheduler="tcp://127.0.0.1:1")


@pytest.mark.parametrize("address", ["nonsense", "nonsense://nowhere", "tls://127.0.0.1:1"])
def test_a_scheduler_that_is_not_there(address: str, counting: Any, small: list[Unit]) -> None:
    pytest.importorskip("distributed", reason="the extra named dask is not installed")
    with pytest.raises(SchedulerError, match="cannot reach a scheduler") as refused:
        engine.execute(small, counting(), scheduler=address)
    assert "\n" not in str(refused.value)


#: A kernel that ends its process, as the system does where memory is short.
DYING = """
import os, signal

class Dying:
    def elementwise(self, flow, v, *inputs):
        os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_worker_that_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: list[Unit]) -> None:
    (tmp_path / "dying.py").write_text(DYING)
    monkeypatch.syspath_prepend(tmp_path)
    from dying import Dying  # type: ignore[import-not-found]

    with pytest.raises(WorkerError, match="ended before its work: killed"):
        engine.execute(small, Dying(), jobs=2)


ENDLESS = """
from emu.verify import engine
from emu.verify.plan import plan
from emu.verify.provider import NativeKernels

if __name__ == "__main__":
    units = plan("exhaustive", ["SeluBackward"], ["BF16"], ["dav_3510"])
    engine.execute(units, NativeKernels(), jobs=2, finished=lambda unit, outcome: print("one", flush=True))
"""


def test_workers_end_with_their_parent(tmp_path: Path) -> None:
    """The output is open in the parent, both workers and the resource tracker: it ends when the last of them does."""
    (tmp_path / "endless.py").write_text(ENDLESS)
    with subprocess.Popen([sys.executable, tmp_path / "endless.py"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == "one\n"
        parent.kill()
        parent.communicate(timeout=30)
    assert parent.returncode == -signal.SIGKILL


def test_a_script_that_starts_workers_while_it_is_imported(tmp_path: Path) -> None:
    (tmp_path / "bare.py").write_text(ENDLESS.replace('if __name__ == "__main__":', "if True:"))
    done = subprocess.run([sys.executable, tmp_path / "bare.py"], capture_output=True, text=True, check=False, timeout=60)
    assert "WorkerError: worker processes cannot start while a script is imported" in done.stderr  # of the worker
    assert "WorkerError: a worker process ended before its work" in done.stderr  # of the script


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="with one CPU the command starts no processes")
def test_an_interrupt_while_workers_start_is_one_line(tmp_path: Path) -> None:
    state = tmp_path / "s"
    args = ["verify", "--exhaustive", "--op", "SeluBackward", "--dtype", "BF16", "--arch", "dav_3510", "-j", "2", "--state", str(state)]
    command = [sys.executable, "-m", "emu", *args]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True) as parent:
        deadline = time.monotonic() + 30
        while not state.exists() and time.monotonic() < deadline:  # it is made just before the workers are
            time.sleep(0.01)
        time.sleep(0.2)  # whatever they are at by now: loading, most likely
        os.killpg(parent.pid, signal.SIGINT)
        out, err = parent.communicate(timeout=30)
    assert (out, err) == ("", f"emu: stopped; go on with --resume (finished work is in {state})\n")
    assert parent.returncode == 130
