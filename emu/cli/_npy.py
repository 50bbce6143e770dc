"""Reading and writing .npy files: the types that the format does not know, broken files, and no half-written output.

BF16 has no name in .npy: NumPy writes an ml_dtypes.bfloat16 array with the type ``V2``. That is read as BF16, and so is a uint16 file when
``--dtype bf16`` says so. The output is written as its input was.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from emu.cli._common import DTYPE_ALIASES, dtype_name, pick
from emu.cli._errors import CommandError, usage
from emu.ops import numpy_types
from emu.types import DataType

if TYPE_CHECKING:
    from rich.progress import Progress

    from emu.opdef.spec import Operator

#: Bytes between two steps of the progress bar.
CHUNK = 8 << 20

_BITS = (DataType.BF16, DataType.FLOAT16)


class Loaded(NamedTuple):
    """An input. ``bits``: the file holds the bits of a 16-bit format as uint16."""

    array: NDArray[Any]
    bits: bool


def data_type(text: str | None, option: str) -> DataType | None:
    """The aclDataType that an option names: ``bf16``, ``float16``, ``int8`` …; None when it was not given."""
    if text is None:
        return None
    known = {t.name.lower() for t in numpy_types()} | {alias.lower() for alias in DTYPE_ALIASES}
    name = pick(dtype_name(text).lower(), sorted(known), f"data type for {option}")
    return DataType[name.upper()]


def empty(shape: tuple[int, ...], dtype: DataType) -> NDArray[Any]:
    return np.empty(shape, numpy_types()[dtype])


def name(array: NDArray[Any]) -> str:
    """The aclDataType's name of an array."""
    return next(t.name for t, held in numpy_types().items() if held == array.dtype)


def read(path: Path, what: str, dtype: DataType | None, bar: Progress) -> Loaded:
    """The array in a .npy file, in native byte order; CommandError with the fix when there is none."""
    stored = _open(path, what)
    if stored.dtype.fields is not None or stored.dtype.hasobject or stored.dtype.kind in "USmM":
        raise CommandError(f"{path}: {stored.dtype} is no array of numbers; save {what} with numpy.save as one of {_known()}")
    plain = np.empty(stored.shape, stored.dtype.newbyteorder("="), order="F" if stored.flags.fnc else "C")
    source, target = stored.ravel(order="K"), plain.ravel(order="K")
    task = bar.add_task(f"reading {path.name}", total=stored.nbytes)
    step = max(1, CHUNK // max(1, stored.itemsize))
    for at in range(0, stored.size, step):
        target[at : at + step] = source[at : at + step]
        bar.advance(task, step * stored.itemsize)
    bar.remove_task(task)
    return _typed(plain, path, what, dtype)


def _open(path: Path, what: str) -> NDArray[Any]:
    try:
        found = np.load(path, mmap_mode="r", allow_pickle=False)
    except FileNotFoundError:
        raise CommandError(f"{path}: no such file; save {what} there with numpy.save") from None
    except IsADirectoryError:
        raise CommandError(f"{path} is a directory; give the .npy file for {what}") from None
    except PermissionError:
        raise CommandError(f"{path}: no permission to read it; check the file's mode") from None
    except (ValueError, EOFError, OSError, SyntaxError) as error:
        if not _begins_as_npy(path):
            raise CommandError(f"{path} is no .npy file, whatever its name says; save {what} with numpy.save") from None
        if "object" in str(error).lower():  # NumPy speaks of pickles and memory maps
            raise CommandError(f"{path}: dtype object is not supported; save {what} as one of {_known()}") from None
        raise CommandError(f"{path} is no complete .npy file ({error}); save {what} again with numpy.save") from None
    if not isinstance(found, np.ndarray):
        raise CommandError(f"{path} is an .npz archive; save the one array for {what} with numpy.save")
    return np.asarray(found)


def _begins_as_npy(path: Path) -> bool:
    """Whether the file starts as a .npy or .npz file does; a shorter one may have been cut off."""
    try:
        with path.open("rb") as file:
            first = file.read(6)
    except OSError:
        return True
    return any(sign.startswith(first) or first.startswith(sign) for sign in (b"\x93NUMPY", b"PK\x03\x04"))


def _typed(array: NDArray[Any], path: Path, what: str, dtype: DataType | None) -> Loaded:
    held = array.dtype
    if held == np.uint16:
        if dtype not in _BITS:
            raise usage(f"{path} holds uint16, which may be the bits of BF16 or FLOAT16: say which with --dtype bf16 or --dtype float16")
        return Loaded(array.view(numpy_types()[dtype]), True)
    if held.kind == "V" and held.itemsize == 2:
        array = array.view(ml_dtypes.bfloat16)
    elif held not in numpy_types().values():
        raise CommandError(f"{path} holds {held}, which has no aclDataType here; save {what} as one of {_known()}")
    if dtype is not None and array.dtype != numpy_types()[dtype]:
        raise usage(
            f"{path} holds {name(array)}, not {dtype.name}: --dtype says what a file holds and converts nothing; "
            f"leave it out, or convert the array before numpy.save"
        )
    return Loaded(array, False)


def _known() -> str:
    return ", ".join(t.name for t in numpy_types().values())


def hint(arrays: dict[str, Loaded], op: Operator, code: int) -> str:
    """What else to say when the operator refused: how to run it all the same, or that NumPy's default type is rarely meant."""
    if code == 561103 and op.refused:
        return " On the command line: --no-strict-products."
    if "DOUBLE" in op.dtypes or not any(a.array.dtype == np.float64 for a in arrays.values()):
        return ""
    return " NumPy makes float64 (DOUBLE) arrays by default: save the files as numpy.float32, with array.astype(numpy.float32)."


def target(path: Path) -> Path:
    """Where to write: the file behind links. CommandError when that cannot work, before anything is computed."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise CommandError(f"{path} is a directory; give -o the name of a .npy file")
    if not real.parent.is_dir():
        raise CommandError(f"{path}: there is no directory {real.parent}; create it or choose another -o")
    if not os.access(real if real.exists() and not real.is_file() else real.parent, os.W_OK):
        raise CommandError(f"{path}: no permission to write there; choose another -o")
    return real


def write(path: Path, array: NDArray[Any], bits: bool, bar: Progress) -> None:
    """Write a .npy file under another name and rename it: it is there complete, or not at all."""
    if bits and array.dtype in (numpy_types()[t] for t in _BITS):
        array = array.view(np.uint16)
    task = bar.add_task(f"writing {path.name}", total=array.nbytes)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe cannot be renamed onto
            with path.open("wb") as file:
                _save(file, array, bar, task)
            return
        mode = path.stat().st_mode & 0o777 if path.exists() else 0o666 & ~_umask()
        handle, part = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as file:
                _save(file, array, bar, task)
            os.chmod(part, mode)
            os.replace(part, path)
        except BaseException:
            with contextlib.suppress(OSError):
                os.unlink(part)
            raise
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}; nothing was written") from None


def _save(file: BinaryIO, array: NDArray[Any], bar: Progress, task: Any) -> None:
    array = np.asarray(array, order="A" if array.flags.fnc else "C")
    header = np.lib.format.header_data_from_array_1_0(array)
    if array.dtype == ml_dtypes.bfloat16:
        header["descr"] = "<V2"
    np.lib.format.write_array_header_1_0(file, header)
    data = array.ravel(order="K").view(np.uint8)
    for at in range(0, data.size, CHUNK):
        file.write(data[at : at + CHUNK].data)
        bar.advance(task, CHUNK)


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
