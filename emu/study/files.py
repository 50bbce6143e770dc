"""The user's arrays on disk, read in pieces: nothing here holds a whole file in memory.

A .npy file and an uncompressed member of an .npz are memory-mapped in their place. A compressed member is unpacked into
an unnamed temporary file first, piece by piece, and mapped from there.
"""

from __future__ import annotations

import contextlib
import mmap
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Sequence
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


def _is_bf16(kind: np.dtype[Any]) -> bool:
    """Whether an array holds BF16: in memory, or as NumPy writes that, in raw items of two bytes."""
    return kind == np.dtype(ml_dtypes.bfloat16) or (kind.kind == "V" and kind.itemsize == 2 and kind.names is None)


def patterns(a: NDArray[Any], dtype: str, name: str) -> Bits:
    """Patterns of `dtype` from an array of either byte order: its own dtype as it is, other floats (BF16 among them)
    and integers rounded once, uint16 as patterns of a 16-bit dtype. An integer dtype takes what it holds exactly."""
    kind = np.dtype(numbers.BITS[dtype])
    if a.dtype.newbyteorder("=") == np.uint16:
        if kind.itemsize == 2 and numbers.is_float(dtype):
            bits: Bits = a.astype(np.uint16)
            return bits
        raise StudyError(f"{name} holds 16-bit patterns, but the study is in {dtype}: choose --dtype BF16 or FLOAT16")
    if _is_bf16(a.dtype):
        raw = np.ascontiguousarray(a).view("<u2" if a.dtype.kind == "V" else np.uint16)
        if dtype == "BF16":
            return raw.astype(np.uint16)
        a = (raw.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if a.dtype.kind not in "fiub":
        raise StudyError(f"{name} has dtype {a.dtype}: give an array of floats or integers")
    if not numbers.is_float(dtype) and not np.can_cast(a.dtype, kind):
        raise StudyError(
            f"{name} holds {a.dtype}, and a study in {dtype} converts nothing: "
            f"save it with array.astype(numpy.{kind}), or choose another --dtype"
        )
    return numbers.from_values(dtype, a.astype(np.float64))


def check_results(kind: np.dtype[Any], dtype: str, name: str) -> None:
    """Raises StudyError unless results saved as `kind` are those of a study in `dtype`, or the same as a wider float."""
    kind = kind.newbyteorder("=")
    if kind == np.uint16:
        return  # patterns: `patterns` says of what
    own: dict[str, Any] = {"FLOAT16": np.float16, "FLOAT": np.float32, "DOUBLE": np.float64, "INT8": np.int8, "INT32": np.int32}
    wide = kind.kind == "f" and numbers.is_float(dtype)
    if dtype == "BF16":
        good = _is_bf16(kind) or (wide and kind.itemsize > 2)
    else:
        good = kind == own[dtype] or (wide and kind.itemsize > np.dtype(own[dtype]).itemsize)
    if not good:
        held = "BF16" if _is_bf16(kind) else str(kind)
        why = ", narrower than" if wide and dtype != "BF16" else "; that is not"
        raise StudyError(f"{name} has dtype {held}{why} the study's {dtype}: choose the --dtype of the saved results")


def check_formats(specs: Iterable[str | None], dtypes: Sequence[str]) -> None:
    """Raises StudyError where a file of 16-bit patterns would be read as those of two formats."""
    if not {"FLOAT16", "BF16"} <= set(dtypes):
        return
    for name in (n for spec in specs if spec for n in str(spec).split(",")):
        if name.endswith((".npy", ".npz")) and np.uint16 in (kind.newbyteorder("=") for kind in _kinds(Path(name))):
            raise StudyError(f"{name} holds 16-bit patterns, of FLOAT16 or of BF16: say which with --dtype FLOAT16 or --dtype BF16")


def _kinds(path: Path) -> list[np.dtype[Any]]:
    """The dtypes in a file, from its headers."""
    if path.suffix == ".npy":
        return [load(path).dtype]
    with _archive(path) as archive:
        found = []
        for member in archive.namelist():
            with archive.open(member) as file:
                found.append(_header(file)[2])
        return found


def load(path: Path) -> NDArray[Any]:
    """A .npy file, memory-mapped. Raises StudyError for a missing, broken or non-numeric one."""
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except (OSError, ValueError, EOFError) as error:
        if not _begins_as_array(path):  # NumPy would speak of pickles
            raise StudyError(f"{path} is not a readable .npy file, whatever its name says: save an array with numpy.save") from None
        # NumPy writes the header of a masked array, and no more.
        raise StudyError(
            f"{path} is not a readable .npy file ({error}): save a plain array of numbers with numpy.save; a masked one has no file format"
        ) from None
    if not isinstance(found, np.ndarray):
        raise StudyError(f"{path} is an .npz archive: rename it to end in .npz")
    return found


def _begins_as_array(path: Path) -> bool:
    """Whether a file starts as a .npy or .npz file does; True where it cannot be opened."""
    try:
        with path.open("rb") as file:
            return file.read(6).startswith((b"\x93NUMPY", b"PK\x03\x04"))
    except OSError:
        return True


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


@contextlib.contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """An .npz archive; what goes wrong while it is read is a StudyError."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except StudyError:
        raise
    except Exception as error:
        raise StudyError(f"{path} is not a readable .npz file ({error}): save plain arrays of numbers with numpy.savez") from None


def _load_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    with _archive(path) as archive:
        keys = [name.removesuffix(".npy") for name in archive.namelist()]
        missing = [n for n in names if n not in keys]
        if missing:
            raise StudyError(
                f"{path} holds {', '.join(keys) or 'nothing'}, but the operator reads {', '.join(names)}: save it with these names"
            )
        arrays = [_member(archive, path, f"{n}.npy") for n in names]
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


def _header(file: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype of the array whose .npy header begins at the file's present place."""
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        raise ValueError(f"version {version} of the .npy format")
    shape, fortran, dtype = _HEADERS[version](file)
    if dtype.hasobject:
        raise ValueError("it holds Python objects")
    return shape, fortran, dtype


def _map(file: IO[bytes]) -> NDArray[Any]:
    """The array whose .npy header begins at the file's present place."""
    shape, fortran, dtype = _header(file)
    if 0 in shape:
        return np.empty(shape, dtype)
    return np.memmap(file, dtype, "r", file.tell(), shape, "F" if fortran else "C")
