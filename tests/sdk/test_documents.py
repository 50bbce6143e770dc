"""The operator documents' own programs, unchanged: every C++ standard, and every environment that could mislead the interpreter."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from .conftest import CLEAN, ROOT, Compile, run

#: Where the programs are: they are not part of this project.
PLACES = [Path(p) for p in (os.environ.get("EMU_DOC_EXAMPLES"), ROOT.parent / "shared" / "operator_docs" / "examples") if p]
FOUND = next((p for p in PLACES if p.is_dir()), None)

pytestmark = pytest.mark.skipif(
    FOUND is None, reason=f"the documents' programs are in none of {', '.join(map(str, PLACES))}; set EMU_DOC_EXAMPLES"
)

#: What each prints on an Atlas A2. LogSigmoid: 1/(1 + e^x) of 1 to 4; Softmax: y * (g - sum(y*g)) along dim 0; Selu: g * scale, at
#: result 0 too, because that part takes the negative branch below 0 only.
EXPECTED = {
    "aclnnLogSigmoidBackward": ["0.268941", "0.119203", "0.047426", "0.017986"],
    "aclnnSeluBackward": ["1.050701"] * 8,
    "aclnnSoftmaxBackward": [
        "-28.000000",
        "-37.000000",
        "-26.000000",
        "-70.000000",
        "-48.000000",
        "-66.000000",
        "-66.000000",
        "-93.000000",
    ],
}


STANDARDS = ("c++11", "c++14", "c++17", "c++20")


def printed(name: str) -> str:
    return "".join(f"result[{i}] is: {value}\n" for i, value in enumerate(EXPECTED[name]))


@pytest.fixture(scope="module")
def programs(compile_cxx: Compile) -> dict[tuple[str, str], Path]:
    assert FOUND is not None
    return {
        (name, standard): compile_cxx(FOUND / f"{name}.cpp", f"{name}-{standard}", [f"-std={standard}"])
        for name in EXPECTED
        for standard in STANDARDS
    }


@pytest.mark.parametrize("standard", STANDARDS)
@pytest.mark.parametrize("name", EXPECTED)
def test_prints_the_right_values(name: str, standard: str, programs: dict[tuple[str, str], Path]) -> None:
    done = run(programs[name, standard])
    assert (done.returncode, done.stdout, done.stderr) == (0, printed(name), "")


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A directory with a python3 that fails, and modules that fail when imported."""
    for name in ("python", "python3", "python3.11"):
        (tmp_path / name).write_text("#!/bin/sh\necho hostile python >&2\nexit 99\n")
        (tmp_path / name).chmod(0o755)
    for name in ("numpy", "numba", "cffi", "emu", "emu_kernels", "sitecustomize", "usercustomize", "threading"):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('hostile {name}')\n")
    return tmp_path


ENVIRONMENTS = {
    "PATH": {"PATH": "{hostile}:/usr/bin:/bin"},
    "PYTHONHOME": {"PYTHONHOME": "{hostile}"},
    "PYTHONPATH": {"PYTHONPATH": "{hostile}"},
    "startup": {"PYTHONSTARTUP": "{hostile}/numpy.py", "PYTHONINSPECT": "1", "PYTHONUSERBASE": "{hostile}", "PYTHONWARNINGS": "error"},
    "locale": {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "warn", "PYTHONIOENCODING": "ascii"},
    "backend": {"EMU_BACKEND": "cann"},
    "virtual environment": {"VIRTUAL_ENV": "{hostile}", "CONDA_PREFIX": "{hostile}"},
}


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.parametrize("which", ENVIRONMENTS)
def test_hostile_environment(which: str, name: str, programs: dict[tuple[str, str], Path], hostile: Path) -> None:
    env = {key: value.format(hostile=hostile) for key, value in ENVIRONMENTS[which].items()}
    done = run(programs[name, "c++11"], env={**CLEAN, **env}, cwd=hostile)
    assert (done.returncode, done.stdout, done.stderr) == (0, printed(name), "")


def test_a_moved_sdk_still_works(sdk: Path, programs: dict[tuple[str, str], Path], tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere ü"
    shutil.copytree(sdk, moved)
    name = "aclnnSeluBackward"
    done = run(programs[name, "c++17"], env={**CLEAN, "LD_LIBRARY_PATH": f"{moved}/lib64", "LD_DEBUG": "libs"})
    assert (done.returncode, done.stdout) == (0, printed(name))
    assert f"{moved}/lib64/libaclnn_emu.so" in done.stderr
    assert f"calling init: {sdk}" not in done.stderr
