"""Where a study's inputs come from: distributions, every pattern, special values, the user's arrays, case files.

A source is cut into blocks that do not depend on each other, so that blocks can run in any order, on any thread, and a
study can be taken up again.
"""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from emu.study import numbers
from emu.study.distributions import sampler, special_values
from emu.study.errors import StudyError
from emu.study.numbers import Bits

#: Elements of a block: its float64 temporaries stay within a few MiB.
BLOCK = 1 << 16
MAX_ROW = 1 << 20


class Source(Protocol):
    """Blocks of inputs in the order of the operator's tensors: flat arrays, or (rows, r) for an operator of rows."""

    size: int
    blocks: int

    def block(self, i: int) -> tuple[Bits, ...]:
        """The inputs of block i, as patterns of the dtype."""
        ...

    def start(self, i: int) -> int:
        """The number of block i's first element."""
        ...


class Sampled:
    """Random inputs. Input k of block i comes from a generator seeded with (seed, i, k)."""

    def __init__(self, dtype: str, specs: Sequence[str], n: int, seed: int, row: int | None) -> None:
        self._draw = [sampler(s, dtype) for s in specs]
        self._seed, self._row = seed, row
        if row is None:
            self._unit, self.size = BLOCK, n
        else:
            rows = max(1, BLOCK // row)
            self._unit, self.size = rows * row, -(-n // row) * row
        self.blocks = -(-self.size // self._unit)

    def block(self, i: int) -> tuple[Bits, ...]:
        n = min(self._unit, self.size - i * self._unit)
        found = tuple(d(np.random.Generator(np.random.PCG64([self._seed, i, k])), n) for k, d in enumerate(self._draw))
        return found if self._row is None else tuple(a.reshape(-1, self._row) for a in found)

    def start(self, i: int) -> int:
        return i * self._unit


class Exhaustive:
    """Every pattern of the last input once; the other input, if any, from a distribution."""

    def __init__(self, dtype: str, grad: str | None, seed: int) -> None:
        kind = np.dtype(numbers.BITS[dtype])
        if kind.itemsize > 2:
            raise StudyError(f"inputs exhaustive is for 8 and 16-bit dtypes, not {dtype}: try --inputs binade, bits or uniform:-20,20")
        count = 1 << (8 * kind.itemsize)
        self._all = np.arange(count, dtype=np.int64).astype(np.dtype(f"u{kind.itemsize}")).view(kind)
        self._grad = None if grad is None else sampler(grad, dtype)
        self._seed, self.size = seed, int(count)
        self._unit: int = min(self.size, BLOCK // 8)
        self.blocks = count // self._unit

    def block(self, i: int) -> tuple[Bits, ...]:
        x = self._all[i * self._unit : (i + 1) * self._unit]
        if self._grad is None:
            return (x,)
        return self._grad(np.random.Generator(np.random.PCG64([self._seed, i, 0])), x.size), x

    def start(self, i: int) -> int:
        return i * self._unit


class Arrays:
    """Given arrays, in blocks; `row` is their last dimension for an operator of rows."""

    def __init__(self, arrays: Sequence[Bits], row: int | None) -> None:
        self._arrays = arrays if row is None else [a.reshape(-1, row) for a in arrays]
        first = self._arrays[0]
        self._rows = BLOCK if row is None else max(1, BLOCK // row)
        self.size, self.blocks = first.size, -(-first.shape[0] // self._rows)

    def block(self, i: int) -> tuple[Bits, ...]:
        return tuple(np.ascontiguousarray(a[i * self._rows : (i + 1) * self._rows]) for a in self._arrays)

    def start(self, i: int) -> int:
        return i * self._rows * int(self._arrays[0].size // self._arrays[0].shape[0])


class Chain:
    """Sources one after the other: the cases of a case file."""

    def __init__(self, parts: Sequence[Source]) -> None:
        self._parts = parts
        self.size, self.blocks = sum(p.size for p in parts), sum(p.blocks for p in parts)

    def block(self, i: int) -> tuple[Bits, ...]:
        part, i, _ = self._find(i)
        return part.block(i)

    def start(self, i: int) -> int:
        part, i, before = self._find(i)
        return before + part.start(i)

    def _find(self, i: int) -> tuple[Source, int, int]:
        before = 0
        for part in self._parts:
            if i < part.blocks:
                return part, i, before
            i -= part.blocks
            before += part.size
        raise IndexError(i)


class LazyArray:
    """Patterns of a memory-mapped file, converted block by block."""

    def __init__(self, array: NDArray[Any], dtype: str, name: str) -> None:
        self._array, self._dtype, self.name = array, dtype, name
        self.shape, self.size = array.shape, array.size

    def reshape(self, *shape: int) -> LazyArray:
        return LazyArray(self._array.reshape(*shape), self._dtype, self.name)

    def __getitem__(self, key: Any) -> Bits:
        # A member of an archive starts at any byte.
        return patterns(np.require(self._array[key], requirements=("C", "A")), self._dtype, self.name)


def patterns(a: NDArray[Any], dtype: str, name: str) -> Bits:
    """Patterns of `dtype` from an array: its own dtype as it is, other floats rounded once, uint16 (and the raw 2-byte
    items that NumPy makes of a saved bfloat16) as patterns of a 16-bit dtype."""
    kind = np.dtype(numbers.BITS[dtype])
    if a.dtype == np.uint16 or (a.dtype.kind == "V" and a.itemsize == 2):
        if kind.itemsize == 2 and numbers.is_float(dtype):
            bits: Bits = a.view(np.uint16)
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
        raise StudyError(f"{path} is not a readable .npy file ({error}): save it with numpy.save") from None
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


def _map_member(path: Path, name: str) -> NDArray[Any] | None:
    """An array of an .npz, memory-mapped in its place; None for a compressed one and what else must be read whole."""
    with zipfile.ZipFile(path) as archive, path.open("rb") as file:
        found = archive.NameToInfo.get(f"{name}.npy")
        if found is None or found.compress_type != zipfile.ZIP_STORED or found.flag_bits & 1:
            return None
        # The lengths of name and extra field in front of the data may differ from those in the archive's directory.
        file.seek(found.header_offset + 26)
        lengths = file.read(4)
        file.seek(int.from_bytes(lengths[:2], "little") + int.from_bytes(lengths[2:], "little"), 1)
        read = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        version = np.lib.format.read_magic(file)
        if version not in read:
            return None
        shape, fortran, dtype = read[version](file)
        if dtype.hasobject or 0 in shape:
            return None
        return np.memmap(path, dtype, "r", file.tell(), shape, "F" if fortran else "C")


def _load_npz(path: Path, names: Sequence[str]) -> list[NDArray[Any]]:
    try:
        with np.load(path, allow_pickle=False) as archive:
            keys = list(archive.keys())
            missing = [n for n in names if n not in keys]
            if missing:
                raise StudyError(
                    f"{path} holds {', '.join(keys) or 'nothing'}, but the operator reads {', '.join(names)}: save it with these names"
                )
            mapped = [_map_member(path, n) for n in names]
            arrays = [np.asarray(archive[n]) if a is None else a for n, a in zip(names, mapped, strict=True)]
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except StudyError:
        raise
    except Exception as error:
        raise StudyError(f"{path} is not a readable .npz file ({error}): save it with numpy.savez") from None
    if len({a.shape for a in arrays}) > 1:
        raise StudyError(f"{path}: the arrays have shapes {', '.join(str(a.shape) for a in arrays)}; they must agree")
    return arrays


def make(spec: str, dtype: str, names: Sequence[str], *, grad: str | None, n: int, seed: int, row: int | None) -> Source:
    """The source of `--inputs SPEC` for an operator that reads `names`; `row` is the row length of an operator of rows.

    `grad` is the distribution of the first of two inputs; None: as the last one (as 1 when exhaustive).
    """
    first = spec.split(",")[0]
    if first.endswith((".csv", ".json")):
        from emu.study.cases import read_cases

        return read_cases(Path(spec), dtype, names, seed=seed, rows=row is not None)
    if first.endswith((".npy", ".npz")):
        return from_arrays(load_inputs(spec, names), dtype, names, row is not None, spec)
    two = len(names) == 2
    if spec == "exhaustive":
        if row is not None:
            raise StudyError("inputs exhaustive is for elementwise operators: a row has too many patterns; try --inputs l1")
        return Exhaustive(dtype, (grad or "1") if two else None, seed)
    if spec == "specials":
        return _specials(dtype, len(names), row)
    return Sampled(dtype, [grad or spec, spec] if two else [spec], n, seed, row)


def from_arrays(arrays: Sequence[NDArray[Any]], dtype: str, names: Sequence[str], rows: bool, label: str) -> Source:
    if arrays[0].size == 0:
        raise StudyError(f"{label} holds no element: there is nothing to study")
    row = None
    if rows:
        row = arrays[0].shape[-1] if arrays[0].ndim else 1
        if row > MAX_ROW:
            raise StudyError(f"{label} has rows of {row} elements; a study takes at most {MAX_ROW}")
    flat = [LazyArray(a.reshape(-1), dtype, f"{label} ({n})") for a, n in zip(arrays, names, strict=True)]
    for array in flat:
        array[:0]  # a dtype that does not fit is refused here, before anything runs
    return Arrays(flat, row)  # type: ignore[arg-type]


def _specials(dtype: str, inputs: int, row: int | None) -> Source:
    s = special_values(dtype)
    if row is None:
        grid = np.meshgrid(*[s] * inputs, indexing="ij")
        return Arrays([np.ascontiguousarray(g).reshape(-1) for g in grid], None)
    # Rows: each special alone among ordinary values, each pair of specials, and rows of one special.
    ordinary = numbers.from_values(dtype, np.linspace(-2.0, 2.0, row))
    lines = [np.concatenate([[v], ordinary[1:]]) for v in s] + [np.full(row, v) for v in s]
    lines += [np.concatenate([[v, w], ordinary[2:]])[:row] for v in s for w in s]
    table = np.stack(lines).astype(s.dtype)
    plain = np.broadcast_to(ordinary, table.shape)
    if inputs == 1:
        return Arrays([table.reshape(-1)], row)
    return Chain([Arrays([np.ascontiguousarray(a).reshape(-1), np.ascontiguousarray(b).reshape(-1)], row)
                  for a, b in ((table, plain), (plain, table), (table, table))])  # fmt: skip
