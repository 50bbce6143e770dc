"""``emu sdk build DIR``: headers, libraries, a CMake package and ``set_env.sh``."""

from __future__ import annotations

import contextlib
import hashlib
import shutil
import tempfile
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from emu import __version__
from emu.sdk import toolchain
from emu.sdk.forward import LIBRARIES, forwarders_c, table_c
from emu.sdk.headers import headers
from emu.sdk.interpreter import config_text

CORE = "libaclnn_emu.so"
_FLAGS = ("-std=gnu11", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wall", "-Wextra")

_SET_ENV = """\
# Source this file: programs then find the headers and libraries of this directory.
_emu_sdk="$0"
if [ -n "${BASH_VERSION:-}" ]; then
  eval '_emu_sdk="${BASH_SOURCE[0]}"'
elif [ -n "${ZSH_VERSION:-}" ]; then
  eval '_emu_sdk="${(%):-%x}"'
fi
_emu_sdk="$(cd "$(dirname "$_emu_sdk")" && pwd)"
if [ ! -f "$_emu_sdk/include/acl/acl.h" ]; then
  # Other shells do not say where a sourced file is, but where it is sourced from.
  echo "set_env.sh: this shell does not tell where the file is; use bash or zsh, or source it as ./set_env.sh from its own directory" >&2
  unset _emu_sdk
  return 1
fi
export ASCEND_HOME_PATH="$_emu_sdk"
export ASCEND_TOOLKIT_HOME="$_emu_sdk"
export LD_LIBRARY_PATH="$_emu_sdk/lib64${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
export LIBRARY_PATH="$_emu_sdk/lib64${LIBRARY_PATH:+:$LIBRARY_PATH}"
export CPATH="$_emu_sdk/include${CPATH:+:$CPATH}"
export CMAKE_PREFIX_PATH="$_emu_sdk${CMAKE_PREFIX_PATH:+:$CMAKE_PREFIX_PATH}"
unset _emu_sdk
"""

_CMAKE = """\
# find_package(aclnn_emu) gives the targets Ascend::ascendcl, Ascend::nnopbase, Ascend::opapi, their split names,
# and Ascend::aclnn for the three together.
get_filename_component(_aclnn_emu_root "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
foreach(_lib @LIBRARIES@)
  if(NOT TARGET Ascend::${_lib})
    add_library(Ascend::${_lib} SHARED IMPORTED)
    set_target_properties(Ascend::${_lib} PROPERTIES
      IMPORTED_LOCATION "${_aclnn_emu_root}/lib64/lib${_lib}.so"
      IMPORTED_SONAME "lib${_lib}.so"
      IMPORTED_LINK_DEPENDENT_LIBRARIES ""
      INTERFACE_INCLUDE_DIRECTORIES "${_aclnn_emu_root}/include")
  endif()
endforeach()
if(NOT TARGET Ascend::aclnn)
  add_library(Ascend::aclnn INTERFACE IMPORTED)
  set_target_properties(Ascend::aclnn PROPERTIES INTERFACE_LINK_LIBRARIES "Ascend::ascendcl;Ascend::nnopbase;Ascend::opapi")
endif()
unset(_aclnn_emu_root)
unset(_lib)
"""

_CMAKE_VERSION = """\
set(PACKAGE_VERSION "@VERSION@")
if(PACKAGE_VERSION VERSION_LESS PACKAGE_FIND_VERSION)
  set(PACKAGE_VERSION_COMPATIBLE FALSE)
else()
  set(PACKAGE_VERSION_COMPATIBLE TRUE)
  if(PACKAGE_VERSION VERSION_EQUAL PACKAGE_FIND_VERSION)
    set(PACKAGE_VERSION_EXACT TRUE)
  endif()
endif()
"""


def _c_string(text: str) -> str:
    lines = (line.replace("\\", "\\\\").replace('"', '\\"') for line in text.splitlines())
    return "\n".join(f'  "{line}\\n"' for line in lines)


def _write_sources(place: Path) -> None:
    """The C sources of the libraries, hand-written and generated, into ``place``."""
    for source in files("emu.sdk").joinpath("csrc").iterdir():
        if source.name.endswith((".c", ".h")):
            (place / source.name).write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    bootstrap = files("emu.sdk").joinpath("bootstrap.py").read_text(encoding="utf-8")
    (place / "bootstrap.h").write_text(f"static const char emu_bootstrap[] =\n{_c_string(bootstrap)};\n", encoding="utf-8")
    (place / "table.c").write_text(table_c(), encoding="utf-8")
    for part in sorted(set(LIBRARIES.values()) - {""}):
        (place / f"{part}.c").write_text(forwarders_c(part), encoding="utf-8")
    (place / "empty.c").write_text("typedef int aclnn_emu_has_no_function_here;\n", encoding="utf-8")


def build(directory: str | Path, *, flags: Sequence[str] = ()) -> Path:
    """Write a whole SDK into ``directory`` (made if needed) and return it; ``flags`` are given to the compiler as well.

    Raises :class:`emu.sdk.toolchain.NoCompilerError` or :class:`emu.sdk.toolchain.BuildError`. Libraries are replaced in one step each,
    so that a program that runs keeps the ones it has.
    """
    compiler = toolchain.c_compiler()
    root = Path(directory).resolve()
    include, lib = root / "include", root / "lib64"
    lib.mkdir(parents=True, exist_ok=True)
    for path, text in headers().items():
        target = include / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="aclnn-emu-sdk-") as scratch:
        place = Path(scratch)
        _write_sources(place)
        _compile_all(compiler, place, include, [*_FLAGS, *flags])
        for built in place.glob("*.so"):
            shutil.copyfile(built, lib / f".{built.name}")
            (lib / f".{built.name}").chmod(0o755)
            (lib / f".{built.name}").replace(lib / built.name)
    (lib / "aclnn_emu.conf").write_text(config_text(), encoding="utf-8", errors="surrogateescape")
    (root / "set_env.sh").write_text(_SET_ENV, encoding="utf-8")
    # In lib/cmake: on some distributions CMake does not look into lib64.
    _write_cmake(root / "lib" / "cmake" / "aclnn_emu")
    return root


def _compile_all(compiler: list[str], place: Path, include: Path, flags: list[str]) -> None:
    common = [*compiler, *flags, f"-I{place}", f"-I{include}"]
    core = place / CORE
    # nodelete: an interpreter that has started cannot be taken out of a process again.
    toolchain.run(
        [
            *common,
            str(place / "core.c"),
            str(place / "table.c"),
            "-o",
            str(core),
            f"-Wl,-soname,{CORE}",
            "-Wl,-z,nodelete",
            "-pthread",
            "-ldl",
        ]
    )
    for library, part in LIBRARIES.items():
        source = place / f"{part or 'empty'}.c"
        names = [f"-Wl,-soname,{library}", "-Wl,-rpath,$ORIGIN", f"-L{place}"]
        toolchain.run([*common, str(source), "-o", str(place / library), *names, "-Wl,--no-as-needed", f"-l:{CORE}"])


def _write_cmake(place: Path) -> None:
    names = " ".join(name.removeprefix("lib").removesuffix(".so") for name in LIBRARIES)
    place.mkdir(parents=True, exist_ok=True)
    (place / "aclnn_emu-config.cmake").write_text(_CMAKE.replace("@LIBRARIES@", names), encoding="utf-8")
    (place / "aclnn_emu-config-version.cmake").write_text(_CMAKE_VERSION.replace("@VERSION@", __version__), encoding="utf-8")


def compile_flags(sdk: Path) -> list[str]:
    """What a compiler of a user's program needs: the headers, as system headers."""
    return ["-isystem", str(sdk / "include")]


def link_flags(sdk: Path) -> list[str]:
    """What a linker needs: the libraries, and where the program finds them when it runs."""
    lib = str(sdk / "lib64")
    return [f"-L{lib}", f"-Wl,-rpath,{lib}", "-lascendcl", "-lnnopbase", "-lopapi"]


def default(cache_dir: str | Path) -> Path:
    """The SDK that ``emu cxx`` and ``emu run`` use when none is named: in the cache directory, built when it is missing or stale.

    Raises as :func:`build`, and :class:`emu.sdk.toolchain.BuildError` where the cache directory cannot be written.
    """
    key = hashlib.sha256(repr((__version__, config_text())).encode())
    for path, text in headers().items():
        key.update(path.encode() + text.encode())
    for source in sorted(files("emu.sdk").joinpath("csrc").iterdir(), key=lambda f: f.name):
        key.update(source.read_bytes())
    for module in ("bootstrap.py", "build.py", "forward.py"):
        key.update(files("emu.sdk").joinpath(module).read_bytes())
    place = Path(cache_dir) / "sdk" / key.hexdigest()[:16]
    if not (place / "complete").is_file():
        # Built beside and moved: two commands may ask at once.
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            scratch = Path(tempfile.mkdtemp(prefix="new-", dir=place.parent))
        except OSError as error:
            advice = "set EMU_CACHE_DIR to a directory that can be written, or use an SDK of `emu sdk build DIR`"
            raise toolchain.BuildError(f"no SDK can be kept in {place.parent} ({error.strerror}): {advice}") from None
        try:
            build(scratch)
            (scratch / "complete").touch()
            scratch.chmod(0o755)
            if not place.exists():
                with contextlib.suppress(OSError):
                    scratch.rename(place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)
    return place
