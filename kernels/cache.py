"""Machine code on disk: `<cache_dir>/<stamp>/<kernel>.<cpu>`.

The stamp is a hash over every source file of this package and the versions of the compiler, so an edit of any helper is
a miss (Numba's own cache checks only the file of the outermost function). `<cpu>` is a hash of what the code was
compiled for. Files are replaced atomically; a missing or damaged one is compiled again.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import shutil
import sys
import threading
import uuid
import zlib
from pathlib import Path
from typing import Any, NamedTuple

#: Stamps kept in a cache directory, the last used first: two checkouts may share one directory.
STAMPS_KEPT = 4
_STAMP_LENGTH = 20
#: Bytes of the checksum that a file starts with: machine code with a flipped bit may run and give wrong results.
_CRC = 4


class CacheState(NamedTuple):
    """path: the directory in use, or None. error: why nothing can be written there, or None."""

    path: str | None
    error: str | None


_lock = threading.Lock()
_directory: Path | None = None
_error: str | None = None


def source_stamp(package: Path | None = None) -> str:
    """Hash of the package's sources and of the compiler's versions."""
    import llvmlite  # type: ignore[import-untyped]
    import numba
    import numpy

    root = package or Path(__file__).resolve().parent
    digest = hashlib.sha256()
    digest.update(repr((sys.version, numba.__version__, llvmlite.__version__, numpy.__version__)).encode())
    for file in sorted([*root.glob("*.py"), *(root / "flows").glob("*.py")]):
        digest.update(file.relative_to(root).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:_STAMP_LENGTH]


_stamp: str | None = None


def set_cache_dir(path: str | None) -> None:
    """Keep compiled kernels under `path`; None = in memory only. Kernels built so far stay as they are.

    Creates nothing until the first kernel is compiled. A directory that cannot be written is no error: kernels are then
    compiled in memory and `cache_state().error` says why.
    """
    global _directory, _error
    with _lock:
        _error = None
        _directory = None if path is None else Path(path).expanduser()


def cache_state() -> CacheState:
    """Where kernels are kept, and why they are not."""
    with _lock:
        return CacheState(None if _directory is None else str(_directory), _error)


def _failed(error: OSError) -> None:
    global _error
    _error = f"{error.filename or _directory}: {error.strerror or error}"


def _prune(root: Path, current: Path) -> None:
    old = [d for d in root.iterdir() if d.is_dir() and len(d.name) == _STAMP_LENGTH and d != current]
    old.sort(key=lambda d: d.stat().st_mtime, reverse=True)
    for directory in old[STAMPS_KEPT - 1 :]:
        shutil.rmtree(directory, ignore_errors=True)


class Disk:
    """The part of Numba's cache interface that a CFunc uses, with one file per kernel and CPU."""

    def __init__(self, kernel: str) -> None:
        self.kernel = kernel
        self.root = _directory

    def _file(self, context: Any) -> Path | None:
        global _stamp
        if self.root is None:
            return None
        if _stamp is None:
            _stamp = source_stamp()
        cpu = hashlib.sha256(repr(context.codegen().magic_tuple()).encode()).hexdigest()[:12]
        return self.root / _stamp / f"{self.kernel}.{cpu}"

    def load_overload(self, sig: Any, context: Any) -> Any:
        from numba.core import compiler

        context.refresh()
        file = self._file(context)
        if file is None:
            return None
        # Whatever is wrong with the file, the kernel can be compiled: that is a miss, not an error.
        try:
            rebuild: Any = compiler.CompileResult._rebuild
            content = file.read_bytes()
            if zlib.crc32(content[_CRC:]).to_bytes(_CRC, "little") != content[:_CRC]:
                return None
            return rebuild(context, *pickle.loads(content[_CRC:]))
        except Exception:
            return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        from numba.core import serialize

        dumps: Any = serialize.dumps
        file = self._file(cres.target_context)
        if file is None or self.root is None:
            return
        part = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        try:
            new = not file.parent.exists()
            file.parent.mkdir(parents=True, exist_ok=True)
            content: bytes = dumps(cres._reduce())
            part.write_bytes(zlib.crc32(content).to_bytes(_CRC, "little") + content)
            part.replace(file)
            if new:
                _prune(self.root, file.parent)
            else:
                os.utime(file.parent)
        except OSError as error:
            _failed(error)
            with contextlib.suppress(OSError):
                part.unlink()
