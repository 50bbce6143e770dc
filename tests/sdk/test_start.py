"""A start that fails is an error of every function, with the reason in the message: never a success without work, never a crash."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest

from .conftest import CLEAN, run


@pytest.fixture
def broken(sdk: Path, scenarios: Path, tmp_path: Path) -> Callable[[Callable[[str], str]], str]:
    """Runs the scenario "broken" against a copy of the SDK with an edited configuration; gives what it printed."""

    def run_with(edit: Callable[[str], str]) -> str:
        copy = tmp_path / "sdk"
        shutil.copytree(sdk, copy)
        config = copy / "lib64" / "aclnn_emu.conf"
        config.write_text(edit(config.read_text()))
        done = run(scenarios, "broken", env={**CLEAN, "LD_LIBRARY_PATH": f"{copy}/lib64"})
        assert done.returncode == 0, done.stderr
        first, *rest = done.stdout.splitlines()
        assert first == "aclInit 500000"
        assert rest[-1] == "broken: right"
        assert done.stderr.count("did not start") == 1  # said once, not at every call
        return "\n".join(rest[:-1])

    return run_with


def replaced(key: str, value: str) -> Callable[[str], str]:
    return lambda text: "".join(f"{key}={value}\n" if line.startswith(key + "=") else line + "\n" for line in text.splitlines())


def without(word: str) -> Callable[[str], str]:
    return lambda text: "".join(line + "\n" for line in text.splitlines() if word not in line)


def hidden(package: str) -> Callable[[str], str]:
    """The package is nowhere: neither where it was found nor in a directory of installed packages (all others stay)."""

    def edit(text: str) -> str:
        lines = []
        for line in text.splitlines():
            key, _, path = line.partition("=")
            if key == "path" and (Path(path) / package).is_dir():
                rest = Path(tempfile.mkdtemp(prefix="aclnn-emu-test-"))
                for entry in Path(path).iterdir():
                    if entry.name != package:
                        (rest / entry.name).symlink_to(entry)
                line = f"path={rest}"
            if not line.startswith(f"package={package}="):
                lines.append(line)
        return "\n".join(lines) + "\n"

    return edit


CASES = {
    "empty configuration": (lambda text: "", "names no executable"),
    "no libpython": (replaced("libpython", ""), "no shared libpython"),
    "libpython is gone": (replaced("libpython", "/nowhere/libpython3.so"), "/nowhere/libpython3.so"),
    "libpython is another library": (replaced("libpython", "libm.so.6"), "no CPython library"),
    "another version": (replaced("version", "3.9"), "was built with 3.9"),
    "the executable is gone": (replaced("executable", "/nowhere/python"), "build the SDK again"),
    "no standard library": (without("path="), "Python could not load it"),
    "no packages": (without("site-packages"), "ModuleNotFoundError"),
    "no emu": (hidden("emu"), "No module named 'emu"),
    "no kernels": (hidden("emu_kernels"), "emu_kernels"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_failed_start_is_an_error_everywhere(case: str, broken: Callable[[Callable[[str], str]], str]) -> None:
    edit, reason = CASES[case]
    assert reason in broken(edit)


def test_no_configuration_at_all(sdk: Path, scenarios: Path, tmp_path: Path) -> None:
    copy = tmp_path / "sdk"
    shutil.copytree(sdk, copy)
    (copy / "lib64" / "aclnn_emu.conf").unlink()
    done = run(scenarios, "broken", env={**CLEAN, "LD_LIBRARY_PATH": f"{copy}/lib64"})
    assert done.returncode == 0, done.stderr
    assert "aclnn_emu.conf: No such file" in done.stdout


def test_a_bad_setting_is_an_error(scenarios: Path) -> None:
    done = run(scenarios, "broken", env={**CLEAN, "EMU_SOC": "Ascend999"})
    assert "Ascend999" in done.stdout
    assert done.returncode == 0, done.stderr
