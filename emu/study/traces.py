"""The worst elements of a cell: inputs in decimal and hex, what came out, and the steps of the computation."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
from emu_kernels.reference.formats import FORMATS, decimal

from emu.study import numbers
from emu.study.inputs import Source
from emu.study.measure import Tally
from emu.study.numbers import Bits
from emu.study.problem import Problem
from emu.verify import judge

#: Longest row whose steps are listed.
_ROW = 4096


def hex_of(dtype: str, bits: int) -> str:
    width = np.dtype(numbers.BITS[dtype]).itemsize
    return f"0x{bits & ((1 << (8 * width)) - 1):0{2 * width}X}"


def text_of(dtype: str, bits: int) -> str:
    """The shortest decimal that names the value as a float64."""
    return decimal(FORMATS[dtype], bits) if dtype in FORMATS else str(bits)


def _named(dtype: str, name: str, bits: int) -> dict[str, str]:
    return {"name": name, "decimal": text_of(dtype, bits), "hex": hex_of(dtype, bits)}


def _steps(problem: Problem, row: tuple[Bits, ...], at: int) -> list[dict[str, str]]:
    if problem.rows and row[0].size > _ROW:
        return []
    try:
        if problem.rows:
            _, trace = judge.scalar(problem.flow, problem.variant, tuple([int(b) for b in a] for a in row), problem.last)
        else:
            _, trace = judge.scalar(problem.flow, problem.variant, tuple(int(a[0]) for a in row))
    except LookupError:
        return []  # a flow without a scalar reference
    # Of a row, what belongs to the whole row and to this element.
    kept = [s for s in trace if (m := re.match(r"\w+\[(\d+)\]", s.name)) is None or int(m.group(1)) == at]
    return [{"step": s.name, "decimal": s.decimal, "hex": hex_of(s.format, s.bits), "format": s.format} for s in kept]


def worst(
    problem: Problem, tally: Tally, source: Source, prepare: Callable[[tuple[Bits, ...]], tuple[Bits, ...]], shown: tuple[str, ...]
) -> tuple[dict[str, Any], ...]:
    """The records of `tally.worst`, complete. `prepare` makes the operator's inputs of raw ones; `shown` names them all:
    the operator's, and x where the last is a forward result."""
    starts = [source.start(i) for i in range(source.blocks)]
    out = []
    for w in tally.worst:
        i = bisect_right(starts, w["index"]) - 1
        raw = source.block(i)
        ins = prepare(raw)
        offset = w["index"] - starts[i]
        r = raw[0].shape[-1] if problem.rows else 1
        row = tuple(a.reshape(-1, r)[offset // r] for a in ins)
        at = offset % r
        here = [int(a[at]) for a in row]
        if ins[-1] is not raw[-1]:
            here.append(int(raw[-1].reshape(-1, r)[offset // r][at]))
        hi, lo = w["golden"]
        out.append(
            {
                "index": w["index"], "ulp": w["ulp"], "steps": w["steps"],
                "inputs": [_named(problem.dtype, n, b) for n, b in zip(shown, here, strict=False)],
                "result": text_of(problem.dtype, w["result"]), "result_hex": hex_of(problem.dtype, w["result"]),
                "golden": repr(hi), "golden_rest": repr(lo),
                "rounded": text_of(problem.dtype, w["rounded"]), "rounded_hex": hex_of(problem.dtype, w["rounded"]),
                "steps_of_computation": _steps(problem, row, at),
            }
        )  # fmt: skip
    return tuple(out)
