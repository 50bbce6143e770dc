"""Special shapes: all of those that the standard names, and a study that says where one goes wrong."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from emu_kernels.variant import Variant

from emu.study import run, shapes
from emu.study.problem import Problem, find_operator, native
from emu.verify.provider import NativeKernels


class Shifted(NativeKernels):
    """Rows of five are computed from the wrong place."""

    def rows(self, flow: str, v: Variant, last: bool, *ins: Any) -> Any:
        out = super().rows(flow, v, last, *ins)
        return np.roll(out, 1) if out.shape[1] == 5 else out


def problem(op: str, dtype: str = "FLOAT16", **more: Any) -> Problem:
    return Problem(op=find_operator(op), dtype=dtype, soc="Ascend910B1", **more)


def test_the_standard_s_shapes_are_there() -> None:
    dims = [s.dims for s in shapes.SHAPES]
    assert {len(d) for d in dims} == set(range(1, 9))
    assert {s.dims.index(0) for s in shapes.SHAPES if 0 in s.dims} == {0, 1, 2}
    assert (1,) in dims
    assert any(d.count(1) == len(d) > 1 for d in dims)
    assert any(2**31 + 1 in d for d in dims)


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("op", ["selu_backward", "log_sigmoid_backward", "softmax_backward", "inplace_selu", "softmax"])
def test_every_shape_gives_the_bits_of_the_flat_values(op: str, columns: bool) -> None:
    found = shapes.check(problem(op, last=not columns), native(), 0)
    assert [(f["what"], f["verdict"], f["code"]) for f in found] == [(s.what, "pass", 0) for s in shapes.SHAPES]
    assert sum(f["differ"] is None for f in found) == 1
    # The launch of the view with stride 0 would need its copies: a first phase that takes the shape says how much.
    assert found[-1]["workspace"] > 2**32 or op == "inplace_selu"


def test_a_wrong_shape_is_named() -> None:
    found = shapes.check(problem("softmax"), Shifted(), 0)
    assert {f["what"] for f in found if f["verdict"] == "FAIL"} == {s.what for s in shapes.SHAPES if s.dims[-1] == 5}
    assert all(f["differ"] for f in found if f["verdict"] == "FAIL")


def test_a_refused_shape_is_no_crash(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shapes, "SHAPES", (shapes.Shape((1,) * 9, "rank 9"), shapes.SHAPES[0]))
    found = shapes.check(problem("softmax"), native(), 0)
    assert [(f["code"], f["verdict"]) for f in found] == [(161002, "FAIL"), (0, "pass")]


def test_a_study_of_specials_runs_them(tmp_path: Any) -> None:
    study = run("softmax", dtypes=("FLOAT16",), inputs="specials", row_length=5)
    assert len(study.cells[0].to_dict()["shapes"]["cases"]) == len(shapes.SHAPES)
    assert "shapes.csv" in {p.name for p in study.write(tmp_path)}
    lines = (tmp_path / "shapes.csv").read_text().splitlines()
    assert lines[0].startswith("dtype,soc,shape,what,elements,")
    assert lines[-1].startswith("FLOAT16,Ascend910B1,2147483649x1,")
    assert run("softmax", dtypes=("FLOAT16",), n=64).cells[0].shapes == ()
    assert replace(study.cells[0], shapes=()).to_dict().get("shapes") is None
