"""The exported names, their types in C and C++, and the headers."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
from pathlib import Path

import pytest

from emu.acl._entry import ENTRIES
from emu.opdef.catalogue import OPERATORS
from emu.sdk import toolchain
from emu.sdk.forward import LIBRARIES
from emu.sdk.headers import headers
from emu.sdk.signatures import ABSENT, by_name, functions, parse
from emu.sdk.symbols import symbols
from emu.status import AclnnStatus, Status
from emu.types import C_ENUMS, C_MACROS, C_NAMES

from .conftest import CLEAN


def test_no_name_twice_and_none_both_known_and_absent() -> None:
    names = [f.name for f in functions()]
    assert len(set(names)) == len(names)
    assert not set(names) & set(ABSENT)


def plain(ctype: str) -> str:
    return ctype.replace("const ", "").replace(" ", "")


def test_signatures_agree_with_the_python_face() -> None:
    """The two tables were written from the same public facts: neither may drift."""
    import emu.acl  # noqa: F401

    for name, entry in ENTRIES.items():
        if not entry.c_known:
            assert name not in by_name()
            continue
        mine = by_name()[name]
        theirs = [(plain(p.ctype.replace("any*", "void*")), p.out) for p in entry.parameters]
        ours = [(plain(p.ctype.removesuffix("*" if p.direction != "in" else "")), p.direction != "in") for p in mine.params]
        # Where Python gives a string or a named tuple, C fills a buffer or a structure of the caller's.
        if name in ("aclsysGetCANNVersion", "aclsysGetVersionStr", "aclsysGetVersionNum", "aclrtPointerGetAttributes"):
            assert len(theirs) == len(ours)
        elif "Float16" not in name:
            assert ours == theirs, name


def test_parse_refuses_what_is_no_prototype() -> None:
    with pytest.raises(ValueError, match="no prototype"):
        parse("aclError aclInit", "ascendcl", "x.h")
    with pytest.raises(ValueError, match="no parameter"):
        parse("aclError aclInit(int)", "ascendcl", "x.h")


def test_slot_types_have_exact_widths() -> None:
    assert by_name()["aclrtMalloc"].abi == "int32_t(uintptr_t *, size_t, int32_t)"
    assert by_name()["aclrtEventElapsedTime"].abi == "int32_t(float *, uintptr_t, uintptr_t)"
    assert by_name()["aclnnSeluBackward"].abi == "int32_t(uintptr_t, uint64_t, uintptr_t, uintptr_t)"


@pytest.mark.parametrize("library", LIBRARIES)
def test_library_exports_its_part_and_nothing_else(library: str, sdk: Path) -> None:
    path = sdk / "lib64" / library
    listed = subprocess.run(["nm", "-D", "--defined-only", str(path)], capture_output=True, text=True, check=True).stdout
    exported = {line.split()[-1] for line in listed.splitlines()}
    assert exported == {f.name for f in functions() if f.library == LIBRARIES[library]}
    dynamic = subprocess.run(["readelf", "-d", str(path)], capture_output=True, text=True, check=True).stdout
    assert f"soname: [{library}]" in dynamic
    assert "libpython" not in dynamic


def test_every_state_of_a_symbol() -> None:
    states = {s.name: s.state for s in symbols()}
    assert states["aclnnSoftmaxBackward"] == states["aclrtMalloc"] == states["AclSetTensorAddr"] == "works"
    assert states["aclrtMemPoolCreate"] == states["aclDumpOpTensors"] == states["aclrtPointerGetAttributes"] == "refuses"
    assert states["aclrtMemFlush"] == states["aclrtMapMem"] == "absent"
    assert set(states.values()) == {"works", "refuses", "absent"}


def test_symbols_on_the_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    from emu.cli import main

    assert main(["sdk", "symbols", "--state", "absent", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["name"] for row in rows} == set(ABSENT)
    assert main(["sdk", "symbols", "--state", "absence"]) == 2
    assert "did you mean absent" in capsys.readouterr().err


@pytest.mark.parametrize(("language", "standard"), [("c", "c99"), ("c", "c17"), ("c++", "c++11"), ("c++", "c++20")])
def test_each_header_stands_alone(language: str, standard: str, sdk: Path, tmp_path: Path) -> None:
    compiler = toolchain.c_compiler() if language == "c" else toolchain.cxx_compiler()
    suffix = ".c" if language == "c" else ".cpp"
    flags = [f"-std={standard}", "-pedantic", "-Wall", "-Wextra", "-Werror", f"-I{sdk / 'include'}", "-c", "-o", str(tmp_path / "x.o")]
    for number, path in enumerate(headers()):
        source = tmp_path / f"h{number}{suffix}"
        source.write_text(f'#include "{path}"\n#include "{path}"\nint unused_{number};\n')
        toolchain.run([*compiler, *flags, str(source)])


def test_each_operator_has_a_header_under_its_stem() -> None:
    for op in OPERATORS:
        text = headers()[f"aclnnop/aclnn_{op.stem}.h"]
        assert f"aclnnStatus {op.name}GetWorkspaceSize(" in text
        assert f"aclnnStatus {op.name}(void *workspace, uint64_t workspaceSize, aclOpExecutor *executor, aclrtStream stream);" in text


def test_values_in_c(sdk: Path, tmp_path: Path) -> None:
    """Every enumerator, macro and code has in C the value that it has in Python."""
    checks = []
    for ctype, (cls, prefix) in C_ENUMS.items():
        checks += [(C_NAMES.get((ctype, n), prefix + n), int(m)) for n, m in cls.__members__.items()]
    for prefix, flags in C_MACROS.items():
        checks += [(prefix + n, int(m)) for n, m in flags.__members__.items()]
    checks += [(n, int(m)) for table in (Status, AclnnStatus) for n, m in table.__members__.items()]
    lines = [f'static_assert(static_cast<long>({name}) == {value}L, "{name}");' for name, value in checks]
    source = tmp_path / "values.cpp"
    source.write_text('#include "acl/acl.h"\n#include "aclnn/aclnn_base.h"\n' + "\n".join(lines) + "\n")
    toolchain.run([*toolchain.cxx_compiler(), "-std=c++17", f"-I{sdk / 'include'}", "-c", str(source), "-o", str(tmp_path / "v.o")])


@pytest.mark.parametrize("way", ["set_env.sh", "CMAKE_PREFIX_PATH"])
def test_cmake_package(way: str, sdk: Path, tmp_path: Path) -> None:
    if shutil.which("cmake") is None:
        pytest.skip("no cmake")
    (tmp_path / "main.cpp").write_text('#include "aclnnop/aclnn_selu.h"\nint main() { return aclInit(nullptr); }\n')
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(p CXX)\nfind_package(aclnn_emu 0.1 REQUIRED)\n"
        "add_executable(p main.cpp)\ntarget_link_libraries(p Ascend::aclnn)\n"
        "add_executable(q main.cpp)\ntarget_link_libraries(q Ascend::acl_rt Ascend::nnopbase Ascend::opapi_nn Ascend::opapi_math)\n"
    )
    made = tmp_path / "build"
    configure = ["cmake", "-S", str(tmp_path), "-B", str(made)]
    if way == "set_env.sh":
        configure = ["bash", "-c", f'. "{sdk}/set_env.sh" && "$@"', "-", *configure]
    else:
        configure.append(f"-DCMAKE_PREFIX_PATH={sdk}")
    for line in (configure, ["cmake", "--build", str(made)]):
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    for program in ("p", "q"):
        # A shell that sourced set_env.sh has the libraries on its path, so that CMake writes none into the program.
        env = {**CLEAN, "LD_LIBRARY_PATH": f"{sdk}/lib64"} if way == "set_env.sh" else CLEAN
        assert subprocess.run([str(made / program)], env=env, check=False).returncode == 0


def test_set_env_finds_everything(sdk: Path, tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text('#include "acl/acl.h"\nint main() { return aclInit(nullptr); }\n')
    script = f'. "{sdk}/set_env.sh" && g++ main.cpp -o p -lascendcl -lnnopbase -lopapi && ./p && echo "$ASCEND_HOME_PATH"'
    env = {**CLEAN, "PATH": "/usr/bin:/bin"}
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, f"{sdk}\n"), done.stderr


def test_set_env_in_a_plain_shell(sdk: Path, tmp_path: Path) -> None:
    """sh does not tell where a sourced file is: right from the SDK's directory, an error and no variable from anywhere else."""
    if shutil.which("dash") is None:
        pytest.skip("no shell without such a variable")
    script = '. "$1/set_env.sh"; echo "$? $ASCEND_HOME_PATH"'
    runs = [subprocess.run(["dash", "-c", s, "-", str(sdk)], cwd=d, env=CLEAN, capture_output=True, text=True, check=False)
            for s, d in ((script.replace("$1", "."), sdk), (script, tmp_path))]  # fmt: skip
    assert runs[0].stdout == f"0 {sdk}\n"
    assert runs[1].stdout == "1 \n"
    assert "use bash or zsh" in runs[1].stderr


def test_a_library_alone_can_be_loaded(sdk: Path) -> None:
    for library in LIBRARIES:
        ctypes.CDLL(str(sdk / "lib64" / library))
