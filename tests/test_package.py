"""The distribution: every package is listed, typed and light to import; versions agree."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import emu_kernels
import pytest

import emu

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def packages_in(directory: str, name: str) -> set[str]:
    top = ROOT / directory
    found = {name + "".join(f".{part}" for part in f.parent.relative_to(top).parts) for f in top.rglob("__init__.py")}
    return {package for package in found if "__pycache__" not in package}


def test_every_package_is_installed():
    listed = PROJECT["tool"]["setuptools"]["packages"]
    assert len(set(listed)) == len(listed)
    assert set(listed) == packages_in("emu", "emu") | packages_in("kernels", "emu_kernels")


def test_every_directory_with_code_is_a_package():
    for top in ("emu", "kernels"):
        for file in (ROOT / top).rglob("*.py"):
            assert (file.parent / "__init__.py").exists(), file


def test_every_data_file_is_installed():
    patterns = PROJECT["tool"]["setuptools"]["package-data"]
    for package, top in (("emu", ROOT / "emu"), ("emu_kernels", ROOT / "kernels")):
        listed = {file for pattern in patterns[package] for file in top.glob(pattern)}
        data = {f for f in top.rglob("*") if f.is_file() and f.suffix not in (".py", ".pyc")}
        assert data == listed


def test_kernels_are_never_imported_under_their_directory_name():
    pattern = re.compile(r"^\s*(?:from|import) kernels\b", re.MULTILINE)
    for top in ("emu", "kernels", "tests", "examples", "docs"):
        for file in (ROOT / top).rglob("*.py"):
            assert not pattern.search(file.read_text()), file


def test_arithmetic_knows_no_device():
    pattern = re.compile(r"^\s*(?:from|import) emu\b(?!_)", re.MULTILINE)
    for file in (ROOT / "kernels").rglob("*.py"):
        assert not pattern.search(file.read_text()), file


@pytest.mark.parametrize("package", [emu, emu_kernels])
def test_typed(package):
    assert (Path(package.__file__).parent / "py.typed").exists()


@pytest.mark.parametrize(
    "statement",
    [
        "import emu",
        "import emu_kernels",
        "import emu, emu.config, emu.opdef.catalogue",
        "import emu_kernels.variant, emu_kernels.assumptions",
    ],
)
def test_imports_without_numba(statement):
    code = f"import sys; {statement}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


@pytest.mark.parametrize("face", ["acl", "aclnn", "ops", "types"])
def test_faces_without_numba(face):
    code = f"import sys, emu; emu.{face}; print([m for m in ('numba', 'llvmlite') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


FLOAT = "import numpy as np; a = np.ones(4, np.float32)"


@pytest.mark.parametrize(
    "call",
    [
        f"{FLOAT}; from emu import ops; ops.selu_backward(a, a); ops.softmax_backward(a, a, 0)",
        f"{FLOAT}; from emu import aclnn; t = aclnn.aclCreateTensor((4,), 0, None, 0, 2, (4,), 0); "
        "aclnn.aclnnSeluBackwardGetWorkspaceSize(t, t, t)",
    ],
)
def test_ml_dtypes_comes_with_bf16_alone(call):
    code = f"import sys; {call}; print('ml_dtypes' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"


def test_one_version():
    assert PROJECT["project"]["version"] == emu.__version__ == metadata.version("aclnn-emu")
    changes = (ROOT / "CHANGELOG.md").read_text()
    assert re.search(rf"^## \[{re.escape(emu.__version__)}\]", changes, re.MULTILINE)


def test_torch_is_in_no_extra_but_its_own():
    extras = PROJECT["project"]["optional-dependencies"]
    assert any(r.startswith("torch") for r in extras["torch"])
    for name, requirements in extras.items():
        if name != "torch":
            assert not any(r.startswith("torch") or "[torch" in r for r in requirements), name


def test_licence():
    assert "Apache License" in (ROOT / "LICENSE").read_text()
