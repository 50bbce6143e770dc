"""Kernels by name: the only place that calls Numba's compiler.

A kernel is compiled when it is first asked for and kept for the life of the process. Its machine code is cached on disk
as `<cache_dir>/<stamp>/<kernel>.<cpu>`: the stamp is a hash over every source file of this package and the versions of
the compiler, so an edit of any helper is a miss, and the CPU is a hash of what the code was compiled for. Numba's own
cache checks only the file of the outermost function.
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
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from .variant import Kernel, Variant

if TYPE_CHECKING:
    from collections.abc import Callable

#: Stamps kept in a cache directory, newest use first: two checkouts may share one directory.
STAMPS_KEPT = 4

#: fastmath stays off: every operation rounds once. _nrt: kernels own no Python memory.
OPTIONS = {"nopython": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "fastmath": False}


class CacheState(NamedTuple):
    """path: directory in use or None. error: why nothing could be written, or None."""

    path: str | None
    error: str | None


_lock = threading.RLock()
_kernels: dict[tuple[Any, ...], Kernel] = {}
_built: dict[str, Kernel] = {}
_stats: dict[str, str] = {}
_directory: Path | None = None
_error: str | None = None


def source_stamp(package: Path | None = None) -> str:
    """Hash of the package's sources and of the compiler's versions."""
    import llvmlite
    import numba
    import numpy

    root = package or Path(__file__).resolve().parent
    digest = hashlib.sha256()
    versions = (sys.version, numba.__version__, llvmlite.__version__, numpy.__version__)
    digest.update(repr(versions).encode())
    for file in sorted([*root.glob("*.py"), *(root / "flows").glob("*.py")]):
        digest.update(str(file.relative_to(root)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


def set_cache_dir(path: str | None) -> None:
    """Where compiled kernels are kept on disk; None = in memory only. Kernels built so far stay as they are."""
    global _directory, _error
    with _lock:
        _error = None
        _directory = None
        if path is None:
            return
        try:
            root = Path(path).expanduser()
            directory = root / source_stamp()
            directory.mkdir(parents=True, exist_ok=True)
            os.utime(directory)
            (probe := directory / f"probe.{uuid.uuid4().hex}").write_bytes(b"")
            probe.unlink()
            _prune(root, directory)
            _directory = directory
        except OSError as error:
            _error = f"{path}: {error.strerror or error}"


def cache_state() -> CacheState:
    """Where kernels are cached. An unwritable directory is not an error: kernels are then compiled in memory."""
    return CacheState(None if _directory is None else str(_directory), _error)


def stats() -> dict[str, str]:
    """Kernel name -> "compiled" or "cache", for the kernels of this process."""
    with _lock:
        return dict(_stats)


def _prune(root: Path, current: Path) -> None:
    stamps = [d for d in root.iterdir() if d.is_dir() and len(d.name) == 20 and d != current]
    stamps.sort(key=lambda d: d.stat().st_mtime, reverse=True)
    for old in stamps[STAMPS_KEPT - 1 :]:
        shutil.rmtree(old, ignore_errors=True)


class _Disk:
    """The part of Numba's cache interface that CFunc.compile uses: one file per kernel and CPU."""

    def __init__(self, directory: Path | None, name: str) -> None:
        self.directory = directory
        self.name = name

    def _file(self, context: Any) -> Path | None:
        if self.directory is None:
            return None
        cpu = hashlib.sha256(repr(context.codegen().magic_tuple()).encode()).hexdigest()[:12]
        return self.directory / f"{self.name}.{cpu}"

    def load_overload(self, sig: Any, context: Any) -> Any:
        from numba.core.compiler import CompileResult

        context.refresh()
        file = self._file(context)
        if file is None:
            return None
        # A missing, truncated or foreign file is a miss: the kernel is compiled again and the file replaced.
        try:
            return CompileResult._rebuild(context, *pickle.loads(file.read_bytes()))
        except Exception:
            return None

    def save_overload(self, sig: Any, cres: Any) -> None:
        global _error
        from numba.core.serialize import dumps

        file = self._file(cres.target_context)
        if file is None:
            return
        part = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
        try:
            part.write_bytes(dumps(cres._reduce()))
            part.replace(file)
        except OSError as error:
            _error = f"{file.parent}: {error.strerror or error}"
            with contextlib.suppress(OSError):
                part.unlink()


def _compile(name: str, pyfunc: Callable[..., Any]) -> tuple[int, Any]:
    from numba import types
    from numba.core.ccallback import CFunc

    pyfunc.__name__ = pyfunc.__qualname__ = name
    signature = ((types.CPointer(types.int64), types.int64, types.int64), types.void)
    function = CFunc(pyfunc, signature, locals={}, options=dict(OPTIONS))
    function._cache = _Disk(_directory, name)
    function.compile()
    _stats[name] = "cache" if function.cache_hits else "compiled"
    return function.address, function


def elementwise(flow: str, v: Variant) -> Kernel:
    """out[i] = flow(in0[i], in1[i], ...). args = [out, in0, in1, ..., *aux], range = elements."""
    lookup = ("elementwise", flow, v)
    kernel = _kernels.get(lookup)
    if kernel is not None:
        return kernel
    with _lock:
        from . import loops
        from .flows import selu
        from .formats import FORMATS

        if flow != "selu_backward" or v.dtype != "FLOAT":
            raise LookupError(flow)
        key = selu.backward_key(v)
        name = "_".join([flow, *map(str, key)])
        if name not in _built:
            size = FORMATS[v.dtype].size
            pyfunc = loops.elementwise(name, 2, selu.backward_tile(key), size, (size, size))
            address, keep = _compile(name, pyfunc)
            _built[name] = Kernel(name, address, (), 4096, keep)
        kernel = _kernels[lookup] = _built[name]
        return kernel
