"""Case files of the operator test tools: a TTK-style CSV or an ATK-style JSON gives shapes, dtypes and value ranges.

What is read, and nothing else:

- CSV, one case a line. ``testcase_name`` (optional), ``input_shapes`` (also ``tensor_view_shapes``,
  ``stc_input_shapes``, ``stc_ori_inputs``), ``input_dtypes`` (also ``tensor_dtypes``, ``stc_input_dtypes``),
  ``input_data_ranges`` (also ``tensor_value_ranges``), each a Python literal: ``((4,8),(4,8))``,
  ``('float16','float16')``, ``((-1,1),(-5,5))``. A single shape, dtype or range stands for every tensor.
- JSON, a list of cases, or an object with the list under ``cases``: ``{"name": …, "inputs": [{"name": "self", "dtype":
  "fp16", "shape": [4, 8], "range_values": [-1, 1]}, …]}``. Inputs whose ``type`` is not ``tensor`` are passed over. A
  ``name`` that is a parameter's, in C or in Python, says which it is; the others stand in the operator's order.

Other columns and keys have nothing to say about values and are ignored, except that a CSV without any known column is
refused. The tensors that the operator reads have one dtype.
Cases in another dtype than the study's are passed over. Values are uniform within their range.
"""

from __future__ import annotations

import ast
import csv
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite, prod
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from emu.study.errors import StudyError
from emu.study.inputs import MAX_ROW, Chain, Sampled, Source
from emu.study.numbers import BITS, dtype_named

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


class Case(NamedTuple):
    """One case: its name, its dtype, one shape and one range (low, high) for each tensor."""

    name: str
    dtype: str
    shapes: tuple[tuple[int, ...], ...]
    ranges: tuple[tuple[float, float], ...]


def _dtype(text: Any, where: str) -> str:
    found = dtype_named(str(text))
    if found not in BITS:
        raise StudyError(f"{where}: unknown dtype {_short(text)}; known: {', '.join(k.lower() for k in BITS)}, fp16 and the like")
    return found


def _one(dtypes: Iterable[Any], where: str) -> str:
    """The dtype of every tensor."""
    found = list(dict.fromkeys(_dtype(d, where) for d in dtypes))
    if len(found) > 1:
        raise StudyError(f"{where}: the tensors of these operators have one dtype, not {' and '.join(found)}")
    return found[0]


def _short(value: Any) -> str:
    """What stands in a file, as far as a message has room for it."""
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text)} characters)"


def _shape(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not all(isinstance(d, int) and d >= 0 for d in value):
        raise StudyError(f"{where}: a shape is a list of sizes, not {_short(value)}")
    return tuple(value)


def _range(value: Any, where: str) -> tuple[float, float]:
    try:
        # Text is no range, though "12" has two digits.
        low, high = (float(v) for v in (value if isinstance(value, list | tuple) else ()))
    except (TypeError, ValueError, OverflowError):
        raise StudyError(f"{where}: a range is two numbers, not {_short(value)}") from None
    if not (isfinite(low) and isfinite(high)):
        raise StudyError(f"{where}: the range [{low}, {high}] is not finite")
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
                    raise StudyError(f"{where}: column {column} is no Python literal: {_short(text)}") from None
                value = text
            if not (isinstance(value, list | tuple) or (column in _DTYPES and isinstance(value, str))):
                raise StudyError(f"{where}: column {column} needs a list, not {_short(text)}")
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
        if not columns:
            raise StudyError(f"{path} is empty: its first line names the columns, {_SHAPES[0]} and {_DTYPES[0]} among them")
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
                    _one(names, at_dtypes),
                    tuple(_shape(s, at_shapes) for s in _each(shapes, count, one, at_shapes)),
                    tuple(_range(r, at_ranges) for r in _each((-1, 1) if ranges is None else ranges, count, one_range, at_ranges)),
                )
            )
    return cases


def _tensors(found: list[dict[str, Any]], places: Mapping[str, int | None], count: int, where: str) -> list[dict[str, Any]]:
    """One tensor for each that the operator reads: those with a parameter's name in their places, the others in theirs
    by order. A tensor with the name of a parameter that is not read is passed over."""
    named = [(places.get(str(t.get("name")).lower(), -1), t) for t in found]
    slots: dict[int, dict[str, Any]] = {}
    for place, t in named:
        if place is not None and place >= 0 and slots.setdefault(place, t) is not t:
            raise StudyError(f"{where}: two tensors are named for one parameter, {slots[place]['name']} and {t['name']}")
    free = [i for i in range(count) if i not in slots]
    slots |= dict(zip(free, (t for place, t in named if place == -1), strict=False))
    if len(slots) < count:
        raise StudyError(f"{where}: {len(slots)} tensors, the operator reads {count}")
    return [slots[i] for i in range(count)]


def _json_cases(path: Path, count: int, places: Mapping[str, int | None]) -> list[Case]:
    found = json.loads(path.read_text(encoding="utf-8-sig"))
    entries = found.get("cases") if isinstance(found, dict) else found
    if not isinstance(entries, list):
        raise StudyError(f'{path}: a list of cases, or an object with "cases", is needed')
    cases = []
    for number, entry in enumerate(entries):
        where = f"{path} case {number}"
        if not isinstance(entry, dict) or not isinstance(entry.get("inputs"), list):
            raise StudyError(f'{where}: needs "inputs", a list of tensors')
        tensors = [t for t in entry["inputs"] if isinstance(t, dict) and t.get("type", "tensor") == "tensor"]
        tensors = _tensors(tensors, places, count, where)
        for t in tensors:
            for key in ("dtype", "shape"):
                if key not in t:
                    raise StudyError(f'{where}: a tensor without "{key}"')
        cases.append(
            Case(
                str(entry.get("name", f"case {number}")),
                _one((t["dtype"] for t in tensors), where),
                tuple(_shape(t["shape"], where) for t in tensors),
                tuple(_range(t.get("range_values", (-1, 1)), where) for t in tensors),
            )
        )
    return cases


def read(path: Path, count: int, places: Mapping[str, int | None]) -> list[Case]:
    """The cases of a file for an operator that reads `count` tensors; `places`: see `Problem.places`. Raises StudyError
    with the line and the fix."""
    try:
        return _csv_cases(path, count) if path.suffix == ".csv" else _json_cases(path, count, places)
    except StudyError:
        raise
    except FileNotFoundError:
        raise StudyError(f"no file {path}") from None
    except RecursionError:
        raise StudyError(f"{path} cannot be read: it is nested too deeply") from None
    except (OSError, ValueError, csv.Error) as error:
        raise StudyError(f"{path} cannot be read ({error})") from None


def read_cases(
    path: Path, dtype: str, names: Sequence[str], *, seed: int, rows: bool, places: Mapping[str, int | None] = MappingProxyType({})
) -> Source:
    """The cases in `dtype`, one source after the other; empty tensors are passed over."""
    all_cases = read(path, len(names), places)
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
        # Not seed + number: the second case of one seed would have the first one's values of the next.
        own = int(np.random.SeedSequence([seed, number]).generate_state(1, np.uint64)[0])
        parts.append(Sampled(dtype, specs, prod(shape), own, row))
    if not parts:
        known = ", ".join(sorted({c.dtype for c in all_cases})) or "none"
        raise StudyError(f"{path} has no case in {dtype} (its dtypes: {known}): choose --dtype")
    return Chain(parts)
