"""The user's arrays on disk, read in pieces: nothing here holds a whole file in memory.

A .npy file and an uncompressed member of an .npz are memory-mapped in their place. A compressed member is unpacked into
an unnamed temporary file first, piece by piece, and mapped from there.
"""

from __future__ import annotations

import mmap
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from emu.study import numbers
from emu.study.errors import StudyError
from emu.study.numbers import Bits

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


class LazyArray:
    """An array of a file, flat in C order: patterns of `dtype`, converted piece by piece."""

    def __init__(self, array: NDArray[Any], dtype: str, name: str) -> None:
        self._array, self._dtype, self.name, self.size = array, dtype, name, array.size
        patterns(np.empty(0, array.dtype), dtype, name)  # a dtype that does not fit is refused here, before anything runs

    def read(self, start: int, stop: int) -> Bits:
        """Elements [start, stop) as patterns: an array of its own."""
        a = self._array
        # An array in another order would be copied whole by reshape; flat walks through it.
        piece = a.reshape(-1)[start:stop] if a.flags.c_contiguous else a.flat[start:stop]
        # A member of an archive starts at any byte.
        found = np.require(patterns(np.require(piece, requirements=("A",)), self._dtype, self.name), requirements=("O",))
        _forget(a)
        return found


def _forget(array: NDArray[Any]) -> None:
    """Give back the pages of a mapped file: they would count as this process's memory until the system needs them."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    if isinstance(base, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        base.madvise(mmap.MADV_DONTNEED)


def patterns(a: NDArray[Any], dtype: str, name: str) -> Bits:
    """Patterns of `dtype` from an array of either byte order: its own dtype as it is, other floats rounded once, uint16
    (and the raw 2-byte items that NumPy makes of a saved bfloat16) as patterns of a 16-bit dtype."""
    kind = np.dtype(numbers.BITS[dtype])
    if a.dtype.kind in "uV" and a.itemsize == 2 and a.dtype.names is None:
        if kind.itemsize == 2 and numbers.is_float(dtype):
            bits: Bits = a.astype(np.uint16) if a.dtype.kind == "u" else a.view(np.uint16)
            return bits
        raise StudyError(f"{name} holds 16-bit patterns, but the study is in {dtype}: choose --dtype BF16 or FLOAT16")
    if a.dtype == np.dtype(ml_dtypes.bfloat16):
        a = a.astype(np.float32)
    if a.dtype.kind not in "fiub":
        raise StudyError(f"{name} has dtype {a.dtype}: give an array of floats or integers")
    return numbers.from_values(dtype, a.astype(np.float64))


def load(path: Path) -> NDArray[Any]:
    """A .npy file, memory-mapped. Raises StudyError for a missing, broken or non-numeric one."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        # NumPy writes the header of a masked array, and no more.
        raise StudyError(
            f"{path} is not a readable .npy file ({error}): save a plain array of numbers with numpy.save; a masked one has no file format"
        ) from None
    if not isinstance(found, np.ndarray):
        raise StudyError(f"{path} is an .npz archive: rename it to end in .npz")
    return found


def load_inputs(spec: str, names: Sequence[str]) -> list[NDArray[Any]]:
    """The arrays of `grad.npy,result.npy` (in the operator's order) or of an .npz with the parameters' names."""
    paths = [Path(p) for p in spec.split(",")]
    if len(paths) == 1 and paths[0].suffix == ".npz":
        return _load_npz(paths[0], names)
    if len(paths) != len(names):
        example = ",".join(f"{n}.npy" for n in names)
        raise StudyError(
            f"the operator reads {len(names)} tensors ({', '.join(names)}): give --inputs {example}, or one .npz with these names"
        )
    arrays = [load(p) for p in paths]
    for path, array in zip(paths[1:], arrays[1:], strict=True):
        if array.shape != arrays[0].shape:
            raise StudyError(f"{path} has shape {array.shape}, {paths[0]} has {arrays[0].shape}: they must agree")
    return arrays


def _load_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    try:
        with zipfile.ZipFile(path) as archive:
            keys = [name.removesuffix(".npy") for name in archive.namelist()]
            missing = [n for n in names if n not in keys]
            if missing:
                raise StudyError(
                    f"{path} holds {', '.join(keys) or 'nothing'}, but the operator reads {', '.join(names)}: save it with these names"
                )
            arrays = [_member(archive, path, f"{n}.npy") for n in names]
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except StudyError:
        raise
    except Exception as error:
        raise StudyError(f"{path} is not a readable .npz file ({error}): save plain arrays of numbers with numpy.savez") from None
    if len({a.shape for a in arrays}) > 1:
        raise StudyError(f"{path}: the arrays have shapes {', '.join(str(a.shape) for a in arrays)}; they must agree")
    return arrays


def _member(archive: zipfile.ZipFile, path: Path, name: str) -> NDArray[Any]:
    """An array of an archive, mapped."""
    found = archive.getinfo(name)
    if found.compress_type != zipfile.ZIP_STORED or found.flag_bits & 1:
        with archive.open(found) as packed, tempfile.TemporaryFile() as file:
            _unpack(packed, file, path, found.file_size)
            return _map(file)  # the mapping keeps the nameless file
    with path.open("rb") as file:
        # The lengths of name and extra field in front of the data may differ from those in the archive's directory.
        file.seek(found.header_offset + 26)
        lengths = file.read(4)
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
        return _map(file)


def _unpack(packed: IO[bytes], file: IO[bytes], path: Path, size: int) -> None:
    """The bytes of a compressed member, piece by piece into a temporary file."""
    try:
        shutil.copyfileobj(packed, file, 1 << 20)
    except OSError as error:
        raise StudyError(
            f"{path} is compressed, and its {size} bytes cannot be unpacked in {tempfile.gettempdir()} ({error.strerror or error}): "
            "save it with numpy.savez, which does not compress, or let TMPDIR name a directory with more space"
        ) from None
    file.flush()  # what is mapped is the file, not what waits to be written
    file.seek(0)


def _map(file: IO[bytes]) -> NDArray[Any]:
    """The array whose .npy header begins at the file's present place."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the .npy format")
    shape, fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")
