"""emu warmup: every kernel that a program can ask for is in the cache afterwards."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from emu.cli import warmup
from emu.opdef.catalogue import OPERATORS, operator
from emu.soc import known_socs, profile

PROGRAM = """
import numpy as np
from emu import ops
from emu_kernels import build

for t in (np.float32, np.float16, np.int8, np.int32):
    x = np.ones((3, 4), t)
    ops.selu_backward(x, x, soc="Ascend910A")
    ops.selu_backward(x[:, ::2], x[:, ::2], soc="Ascend910A")
print(set(build.stats().values()))
"""


def test_processes_fill_one_cache_and_programs_find_everything_in_it(emu_process, tmp_path):
    cache = str(tmp_path / "cache")
    given = ("warmup", "selu_backward", "--soc", "Ascend910A", "--json")
    first = json.loads(emu_process(*given, "--jobs", "2", EMU_CACHE_DIR=cache).out)
    assert first["kernels"] == len(first["compiled"]) > 3
    assert first["cache"] == cache
    again = emu_process(*given, "--jobs", "1", EMU_CACHE_DIR=cache)
    assert json.loads(again.out) == {**first, "compiled": []}
    (tmp_path / "program.py").write_text(PROGRAM)
    assert emu_process("run", "program.py", EMU_CACHE_DIR=cache).out == "{'cache'}\n"


def test_what_is_wanted_covers_products_types_and_modes():
    items = set(warmup.wanted(OPERATORS, known_socs(), casts=True))
    for op in OPERATORS:
        for name in known_socs():
            soc = profile(name)
            for dtype in op.dtypes_on(soc):
                for last in (True, False) if op.flow.kind == "rows" else (False,):
                    key = (op.flow.name, soc.arch, dtype, "device", last)
                    assert warmup.Wanted(op.flow.kind, key, soc.saturates) in items
    assert warmup.Wanted("cast", ("FLOAT", "DOUBLE", "dav_2201"), True) in items
    assert warmup.Wanted("cast", ("FLOAT", "BF16", "dav_1001"), True) not in items
    plain = set(warmup.wanted([operator("selu")], ["Ascend910A"], casts=False))
    assert {item.key[1] for item in plain if item.kind == "elementwise"} == {"dav_1001"}
    assert {item.key for item in plain if item.kind == "copy"} == {(1,), (2,), (4,)}


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_interrupt_ends_it_and_its_processes(tmp_path, jobs):
    cache = tmp_path / "cache"
    command = [sys.executable, "-m", "emu", "warmup", "--jobs", jobs]
    environment = {**os.environ, "EMU_CACHE_DIR": str(cache)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            until = time.monotonic() + 120
            while not any(f.is_file() for f in cache.rglob("*")) and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)  # all would take minutes; its processes hold the pipes open while they live
        finally:
            process.kill()
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "emu: interrupted"


def test_unwritable_cache_fails(emu_process, tmp_path):
    (tmp_path / "file").write_text("")
    ran = emu_process("warmup", "selu", EMU_CACHE_DIR=str(tmp_path / "file" / "cache"))
    assert ran.code == 1
    assert "EMU_CACHE_DIR" in ran.err


@pytest.mark.parametrize(
    ("args", "says"), [(["sellu"], "did you mean selu"), (["--soc", "Ascend910"], "unknown SoC"), (["--jobs", "0"], "jobs")]
)
def test_wrong_usage(emu, args, says):
    ran = emu("warmup", *args)
    assert ran.code == 2
    assert says in ran.err
