"""Case files of the operator test tools: a TTK-style CSV or an ATK-style JSON gives shapes, dtypes and value ranges.

What is read, and nothing else:

- CSV, one case a line. ``testcase_name`` (optional), ``input_shapes`` (also ``tensor_view_shapes``,
  ``stc_input_shapes``, ``stc_ori_inputs``), ``input_dtypes`` (also ``tensor_dtypes``, ``stc_input_dtypes``),
  ``input_data_ranges`` (also ``tensor_value_ranges``), each a Python literal: ``((4,8),(4,8))``,
  ``('float16','float16')``, ``((-1,1),(-5,5))``. A single shape, dtype or range stands for every tensor.
- JSON, a list of cases, or an object with the list under ``cases``: ``{"name": …, "inputs": [{"name": "self", "dtype":
  "fp16", "shape": [4, 8], "range_values": [-1, 1]}, …]}``. Inputs whose ``type`` is not ``tensor`` are passed over.

Other columns and keys have nothing to say about values and are ignored, except that a CSV without any known column is
refused. Cases in another dtype than the study's are passed over. Values are uniform within their range.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import Any, NamedTuple

from emu.study.errors import StudyError
from emu.study.inputs import MAX_ROW, Chain, Sampled, Source

_SHAPES = ("input_shapes", "tensor_view_shapes", "stc_input_shapes", "stc_ori_inputs")
_DTYPES = ("input_dtypes", "tensor_dtypes", "stc_input_dtypes")
_RANGES = ("input_data_ranges", "tensor_value_ranges")
HELP = {
    "FILE.npy,FILE.npy": "the tensors that the operator reads, in its order; rows lie along the last dimension",
    "FILE.npz": "the same under the parameters' names (with --against true: x instead of the forward result); read in "
    "pieces as .npy is; a compressed one is first unpacked into a temporary file",
    "FILE.csv": f"TTK-style cases: columns {' or '.join(_SHAPES)}; {' or '.join(_DTYPES)}; "
    f"and if wanted {' or '.join(_RANGES)}; testcase_name",
    "FILE.json": "ATK-style cases: [{name, inputs: [{name, dtype, shape, range_values}]}]",
}
_NAMES = {
    "float16": "FLOAT16", "fp16": "FLOAT16", "half": "FLOAT16", "float32": "FLOAT", "fp32": "FLOAT", "float": "FLOAT", "bfloat16": "BF16",
    "bf16": "BF16", "int8": "INT8", "int32": "INT32", "float64": "DOUBLE", "double": "DOUBLE",
}  # fmt: skip


class Case(NamedTuple):
    """One case: its name, its dtype, one shape and one range (low, high) for each tensor."""

    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[float, float], ...]


def _dtype(text: Any, where: str) -> str:
    found = _NAMES.get(str(text).lower()) or (str(text) if str(text) in _NAMES.values() else None)
    if found is None:
        raise StudyError(f"{where}: unknown dtype {text!r}; known: {', '.join(_NAMES)}")
    return found


def _shape(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(d, int) and d >= 0 for d in value):
        raise StudyError(f"{where}: a shape is a list of sizes, not {value!r}")
    return tuple(value)


def _range(value: Any, where: str) -> tuple[float, float]:
    try:
        # Text is no range, though "12" has two digits.
        low, high = (float(v) for v in (value if isinstance(value, list | tuple) else ()))
    except (TypeError, ValueError, OverflowError):
        raise StudyError(f"{where}: a range is two numbers, not {value!r}") from None
    if not low <= high:
        raise StudyError(f"{where}: the range [{low}, {high}] is empty")
    return low, high


def _literal(row: dict[str, str], columns: Sequence[str], where: str) -> tuple[Any, str]:
    """The value of the first of the columns that is filled, or None, and where it stands."""
    for column in columns:
        text = row.get(column)
        if text:
            try:
                value = ast.literal_eval(text)
            except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
                # A bare dtype name needs no quotes.
                if column not in _DTYPES:
                    raise StudyError(f"{where}: column {column} is no Python literal: {text!r}") from None
                value = text
            if not (isinstance(value, list | tuple) or (column in _DTYPES and isinstance(value, str))):
                raise StudyError(f"{where}: column {column} needs a list, not {text!r}")
            return value, f"{where} column {column}"
    return None, where


def _each(value: Any, count: int, single: bool, where: str) -> list[Any]:
    """One entry for each tensor; a single one stands for all."""
    entries = [value] * count if single else list(value)
    if len(entries) < count:
        raise StudyError(f"{where}: {len(entries)} entries for {count} tensors")
    return entries[:count]


def _csv_cases(path: Path, count: int) -> list[Case]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        columns = reader.fieldnames or []
        for wanted in (_SHAPES, _DTYPES):
            if not set(wanted) & set(columns):
                raise StudyError(f"{path} has columns {', '.join(columns) or 'none'}; needed: {' or '.join(wanted)}")
        cases = []
        for number, row in enumerate(reader, 2):
            where = f"{path} line {number}"
            (shapes, at_shapes), (dtypes, at_dtypes), (ranges, at_ranges) = (_literal(row, c, where) for c in (_SHAPES, _DTYPES, _RANGES))
            if shapes is None or dtypes is None:
                raise StudyError(f"{where}: no shapes or no dtypes")
            one = all(isinstance(d, int) for d in shapes)
            one_range = ranges is None or not any(isinstance(r, list | tuple) for r in ranges)
            names = _each(dtypes, count, isinstance(dtypes, str), at_dtypes)
            cases.append(
                Case(
                    row.get("testcase_name") or f"line {number}",
                    _dtype(names[0], at_dtypes),
                    tuple(_shape(s, at_shapes) for s in _each(shapes, count, one, at_shapes)),
                    tuple(_range(r, at_ranges) for r in _each((-1, 1) if ranges is None else ranges, count, one_range, at_ranges)),
                )
            )
    return cases


def _json_cases(path: Path, count: int) -> list[Case]:
    found = json.loads(path.read_text(encoding="utf-8"))
    entries = found.get("cases") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise StudyError(f'{path}: a list of cases, or an object with "cases", is needed')
    cases = []
    for number, entry in enumerate(entries):
        where = f"{path} case {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("inputs"), list):
            raise StudyError(f'{where}: needs "inputs", a list of tensors')
        tensors = [t for t in entry["inputs"] if isinstance(t, dict) and t.get("type", "tensor") == "tensor"][:count]
        if len(tensors) < count:
            raise StudyError(f"{where}: {len(tensors)} tensors, the operator reads {count}")
        for t in tensors:
            for key in ("dtype", "shape"):
                if key not in t:
                    raise StudyError(f'{where}: a tensor without "{key}"')
        cases.append(
            Case(
                str(entry.get("name", f"case {number}")),
                _dtype(tensors[0]["dtype"], where),
                tuple(_shape(t["shape"], where) for t in tensors),
                tuple(_range(t.get("range_values", (-1, 1)), where) for t in tensors),
            )
        )
    return cases


def read(path: Path, count: int) -> list[Case]:
    """The cases of a file for an operator that reads `count` tensors. Raises StudyError with the line and the fix."""
    try:
        return _csv_cases(path, count) if path.suffix == ".csv" else _json_cases(path, count)
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, csv.Error) as error:
        raise StudyError(f"{path} cannot be read ({error})") from None


def read_cases(path: Path, dtype: str, names: Sequence[str], *, seed: int, rows: bool) -> Source:
    """The cases in `dtype`, one source after the other; empty tensors are passed over."""
    all_cases = read(path, len(names))
    parts: list[Source] = []
    for number, case in enumerate(all_cases):
        shape = case.shapes[0]
        if case.dtype != dtype or prod(shape) == 0:
            continue
        if any(s != shape for s in case.shapes):
            raise StudyError(f"{path} {case.name}: the tensors of this operator have one shape, not {case.shapes}")
        row = (shape[-1] if shape else 1) if rows else None
        if row is not None and row > MAX_ROW:
            raise StudyError(f"{path} {case.name}: rows of {row} elements; a study takes at most {MAX_ROW}")
        specs = [f"uniform:{low!r},{high!r}" for low, high in case.ranges]
        parts.append(Sampled(dtype, specs, prod(shape), seed + number, row))
    if not parts:
        known = ", ".join(sorted({c.dtype for c in all_cases})) or "none"
        raise StudyError(f"{path} has no case in {dtype} (its dtypes: {known}): choose --dtype")
    return Chain(parts)
