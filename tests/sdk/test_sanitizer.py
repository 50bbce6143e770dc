"""The shim under AddressSanitizer: C and C++ side instrumented, the interpreter as it is."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from emu.sdk import toolchain
from emu.sdk.build import build

from .conftest import CLEAN, PROGRAMS, Compile, run

FLAGS = ["-fsanitize=address", "-fno-omit-frame-pointer", "-g"]


@pytest.fixture(scope="module")
def sanitized(sdk: Path, compile_cxx: Compile, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    place = tmp_path_factory.mktemp("asan")
    (place / "empty.cpp").write_text("int main() { return 0; }\n")
    probe = [*toolchain.cxx_compiler(), *FLAGS, str(place / "empty.cpp"), "-o", str(place / "empty")]
    built = subprocess.run(probe, capture_output=True, check=False).returncode == 0
    if not built or subprocess.run([str(place / "empty")], check=False).returncode:
        pytest.skip("this compiler has no AddressSanitizer")
    root = build(place / "sdk", flags=FLAGS)
    return root, compile_cxx(PROGRAMS / "scenarios.cpp", "scenarios-asan", ["-std=c++17", *FLAGS], root)


@pytest.mark.parametrize("name", ["values", "messages", "first", "fork", "busy", "not-emulated"])
def test_no_error_in_the_shim(name: str, sanitized: tuple[Path, Path]) -> None:
    # Leaks are looked at apart: an interpreter that is never finalised keeps all its memory.
    options = "detect_leaks=0:abort_on_error=0:exitcode=99:alloc_dealloc_mismatch=1:detect_stack_use_after_return=1"
    done = run(sanitized[1], name, env={**CLEAN, "ASAN_OPTIONS": options}, timeout=300)
    assert "AddressSanitizer" not in done.stderr, done.stderr[:4000]
    assert (done.returncode, done.stdout) == (0, f"{name}: right\n"), done.stderr[:4000]


def test_a_failed_start_under_the_sanitizer_leaks_nothing(sanitized: tuple[Path, Path], tmp_path: Path) -> None:
    """Without an interpreter every byte is the shim's own, so leaks count."""
    root, program = sanitized
    libraries = tmp_path / "lib64"
    shutil.copytree(root / "lib64", libraries)
    (libraries / "aclnn_emu.conf").write_text("executable=/bin/true\nversion=3.11\nlibpython=/nowhere.so\n")
    env = {**CLEAN, "LD_LIBRARY_PATH": str(libraries), "ASAN_OPTIONS": "detect_leaks=1:exitcode=99"}
    done = run(program, "broken", env=env)
    if "LeakSanitizer does not work under ptrace" in done.stderr or "LeakSanitizer has encountered a fatal error" in done.stderr:
        pytest.skip("LeakSanitizer cannot run here")
    assert "Sanitizer" not in done.stderr, done.stderr[:4000]
    assert done.returncode == 0


def test_valgrind_finds_nothing(scenarios: Path) -> None:
    """Memory errors anywhere in the process of a program that starts the interpreter and uses most functions once."""
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        pytest.skip("no valgrind")
    done = run(Path(valgrind), "--error-exitcode=99", "-q", str(scenarios), "values", timeout=600)
    assert (done.returncode, done.stdout) == (0, "values: right\n"), done.stderr[:4000]
