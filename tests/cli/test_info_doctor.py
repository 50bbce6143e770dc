"""emu info and emu doctor."""

from __future__ import annotations

import json
import os
import stat

import pytest

from emu.cli import doctor
from emu.soc import profile

COLUMNS = (
    "NPU", "Name", "Health", "Power", "Temp", "Hugepages-Usage", "Chip", "Device", "Bus-Id", "AICore(%)", "Memory-Usage(MB)",
    "HBM-Usage(MB)", "Process id", "Process name", "Process memory(MB)",
)  # fmt: skip


def test_info_is_marked_and_has_the_columns_of_npu_smi(emu_process):
    ran = emu_process("info", COLUMNS="30")
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert "EMULATED" in lines[1]
    for name in COLUMNS:
        assert name in ran.out
    assert len({len(line) for line in lines}) == 1
    assert ran.out.count("910B1 ") == 8 + 1
    assert ran.out.count(" 0 / 65536 ") == 8


def test_info_shows_no_invented_figure(emu):
    found = json.loads(emu("info", "--json").out)
    assert found["emulated"] is True
    for device in found["devices"]:
        assert [device[k] for k in ("power_w", "temperature_c", "hugepages", "bus_id", "aicore_percent", "memory_mb")] == [None] * 6
        assert device["hbm_total_mb"] == profile(device["name"]).hbm_bytes >> 20


def test_info_follows_soc_devices_and_visibility(emu, monkeypatch):
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "0,2,3")
    found = json.loads(emu("info", "--soc", "Ascend950PR_9599", "--devices", "3", "--json").out)
    assert [(d["device"], d["arch"]) for d in found["devices"]] == [(0, "dav_3510"), (1, "dav_3510")]
    monkeypatch.setenv("ASCEND_RT_VISIBLE_DEVICES", "x")
    assert "No device is visible" in emu("info").out


@pytest.mark.parametrize(
    ("args", "says"), [(["--soc", "Ascend"], "unknown SoC"), (["--devices", "0"], "1 to 64"), (["--devices", "x"], "--devices")]
)
def test_info_wrong_usage(emu, args, says):
    ran = emu("info", *args)
    assert ran.code == 2
    assert says in ran.err


def test_doctor_names_a_misspelt_variable(emu, monkeypatch):
    monkeypatch.setenv("EMU_SHEDULE", "lazy")
    monkeypatch.setenv("EMU_TRACE", "")
    ran = emu("doctor", "--json")
    found = [f for f in json.loads(ran.out)["findings"] if f["name"] == "environment"]
    assert ran.code == 0
    assert [(f["state"], f["value"], f["advice"]) for f in found] == [("warn", "EMU_SHEDULE is no setting", "did you mean EMU_SCHEDULE?")]


def test_doctor_is_well_here(emu):
    ran = emu("doctor", "--json")
    found = json.loads(ran.out)
    assert (ran.code, found["ok"]) == (0, True)
    names = {f["name"] for f in found["findings"]}
    assert {"aclnn-emu", "numba", "platform", "CPU", "threads", "kernels", "kernel cache", "device memory", "host memory"} <= names
    text = emu("doctor").out
    for f in found["findings"]:
        assert any(line.startswith(f"{f['state']:<5} {f['name']} ") for line in text.splitlines())


def test_doctor_lists_optional_packages_and_misses_none(emu, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "_cffi_backend", None)
    monkeypatch.setitem(sys.modules, "gmpy2", None)
    ran = emu("doctor", "--json")
    found = {f["name"]: f for f in json.loads(ran.out)["findings"]}
    assert ran.code == 0
    assert {"cffi", "gmpy2", "matplotlib", "dask"} <= set(found)
    assert found["cffi"]["state"] == "none"
    assert found["cffi"]["value"].startswith("optional: missing, pip install 'aclnn-emu[sdk]'")
    assert found["gmpy2"]["value"].startswith("optional: missing, pip install 'aclnn-emu[study]'")
    assert "back end cann" not in found


def test_doctor_says_where_it_looked_for_the_libraries(emu_process, tmp_path):
    def row(**environment):
        ran = emu_process("doctor", "--json", EMU_BACKEND="cann", EMU_CANN_PATH=str(tmp_path), **environment)
        return ran.code, next(f for f in json.loads(ran.out)["findings"] if f["name"] == "back end cann")

    code, missing = row()
    assert (code, missing["state"]) == (1, "fail")
    assert f"looked in {tmp_path}, {tmp_path / 'lib64'}" in missing["value"]
    assert "EMU_CANN_PATH" in missing["advice"]
    for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
        (tmp_path / name).write_bytes(b"")
    code, there = row()
    assert there["state"] == "ok"
    assert str(tmp_path / "libopapi.so") in there["value"]


def test_cxx_without_cffi_compiles_nothing(emu, monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "_cffi_backend", None)
    ran = emu("cxx", "program.cpp", "-o", "program")
    assert ran.code == 1
    assert "pip install 'aclnn-emu[sdk]'" in ran.err


def test_doctor_says_that_the_cache_cannot_be_written(emu_process, tmp_path):
    (tmp_path / "file").write_text("")
    ran = emu_process("doctor", "--json", EMU_CACHE_DIR=str(tmp_path / "file" / "cache"))
    cache = next(f for f in json.loads(ran.out)["findings"] if f["name"] == "kernel cache")
    assert ran.code == 0
    assert cache["state"] == "warn"
    assert "EMU_CACHE_DIR" in cache["advice"]


def test_doctor_counts_threads(emu_process):
    ran = emu_process("doctor", "--json", EMU_NUM_THREADS="999")
    threads = next(f for f in json.loads(ran.out)["findings"] if f["name"] == "threads")
    assert threads["state"] == "warn"
    assert threads["value"].startswith("999 ")


def test_doctor_fails_with_what_it_checks(emu, monkeypatch):
    def broken():
        raise RuntimeError("no compiler")
        yield

    monkeypatch.setattr(doctor, "CHECKS", (broken,))
    ran = emu("doctor")
    assert ran.code == 1
    assert ran.out == f"fail  {'broken':<16} RuntimeError: no compiler\n"


def test_doctor_with_little_address_space(tmp_path, emu_process):
    script = tmp_path / "limited"
    script.write_text("import resource, sys\nfrom emu.cli import main\n"
                      "resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))\nsys.exit(main(['doctor', '--json']))\n")  # fmt: skip
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    import subprocess
    import sys

    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True, env=os.environ)
    memory = next(f for f in json.loads(done.stdout)["findings"] if f["name"] == "device memory")
    assert memory["state"] == "warn"
    assert "ulimit -v" in memory["advice"]
