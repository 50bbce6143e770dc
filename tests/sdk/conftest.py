"""One SDK for the whole run, programs compiled against it, and how they are run."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from emu.sdk import interpreter, toolchain
from emu.sdk.build import build, compile_flags, link_flags

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
PROGRAMS = HERE / "programs"
EXAMPLES = ROOT / "examples" / "cpp"
#: Only what a program needs: the cache of compiled kernels, so that no test compiles what another has compiled.
CLEAN = {"EMU_CACHE_DIR": os.environ.get("EMU_CACHE_DIR", "")}

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def sdk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A freshly built SDK; skips where there is no compiler or no shared libpython."""
    try:
        toolchain.c_compiler()
        toolchain.cxx_compiler()
    except toolchain.NoCompilerError as error:
        pytest.skip(str(error))
    if interpreter.shared_library() is None:
        pytest.skip("this Python has no shared libpython, which a program that is not Python needs")
    return build(tmp_path_factory.mktemp("sdk"), flags=["-Werror"])


@pytest.fixture(scope="session")
def compile_cxx(sdk: Path, tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """``compile_cxx(source, name, flags, against)`` → the program, every warning an error."""
    place = tmp_path_factory.mktemp("programs")

    def compile_one(source: Path, name: str, flags: Sequence[str] = ("-std=c++17",), against: Path | None = None) -> Path:
        root = against or sdk
        line = [*toolchain.cxx_compiler(), *compile_flags(root), "-Wall", "-Wextra", "-Werror", *flags, "-pthread"]
        toolchain.run([*line, f"-I{EXAMPLES}", str(source), "-o", str(place / name), *link_flags(root)])
        return place / name

    return compile_one


@pytest.fixture(scope="session")
def scenarios(compile_cxx: Compile) -> Path:
    """The program with one scenario for each argument."""
    return compile_cxx(PROGRAMS / "scenarios.cpp", "scenarios")


def run(
    program: Path, *arguments: str, env: Mapping[str, str] = CLEAN, cwd: Path | None = None, timeout: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a program with nothing but ``env`` in its environment."""
    line = [str(program), *arguments]
    return subprocess.run(line, env=dict(env), cwd=cwd, capture_output=True, text=True, timeout=timeout, check=False)
