"""Null pointers from C: every exported function is called with nothing, before and after a device is open."""

from __future__ import annotations

from pathlib import Path

import pytest

from emu.sdk.signatures import Function, functions
from emu.status import AclnnStatus, Status

from .conftest import Compile, run

_HEAD = """#include <cstdio>
#include "acl/acl.h"
#include "aclnn/aclnn_base.h"
"""
_BODY = """
static void Show(const char *name, long long value) { std::printf("%s %lld\\n", name, value); }
template <typename T> static long long Number(T *pointer) { return pointer != nullptr; }
template <typename T> static long long Number(T value) { return static_cast<long long>(value); }

int main(int count, char **) {
"""
_NAMED = {int(m) for table in (Status, AclnnStatus) for m in table}


def _line(f: Function) -> str:
    zeros = ", ".join(f"({p.ctype})0" for p in f.params)
    ready = "  if (count > 1) { aclInit(nullptr); aclrtSetDevice(0); }\n"
    call = f"{f.name}({zeros})"
    return ready + (f'  {call};\n  Show("{f.name}", 0);\n' if f.result == "void" else f'  Show("{f.name}", Number({call}));\n')


@pytest.fixture(scope="module")
def program(compile_cxx: Compile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    headers = "".join(f'#include "{h}"\n' for h in sorted({f.header for f in functions()}))
    source = tmp_path_factory.mktemp("nulls") / "nulls.cpp"
    source.write_text(_HEAD + headers + _BODY + "".join(map(_line, functions())) + '  std::puts("end");\n  return 0;\n}\n')
    return compile_cxx(source, "nulls", ("-std=c++17", "-Wno-deprecated-declarations", "-Wno-ignored-qualifiers"))


def _expected(f: Function) -> int | None:
    """What a null for an output gives, where the contract says one code for all: None where it does not."""
    if not any(p.direction == "out" for p in f.params) or f.result not in ("aclError", "aclnnStatus"):
        return None
    return int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR) if f.library != "ascendcl" else int(Status.ACL_ERROR_INVALID_PARAM)


@pytest.mark.parametrize("state", [(), ("open",)], ids=["before aclInit", "with a device"])
def test_nothing_crashes_and_outputs_are_asked_for(state: tuple[str, ...], program: Path) -> None:
    done = run(program, *state)
    assert (done.returncode, done.stderr) == (0, "")
    *lines, end = done.stdout.splitlines()
    assert end == "end"
    got = {name: int(code) for name, code in map(str.split, lines)}
    assert set(got) == {f.name for f in functions()}
    for f in functions():
        if f.result in ("aclError", "aclnnStatus"):
            assert got[f.name] in _NAMED, f.name
        refuses = got[f.name] in (Status.ACL_ERROR_RT_FEATURE_NOT_SUPPORT, Status.ACL_ERROR_API_NOT_SUPPORT)
        if _expected(f) is not None and not refuses:
            assert got[f.name] == _expected(f), f.name
