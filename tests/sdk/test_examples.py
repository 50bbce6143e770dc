"""The project's own C++ examples: they check their values themselves."""

from __future__ import annotations

from pathlib import Path

import pytest

from .conftest import CLEAN, EXAMPLES, Compile, run

NAMES = sorted(path.stem for path in EXAMPLES.glob("*.cpp"))


@pytest.fixture(scope="module")
def programs(compile_cxx: Compile) -> dict[str, Path]:
    return {name: compile_cxx(EXAMPLES / f"{name}.cpp", f"example-{name}", ["-std=c++11", "-pedantic"]) for name in NAMES}


@pytest.mark.parametrize("standard", ["c++14", "c++17", "c++20"])
@pytest.mark.parametrize("name", NAMES)
def test_example_in_later_standards(name: str, standard: str, compile_cxx: Compile, tmp_path: Path) -> None:
    """Without a warning, and right from another directory with a hostile Python around."""
    program = compile_cxx(EXAMPLES / f"{name}.cpp", f"example-{name}-{standard}", [f"-std={standard}", "-pedantic"])
    (tmp_path / "numpy.py").write_text("raise SystemExit('hostile numpy')\n")
    hostile = {"PYTHONPATH": str(tmp_path), "PYTHONHOME": str(tmp_path), "EMU_STRICT_PRODUCTS": "0"}
    done = run(program, env={**CLEAN, **hostile}, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_there_are_five() -> None:
    assert NAMES == ["callbacks", "errors", "repeatable", "streams", "strided"]


@pytest.mark.parametrize("soc", ["Ascend910B1", "Ascend310P3", "Ascend950PR_9599"])
@pytest.mark.parametrize("name", NAMES)
def test_example(name: str, soc: str, programs: dict[str, Path]) -> None:
    # The 950's document does not list SeluBackward: it is refused there unless told otherwise.
    done = run(programs[name], env={**CLEAN, "EMU_SOC": soc, "EMU_STRICT_PRODUCTS": "0"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.endswith(": right\n")
    assert done.stderr == ""


@pytest.mark.parametrize("schedule", ["lazy", "shuffle:3"])
@pytest.mark.parametrize("name", NAMES)
def test_example_on_every_schedule(name: str, schedule: str, programs: dict[str, Path]) -> None:
    done = run(programs[name], env={**CLEAN, "EMU_SCHEDULE": schedule})
    assert done.returncode == 0, done.stdout + done.stderr
