"""What a run found: totals by variant, and each counterexample with the steps of both sides."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emu_kernels.reference.arith import Step
from emu_kernels.reference.formats import FORMATS, decimal

from emu.verify import judge
from emu.verify.catalog import BY_FLOW
from emu.verify.playback import MOST
from emu.verify.provider import Provider
from emu.verify.units import Example, Outcome, Unit

_DIGITS = {"FLOAT16": 4, "BF16": 4, "FLOAT": 8, "DOUBLE": 16} | {f"{u}INT{n}": n // 4 for u in ("", "U") for n in (8, 16, 32, 64)}
#: A sum is shown up to this many additions; of a longer one the first and the last few.
PARTIAL_SUMS, LAST_SUMS = 16, 4


def hexadecimal(dtype: str, bits: int) -> str:
    """The pattern with all its digits: 0x3c00; integers as two's complement."""
    digits = _DIGITS[dtype]
    return f"0x{bits & ((1 << (4 * digits)) - 1):0{digits}x}"


def readable(dtype: str, bits: int) -> str:
    """The pattern and its value: 0x3c00 (1.0); "true" or "false" of a comparison."""
    if dtype == "BOOL":
        return "true" if bits else "false"
    return f"{hexadecimal(dtype, bits)} ({decimal(FORMATS[dtype], bits) if dtype in FORMATS else bits})"


def _clearest(examples: list[Example]) -> list[Example]:
    """Up to three, the shortest rows first; of rows too long to follow at most one: each takes seconds to explain."""
    if examples and examples[0].last is not None:
        examples = sorted(examples, key=lambda e: len(e.inputs[0]))
        short = [e for e in examples if len(e.inputs[0]) <= MOST]
        examples = short or examples[:1]
    return examples[:3]


def totals(units: Sequence[Unit], outcomes: Sequence[Outcome]) -> list[dict[str, Any]]:
    """Add up the outcomes of each variant, in order of appearance; counterexamples keep their unit."""
    rows: dict[Any, dict[str, Any]] = {}
    for unit, outcome in zip(units, outcomes, strict=True):
        v = unit.v
        row = rows.setdefault(
            (unit.flow, v),
            {
                "operator": BY_FLOW[unit.flow].name,
                "dtype": v.dtype,
                "arch": v.arch,
                "overflow": "saturation" if v.saturate else "inf/nan",
                "numerics": v.numerics,
                "cases": 0,
                "mismatches": 0,
                "seconds": 0.0,
                "examples": [],
                "variant": v,
                "flow": unit.flow,
            },
        )
        row["cases"] += outcome.cases
        row["mismatches"] += outcome.mismatches
        row["seconds"] += outcome.seconds
        row["examples"] = _clearest(row["examples"] + list(outcome.examples))
    return sorted(rows.values(), key=lambda row: [op.flow for op in BY_FLOW.values()].index(row["flow"]))


def _relevant(steps: Sequence[Step], index: int) -> list[Step]:
    """Of a row's steps, those that are not of another element."""
    return [s for s in steps if "[" not in s.name or f"[{index}]" in s.name]


def _shown(steps: Sequence[Step]) -> list[list[str]]:
    """Steps as pairs of texts, with the middle of a long sum left out."""
    sums = [i for i, s in enumerate(steps) if s.name.startswith("sum: ")]
    left_out = set(sums[PARTIAL_SUMS:-LAST_SUMS])
    shown = []
    for i, s in enumerate(steps):
        if i not in left_out:
            shown.append([s.name, readable(s.format, s.bits)])
        elif i == sums[PARTIAL_SUMS]:
            shown.append([f"… {len(left_out)} more additions", ""])
    return shown


def explain(row: dict[str, Any], example: Example, provider: Provider) -> dict[str, Any]:
    """Describe one counterexample: inputs, both results and both sides' steps, as text.

    The reference's steps are all of its intermediate values; the kernel's are those of its source, or what the provider can observe
    from outside (see `NativeKernels.steps`), and its result last.
    """
    v, dtype = row["variant"], row["variant"].dtype
    _, trace = judge.scalar(row["flow"], v, example.inputs, example.last)
    made = getattr(provider, "steps", None)
    how, kernel = made(row["flow"], v, example) if made else ("kernel", [])
    found: dict[str, Any] = {
        "inputs": [readable(dtype, a if example.last is None else a[example.element]) for a in example.inputs],
        "kernel": readable(dtype, example.got),
        "reference": readable(dtype, example.want),
        "reference_steps": _shown(_relevant(trace, example.element)),
        "kernel_how": how,
        "kernel_steps": _shown([*kernel, Step("result", example.got, "", dtype)]),
    }
    if example.last is not None:
        found |= {"row": [[hexadecimal(dtype, b) for b in a] for a in example.inputs], "index": example.element}
        found["dim"] = "last" if example.last else "not last"
    return found


def as_json(rows: Sequence[dict[str, Any]], provider: Provider, **about: Any) -> dict[str, Any]:
    """The whole result as plain data; `about` (level, wall_seconds, ...) comes first."""
    results = []
    for row in rows:
        fields = {k: x for k, x in row.items() if k not in ("variant", "flow", "examples")}
        fields["wall_seconds"] = round(fields.pop("seconds"), 3)  # of its units, added up
        results.append({**fields, "examples": [explain(row, e, provider) for e in row["examples"]]})
    cases, wrong = (sum(row[k] for row in rows) for k in ("cases", "mismatches"))
    return {**about, "cases": cases, "mismatches": wrong, "results": results}


def explanation_lines(row: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """One counterexample as lines of text."""
    where = f"{row['operator']} {row['dtype']} {row['arch']} {row['overflow']} {row['numerics']}"
    if "dim" in found:
        where += f", row of {len(found['row'][0])}, dim {found['dim']}, element {found['index']}"
    lines = [where, f"  inputs     {', '.join(found['inputs'])}", "  reference, step by step"]
    width = max(len(name) for name, _ in found["reference_steps"] + found["kernel_steps"])
    lines += [f"    {name:<{width}}  {text}" for name, text in found["reference_steps"]]
    lines.append(f"  {found['kernel_how']}")
    return lines + [f"    {name:<{width}}  {text}" for name, text in found["kernel_steps"]]
