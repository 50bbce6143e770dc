"""The back end "cann": found libraries, the switch there and back, and the contract tests on the emulator's own C libraries."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import emu
from emu.cann.libraries import Libraries, LibraryError, find, places
from emu.status import AclError

from .conftest import CLEAN, ROOT, run


def test_places_in_order(tmp_path: Path) -> None:
    environment = {"ASCEND_HOME_PATH": "/home", "LD_LIBRARY_PATH": "/one::/two"}
    assert places("", environment) == (Path("/home/lib64"), Path("/one"), Path("/two"))
    assert places(tmp_path, environment) == (tmp_path, tmp_path / "lib64")


def test_found_by_each_way(sdk: Path) -> None:
    lib64 = sdk / "lib64"
    names = ["libascendcl.so", "libnnopbase.so", "libopapi.so"]
    for explicit, environment in ((sdk, {}), (lib64, {}), ("", {"ASCEND_HOME_PATH": str(sdk)}), ("", {"LD_LIBRARY_PATH": f"/x:{lib64}"})):
        assert [f.name for f in find(explicit, environment).files] == names


def test_split_names_are_enough(sdk: Path, tmp_path: Path) -> None:
    for name in ("libacl_rt.so", "libnnopbase.so", "libopapi_nn.so", "libopapi_math.so"):
        (tmp_path / name).symlink_to(sdk / "lib64" / name)
    assert [f.name for f in find(tmp_path).files] == ["libacl_rt.so", "libnnopbase.so", "libopapi_nn.so", "libopapi_math.so"]


def test_a_missing_library_says_where_it_was_looked_for(sdk: Path, tmp_path: Path) -> None:
    with pytest.raises(LibraryError, match=re.escape(f"no libascendcl.so or libacl_rt.so; looked in {tmp_path}, {tmp_path}/lib64")):
        find(tmp_path)
    with pytest.raises(LibraryError, match="ASCEND_HOME_PATH and LD_LIBRARY_PATH are not set"):
        find("", {})
    (tmp_path / "libascendcl.so").symlink_to(sdk / "lib64" / "libascendcl.so")
    with pytest.raises(LibraryError, match=r"no libnnopbase\.so"):
        find(tmp_path)


def test_a_file_that_is_no_library(tmp_path: Path) -> None:
    for name in ("libascendcl.so", "libnnopbase.so", "libopapi.so"):
        (tmp_path / name).write_text("no library")
    with pytest.raises(LibraryError, match=r"libascendcl\.so does not load"):
        Libraries(find(tmp_path))


def test_a_function_that_the_libraries_lack(sdk: Path) -> None:
    with pytest.raises(AclError, match=r"none of .*libascendcl.* has aclrtNoSuchThing") as caught:
        Libraries(find(sdk)).function("aclrtNoSuchThing")
    assert caught.value.code == 200001


def test_configure_refuses_and_changes_nothing(tmp_path: Path) -> None:
    from emu import acl

    before = acl.rt.malloc
    with pytest.raises(LibraryError):
        emu.configure(backend="cann", cann_path=str(tmp_path))
    assert emu.configure().backend == "emulator"
    assert acl.rt.malloc is before
    with pytest.raises(ValueError, match="did you mean 'cann'"):
        emu.configure(backend="can")


def test_there_and_back(sdk: Path) -> None:
    """In a process of its own: libraries stay loaded."""
    code = (
        "import sys, emu\n"
        "from emu import acl, aclnn\n"
        "own = acl.rt.malloc, acl.get_soc_name, aclnn.aclnnSelu\n"
        "emu.configure(backend='cann', cann_path=sys.argv[1])\n"
        "assert not any(a is b for a, b in zip(own, (acl.rt.malloc, acl.get_soc_name, aclnn.aclnnSelu)))\n"
        "assert acl.get_soc_name() == 'Ascend910B1' and acl.rt.set_device(0) == 0 and acl.rt.set_device(99) == 107001\n"
        "assert '99' in aclnn.aclGetRecentErrMsg() and acl.rt.reset_device(0) == 0\n"
        "emu.configure(backend='emulator')\n"
        "assert own == (acl.rt.malloc, acl.get_soc_name, aclnn.aclnnSelu)\n"
        "print('there and back')\n"
    )
    done = run(Path(sys.executable), "-c", code, str(sdk))
    assert (done.returncode, done.stdout) == (0, "there and back\n"), done.stderr


def test_environment_without_libraries_is_an_error() -> None:
    done = run(Path(sys.executable), "-c", "import emu; emu.acl.rt.set_device(0)", env={**CLEAN, "EMU_BACKEND": "cann"})
    assert done.returncode == 1
    assert "LibraryError: backend cann: no libascendcl.so" in done.stderr


def test_contract_tests_on_the_c_libraries(sdk: Path) -> None:
    """The tests of the two-phase contract and of the runtime, on the other back end."""
    env = {**os.environ, "EMU_BACKEND": "cann", "EMU_CANN_PATH": str(sdk)}
    line = [sys.executable, "-m", "pytest", "-p", "tests.sdk.cann_plugin", "-p", "no:cacheprovider", "-rs", "-x", "tests/contract"]
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    passed = re.search(r"(\d+) passed", done.stdout)
    assert passed is not None
    assert int(passed[1]) > 300
