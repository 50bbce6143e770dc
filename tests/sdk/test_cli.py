"""emu sdk build, emu cxx and emu run as a user calls them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from emu.cli import main

from .conftest import EXAMPLES

SAY = """
#include <cstdio>
#include <cstdlib>
#include "acl/acl.h"
int main(int count, char **arguments) {
  if (aclInit(nullptr) != 0 || aclrtSetDevice(0) != 0) return 9;
  const char *schedule = std::getenv("EMU_SCHEDULE");
  std::printf("%s %s %s\\n", aclrtGetSocName(), schedule != nullptr ? schedule : "-", arguments[count - 1]);
  return 5;
}
"""


def emu(*arguments: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """The command in a process of its own: emu cxx and emu run become another program."""
    line = [sys.executable, "-c", "import sys; from emu.cli import main; sys.exit(main())", *arguments]
    return subprocess.run(line, cwd=cwd, env={**os.environ, **env}, capture_output=True, text=True, check=False)


def test_build_compile_run(sdk: Path, tmp_path: Path) -> None:
    (tmp_path / "say.cpp").write_text(SAY)
    built = emu("sdk", "build", "mine", cwd=tmp_path)
    assert built.returncode == 0, built.stderr
    assert "libopapi_math.so" in os.listdir(tmp_path / "mine" / "lib64")
    compiled = emu("cxx", "--sdk", "mine", "-std=c++20", "-Wall", "-O2", "say.cpp", "-o", "say", cwd=tmp_path)
    assert compiled.returncode == 0, compiled.stderr
    ran = emu("run", "--soc", "Ascend310P3", "--schedule", "lazy", "./say", "--soc", "last word", cwd=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (5, "Ascend310P3 lazy last word\n", "")


def test_the_default_sdk_is_built_once(sdk: Path, tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    example = str(EXAMPLES / "errors.cpp")
    first = emu("cxx", example, "-c", "-o", "errors.o", cwd=tmp_path, EMU_CACHE_DIR=cache)
    assert first.returncode == 0, first.stderr
    (made,) = (tmp_path / "cache" / "sdk").iterdir()
    before = (made / "lib64" / "libascendcl.so").stat().st_mtime_ns
    second = emu("cxx", "errors.o", "-o", "errors", cwd=tmp_path, EMU_CACHE_DIR=cache)
    assert second.returncode == 0, second.stderr
    assert list((tmp_path / "cache" / "sdk").iterdir()) == [made]
    assert (made / "lib64" / "libascendcl.so").stat().st_mtime_ns == before
    ran = emu("run", "./errors", cwd=tmp_path, EMU_CACHE_DIR=cache)
    assert ran.returncode == 0, ran.stderr


def test_a_compile_error_is_the_compilers(sdk: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.cpp").write_text("int main() { return no_such_name; }\n")
    done = emu("cxx", "--sdk", str(sdk), "wrong.cpp", "-o", "wrong", cwd=tmp_path)
    assert done.returncode == 1
    assert "no_such_name" in done.stderr


def test_no_sdk_in_the_directory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cxx", "--sdk", str(tmp_path), "x.cpp"]) == 1
    assert f"emu sdk build {tmp_path}" in capsys.readouterr().err


def test_without_a_compiler_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("emu.sdk.toolchain.find_spec", lambda name: None)
    assert main(["sdk", "build", str(tmp_path / "sdk")]) == 1
    assert "pip install ziglang" in capsys.readouterr().err
    assert main(["cxx", "x.cpp"]) == 1
    assert "apt install g++" in capsys.readouterr().err
    assert not (tmp_path / "sdk").exists()


def test_a_named_compiler_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("CC", "no-such-compiler -O2")
    assert main(["sdk", "build", str(tmp_path)]) == 1
    assert "no-such-compiler" in capsys.readouterr().err


def test_zig_is_used_where_there_is_no_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from emu.sdk import toolchain

    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setattr("emu.sdk.toolchain.find_spec", lambda name: object())
    assert toolchain.c_compiler() == [sys.executable, "-m", "ziglang", "cc"]
    assert toolchain.cxx_compiler() == [sys.executable, "-m", "ziglang", "c++"]


def test_an_sdk_directory_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["sdk", "build", str(tmp_path / "file" / "sdk")]) == 1
    assert "Not a directory" in capsys.readouterr().err


def test_an_sdk_without_a_directory(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["sdk", "build", ""]) == 2
    assert "DIR is empty" in capsys.readouterr().err


def test_a_cache_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "x.cpp").write_text("int main() { return 0; }\n")
    for words in (["cxx", "x.cpp", "-o", "x"], ["run", "/bin/true"]):
        done = emu(*words, cwd=tmp_path, EMU_CACHE_DIR=str(tmp_path / "file" / "cache"))
        assert done.returncode == 1
        assert "set EMU_CACHE_DIR" in done.stderr
        assert "Traceback" not in done.stderr


def test_messages_are_printed_with_the_switch_of_cann(sdk: Path, tmp_path: Path) -> None:
    text = '#include <cstdio>\n#include "acl/acl.h"\nint main() { std::printf("%d\\n", aclrtSetDevice(99)); }\n'
    (tmp_path / "x.cpp").write_text(text)
    assert emu("cxx", "--sdk", str(sdk), "x.cpp", "-o", "x", cwd=tmp_path).returncode == 0
    plain = emu("run", "./x", cwd=tmp_path)
    assert plain.stdout == "107001\n"
    printed = emu("run", "./x", cwd=tmp_path, ASCEND_LOG_PRINT_TO_STDOUT="1")
    first, second = printed.stdout.splitlines()
    assert first.startswith("[ERROR] EE1003: [PID: ")
    assert "99" in first
    assert second == "107001"
    assert emu("run", "./x", cwd=tmp_path, ASCEND_LOG_PRINT_TO_STDOUT="1", ASCEND_GLOBAL_LOG_LEVEL="4").stdout == "107001\n"
