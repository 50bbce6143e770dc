"""The libraries in a process that is Python already: they use its interpreter, whatever was imported before, or say why they cannot."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from emu.sdk.interpreter import shared_library

from .conftest import CLEAN, PROGRAMS, run

HOST = str(PROGRAMS / "host.py")


@pytest.mark.parametrize(("before", "after"), [("", ""), ("numpy", ""), ("", "numpy"), ("torch", ""), ("", "torch"), ("emu.aclnn", "")])
def test_same_python(before: str, after: str, sdk: Path) -> None:
    for name in (before, after):
        if name == "torch" and find_spec("torch") is None:
            pytest.skip("torch is not installed")
    done = run(Path(sys.executable), HOST, str(sdk / "lib64"), before, after)
    assert (done.returncode, done.stdout) == (0, "host: right\n"), done.stderr


def test_first_call_while_the_gil_is_held(sdk: Path) -> None:
    code = (
        "import ctypes, sys, threading\n"
        "lib = ctypes.PyDLL(sys.argv[1] + '/libascendcl.so')\n"
        "codes = []\n"
        "threads = [threading.Thread(target=lambda: codes.append(lib.aclrtSetDevice(0))) for _ in range(4)]\n"
        "[t.start() for t in threads]; [t.join() for t in threads]\n"
        "print(codes)\n"
    )
    done = run(Path(sys.executable), "-c", code, str(sdk / "lib64"))
    assert (done.returncode, done.stdout) == (0, "[0, 0, 0, 0]\n"), done.stderr


def test_python_without_the_package_but_the_same_version(sdk: Path) -> None:
    """The SDK knows where the packages lie, so the base interpreter of a virtual environment can use it."""
    if sys.prefix == sys.base_prefix:
        pytest.skip("the tests run outside of a virtual environment")
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    done = run(base, "-I", HOST, str(sdk / "lib64"))
    assert (done.returncode, done.stdout) == (0, "host: right\n"), done.stderr


def test_keyboard_interrupt_in_a_call_reaches_the_program(sdk: Path) -> None:
    code = (
        "import ctypes, sys, signal, threading, os\n"
        "lib = ctypes.CDLL(sys.argv[1] + '/libascendcl.so')\n"
        "assert lib.aclrtSetDevice(0) == 0\n"
        "threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    while True: lib.aclrtSynchronizeDevice()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted')\n"
    )
    done = run(Path(sys.executable), "-c", code, str(sdk / "lib64"))
    assert (done.returncode, done.stdout) == (0, "interrupted\n"), done.stderr


def other_pythons() -> list[str]:
    """CPythons of another minor version on this machine."""
    places = [os.environ.get("EMU_OTHER_PYTHON"), *(shutil.which(f"python3.{minor}") for minor in range(10, 15))]
    places += sorted(str(p) for p in Path(sys.base_prefix).parent.glob("3.1*/bin/python3"))
    mine = f"3.{sys.version_info.minor}"
    found = []
    for place in filter(None, dict.fromkeys(places)):
        line = [place, "-c", "import sys; print('3.%d' % sys.version_info[1])"]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        if done.returncode == 0 and done.stdout.strip() not in (mine, ""):
            found.append(place)
    return found


def test_another_python_without_the_package_gets_an_error(sdk: Path) -> None:
    others = [p for p in other_pythons() if p != os.environ.get("EMU_OTHER_PYTHON")]
    if not others:
        pytest.skip("no CPython of another minor version here")
    for other in others:
        done = run(Path(other), "-I", HOST, str(sdk / "lib64"))
        assert done.returncode == 3, done.stdout + done.stderr
        assert "aclInit 500000" in done.stdout
        assert "was built with" in done.stdout


def test_another_python_with_the_package(sdk: Path) -> None:
    """A library that was built by one CPython works in the process of another that has the package itself."""
    other = os.environ.get("EMU_OTHER_PYTHON")
    if not other:
        pytest.skip("set EMU_OTHER_PYTHON to a CPython of another minor version that has aclnn-emu installed")
    done = run(Path(other), HOST, str(sdk / "lib64"), "", "numpy")
    assert (done.returncode, done.stdout) == (0, "host: right\n"), done.stderr


def test_another_libpython_in_the_process(sdk: Path, compile_cxx: object, tmp_path: Path) -> None:
    """A program that carries another libpython, not started, is told so instead of crashing."""
    mine = shared_library()
    versions = sorted(Path(sys.base_prefix).parent.glob("3.1*/lib/libpython3.1*.so.1.0"))
    others = [p for p in versions if p.resolve() != mine]
    if not others:
        pytest.skip("no other libpython here")
    source = tmp_path / "carries.cpp"
    source.write_text(
        '#include <dlfcn.h>\n#include <cstdio>\n#include "acl/acl.h"\n'
        "int main(int, char **a) { if (!dlopen(a[1], RTLD_NOW | RTLD_GLOBAL)) return 9; int code = aclInit(nullptr);\n"
        ' std::printf("%d %s\\n", code, aclGetRecentErrMsg()); return code == 0; }\n'
    )
    program = compile_cxx(source, "carries")  # type: ignore[operator]
    done = run(program, str(others[-1]), env=CLEAN)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "another libpython is loaded already" in done.stdout
