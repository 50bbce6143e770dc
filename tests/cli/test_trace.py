"""emu run --trace, emu trace-summary, emu trace-plot, and the example with two streams."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "python" / "two_streams.py"
SCRIPT = """
import acl, sys
from emu import aclnn
assert acl.rt.set_device(0) == 0
s, _ = acl.rt.create_stream()
p, _ = acl.rt.malloc(4096, 0)
t = aclnn.aclCreateTensor((1024,), 0, None, 0, 2, (1024,), p)
for _ in range(3):
    size, executor, code = aclnn.aclnnInplaceExpGetWorkspaceSize(t)
    assert aclnn.aclnnInplaceExp(0, size, executor, s) == 0
assert acl.rt.synchronize_stream(s) == 0
if len(sys.argv) > 1:
    raise SystemExit(3)
"""


def run(*args: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "EMU_CACHE_DIR", "PYTHONPATH")}
    return subprocess.run(
        [sys.executable, "-m", "emu", *args], cwd=cwd, env={**clean, **env}, capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip


@pytest.mark.parametrize("options", [["--trace", "out.json"], ["--trace", "out.json", "--clock", "wall"]])
def test_run_writes_a_trace(tmp_path, options):
    (tmp_path / "script.py").write_text(SCRIPT)
    ran = run("run", *options, "script.py", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    from emu.timeline import reader

    trace = reader.load(tmp_path / "out.json")
    assert trace.complete
    assert reader.problems(trace) == []
    assert trace.clock == ("wall" if "wall" in options else "simulated")
    assert [e["name"] for e in trace.slices(1000)] == ["aclnnInplaceExp"] * 3


@pytest.mark.parametrize("before", [None, "another program's"])
def test_a_script_without_a_device_has_no_timeline(tmp_path, before):
    (tmp_path / "script.py").write_text("import numpy as np, emu\nprint(emu.ops.selu(np.zeros(2, np.float32)))\n")
    if before is not None:
        (tmp_path / "out.json").write_text(before)
    ran = run("run", "--trace", "out.json", "script.py", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, "[0. 0.]\n")
    assert "no timeline was written: script.py opened no device" in ran.stderr
    assert (tmp_path / "out.json").exists() == (before is not None)


def test_a_script_whose_child_opens_the_device_has_a_timeline(tmp_path):
    (tmp_path / "child.py").write_text(SCRIPT)
    (tmp_path / "script.py").write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n")
    (tmp_path / "out.json").write_text("another program's")
    ran = run("run", "--trace", "out.json", "script.py", cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["traceEvents"]


def test_a_script_that_fails_leaves_a_whole_trace(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    assert run("run", "--trace", "out.json", "script.py", "fail", cwd=tmp_path).returncode == 3
    assert json.loads((tmp_path / "out.json").read_text())["otherData"]["clock"] == "simulated"


def test_the_environment_variable(tmp_path):
    (tmp_path / "script.py").write_text("import emu; emu.install()\n" + SCRIPT)
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EMU_") or k == "EMU_CACHE_DIR"}
    env = {**clean, "EMU_TRACE": str(tmp_path / "out.json"), "EMU_HOST": "cpp"}
    ran = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert json.loads((tmp_path / "out.json").read_text())["otherData"]["host"] == "cpp"


@pytest.mark.parametrize(
    ("name", "why"), [("nowhere/out.json", "No such file or directory"), ("/dev/full", "not a regular file"), (".", "Is a directory")]
)
def test_a_trace_that_cannot_be_written(emu, name, why):
    Path("script.py").write_text("print('it runs')")
    ran = emu("run", "--trace", name, "script.py")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == f"emu: --trace {name}: {why}; give the name of a file that can be written\n"


def test_looking_whether_a_trace_can_be_written_changes_nothing(emu):
    Path("old.json").write_text("kept")
    for name in ("old.json", "new.json"):
        emu("run", "--trace", name, "nothing.py")
    Path("script.py").write_text("print('no context, no timeline')")
    for name in ("old.json", "new.json"):
        ran = run("run", "--trace", name, "script.py", cwd=Path())
        assert ran.returncode == 0
        assert "no timeline was written: script.py opened no device" in ran.stderr
    assert Path("old.json").read_text() == "kept"
    assert not Path("new.json").exists()


def test_a_file_that_may_not_grow(tmp_path):
    """The program runs to its end; emu run says once what happened, and its exit code says it as well."""
    limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))\n"
    (tmp_path / "script.py").write_text(SCRIPT + limit + "print('the end')\n")
    ran = run("run", "--trace", "out.json", "script.py", cwd=tmp_path, PYTHONDONTWRITEBYTECODE="1")
    assert (ran.returncode, ran.stdout) == (1, "the end\n")
    path = tmp_path / "out.json"
    assert ran.stderr == f"emu: trace {path}: File too large; the file has no end, and nothing more is traced\n"
    said = run("trace-summary", "out.json", cwd=tmp_path)
    assert said.returncode == 0
    assert "The file has no end: its process runs still, was killed, or could not write it." in said.stdout


def test_a_trace_by_the_environment_that_cannot_be_written(tmp_path):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EMU_") or k == "EMU_CACHE_DIR"}
    code = "import emu.acl as acl; print(acl.rt.set_device(0))"
    env = {**clean, "EMU_TRACE": "nowhere/out.json"}
    ran = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=300)
    assert (ran.returncode, ran.stdout) == (0, "0\n")
    assert ran.stderr == "emu: EMU_TRACE=nowhere/out.json: No such file or directory; nothing is traced\n"


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """The example, run once with its traces."""
    directory = tmp_path_factory.mktemp("two_streams")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EMU_") or k == "EMU_CACHE_DIR"}
    ran = subprocess.run(
        [sys.executable, str(EXAMPLE), str(directory)], env=clean, capture_output=True, text=True, check=False, timeout=300
    )  # fmt: skip
    assert (ran.returncode, ran.stderr) == (0, "")
    return directory, ran.stdout


def test_the_example_overlaps_and_serialises(example):
    directory, out = example
    times = {line.split(":")[0]: line.split(": ")[1] for line in out.splitlines()}
    assert times["same results"] == "True"
    overlapped, serialised = (float(times[name].removesuffix(" ms simulated")) for name in ("overlapped", "serialised"))
    assert 1.5 < serialised / overlapped < 1.7
    from emu.timeline import reader

    for name in ("overlapped", "serialised"):
        trace = reader.load(directory / f"{name}.json")
        assert reader.problems(trace) == []
        starts = {e["id"]: e["ts"] for e in trace.events if e["ph"] == "s"}
        ends = {e["id"]: e["ts"] for e in trace.events if e["ph"] == "f"}
        assert starts.keys() == ends.keys()
        assert all(starts[k] <= ends[k] for k in starts), "an arrow goes forward although calls take no simulated time"


def test_summary(emu, example):
    path = str(example[0] / "serialised.json")
    ran = emu("trace-summary", path)
    assert ran.code == 0
    assert ran.out.startswith("EMULATED Ascend910B1; all times are simulated time.")
    for text in ("Time by operator", "aclnnGelu", "Streams", "waiting for events", "Longest gaps", "an event of stream"):
        assert text in ran.out
    found = json.loads(emu("trace-summary", path, "--gaps", "2", "--json").out)
    assert found["clock"] == "simulated"
    assert len(found["gaps"]) == 2
    for stream in found["streams"]:
        assert stream["busy"] + stream["waiting"] + stream["idle"] == pytest.approx(found["span_us"], abs=0.01)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "No such file"),
        ("[]", "no timeline"),
        ("x", "no timeline"),
        ('{"otherData": [], "traceEvents": []}', "no timeline"),
        ('{"otherData": {"clock": "wall"}, "traceEvents": [{}]}', "no timeline"),
        ('{"otherData": {"clock": "wall"}, "traceEvents": [{"ph": "X", "name": "x", "pid": 1, "tid": 1, "ts": NaN}]}', "no timeline"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_is_no_trace(emu, text, message):
    if text is not None:
        Path("t.json").write_text(text)
    for command in ("trace-summary", "trace-plot"):
        ran = emu(command, "t.json")
        assert ran.code == 1
        assert message in ran.err


def test_plot(emu, example):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    traces = [str(example[0] / f"{name}.json") for name in ("overlapped", "serialised")]
    ran = emu("trace-plot", *traces, "-o", "two.png")
    assert (ran.code, ran.out) == (0, "two.png: simulated time\n")
    assert Path("two.png").read_bytes()[:4] == b"\x89PNG"
    Path("pictures").mkdir()
    for directory in (".", "pictures"):
        wrong = emu("trace-plot", traces[0], "-o", directory)
        assert (wrong.code, wrong.out) == (2, "")
        assert f"-o {directory} is a directory" in wrong.err
    assert not list(Path("pictures").iterdir())
    for name in ("one.xyz", "one"):
        wrong = emu("trace-plot", traces[0], "-o", name)
        assert wrong.code == 2
        assert f"-o {name}: end the name in .png, .svg or .pdf" in wrong.err
    assert not list(Path().glob("one*"))
    wrong = emu("trace-plot", traces[0], "-o", "nowhere/one.png")
    assert wrong.code == 1
    assert "nowhere/one.png: No such file or directory; give the name of a picture that can be written" in wrong.err
