"""emu study, diff-soc, diff-assumption and sweep: output, files, exit codes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emu.study import matrix

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


def test_json_is_json(emu: Emu) -> None:
    ran = emu("study", "selu_backward", "--dtype", "FLOAT16", "--json")
    assert json.loads(ran.out)["cells"][0]["worst"][0]["steps_of_computation"]


def test_list_explains(emu: Emu) -> None:
    ran = emu("study", "--list")
    assert ran.code == 0
    for word in ("l0", "torch", "ulp_mean", "FILE.npz"):
        assert word in ran.out


@pytest.mark.parametrize(
    ("args", "text"),
    [
        (["study"], "which operator"),
        (["study", "selu", "--html"], "need -o"),
        (["study", "selo"], "did you mean"),
        (["study", "selu", "--dtype", "FP16"], "unknown dtype"),
        (["study", "selu", "--soc", "Ascend1"], "unknown SoC"),
        (["study", "selu", "--inputs", "no.npy", "-o", "out"], "no file no.npy"),
        (["study", "selu", "--against", "no.npy", "-o", "out"], "no file no.npy"),
        (["diff-soc", "selo"], "did you mean"),
        (["diff-assumption", "selu", "--soc", "Ascend1"], "unknown SoC"),
        (["sweep", "selo"], "did you mean"),
        (["sweep", "selu", "--dtype", "FP16"], "no operator of the sweep"),
        (["sweep", "selu", "-o", "rows.txt"], "ends in .csv"),
    ],
)
def test_wrong_usage_is_exit_code_2(emu: Emu, args: list[str], text: str) -> None:
    ran = emu(*args)
    assert ran.code == 2
    assert text in ran.err
    assert "Traceback" not in ran.err
    assert list(Path().iterdir()) == []


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


def test_sweep_takes_every_operator_once() -> None:
    ops = matrix.default_ops()
    assert "selu_backward" in ops
    assert not any("inplace" in op for op in ops)
    assert len(ops) == len(set(ops))
