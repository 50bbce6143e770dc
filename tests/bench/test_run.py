from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyperf
import pytest

import emu
from bench import __main__ as command
from bench import cells, hampered, latency, memory, processes, prose, pytorch, report, run, scaling, usage
from bench import work as works
from bench.arena import Arena
from bench.cells import KI, MI, Cell
from bench.timing import Effort, Samples, summary
from emu import config

BRIEF = Effort(seconds=0.0, rounds=(2, 2), sample=1e-5, settle=0.0, quiet=0.0)
N = 4096


def silent(text: str) -> None:
    assert text


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``--tiny`` writes."""
    directory = tmp_path_factory.mktemp("bench")
    names = [
        "--json",
        str(directory / "r.json"),
        "--pyperf",
        str(directory / "p.json"),
        "--page",
        str(directory / "r.md"),
        "--plot",
        str(directory / "r.png"),
    ]
    assert command.main(["--tiny", "--remark", "A remark.", *names]) == 0
    return directory


def test_json_has_every_cell_with_every_figure(written: Path):
    result = json.loads((written / "r.json").read_text(encoding="utf-8"))
    assert result["format"] == usage.FORMAT
    assert result["amount"] == "tiny"
    assert {"date", "cpu", "cpus", "caches", "python", "packages", "kernel"} <= set(result["machine"])
    threads = cells.thread_counts(result["machine"]["cpus"])
    assert len(result["cells"]) == len(cells.tiny(threads))
    for r in result["cells"]:
        assert {"operator", "dtype", "shape", "dim", "threads", "path", "layout", "values", "label", "elements", "bytes"} <= set(r)
        assert ({"emu", "limit"} if r["threads"] == 1 else {"emu"}) <= set(r["seconds"])
        assert set(r["ratio"]) == set(r["seconds"]) - {"emu"}
        assert r["load"] >= 0
        for s in r["seconds"].values():
            assert 0 < s["best"] <= s["q1"] <= s["median"] <= s["q3"]
            assert s["samples"] >= 1
        if r["path"] == "native":
            assert r["seconds"]["emu"]["calls"] == 200


def test_pyperf_file_has_the_samples_of_every_cell(written: Path):
    suite = pyperf.BenchmarkSuite.load(str(written / "p.json"))
    records = json.loads((written / "r.json").read_text(encoding="utf-8"))["cells"]
    medians = sorted(s["median"] for r in records for s in r["seconds"].values())
    assert sorted(b.median() for b in suite) == pytest.approx(medians, rel=1e-4)
    assert len(set(suite.get_benchmark_names())) == len(medians)


def test_pyperf_needs_a_measurement(written: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--report", str(written / "r.json"), "--pyperf", "x.json"]) == 2
    assert "measure" in capsys.readouterr().err


def test_the_run_says_what_it_was(written: Path):
    result = json.loads((written / "r.json").read_text(encoding="utf-8"))
    assert result["command"] == "python -m bench --tiny --remark 'A remark.' --json r.json --pyperf p.json --page r.md --plot r.png"
    assert result["emulator"]["version"] == emu.__version__
    assert result["load"]["after"] >= 0
    page = (written / "r.md").read_text(encoding="utf-8")
    assert f"Measured by `{result['command']}`" in page
    assert f"aclnn-emu {emu.__version__}" in page
    torch = pytorch.module()
    if torch is not None:
        assert result["pytorch"]["cpu_capability"] == torch.backends.cpu.get_cpu_capability()
        assert result["pytorch"]["threads"]["1"] == 1


def test_page_and_plot(written: Path):
    page = (written / "r.md").read_text(encoding="utf-8")
    assert page.startswith("# Performance\n")
    for text in (
        "**A remark.**",
        "## Targets",
        "## Strided inputs",
        "## INT8",
        "(r.png)",
        "This is a tiny run",
        "emulator, G/s",
        "emulator, GB/s",
        "rounds",
        "## The JSON file",
        "No caller sees",
    ):
        assert text in page
    assert "nan" not in page
    assert (written / "r.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_is_made_again_from_the_json(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    again = tmp_path / "again.md"
    assert command.main(["--report", str(written / "r.json"), "--page", str(again), "--plot", str(tmp_path / "r.png")]) == 0
    assert again.read_text(encoding="utf-8") == (written / "r.md").read_text(encoding="utf-8")
    assert "not measured" in capsys.readouterr().out


def test_a_wrong_result_ends_the_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def wrong(*_: object) -> None:
        raise works.WrongResultError("17 of 4096 elements differ")

    monkeypatch.setattr(run, "measure", wrong)
    assert command.main(["--tiny"]) == 1
    assert "17 of 4096" in capsys.readouterr().err


@pytest.mark.parametrize("option", ["--json", "--plot", "--pyperf", "--page"])
def test_a_path_that_cannot_be_written_ends_it_at_once(
    option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(run, "measure", lambda *_: pytest.fail("measured all the same"))
    for path in (tmp_path, tmp_path / "none" / "x.png"):
        assert command.main(["--tiny", option, str(path)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert str(path) in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("argv", [["--quick", "--tiny"], ["--nothing"], ["--json"]])
def test_wrong_usage(argv: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as stopped:
        command.main(argv)
    assert stopped.value.code == 2
    assert "usage" in capsys.readouterr().err


def result_without(what: str) -> dict[str, Any]:
    packages = {"torch": None if what == "torch" else "2.13.0"}
    environment = {"OMP_NUM_THREADS": "1"} if what == "variables" else {"THP_MEM_ALLOC_ENABLE": "1", "EMU_CACHE_DIR": "(a path)"}
    machine = {"packages": packages, "cpus": 1 if what == "cpus" else 2, "environment": environment}
    share = 0.25 if what == "pages" else 1.0
    c = "no compiler." if what == "c" else {"pipelined_us": 10.0}
    torch = {"threads": {"1": 1, "2": 1 if what == "threads" else 2}}
    failed = {"failed": {"memory": "not permitted"}} if what == "part" else {}
    return {"machine": machine, "amount": "full", "huge_share": share, "latency": {"c": c}, "pytorch": torch, **failed}


@pytest.mark.parametrize(
    ("what", "says"),
    [
        ("torch", "PyTorch is not installed"),
        ("cpus", "One CPU"),
        ("pages", "25%"),
        ("c", "was not measured: no compiler."),
        ("nothing", None),
        ("variables", "OMP_NUM_THREADS=1"),
        ("threads", "PyTorch used 1 threads where 2"),
        ("part", "memory: not permitted."),
    ],
)
def test_the_run_says_what_is_missing(what: str, says: str | None):
    found = prose.missing(result_without(what))
    assert len(found) == (0 if says is None else 1)
    assert says is None or (says in found[0] and not found[0].endswith(".."))


def test_the_run_says_where_a_second_thread_made_pytorch_slower():
    def cell(dtype: str, threads: int, torch: float) -> dict[str, Any]:
        times = summary({"emu": Samples([1.0], 1), "torch": Samples([torch], 1)})
        return run.record(Cell("SeluBackward", dtype, (N,), None, threads), times)

    quiet = [cell("FLOAT", 1, 2.0), cell("FLOAT", 2, 1.0), cell("BF16", 1, 2.0)]
    assert hampered.sentences({"cells": quiet}) == []
    assert hampered.sentences({"cells": [*quiet, cell("BF16", 2, 2.1)]}) == []
    (sentence,) = hampered.sentences({"cells": [*quiet, cell("BF16", 2, 600.0)]})
    assert "SeluBackward, BF16, 4 Ki, 2T (300.00 times the time)" in sentence
    assert "FLOAT" not in sentence
    (sentence,) = hampered.sentences({"cells": [cell("BF16", 2, 600.0)]})
    assert "cannot be judged" in sentence
    assert "SeluBackward, BF16" in sentence


def test_the_table_by_length_is_judged_too():
    lengths = [{"elements": n, "threads": t, "seconds": {"torch": {"median": s}}} for n, t, s in ((KI, 1, 1.0), (KI, 2, 2.0), (MI, 1, 3.0))]
    (sentence,) = hampered.sentences({"lengths": lengths})
    assert "by length, 1 Ki, 2T (2.00 times the time)" in sentence
    assert "Mi" not in sentence
    (sentence,) = hampered.sentences({"calls": lengths})
    assert "as a caller sees it, 1 Ki, 2T (2.00 times the time)" in sentence
    assert hampered.all_marked({"lengths": lengths}) == {(id(lengths[1]), "torch")}


def test_scaling_and_lengths():
    cell = Cell("SeluBackward", "FLOAT", (N,), None, 1)
    arena = Arena(works.bytes_needed(cell))
    found = scaling.threads(True, arena, silent, cells=[cell], rounds=2)
    for r in found:
        assert set(r["speedup"]) == {"emu", "limit"}
        assert all(s["median"] > 0 for s in r["speedup"].values())
    assert [r["idle_s"] for r in found] in ([0.0, scaling.IDLE_S], [])
    some = scaling.lengths(BRIEF, arena, silent, sizes=(1024, N))
    assert {r["elements"] for r in some} == {1024, N}
    assert all("numpy" not in r["seconds"] for r in some)


def test_a_wrong_result_on_two_threads_alone_is_noticed(monkeypatch: pytest.MonkeyPatch):
    cell = Cell("SeluBackward", "FLOAT", (N,), None, 1)

    def idle_on_two(work: works.Work):
        right = real(work)
        return lambda times: right(times) if config.current().threads == 1 else None

    real = scaling.emulator
    monkeypatch.setattr(scaling, "emulator", idle_on_two)
    monkeypatch.setattr(scaling, "_cpus", lambda: 2)
    with pytest.raises(works.WrongResultError, match="on 2 threads"):
        scaling.threads(True, Arena(works.bytes_needed(cell)), silent, cells=[cell], rounds=1)


def test_latency():
    found = latency.measure(BRIEF, silent, c_rounds=0)
    assert {"emu", "pipelined", "array", "numpy"} <= set(found["seconds"])
    assert ("torch" in found["seconds"]) == (pytorch.module() is not None)
    assert found["launches_per_s"] > 0
    assert found["c"] == "not asked for"
    assert "µs" in "\n".join(report._latency({**found, "c": {"pipelined_us": 9.0, "pipelined_ratio": 3.0, "torch_us": 3.0}}))
    assert "Latency" in "\n".join(report._latency(found))


def test_what_a_caller_sees():
    found = latency.calls(BRIEF, silent, (1,), sizes=(16, N))
    assert [(r["elements"], r["threads"]) for r in found] == [(16, 1), (N, 1)]
    for r in found:
        assert {"emu", "array"} <= set(r["seconds"])
        assert set(r["ratio"]) == (set() if pytorch.module() is None else {"emu", "array"})
    result = {"cells": [], "calls": found}
    text = "\n".join(report._others(result, set()))
    assert "## What a caller sees" in text
    assert "| 4 Ki, 1T |" in text
    row = report._call_row(found[0], {(id(found[0]), "torch")})
    assert row[4].endswith("?") == (pytorch.module() is not None)


@pytest.mark.parametrize("who", ["ops", "aclnn"])
def test_a_call_that_computes_something_else_is_noticed(who: str, monkeypatch: pytest.MonkeyPatch):
    name = {"ops": "selu_backward", "aclnn": "aclnnSeluBackward"}[who]
    monkeypatch.setattr(getattr(latency, who), name, lambda *_, **__: None)
    with pytest.raises(works.WrongResultError, match="16 elements gave"):
        latency.calls(BRIEF, silent, (1,), sizes=(16,))


def test_the_ratio_of_a_call_is_pytorch_over_the_emulator(monkeypatch: pytest.MonkeyPatch):
    times = {"emu": Samples([4.0, 4.0], 1), "array": Samples([1.0, 1.0], 1), "torch": Samples([2.0, 2.0], 1)}
    monkeypatch.setattr(latency, "interleave", lambda *_, **__: times)
    monkeypatch.setattr(latency, "arrays", lambda n: (None, object(), None))
    (r,) = latency.calls(BRIEF, silent, (1,), sizes=(16,))
    assert r["ratio"]["emu"]["median"] == 0.5
    assert r["ratio"]["array"]["median"] == 2.0


def test_imports_are_measured_without_what_hooks_load():
    code = "import sys; print(len(sys.modules))"
    arguments = processes.COMMANDS["import numpy, without site"]
    assert arguments[0] == "-S"
    counts = [
        int(subprocess.run([sys.executable, *f, "-c", code], capture_output=True, text=True, check=True).stdout) for f in ([], ["-S"])
    ]
    assert counts[1] <= counts[0]


def test_processes_and_memory():
    found = processes.measure(
        1, 1, silent, names=("bare", "first result, warm cache", "import emu, without site", "import numpy, without site")
    )
    for p in found.values():
        assert 0 < p["inside"]["median"] < p["wall"]["median"]
    (r,) = memory.measure(False, silent, elements=1 << 20, cases=(("SoftmaxBackward", "FLOAT", 0),))
    assert r["tensors"] == 3 * 4 << 20
    assert 0 < r["baseline"] < r["peak"]
    assert r["extra"] == r["peak"] - r["baseline"] - r["tensors"]
    assert r["compiled"] == 0


@pytest.mark.parametrize("argv", [[], ["SeluBackward"], ["SeluBackward", "FLOAT", "x", "16", "1"]])
def test_memory_says_what_it_takes(argv: list[str], capsys: pytest.CaptureFixture[str]):
    assert memory.main(argv) == 2
    assert "usage: python -m bench.memory" in capsys.readouterr().err
