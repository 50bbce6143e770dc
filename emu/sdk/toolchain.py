"""Finding a C and a C++ compiler: the system's, or Zig's from PyPI."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from importlib.util import find_spec


class NoCompilerError(RuntimeError):
    """There is none; the text says what to install."""


class BuildError(RuntimeError):
    """A compiler failed; the text has its command and what it wrote."""


def _found(variable: str, names: Sequence[str], zig: str) -> list[str]:
    asked = os.environ.get(variable)
    if asked:
        command = shlex.split(asked)
        if shutil.which(command[0]) is None:
            raise NoCompilerError(f"{variable} is {asked!r}, and there is no program {command[0]}.")
        return command
    for name in names:
        path = shutil.which(name)
        if path is not None:
            return [path]
    if find_spec("ziglang") is not None:
        return [sys.executable, "-m", "ziglang", zig]
    raise NoCompilerError(
        f"No {'C++' if zig == 'c++' else 'C'} compiler: looked for {', '.join(names)} on PATH and for the package ziglang. "
        f"Install one of them, for example `apt install g++` or `pip install ziglang`, or name one in {variable}."
    )


def c_compiler() -> list[str]:
    """The command of the C compiler: $CC, cc, gcc, clang, or Zig's. NoCompilerError when there is none."""
    return _found("CC", ("cc", "gcc", "clang"), "cc")


def cxx_compiler() -> list[str]:
    """The command of the C++ compiler: $CXX, c++, g++, clang++, or Zig's. NoCompilerError when there is none."""
    return _found("CXX", ("c++", "g++", "clang++"), "c++")


def run(command: Sequence[str]) -> None:
    """Run a compiler; BuildError with its output when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"{shlex.join(command)}\n{done.stdout}{done.stderr}".rstrip())
