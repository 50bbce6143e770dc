"""emu study, diff-soc, diff-assumption and sweep: output, files, exit codes."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import Any

import pytest

from emu.cli import study
from emu.cli._common import print_json
from emu.study import Study, matrix
from emu.study.errors import StudyError
from emu.study.result import check_columns

Emu = Callable[..., Any]


def records(path: str) -> list[dict[str, str]]:
    with Path(path).open(newline="") as file:
        return list(csv.DictReader(file))


def test_study_prints_and_writes(emu: Emu) -> None:
    ran = emu("study", "SeluBackward", "--dtype", "FLOAT16", "--soc", "Ascend950PR_9599", "-o", "out")
    assert ran.code == 0
    assert "63489" in ran.out
    assert "not in the operator's document" in ran.out
    found = json.loads(Path("out/study.json").read_text())
    assert found["cells"][0]["exact_hits"] == 63489
    assert "host" not in Path("out/study.json").read_text()
    assert len(records("out/worst.csv")) == 10
    assert sorted(p.name for p in Path("out").iterdir()) == ["acceptance.csv", "study.json", "table.csv", "worst.csv"]


def test_metrics_choose_the_columns(emu: Emu) -> None:
    ran = emu("study", "selu", "--dtype", "FLOAT16", "--metrics", "compared,exact_hits", "--markdown")
    assert ran.out.splitlines()[0] == "| dtype | soc | compared | exact_hits |"
    wrong = emu("study", "selu", "--dtype", "FLOAT16", "--metrics", "exact_hit")
    assert (wrong.code, "did you mean exact_hits" in wrong.err) == (2, True)


def test_columns_that_a_peer_or_the_ablation_adds(small: Study) -> None:
    names = set(small.rows()[0])
    check_columns(sorted(names), peer=True, ablate=True)
    added = {n for n in names if n.startswith("peer_") or n.endswith("rounding_ulp") or n == "formula_ulp"}
    assert len(added) > 20
    for name in added:
        with pytest.raises(StudyError, match="unknown column"):
            check_columns([name], peer=False, ablate=False)
    check_columns(sorted(names - added), peer=False, ablate=False)


def test_json_is_json(emu: Emu) -> None:
    ran = emu("study", "selu_backward", "--dtype", "FLOAT16", "--json")
    assert json.loads(ran.out)["cells"][0]["worst"][0]["steps_of_computation"]


def strict(text: str) -> Any:
    def refuse(name: str) -> Any:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def test_json_has_no_bare_nan(emu: Emu) -> None:
    options = ("selu_backward", "--dtype", "FLOAT16", "--inputs", "nan", "-n", "100", "--json")
    (row,) = strict(emu("sweep", *options, "--soc", "Ascend910B1", "--workers", "1").out)
    assert (row["compared"], row["ulp_mean"]) == (0, "nan")
    (cell,) = strict(emu("study", *options).out)["cells"]
    assert cell["ulp_mean"] == "nan"
    (pair,) = strict(emu("diff-soc", *options, "--soc", "Ascend910B1,Ascend950PR_9599").out)
    assert pair["n"] == 100
    with pytest.raises(ValueError, match="not JSON compliant"):
        print_json({"x": float("nan")})


def test_a_range_wider_than_float64(emu: Emu) -> None:
    options = ("selu", "--inputs", "uniform:-1e308,1e308", "-n", "50", "--dtype", "FLOAT")
    for command in (("study",), ("diff-soc",), ("sweep", "--workers", "1")):
        ran = emu(*command, *options)
        assert (ran.code, ran.err) == (0, "")


def test_a_case_file_of_a_slip_is_refused(emu: Emu) -> None:
    shape = "(1000000,1000000)"
    Path("big.csv").write_text(f"input_shapes,input_dtypes\n\"({shape},{shape})\",\"('float16','float16')\"\n")
    for op in ("selu_backward", "softmax_backward"):
        ran = emu("study", op, "--inputs", "big.csv", "--dtype", "FLOAT16")
        assert (ran.code, "big.csv: a study takes at most 2^39" in ran.err) == (2, True)


def test_another_study_in_the_same_directory(emu: Emu) -> None:
    pytest.importorskip("matplotlib", reason="the extra study brings matplotlib")
    assert emu("study", "exp", "--inputs", "1", "-n", "4", "--dtype", "FLOAT16", "-o", "out", "--html").code == 0
    assert Path("out/report.html").exists()
    Path("out/error.svg").write_text("as --plots wrote it")
    assert emu("study", "selu", "--inputs", "1", "-n", "4", "--dtype", "FLOAT16", "-o", "out").code == 0
    assert sorted(p.name for p in Path("out").iterdir()) == ["acceptance.csv", "study.json", "table.csv", "worst.csv"]
    assert "in place of an earlier study's files" in " ".join(emu("study", "--help").out.replace("│", " ").split())


def test_list_explains(emu: Emu) -> None:
    ran = emu("study", "--list")
    assert ran.code == 0
    for word in ("l0", "torch", "ulp_mean", "FILE.npz", "ranks 1 to 8", "stc_ori_inputs", "tensor_dtypes", "tensor_value_ranges"):
        assert word in ran.out


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["study"], "which operator"),
        (["study", "selu", "--html"], "need -o"),
        (["study", "selo"], "did you mean"),
        (["study", "selu", "--dtype", "FP61"], "unknown dtype"),
        (["study", "selu", "--soc", "Ascend1"], "unknown SoC"),
        (["study", "selu", "--inputs", "no.npy", "-o", "out"], "no file no.npy"),
        (["study", "selu", "--against", "no.npy", "-o", "out"], "no file no.npy"),
        (["diff-soc", "selo"], "did you mean"),
        (["diff-assumption", "selu", "--soc", "Ascend1"], "unknown SoC"),
        (["diff-soc", "selu", "--soc", "Foo"], "unknown SoC"),
        (["diff-soc", "selu", "--soc", "Ascend910B1,Foo"], "unknown SoC"),
        (["diff-soc", "selu", "--soc", "Ascend910B1"], "give at least two products"),
        (["diff-soc", "selu", "--soc", "Ascend910B1,Ascend910B1"], "give at least two products"),
        (["diff-soc", "selu", "--dtype", "BF16", "--soc", "Ascend910A,Ascend310P3"], "nothing to compare"),
        (["diff-soc", "selu", "--dtype", "FLOAT16,FP61"], "unknown dtype"),
        (["study", "selu", "--metrics", "nosuch", "-o", "out"], "unknown column 'nosuch'"),
        (["study", "selu", "--metrics", "peer_n", "-o", "out"], "unknown column 'peer_n'"),
        (["sweep", "selo"], "did you mean"),
        (["sweep", "selu", "--against", "no.npy", "-o", "rows.csv"], "no file no.npy"),
        (["sweep", "selu", "--inputs", "no.csv", "-o", "rows.csv"], "no file no.csv"),
        (["sweep", "selu", "--against", "exakt", "-o", "rows.csv"], "did you mean exact"),
        (["sweep", "selu", "-n", "0", "-o", "rows.csv"], "-n must be at least 1"),
        (["sweep", "softmax", "--dtype", "BF16", "--soc", "Ascend910B1", "--against", "soc:Ascend910A"], "has no BF16"),
        (["sweep", "selu", "--dtype", "FP61"], "no operator of the sweep"),
        (["sweep", "selu", "-o", "rows.txt"], "ends in .csv"),
        (["study", "selu_backward", "--peer", "foo", "-o", "out"], "unknown --peer 'foo'"),
        (["study", "selu_backward", "--grad", "exhaustive", "-o", "out"], "--grad exhaustive: exhaustive is for --inputs alone"),
        (["study", "selu", "-n", "99999999999999999999", "-o", "out"], "a study takes at most 2^39"),
        (["diff-soc", "selu", "-n", "99999999999999999999"], "a study takes at most 2^39"),
        (["sweep", "selu", "-n", "99999999999999999999"], "a study takes at most 2^39"),
    ],
)
def test_wrong_usage_is_exit_code_2(emu: Emu, args: list[str], text: str) -> None:
    ran = emu(*args)
    assert ran.code == 2
    assert text in ran.err
    assert "Traceback" not in ran.err
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize(
    ("missing", "args", "text"),
    [
        ("torch", ["--against", "torch"], "PyTorch is not installed"),
        ("torch", ["--peer", "torch"], "PyTorch is not installed"),
        ("matplotlib", ["--plots"], "plots need matplotlib"),
        ("matplotlib", ["--html"], "plots need matplotlib"),
    ],
)
def test_a_missing_package_is_seen_before_anything_runs(
    emu: Emu, monkeypatch: pytest.MonkeyPatch, missing: str, args: list[str], text: str
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    ran = emu("study", "selu", "--dtype", "FLOAT16", *args, "-o", "out")
    assert (ran.code, text in ran.err) == (2, True)
    assert list(Path().iterdir()) == []


def test_a_dtype_that_pytorch_lacks_is_seen_before_anything_runs(emu: Emu) -> None:
    pytest.importorskip("torch", reason="the first dtype is compared with PyTorch")
    ran = emu("study", "selu", "--dtype", "FLOAT16,INT8", "--against", "torch", "-o", "out")
    assert (ran.code, "has no INT8" in ran.err) == (2, True)
    assert list(Path().iterdir()) == []


def test_sweep_notes_what_a_product_lacks(emu: Emu) -> None:
    options = ("--dtype", "FLOAT16,BF16", "--soc", "Ascend910B1", "--against", "soc:Ascend310P3", "--inputs", "l1", "-n", "64")
    ran = emu("sweep", "selu", *options, "--workers", "1", "--json")
    assert ran.code == 0
    rows = {r["dtype"]: r for r in json.loads(ran.out)}
    assert rows["FLOAT16"]["n"] == 64
    assert "Ascend310P3 has no BF16" in rows["BF16"]["note"]
    assert "n" not in rows["BF16"]


def test_unwritable_directory(emu: Emu) -> None:
    Path("file").write_text("")
    ran = emu("study", "selu", "--dtype", "FLOAT16", "-o", "file/out")
    assert ran.code == 2
    assert "give -o a directory" in ran.err


def test_diff_soc(emu: Emu) -> None:
    ran = emu("diff-soc", "selu_backward", "--dtype", "FLOAT16", "--soc", "Ascend910B1,Ascend950PR_9599", "--markdown")
    assert "5951 of 65536" in ran.out
    found = json.loads(emu("diff-soc", "selu_backward", "--dtype", "FLOAT16", "--soc", "Ascend910B1,Ascend950PR_9599", "--json").out)
    assert found[0]["differing"] == 5951
    assert found[0]["first"][0]["inputs"][1]["name"] == "result"


def test_diff_assumption(emu: Emu) -> None:
    ran = emu("diff-assumption", "softmax_backward", "--dtype", "FLOAT", "--soc", "Ascend910B1", "-n", "8192", "--json")
    found = {d["other"]: d["differing"] for d in json.loads(ran.out)}
    assert found["tbe_row_order=sequential"] > 0
    assert found["tbe_col_order=lanes64"] > 0
    text = emu("diff-assumption", "softmax_backward", "--dtype", "FLOAT", "--soc", "Ascend910B1", "-n", "8192").out
    assert "wide_tile" in text


def test_sweep_in_processes_equals_sweep_alone(emu: Emu) -> None:
    asked: dict[str, Any] = {"dtypes": ("FLOAT16", "BF16"), "socs": ("Ascend910B1", "Ascend310P3"), "inputs": "l1", "n": 4096}
    alone = matrix.sweep(("selu", "selu_backward"), workers=1, **asked)
    cells = (("FLOAT16", "Ascend910B1"), ("FLOAT16", "Ascend310P3"), ("BF16", "Ascend910B1"))
    assert [(r["op"], r["dtype"], r["soc"]) for r in alone] == [(op, d, s) for op in ("selu", "selu_backward") for d, s in cells]
    options = ("--dtype", "FLOAT16,BF16", "--soc", "Ascend910B1,Ascend310P3", "--inputs", "l1", "-n", "4096")
    ran = emu("sweep", "selu", "selu_backward", *options, "-o", "r.csv")
    assert ran.code == 0
    rows = records("r.csv")
    assert [r["exact_hits"] for r in rows] == [str(r["exact_hits"]) for r in alone]


def test_sweep_on_a_dask_cluster_equals_sweep_alone(emu: Emu) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra dask brings it")
    options = ("--dtype", "FLOAT16,BF16", "--soc", "Ascend910B1,Ascend310P3", "--inputs", "l1", "-n", "4096", "--json")
    alone = emu("sweep", "selu", "selu_backward", *options, "--workers", "1")
    # By tcp everything is pickled, as for a worker on another machine.
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, protocol="tcp", dashboard_address=":0") as cluster:
        ran = emu("sweep", "selu", "selu_backward", *options, "--scheduler", cluster.scheduler_address)
    assert (ran.code, alone.code) == (0, 0)
    rows = json.loads(ran.out)
    assert len(rows) == 6
    assert str(rows) == str(json.loads(alone.out))


def test_a_sweep_that_loses_its_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    class Pool:
        def __init__(self, *args: object, **more: object) -> None: ...
        def __enter__(self) -> Pool:
            return self

        def __exit__(self, *args: object) -> None: ...
        def submit(self, *args: object) -> Future[Any]:
            future: Future[Any] = Future()
            future.set_exception(BrokenProcessPool())
            return future

    monkeypatch.setattr(matrix, "ProcessPoolExecutor", Pool)
    with pytest.raises(StudyError, match="a worker process was killed"):
        matrix.sweep("selu", inputs="1", n=4)


def test_a_scheduler_that_goes_away() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra dask brings it")
    cluster = distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", dashboard_address=":0")
    with cluster, pytest.raises(StudyError, match="has gone, or has lost its workers"):
        matrix.sweep(
            dtypes="FLOAT", inputs="l1", n=1 << 14, scheduler=cluster.scheduler_address, progress=lambda done, total: cluster.close()
        )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_a_narrow_terminal_breaks_no_number(width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from rich.console import Console

    for module in ("_common", "study"):
        monkeypatch.setattr(f"emu.cli.{module}.stdout", lambda: Console(width=width, highlight=False))
    header = ["dtype", "soc", "n", "ulp_mean", "bias_ulp", "case"]
    row = ["FLOAT16", "Ascend950PR_9599", "65536", "0.00025916", "-1.2345e-05", "self=0.0002868175506591797: 0.1 / 0.2"]
    study.print_text([header, row], False, "title")
    out = capsys.readouterr().out
    assert all(word in out for value in (*header, *row) for word in value.split())
    assert max(map(len, out.splitlines())) <= width


def test_sweep_without_its_scheduler(emu: Emu, monkeypatch: pytest.MonkeyPatch) -> None:
    ran = emu("sweep", "selu", "--dtype", "FLOAT16", "--soc", "Ascend910B1", "--scheduler", "nonsense://1", "-o", "r.csv")
    assert (ran.code, "start one with dask scheduler" in ran.err) == (2, True)
    monkeypatch.setitem(sys.modules, "distributed", None)
    ran = emu("sweep", "selu", "--dtype", "FLOAT16", "--soc", "Ascend910B1", "--scheduler", "tcp://127.0.0.1:1", "-o", "r.csv")
    assert (ran.code, "aclnn-emu[dask]" in ran.err) == (2, True)
    assert list(Path().iterdir()) == []


def test_sweep_takes_every_operator_once() -> None:
    ops = matrix.default_ops()
    assert "selu_backward" in ops
    assert not any("inplace" in op for op in ops)
    assert len(ops) == len(set(ops))
