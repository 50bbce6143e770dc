"""A verification that cannot fail proves nothing: each of these wrong kernels must be caught by `emu verify --quick`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import emu_kernels
import numpy as np
import pytest
import typer
from emu_kernels.reference import array_sums, arrays
from emu_kernels.reference.operators.selu import SCALE, SCALE_ALPHA
from emu_kernels.variant import Variant
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

from emu.cli import verify as command
from emu.verify import judge, provider
from emu.verify.engine import execute
from emu.verify.plan import plan

Bits = NDArray[Any]


class Right:
    """A provider that is right by construction."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        return judge.expected(flow, v, *inputs)

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        return judge.expected_rows(flow, v, last, *inputs)


class Selu(Right):
    """SeluBackward of dav_2201 with one fault; without a fault it is right."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        if v.numerics == "document" or v.saturate:
            return super().elementwise(flow, v, *inputs)
        half = v.dtype == "FLOAT16"

        def step(x: Any) -> Any:
            return arrays.widen("FLOAT16", arrays.to_half(np.atleast_1d(x), False)) if half else x

        with np.errstate(all="ignore"):
            g, y = (arrays.widen(v.dtype, a) for a in inputs)
            scale, scale_alpha = step(arrays.const(SCALE)), step(arrays.const(SCALE_ALPHA))
            a = y + scale_alpha
            b = step(g * (a if self.fault == "no rounding of y + SA" else step(a)))
            c = step(g * scale)
            below = y <= 0 if self.fault == "<= for <" else y < 0
            zero = np.float32(0)
            out = np.where(below, b, c)
            if self.fault != "no final addition":
                out = step(np.where(below, zero, c) + np.where(below, b, zero))
            return arrays.narrow(out, v)


class OneUlpExp(Right):
    """LogSigmoidBackward whose exp is one ulp too large for one argument in 256."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        with np.errstate(all="ignore"):
            x = arrays.widen("FLOAT", inputs[1])
            e = arrays.elementary("exp", -np.abs(x), v)
            wrong = (inputs[1] & 0xFF == 0x5A) & (e < 1)
            e = np.where(wrong, np.nextafter(e, np.float32(np.inf)), e)
            z = e / (e + np.float32(1))
            return arrays.narrow(np.where(x < 0, np.float32(1) - z, z) * arrays.widen("FLOAT", inputs[0]), v)


class OtherOrder(Right):
    """SoftmaxBackward whose sum is NumPy's pairwise one."""

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        with np.errstate(all="ignore"):
            g, y = (arrays.widen(v.dtype, a) for a in inputs)
            total = np.sum(y * g, axis=1, keepdims=True, dtype=np.float32)
            return arrays.narrow(array_sums.fma(-y, total, y * g) if v.arch == "dav_3510" else y * (g - total), v)


class Mutant(NamedTuple):
    """A wrong provider and where it is wrong."""

    provider: Any
    op: str
    dtype: str
    arch: str


MUTANTS = {
    "<= for <": Mutant(Selu("<= for <"), "SeluBackward", "BF16", "dav_2201"),
    "no final addition": Mutant(Selu("no final addition"), "SeluBackward", "FLOAT", "dav_2201"),
    "one rounding too few": Mutant(Selu("no rounding of y + SA"), "SeluBackward", "FLOAT16", "dav_2201"),
    "exp one ulp off": Mutant(OneUlpExp(), "LogSigmoidBackward", "FLOAT", "dav_2201"),
    "another order of the sum": Mutant(OtherOrder(), "SoftmaxBackward", "FLOAT", "dav_2201"),
    "another order of the sum, 3510": Mutant(OtherOrder(), "SoftmaxBackward", "BF16", "dav_3510"),
}


def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, wrong: Mutant, *more: str) -> Result:
    """`emu verify --quick` over a wrong provider."""
    monkeypatch.setattr(provider, "NativeKernels", lambda: wrong.provider)
    app = typer.Typer()
    app.command()(command.command)
    args = ["--quick", "--op", wrong.op, "--dtype", wrong.dtype, "--arch", wrong.arch, "-j", "1", "--state", str(tmp_path / "s"), *more]
    return CliRunner().invoke(app, args)


@pytest.mark.parametrize("name", MUTANTS)
def test_quick_catches_a_wrong_kernel(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    shown = run(monkeypatch, tmp_path, MUTANTS[name])
    assert shown.exit_code == 1
    assert "  reference, step by step" in shown.stdout
    again = run(monkeypatch, tmp_path, MUTANTS[name], "--resume", "--json")  # of the state file: every unit is in it
    assert again.exit_code == 1
    device = next(row for row in json.loads(again.stdout)["results"] if row["numerics"] == "device" and row["mismatches"])
    assert 0 < device["mismatches"] < device["cases"]
    found = device["examples"][0]
    assert found["kernel"] != found["reference"]
    assert found["reference_steps"][-1][1] == found["reference"]
    assert found["kernel_steps"][-1][1].split()[0] == found["kernel"].split()[0]
    assert f"    {found['reference_steps'][-1][0]}" in shown.stdout


#: File of the kernels, what it says, what the mutant says instead, and where that shows.
COMPILED = {
    "<= for <": ("flows/selu.py", '"<=" if steps == "le" else "<"', '"<=" if steps == "le" else "<="', "SeluBackward", "BF16"),
    "another order of the sum": ("reduce.py", "sum_pairs(kind, 64, True)", "sum_pairs(kind, 64, False)", "SoftmaxBackward", "FLOAT"),
}


@pytest.mark.parametrize("name", COMPILED)
def test_quick_catches_a_wrong_source_that_is_compiled(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A copy of the kernels with one fault goes through the compiler, and the counterexample shows the faulty step."""
    file, right, wrong, op, dtype = COMPILED[name]
    package = f"mutant_{len(name)}"
    copy = tmp_path / package
    shutil.copytree(Path(emu_kernels.__file__).parent, copy, ignore=shutil.ignore_patterns("reference", "__pycache__"))
    # Names of its own: the linker takes the first of two equal symbols of a process.
    for part, old, new in ((file, right, wrong), ("build.py", '"_".join([flow,', f'"_".join(["{package}", flow,')):
        text = (copy / part).read_text()
        assert old in text
        (copy / part).write_text(text.replace(old, new))
    monkeypatch.syspath_prepend(tmp_path)
    kernels = provider.NativeKernels(package)
    shown = run(monkeypatch, tmp_path, Mutant(kernels, op, dtype, "dav_2201"), "--json")
    assert shown.exit_code == 1, shown.output
    results = json.loads(shown.stdout)["results"]
    assert all(row["mismatches"] < row["cases"] for row in results)
    found = next(row for row in results if row["mismatches"])["examples"][0]
    assert found["kernel_how"] == "kernel, its source step by step"  # the copy's: it ends in the mutant's result
    names = [step for step, _ in found["kernel_steps"]]
    if op == "SeluBackward":
        assert any(" <= 0x00000000" in step for step in names)
    else:
        reference = {step for step, _ in found["reference_steps"] if step.startswith("sum: ")}
        assert any(step.startswith("sum: ") and step not in reference for step in names)


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_the_mutants_are_right_without_their_fault(dtype: str) -> None:
    units = plan("quick", ["SeluBackward"], [dtype], ["dav_2201"])
    assert sum(o.mismatches for o in execute(units, Selu(), jobs=1)) == 0


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    units = plan("quick", ["SoftmaxBackward", "LogSigmoidBackward"], ["FLOAT16"], ["dav_3510"])
    outcomes = execute(units, Right(), jobs=1)
    assert sum(o.mismatches for o in outcomes) == 0
    assert sum(o.cases for o in outcomes) > 1 << 19
