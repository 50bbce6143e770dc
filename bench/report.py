"""What a run says: the table of targets on the terminal and the page docs/performance.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench import hampered, prose
from bench.targets import Target, targets
from bench.text import CALLS, name, number, size

MI = 1 << 20
NOTES = Path(__file__).resolve().parent / "NOTES.md"
Record = dict[str, Any]


def values(t: Target) -> str:
    """The values of a target, each with its label; one in doubt with a question mark."""
    known = [v for v in t.values if v.value is not None]
    shown = ((f"{v.label}: " if v.label else "") + number(v.value or 0.0, t.unit) + ("?" if v.doubtful else "") for v in known)
    return "; ".join(shown) or "–"


def goal(t: Target) -> str:
    """≥ 1.3, ≤ 16 MiB."""
    return ("≤ " if t.upper else "≥ ") + f"{t.goal:g}{t.unit}"


def text(result: Record) -> str:
    """The table of targets for a terminal."""
    all_targets = targets(result)
    out = ["", "targets (ratio > 1: the emulator is faster; T: threads; ?: PyTorch or the limit was hampered)"]
    out += [f"  {t.verdict:18s} {goal(t):10s} {t.cell}: {values(t)}" for t in all_targets]
    out += [f"  {prose.tally(all_targets)}", *prose.native_note(result, result["cells"])[:-1]]
    out += [*prose.missing(result), *hampered.sentences(result), prose.took(result)]
    return "\n".join(out)


def table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table, the first column left, the others right, and an empty line."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _gigas(r: Record, who: str) -> str:
    return number(r["elements"] / r["seconds"][who]["median"] / 1e9) if who in r["seconds"] else "–"


#: Records in which PyTorch or the limit was hampered, as `hampered.all_marked` gives them.
Slow = set[tuple[int, str]]


def _ratio(r: Record, who: str, slow: Slow, other: str = "") -> str:
    """With its quartiles; with a question mark where ``other``, or else ``who`` itself, was hampered."""
    if who not in r["ratio"]:
        return "–"
    return "{median:.2f} ({q1:.2f}–{q3:.2f})".format(**r["ratio"][who]) + ("?" if (id(r), other or who) in slow else "")


LENGTH_HEAD = ("elements", "emulator, G/s", "PyTorch, G/s", "limit, G/s", "ratio to PyTorch", "rounds")
CALL_HEAD = (
    "elements", "two phases and synchronisation, µs", "NumPy face, µs", "PyTorch out=, µs", "ratio, two phases", "ratio, NumPy face",
    "rounds",
)  # fmt: skip
CELL_HEAD = (
    "cell", "emulator, G/s", "quartiles", "emulator, GB/s", "PyTorch, G/s", "NumPy, G/s", "limit, G/s", "ratio to PyTorch", "of the limit",
    "rounds",
)  # fmt: skip


def cell_row(r: Record, slow: Slow) -> tuple[str, ...]:
    """A record as a row of the page: G elements per second, and ratios with their quartiles."""
    mine = r["seconds"]["emu"]
    quartiles = f"{number(r['elements'] / mine['q3'] / 1e9)}–{number(r['elements'] / mine['q1'] / 1e9)}"
    speeds = (_gigas(r, other) for other in ("torch", "numpy", "limit"))
    moved = number(r["bytes"] / mine["median"] / 1e9)
    return name(r), _gigas(r, "emu"), quartiles, moved, *speeds, _ratio(r, "torch", slow), _ratio(r, "limit", slow), _rounds(r)


def _rounds(r: Record) -> str:
    """Those of the emulator, and of whoever took part in fewer."""
    mine = r["seconds"]["emu"]["samples"]
    fewer = [f"{who} {s['samples']}" for who, s in r["seconds"].items() if s["samples"] < mine]
    return f"{mine}" + (f" ({', '.join(fewer)})" if fewer else "")


def _plain(r: Record) -> bool:
    return bool(r["layout"] == "contiguous" and r["values"] == "normal")


SECTIONS: tuple[tuple[str, Callable[[Record], bool]], ...] = (
    ("Backward, contiguous", lambda r: _plain(r) and r["operator"].endswith("Backward") and r["dtype"] != "INT8"),
    ("Strided inputs", lambda r: r["layout"] != "contiguous"),
    ("Uniform random bit patterns", lambda r: r["values"] == "bits"),
    ("Forward", lambda r: not r["operator"].endswith("Backward")),
    ("INT8, which PyTorch does not have", lambda r: r["dtype"] == "INT8"),
)


def page(result: Record, path: Path, plot: Path | None) -> None:
    """Write the page of a run."""
    path.write_text("\n".join(page_lines(result, path, plot)).rstrip() + "\n", encoding="utf-8")


def page_lines(result: Record, path: Path, plot: Path | None) -> Iterator[str]:
    """The page, line by line."""

    def link(to: Path) -> str:
        return os.path.relpath(to.resolve(), path.resolve().parent)

    yield from ("# Performance", "")
    yield from (*prose.summary(result), "")
    by = f" by `{result['command']}`" if "command" in result else ""
    yield f"Measured{by}, this page written from its figures; do not edit. What bounds them and what was tried:"
    yield from (f"[bench/NOTES.md]({link(NOTES)}).", "")
    if result.get("remark"):
        yield from (f"**{result['remark']}**", "")
    yield from (*prose.machine(result), "")
    yield from (*prose.method(result), *prose.native_note(result, result["cells"]))
    if plot is not None:
        yield from (f"![Speed by length, and ratios to PyTorch by cell]({link(plot)})", "")
    yield from _targets(targets(result))
    slow = hampered.all_marked(result)
    yield from _losses(result, slow)
    yield from (line for sentence in hampered.sentences(result) for line in (sentence, ""))
    for title, wanted in SECTIONS:
        some = [r for r in result["cells"] if wanted(r)]
        if some:
            yield from (f"## {title}", "", *prose.native_note(result, some))
            yield from table(CELL_HEAD, (cell_row(r, slow) for r in some))
    yield from _others(result, slow)
    yield from prose.lines(prose.FIELDS)


def _targets(all_targets: list[Target]) -> Iterator[str]:
    yield from ("## Targets", "", prose.tally(all_targets) + ".", *prose.lines(prose.TARGETS))
    yield from table(("cell", "target", "verdict", "values"), ((t.cell, goal(t), t.verdict, values(t)) for t in all_targets))


def _losses(result: Record, slow: Slow) -> Iterator[str]:
    slower, count = prose.losses(result)
    if not count:
        return
    yield f"PyTorch is faster in {slower} of {count} cells" + (":" if slower else ".")
    yield ""
    some = [r for r in result["cells"] if "torch" in r["ratio"] and r["ratio"]["torch"]["median"] < 1]
    yield from (f"- {name(r)}: {_ratio(r, 'torch', slow)}" for r in sorted(some, key=lambda r: float(r["ratio"]["torch"]["median"])))
    yield ""


def _others(result: Record, slow: Slow) -> Iterator[str]:
    if "calls" in result:
        yield from ("## What a caller sees: SeluBackward FLOAT, one call", "")
        yield from (*table(CALL_HEAD, (_call_row(r, slow) for r in result["calls"])), *prose.lines(prose.CALLS))
    if "lengths" in result:
        yield from ("## SeluBackward FLOAT by length", "", *prose.native_note(result, result["lengths"]))
        yield from table(LENGTH_HEAD, (_length_row(r, slow) for r in result["lengths"]))
    if result.get("scaling"):
        yield from _scaling(result["scaling"])
    if "latency" in result:
        yield from _latency(result["latency"])
    if "processes" in result:
        yield from _starting(result)
    if "memory" in result:
        yield from ("## Memory", "")
        rows = [
            (f"{r['operator']} {r['dtype']}, {size(r['elements'])}" + ("" if r["dim"] is None else f", dim {r['dim']}"),
             *(f"{r[k] / MI:.1f}" for k in ("baseline", "tensors", "extra")))
            for r in result["memory"]
        ]  # fmt: skip
        yield from table(("case", "at the first result, MiB", "tensors, MiB", "beyond both, MiB"), rows)
        yield from ("One call on two threads; the inputs are zeros.", "")


def _scaling(found: list[Record]) -> Iterator[str]:
    yield from ("## Two threads over one", "")
    rows = []
    for r in found:
        gains = (_ratio({"ratio": r["speedup"]}, who, set()) for who in ("emu", "limit"))
        rows.append((f"{r['label']}, {r['dtype']}, {size(r['elements'])}", f"{r['idle_s'] * 1e3:.0f} ms", *gains))
    yield from table(("cell", "idle before", "emulator, gain", "limit, gain"), rows)
    yield from prose.lines(prose.SCALING)


def _starting(result: Record) -> Iterator[str]:
    yield from ("## Starting", "")
    rows = [(n, *(f"{p[k]['median']:.3f} s" if k in p else "–" for k in ("wall", "inside"))) for n, p in result["processes"].items()]
    rows += [(f"C++: {k}", f"{v:.3f} s", "–") for k, v in _ending(result.get("latency", {}).get("c"), "_s")]
    yield from table(("process", "start to end", "inside"), rows)
    yield from prose.lines(prose.STARTING)


def _ending(figures: object, ending: str) -> list[tuple[str, float]]:
    """The C ABI's figures of one unit, named as text; none when it was not measured."""
    if not isinstance(figures, dict):
        return []
    return [(k.removesuffix(ending).replace("_", " "), v) for k, v in figures.items() if k.endswith(ending)]


def _length_row(r: Record, slow: Slow) -> tuple[str, ...]:
    return (
        f"{size(r['elements'])}, {r['threads']}T",
        *(_gigas(r, n) for n in ("emu", "torch", "limit")),
        _ratio(r, "torch", slow),
        _rounds(r),
    )


def _call_row(r: Record, slow: Slow) -> tuple[str, ...]:
    times = (f"{r['seconds'][n]['median'] * 1e6:.1f}" if n in r["seconds"] else "–" for n in ("emu", "array", "torch"))
    return f"{size(r['elements'])}, {r['threads']}T", *times, _ratio(r, "emu", slow, "torch"), _ratio(r, "array", slow, "torch"), _rounds(r)


#: What the C++ program measured.
C_CALLS = {
    "pipelined": "both phases, one synchronisation after 1000 calls", "synchronous": "both phases and a synchronisation",
    "empty": "aclrtGetDevice, a call with nothing to do", "phase1": "phase 1 alone, and giving its executor back",
    "torch": "PyTorch out= call from Python, one thread",
}  # fmt: skip


def _latency(found: Record) -> Iterator[str]:
    yield from (f"## Latency, {found['elements']} elements, SeluBackward FLOAT", "")
    rows = [(CALLS[n], *(f"{s[k] * 1e6:.2f}" for k in ("median", "q1", "q3")), f"{s['samples']}") for n, s in found["seconds"].items()]
    yield from table(("call", "median, µs", "lower quartile", "upper quartile", "rounds"), rows)
    yield from (f"Launch rate, Python face: {found['launches_per_s']:,} launches per second.", "")
    c = found["c"]
    if isinstance(c, dict):
        some = [(C_CALLS.get(k, k), f"{v:.2f}", f"{c[f'{k}_ratio']:.2f}" if f"{k}_ratio" in c else "–") for k, v in _ending(c, "_us")]
        yield from table(("call from C++", "least, µs", "in PyTorch calls"), some)
        yield from prose.lines(prose.FROM_C)
    yield from prose.lines(prose.LATENCY)
