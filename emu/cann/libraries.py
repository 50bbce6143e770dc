"""Finding and loading the real libraries. No silent fallback: what is missing is said, with every place that was looked at."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from emu.status import AclError, Status

#: Of each row one name is enough; the row after a comma-joined name are the split names of newer releases.
_WANTED: tuple[tuple[tuple[str, ...], ...], ...] = (
    (("libascendcl.so",), ("libacl_rt.so",)),
    (("libnnopbase.so",),),
    (("libopapi.so",), ("libopapi_nn.so", "libopapi_math.so"), ("libopapi_nn.so",)),
)


class LibraryError(ImportError):
    """A library of the back end "cann" is missing or does not load; the text says where it was looked for."""


class Found(NamedTuple):
    """The files to load, in order, and the directories that were looked at."""

    files: tuple[Path, ...]
    places: tuple[Path, ...]


def places(explicit: str | os.PathLike[str] = "", environment: Mapping[str, str] = os.environ) -> tuple[Path, ...]:
    """Directories to look in: the explicit path alone when there is one, else ASCEND_HOME_PATH's, then LD_LIBRARY_PATH's."""
    if os.fspath(explicit):
        root = Path(explicit).expanduser()
        return (root, root / "lib64")
    homes = [environment.get("ASCEND_HOME_PATH"), environment.get("ASCEND_TOOLKIT_HOME")]
    found = [Path(home) / "lib64" for home in homes if home]
    found += [Path(p) for p in environment.get("LD_LIBRARY_PATH", "").split(":") if p]
    return tuple(dict.fromkeys(found))


def find(explicit: str | os.PathLike[str] = "", environment: Mapping[str, str] = os.environ) -> Found:
    """The libraries' files. LibraryError when one is in no place."""
    looked = places(explicit, environment)
    files: list[Path] = []
    for row in _WANTED:
        for names in row:
            here = [next((p / name for p in looked if (p / name).is_file()), None) for name in names]
            if all(here):
                files += [path for path in here if path is not None]
                break
        else:
            wanted = " or ".join(" with ".join(names) for names in row)
            where = ", ".join(map(str, looked)) or "nowhere: ASCEND_HOME_PATH and LD_LIBRARY_PATH are not set"
            raise LibraryError(
                f"backend cann: no {wanted}; looked in {where}. Set ASCEND_HOME_PATH (source CANN's set_env.sh), LD_LIBRARY_PATH or "
                "EMU_CANN_PATH, or emu.configure(cann_path=...)."
            )
    return Found(tuple(files), looked)


class Libraries:
    """Loaded libraries; a function is looked for in each of them in order."""

    def __init__(self, found: Found) -> None:
        self.files = found.files
        self._handles: list[ctypes.CDLL] = []
        for path in found.files:
            try:
                self._handles.append(ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL))
            except OSError as error:
                raise LibraryError(f"backend cann: {path} does not load: {error}") from None

    def function(self, name: str) -> Any:
        """The C function, untyped. AclError 200001 when no library has it."""
        for handle in self._handles:
            try:
                return handle[name]
            except AttributeError:
                continue
        listed = ", ".join(map(str, self.files))
        raise AclError(Status.ACL_ERROR_API_NOT_SUPPORT, f"backend cann: none of {listed} has {name}")
