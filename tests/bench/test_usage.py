"""What is refused before anything is measured, and what a failing output, a failing part or an interrupt cost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bench import __main__ as command
from bench import latency, latency_c, machine, memory, processes, prose, report, run, scaling, usage

ROOT = Path(usage.__file__).resolve().parents[1]
FIGURES = ROOT / "docs" / "performance.json"


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measure", lambda *_: pytest.fail("measured all the same"))


def refusal(argv: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line on stderr."""
    assert command.main(argv) == 2
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize(
    ("argv", "module"), [([], "gmpy2"), (["--plot", "x.png"], "matplotlib"), (["--pyperf", "x.json"], "pyperf"), (["--quick"], "gmpy2")]
)
@pytest.mark.usefixtures("unmeasured")
def test_a_missing_package(argv: list[str], module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setitem(sys.modules, module, None)
    line = refusal(argv, capsys)
    assert f"needs {module}: pip install -e '.[bench]'" in line


def test_the_c_abi_without_cffi(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr(usage, "find_spec", lambda name: None)
    assert latency.c_abi(1, lambda text: None) == "needs cffi (pip install -e '.[bench]')"
    assert latency_c.main() == 1
    assert capsys.readouterr().err == "python -m bench.latency_c: needs cffi (pip install -e '.[bench]')\n"


def test_the_extra_has_what_the_bench_needs():
    text = (ROOT / "pyproject.toml").read_text()
    (line,) = (line for line in text.splitlines() if line.startswith("bench = "))
    assert all(package in line for package in ("gmpy2", "cffi", "matplotlib", "pyperf"))


def bench(*argv: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "bench", *argv], cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_kernels_of_another_place(tmp_path: Path):
    (tmp_path / "emu_kernels").mkdir()
    (tmp_path / "emu_kernels" / "__init__.py").touch()
    done = bench("--tiny", PYTHONPATH=os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert "emu_kernels of" in line
    assert "pip install -e '.[bench]'" in line


@pytest.mark.parametrize(("name", "value"), [("EMU_NUM_THREADS", "abc"), ("EMU_SOC", "nonsense")])
def test_a_setting_that_is_none(name: str, value: str):
    done = bench("--tiny", **{name: value})
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert value in line


@pytest.mark.usefixtures("unmeasured")
def test_the_page_of_the_documents_is_that_of_a_full_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    reports = []
    for name, other in (("quick", {"amount": "quick"}), ("part", {"interrupted": True})):
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps({**json.loads(FIGURES.read_text(encoding="utf-8")), **other}), encoding="utf-8")
        reports.append(["--report", str(path)])
    plot = ["--plot", str(tmp_path / "x.png")]
    for argv in (["--tiny", *plot], ["--quick", *plot], [], ["--report", str(FIGURES)], *([*r, *plot] for r in reports)):
        for page in (["--page"], ["--page", str(usage.PAGE)]):
            assert "docs/performance.md" in refusal([*argv, *page], capsys)
    assert {p.suffix for p in tmp_path.iterdir()} == {".json"}


@pytest.mark.parametrize(
    "content",
    [
        None, "", "[1]", "{}", '{"format": 1, "amount": "full", "cells": [], "machine": {}}',
        '{"format": 2, "amount": "full", "cells": [], "machine": {}}',
        '{"format": 2, "amount": "full", "cells": 5, "machine": {"packages": {}, "cpu": ""}}',
    ],
)  # fmt: skip
def test_a_report_of_something_else(content: str | None, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    path = tmp_path / "r.json"
    if content is not None:
        path.write_text(content)
    assert str(path) in refusal(["--report", str(path)], capsys)


def test_an_interrupt_while_outputs_are_written_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "_write", interrupted)
    assert command.main(["--report", str(FIGURES)]) == 130
    (line,) = capsys.readouterr().err.splitlines()
    assert "interrupted" in line


def test_a_report_measures_nothing(capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        command.main(["--quick", "--report", str(FIGURES)])
    assert stopped.value.code == 2
    assert "not allowed with" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["x.xyz", "x", ".png"])
@pytest.mark.usefixtures("unmeasured")
def test_a_plot_of_no_kind(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert "png" in refusal(["--plot", str(tmp_path / name)], capsys)


@pytest.mark.usefixtures("unmeasured")
def test_two_outputs_in_one_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    other = tmp_path / ".." / tmp_path.name / "x"
    line = refusal(["--json", str(tmp_path / "x"), "--page", str(other)], capsys)
    assert "--json and --page are the same file" in line


def small_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "measure", lambda what, say, result, kept: result.update(json.loads(FIGURES.read_text(encoding="utf-8"))))


def test_one_output_that_fails_costs_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small_report(monkeypatch)
    names = {option: tmp_path / f"x.{option}" for option in ("json", "pyperf", "page")}
    argv = [part for option, path in names.items() for part in (f"--{option}", str(path))]
    assert command.main(["--plot", str(tmp_path / "x.png"), *argv]) == 1  # pyperf refuses a suite without a benchmark
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert "--pyperf" in line
    assert "targets" in output.out
    assert {p.name for p in tmp_path.iterdir()} >= {"x.json", "x.page", "x.png"}


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    small_report(monkeypatch)
    page = tmp_path / "x.md"
    assert command.main(["--json", "/dev/full", "--page", str(page)]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "--json /dev/full" in line
    assert page.exists()


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("both", [False, True])
def test_nobody_reads_standard_output(full: bool, both: bool, tmp_path: Path):
    path = tmp_path / "x.json"
    line = [sys.executable, "-m", "bench", "--report", str(FIGURES), "--json", str(path), "--page", str(tmp_path / "x.md")]
    read, write = os.pipe()
    os.close(read)
    with open("/dev/full", "w") if full else os.fdopen(write, "w") as out:
        buffered = {k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"}  # what is left in a buffer is written at the end
        streams = {"stdout": out, "stderr": out if both else subprocess.PIPE}
        done = subprocess.run(line, cwd=ROOT, env=buffered, text=True, check=False, **streams)
    assert done.returncode == 1
    if not both:
        (said,) = done.stderr.splitlines()
        assert "standard output" in said
    assert json.loads(path.read_text(encoding="utf-8")) == json.loads(FIGURES.read_text(encoding="utf-8"))
    assert (tmp_path / "x.md").exists()


@pytest.mark.parametrize("cells", [0, 2])
def test_an_interrupt_keeps_finished_cells(cells: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    turns: Iterator[int] = iter(range(cells))

    def until(*args: Any, **named: Any) -> Any:
        if next(turns, None) is None:
            raise KeyboardInterrupt
        return real(*args, **named)

    real = run.interleave
    monkeypatch.setattr(run, "interleave", until)
    names = [str(tmp_path / name) for name in ("r.json", "p.json", "r.md")]
    assert command.main(["--tiny", "--json", names[0], "--pyperf", names[1], "--page", names[2]]) == 130
    line = capsys.readouterr().err.splitlines()[-1]
    assert f"interrupted after {cells} cells" in line
    assert len(list(tmp_path.iterdir())) == (3 if cells else 0)
    if cells:
        result = json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))
        assert len(result["cells"]) == cells
        assert "This run was interrupted" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_a_cell_that_breaks_costs_no_finished_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def once(*args: Any, **named: Any) -> Any:
        monkeypatch.setattr(run, "interleave", lambda *_, **__: 1 // 0)
        return real(*args, **named)

    real = run.interleave
    monkeypatch.setattr(run, "interleave", once)
    with pytest.raises(ZeroDivisionError):
        command.main(["--tiny", "--json", str(tmp_path / "r.json")])
    assert len(json.loads((tmp_path / "r.json").read_text(encoding="utf-8"))["cells"]) == 1


def test_an_interrupt_leaves_the_documents_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    def stop(what: object, say: object, result: dict[str, Any], kept: object) -> None:
        result.update(json.loads(FIGURES.read_text(encoding="utf-8")))
        raise KeyboardInterrupt

    monkeypatch.setattr(run, "measure", stop)
    monkeypatch.setattr(report, "page", lambda *_: pytest.fail("written all the same"))
    assert command.main(["--plot", str(tmp_path / "x.png"), "--page"]) == 130
    assert "interrupted" in capsys.readouterr().err


def test_a_part_that_fails_costs_no_other(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def fail(*_: object) -> None:
        raise RuntimeError("no.\nmore")

    for module, name in ((latency, "calls"), (latency, "measure"), (processes, "measure"), (scaling, "lengths"), (scaling, "threads")):
        monkeypatch.setattr(module, name, fail)
    monkeypatch.setattr(memory, "measure", lambda *_: [])
    result: dict[str, Any] = {}
    run._others(run.settings("tiny"), None, lambda text: None, result)  # type: ignore[arg-type]
    assert result["memory"] == []
    assert result["failed"] == dict.fromkeys(("calls", "lengths", "scaling", "latency", "processes"), "no")
    assert len(capsys.readouterr().err.splitlines()) == 5


def test_variables_are_recorded_without_paths(monkeypatch: pytest.MonkeyPatch):
    for name in [n for n in os.environ if n.startswith(machine.VARIABLES)]:
        monkeypatch.delenv(name)
    given = {"OMP_NUM_THREADS": "1", "EMU_CACHE_DIR": "/home/me", "ATEN_CPU_CAPABILITY": "avx2", "THP_MEM_ALLOC_ENABLE": "1", "HOME": "/x"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found = machine.describe()["environment"]
    assert found == {"OMP_NUM_THREADS": "1", "EMU_CACHE_DIR": "(a path)", "ATEN_CPU_CAPABILITY": "avx2", "THP_MEM_ALLOC_ENABLE": "1"}
    (warning,) = machine.warnings({"machine": {"environment": found}})
    assert warning.endswith(": ATEN_CPU_CAPABILITY=avx2, OMP_NUM_THREADS=1")


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_commit_of_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    def git(*words: str) -> None:
        line = ["git", "-C", str(tmp_path), "-c", "user.name=a", "-c", "user.email=a@b", *words]
        subprocess.run(line, check=True, capture_output=True)

    monkeypatch.setattr(machine, "ROOT", tmp_path)
    assert set(machine.emulator()) == {"version"}
    git("init")
    (tmp_path / "x").write_text("1")
    git("add", "x")
    git("commit", "-m", "x")
    commit = machine.emulator()["commit"]
    assert int(commit, 16) >= 0
    (tmp_path / "x").write_text("2")
    assert machine.emulator()["commit"] == f"{commit}+changes"


def test_the_command_names_no_place_outside():
    assert usage.command(["--json", "docs/r.json", "--plot", "/home/me/r.png"]) == "python -m bench --json docs/r.json --plot r.png"


def test_the_documents_are_of_the_same_figures():
    result = json.loads(FIGURES.read_text(encoding="utf-8"))
    page = "\n".join(report.page_lines(result, usage.PAGE, ROOT / "docs" / "performance.png")).rstrip() + "\n"
    again = "python -m bench --report docs/performance.json --plot docs/performance.png --page"
    assert usage.PAGE.read_text(encoding="utf-8") == page, f"run {again}"
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    for sentence in (prose.large(result), prose.small(result)):
        assert sentence is not None
        assert sentence in readme, f"put into README.md: {sentence}"
