"""What another device's bits, files, options and settings mean to a study, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from emu_kernels.assumptions import ASSUMPTIONS

import emu as emulator
from emu import config
from emu.study import assume, cases, differ, matrix, run
from emu.study.errors import StudyError, StudyWarning
from emu.study.problem import Problem, find_operator

Emu = Callable[..., Any]


def test_other_products_are_compared_bit_for_bit() -> None:
    """Ascend310P3 saturates, Ascend910B1 does not: counts do not depend on which of the two is under test."""
    socs = ("Ascend910B1", "Ascend310P3")
    (one,), (two,) = (differ.diff_soc("exp", dtypes=("FLOAT16",), socs=s) for s in (socs, socs[::-1]))
    assert one.differing == two.differing == one.special == two.special == 14963
    row = run("exp", dtypes=("FLOAT16",), socs="Ascend310P3", against="soc:Ascend910B1").rows()[0]
    assert row["inf_golden"] + row["nan_golden"] == 14963
    # The exact value is taken as the product stores it: neither saturation nor +0 for NaN is an error of the product.
    row = run("exp", dtypes=("FLOAT16",), socs="Ascend310P3").rows()[0]
    assert (row["inf_golden"], row["nan_golden"]) == (0, 0)


def test_infinities_of_a_file_are_compared(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", np.array([1, 20, 30, -3], np.float16))
    for kind in (np.float16, np.float32):
        np.save(tmp_path / "y.npy", np.array([2.71875, np.inf, np.inf, 0.0498046875], kind))
        asked: dict[str, Any] = {"inputs": tmp_path / "x.npy", "against": tmp_path / "y.npy", "dtypes": "FLOAT16"}
        row = run("exp", socs="Ascend310P3", **asked).rows()[0]
        assert (row["compared"], row["inf_golden"]) == (2, 2)


def save(path: Path, array: Any) -> str:
    np.save(path, array)
    return str(path)


def test_bf16_is_read_as_bf16(tmp_path: Path) -> None:
    x = np.linspace(-4, 4, 301).astype(ml_dtypes.bfloat16)
    file, wide = save(tmp_path / "b.npy", x), save(tmp_path / "f.npy", x.astype(np.float32))
    as_bf16, as_float = (str([r | {"inputs": ""} for r in run("selu", inputs=f).rows()]) for f in (file, wide))
    assert as_bf16 == as_float
    results = save(tmp_path / "y.npy", emulator.ops.selu(x))
    row = run("selu", dtypes="BF16", inputs=file, against=results).rows()[0]
    assert row["exact_hits"] == row["n"] == 301
    with pytest.raises(StudyError, match="has dtype BF16; that is not the study's FLOAT16"):
        run("selu", dtypes="FLOAT16", inputs=file, against=results)


@pytest.mark.parametrize("archive", [False, True])
def test_patterns_need_their_format(tmp_path: Path, archive: bool) -> None:
    bits = np.arange(9, dtype=np.uint16)
    path = tmp_path / ("x.npz" if archive else "x.npy")
    np.savez_compressed(path, self=bits) if archive else np.save(path, bits)
    for call in (run, differ.diff_soc, differ.diff_assumption, matrix.sweep):
        with pytest.raises(StudyError, match="of FLOAT16 or of BF16: say which with --dtype"):
            call("selu", inputs=str(path), dtypes="FLOAT16,BF16")
    assert run("selu", inputs=str(path), dtypes="BF16").rows()[0]["n"] == 9


def test_results_have_the_shape_and_dtype_of_the_study(tmp_path: Path) -> None:
    x = save(tmp_path / "x.npy", np.ones((3, 4), np.float16))
    asked: dict[str, Any] = {"inputs": x, "dtypes": "FLOAT16"}
    with pytest.raises(StudyError, match=r"has shape \(4, 3\), but the inputs have \(3, 4\)"):
        run("exp", against=save(tmp_path / "y.npy", np.ones((4, 3), np.float16)), **asked)
    with pytest.raises(StudyError, match=r"has dtype int8; that is not the study's FLOAT16"):
        run("exp", against=save(tmp_path / "y.npy", np.ones((3, 4), np.int8)), **asked)
    with pytest.raises(StudyError, match="holds float32, and a study in INT8 converts nothing"):
        run("selu", inputs=save(tmp_path / "f.npy", np.ones(3, np.float32)), dtypes="INT8")


@pytest.mark.parametrize(
    ("asked", "text"),
    [
        ({"assume": "exp_subnormal=kept", "socs": "Ascend950PR_9599"}, "exp_subnormal does not apply .* architectures of Ascend310P3"),
        ({"assume": "tbe_row_order=sequential"}, "tbe_row_order does not apply .* it is for softmax_backward"),
        ({"against": "assume:exp_subnormal=flushed"}, "exp_subnormal does not apply"),
        ({"op": "softmax", "assume": "tbe_row_order=sequential", "last": False}, "sums along the last dimension"),
        ({"op": "softmax", "assume": "cast_targets=all"}, "which no study runs"),
        ({"op": "log_sigmoid_backward", "numerics": "document", "assume": "exp_subnormal=kept"}, "it is for --numerics device"),
        ({"numerics": "document"}, "selu has no document variant"),
        ({"grad": "bogus"}, "selu reads self alone"),
        ({"op": "selu_backward", "inputs": "specials", "grad": "1"}, "--grad has no effect"),
        ({"op": "selu_backward", "inputs": "a.npy,b.npy", "grad": "1"}, "--grad has no effect"),
        ({"row_length": 8}, "selu is elementwise"),
        ({"last": False}, "selu is elementwise"),
        ({"op": "softmax", "inputs": "a.npy", "row_length": 8}, "--row-length has no effect"),
        ({"inputs": "exhaustive", "n": 8}, "-n has no effect"),
        ({"threads": "x"}, "threads must be a whole number"),
        ({"out": 5}, "out must be a str"),
        ({"out": ""}, "empty text"),
    ],
)
def test_what_would_have_no_effect_is_refused(asked: dict[str, Any], text: str) -> None:
    with pytest.raises(StudyError, match=text):
        run(**{"op": "selu", "dtypes": "FLOAT16"} | asked)


def test_an_assumption_is_computed_where_it_applies() -> None:
    cells = run("exp", dtypes="FLOAT", inputs="1", n=4, socs="all", assume="exp_subnormal=flushed").cells
    assert [c.problem.soc for c in cells if c.tally] == ["Ascend310P3", "Ascend910A", "Ascend310B1"]
    assert all("does not apply" in c.note for c in cells if not c.tally)
    found, _ = differ.diff_assumption("selu", inputs="1", n=4, dtypes="FLOAT,INT32")
    assert {(d.what.partition(",")[0], d.dtype) for d in found if "s32" in d.what} == {
        (s, "INT32") for s in ("Ascend910B1", "Ascend950PR_9599", "Ascend310P3", "Ascend910A", "Ascend310B1")
    }
    assert len([d for d in found if "exp_subnormal" in d.what]) == 6


def test_every_assumption_has_its_place() -> None:
    """A new name is thought of: it applies somewhere among the operators' cells, or is one of conversions."""
    cells = [
        Problem(op=find_operator(op), dtype=d, soc=soc, last=last, numerics=numerics)
        for op in ("selu", "softmax", "exp", "gelu", "log_sigmoid_backward", "selu_backward")
        for d in find_operator(op).dtypes
        for soc in ("Ascend910B1", "Ascend950PR_9599", "Ascend310P3")
        for last in (True, False)
        for numerics in ("device", "document")
    ]
    for a in ASSUMPTIONS:
        assert any(assume.applies(c, a.name) for c in cells) == (a.flows != ("cast",)), a.name


def test_a_sweep_gives_options_to_the_operators_that_take_them() -> None:
    rows = matrix.sweep(("selu", "softmax"), dtypes="FLOAT", workers=1, inputs="1", n=64, row_length=16)
    assert [r["n"] for r in rows] == [64, 64]
    with pytest.raises(StudyError, match="selu is elementwise"):
        matrix.sweep("selu", dtypes="FLOAT", workers=1, inputs="1", n=64, row_length=16)
    for asked in ({"workers": "2"}, {"workers": 1.5}, {"scheduler": 5}):
        with pytest.raises(StudyError, match="must be a"):
            matrix.sweep("selu", **asked)  # type: ignore[arg-type]


def test_names_in_any_form_and_once() -> None:
    names = "fp16,FLOAT16,half,float32"
    cells = run("selu", dtypes=names, socs="Ascend910B1,Ascend910B1", inputs="L0", n=8).cells
    assert [(c.problem.dtype, c.inputs) for c in cells] == [("FLOAT16", "l0"), ("FLOAT", "l0")]
    assert len(matrix.sweep(("selu", "Selu"), dtypes="FLOAT,fp32", inputs="1", n=4, workers=1)) == 1


def test_settings_are_the_defaults(emu: Emu, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ("study", "selu_backward", "--inputs", "1", "-n", "4", "--dtype", "FLOAT16", "--metrics", "numerics", "--markdown")
    monkeypatch.setattr(config, "_current", None)
    monkeypatch.setenv("EMU_SOC", "Ascend950PR_9599")
    monkeypatch.setenv("EMU_NUMERICS", "document")
    assert emu(*asked).out.splitlines()[-1] == "| FLOAT16 | Ascend950PR_9599 | document |"
    for name, value in (("EMU_SOC", "bogus"), ("EMU_NUM_THREADS", "abc"), ("EMU_NUM_THREADS", "-3")):
        with monkeypatch.context() as patch:
            patch.setattr(config, "_current", None)
            patch.setenv(name, value)
            ran = emu(*asked)
            assert (ran.code, ran.err.startswith(f"emu: {name}='{value}'"), ran.err.count("\n")) == (2, True, 1)


def test_json_takes_no_other_form(emu: Emu) -> None:
    for command in (("study",), ("diff-soc",), ("diff-assumption",), ("sweep",)):
        ran = emu(*command, "selu", "--json", "--markdown")
        assert (ran.code, "leave out --markdown" in ran.err) == (2, True)


def test_a_count_without_effect_is_said(emu: Emu) -> None:
    ran = emu("study", "selu", "-n", "8", "--dtype", "INT8", "--markdown")
    assert (ran.code, "-n 8 has no effect" in ran.err) == (0, True)
    assert emu("study", "selu", "-n", "8", "--dtype", "FLOAT", "--markdown").err == ""


def test_only_a_study_goes_on_after_an_interruption(emu: Emu, monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*args: object, **more: object) -> None:
        raise KeyboardInterrupt

    for name in ("run", "sweep", "diff_soc", "diff_assumption"):
        monkeypatch.setattr(f"emu.study.{name}", stop)
    assert "goes on where it stopped" in emu("study", "selu").err
    for command in ("sweep", "diff-soc", "diff-assumption"):
        ran = emu(command, "selu")
        assert (ran.code, ran.err) == (130, "emu: interrupted\n")


PLACES = Problem(op=find_operator("selu_backward"), dtype="FLOAT16", soc="Ascend910B1").places


def atk(*tensors: tuple[str, str, float]) -> str:
    inputs = [{"name": n, "dtype": d, "shape": [4], "range_values": [v, v]} for n, d, v in tensors]
    return json.dumps([{"inputs": inputs}])


@pytest.mark.parametrize(
    ("names", "order"),
    [
        (("result", "grad"), (1, 0)), (("gradOutput", "RESULT"), (0, 1)), (("result", "b"), (1, 0)), (("a", "b"), (0, 1)),
        (("out", "a", "grad"), (2, 1)),
    ],
)  # fmt: skip
def test_named_tensors_find_their_places(tmp_path: Path, names: tuple[str, ...], order: tuple[int, ...]) -> None:
    path = tmp_path / "a.json"
    path.write_text(atk(*((name, "fp16", float(i)) for i, name in enumerate(names))), encoding="utf-8-sig")
    (case,) = cases.read(path, 2, PLACES)
    assert case.ranges == tuple((i, i) for i in order)


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.json", atk(("grad", "fp16", 1), ("result", "fp32", 1)), "case 0: .* one dtype, not FLOAT16 and FLOAT"),
        ("a.json", atk(("grad", "fp16", 1), ("gradOutput", "fp16", 1)), "two tensors are named for one parameter"),
        ("a.json", "[" * 200_000, "nested too deeply"),
        ("a.json", '[{"n": ' + "9" * 5000 + "}]", "cannot be read"),
        ("a.csv", "", "is empty: its first line names the columns"),
        ("a.csv", "input_shapes,input_dtypes\n\"(4,)\",\"('float16','float32')\"\n", "line 2 .* one dtype, not FLOAT16 and FLOAT"),
        ("a.csv", f'input_shapes,input_dtypes\n"{"(" * 10_000}",float16\n', r"line 2: .*… \(10002 characters\)$"),
        ("a.csv", 'input_shapes,input_dtypes,input_data_ranges\n"(4,)",float16,"(0,1e999)"\n', "line 2 .* is not finite"),
        ("a.npy,b.npy", "text", "not a readable .npy file, whatever its name says"),
    ],
)
def test_files_that_are_refused(tmp_path: Path, name: str, content: str, text: str) -> None:
    for part in name.split(","):
        (tmp_path / part).write_text(content)
    with pytest.raises(StudyError, match=text):
        run("selu_backward", dtypes="FLOAT16", inputs=",".join(str(tmp_path / part) for part in name.split(",")))


def test_cases_of_two_seeds_are_different(tmp_path: Path) -> None:
    text = 'input_shapes,input_dtypes\n"(4,)",float16\n"(4,)",float16\n'
    (tmp_path / "seeds.csv").write_text(text)
    blocks = [
        cases.read_cases(tmp_path / "seeds.csv", "FLOAT16", ("self",), seed=seed, rows=False).block(i)[0].tolist()
        for seed in (0, 1)
        for i in (0, 1)
    ]
    assert len({str(b) for b in blocks}) == 4


def checkpoint(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    found = json.loads((path / "checkpoint.json").read_text())
    change(found)
    (path / "checkpoint.json").write_text(json.dumps(found))


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.update(cells=[1]),
        lambda c: c["cells"]["0"].update(next=-3),
        lambda c: c["cells"]["0"].update(next=10**9),
        lambda c: c["cells"]["0"].update(next=1),
        lambda c: c["cells"]["0"].pop("tally"),
        lambda c: c["cells"]["0"]["tally"].update(ulp_hist=[1]),
        lambda c: c["cells"]["0"]["tally"].update(worst=[{}]),
        lambda c: c["cells"]["0"]["tally"]["sums"].update(n="x"),
    ],
)
def test_a_damaged_checkpoint_is_none(tmp_path: Path, change: Any) -> None:
    whole = run("selu", dtypes=("FLOAT16",), out=tmp_path).to_dict()
    checkpoint(tmp_path, change)
    with pytest.warns(StudyWarning, match="checkpoint.json is damaged: what it counts is computed anew"):
        assert run("selu", dtypes=("FLOAT16",), out=tmp_path).to_dict() == whole
