"""What a run says: the table of targets on the terminal and the page docs/performance.md."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from bench.latency import NAMES
from bench.targets import Target, targets
from bench.text import number, size, special

MI = 1 << 20
Record = dict[str, Any]


def values(t: Target) -> str:
    """The values of a target, each with its label."""
    shown = ((f"{label}: " if label else "") + number(v, t.unit) for label, v in t.values if v is not None)
    return "; ".join(shown) or "–"


def goal(t: Target) -> str:
    """≥ 1.3, ≤ 16 MiB."""
    return ("≤ " if t.upper else "≥ ") + f"{t.goal:g}{t.unit}"


def missing(result: Record) -> list[str]:
    """What this run could not measure, in sentences."""
    found = []
    if result["machine"]["packages"].get("torch") is None:
        found.append("PyTorch is not installed: its columns and every ratio to it are missing (pip install torch==2.13.0, a CPU build).")
    c = result.get("latency", {}).get("c")
    if isinstance(c, str):
        found.append(f"The C ABI was not measured: {c}.")
    if result["machine"]["cpus"] < 2:
        found.append("One CPU: nothing on two threads.")
    if result["amount"] != "full":
        found.append(f"This is a {result['amount']} run: cells are left out and rounds are few.")
    share = result.get("huge_share")
    if share is not None and share < 0.95:
        found.append(f"The system gave 2 MiB pages for {share:.0%} of the tensors' memory only, the same for every competitor.")
    return found


def hampered(result: Record) -> list[str]:
    """The cells in which a second thread made PyTorch slower, in a sentence: its threads wait for each other without leaving the CPU."""

    def seconds(threads: int) -> dict[str, float]:
        timed = (r for r in result["cells"] if r["threads"] == threads and "torch" in r["seconds"])
        return {", ".join([r["label"], r["dtype"], size(r["elements"]), *special(r)]): r["seconds"]["torch"]["median"] for r in timed}

    one = seconds(1)
    found = [f"{name} ({number(s / one[name])} times the time)" for name, s in seconds(2).items() if s > one.get(name, s)]
    if not found:
        return []
    return [f"PyTorch on two threads was slower than on one, as when another process is busy: {'; '.join(found)}."]


def text(result: Record) -> str:
    """The table of targets for a terminal."""
    all_targets = targets(result)
    out = ["", "targets (ratio > 1: the emulator is faster; T: threads)"]
    out += [f"  {t.verdict:18s} {goal(t):10s} {t.cell}: {values(t)}" for t in all_targets]
    out += [f"  {tally(all_targets)}", *missing(result), *hampered(result), _took(result)]
    return "\n".join(out)


def tally(all_targets: list[Target]) -> str:
    """How many were met."""
    met = [t.met for t in all_targets]
    return f"{met.count(True)} met, {met.count(False)} missed, {met.count(None)} not measured"


def _took(result: Record) -> str:
    load = result["load"]
    return f"The run took {result['duration_s']:.0f} s; load average {load['before']:.1f} before it, {load['after']:.1f} after."


def table(head: tuple[str, ...], rows: Iterable[Iterable[str]]) -> list[str]:
    """A Markdown table, the first column left, the others right, and an empty line."""
    lines = ["| " + " | ".join(head) + " |", "|---|" + "---:|" * (len(head) - 1)]
    return [*lines, *("| " + " | ".join(row) + " |" for row in rows), ""]


def _gigas(r: Record, name: str) -> str:
    return number(r["elements"] / r["seconds"][name]["median"] / 1e9) if name in r["seconds"] else "–"


def _ratio(r: Record, name: str) -> str:
    return "{median:.2f} ({q1:.2f}–{q3:.2f})".format(**r["ratio"][name]) if name in r["ratio"] else "–"


CELL_HEAD = ("cell", "emulator", "quartiles", "GB/s", "PyTorch", "NumPy", "limit", "ratio to PyTorch", "of the limit")


def cell_row(r: Record) -> tuple[str, ...]:
    """A record as a row of the page: G elements per second, and ratios with their quartiles."""
    name = ", ".join([r["label"], r["dtype"], size(r["elements"]), f"{r['threads']}T", *special(r)])
    mine = r["seconds"]["emu"]
    quartiles = f"{number(r['elements'] / mine['q3'] / 1e9)}–{number(r['elements'] / mine['q1'] / 1e9)}"
    speeds = (_gigas(r, other) for other in ("torch", "numpy", "limit"))
    return name, _gigas(r, "emu"), quartiles, number(r["bytes"] / mine["median"] / 1e9), *speeds, _ratio(r, "torch"), _ratio(r, "limit")


def _plain(r: Record) -> bool:
    return bool(r["layout"] == "contiguous" and r["values"] == "normal")


SECTIONS: tuple[tuple[str, Callable[[Record], bool]], ...] = (
    ("Backward, contiguous", lambda r: _plain(r) and r["operator"].endswith("Backward") and r["dtype"] != "INT8"),
    ("Strided inputs", lambda r: r["layout"] != "contiguous"),
    ("Uniform random bit patterns", lambda r: r["values"] == "bits"),
    ("Forward", lambda r: not r["operator"].endswith("Backward")),
    ("INT8, which PyTorch does not have", lambda r: r["dtype"] == "INT8"),
)

METHOD = """
How it is measured: all competitors of a cell take turns in one process, the order turned round by round, each warmed by its own calls
before each sample; medians, quartiles in brackets. A ratio is the other's time over the emulator's in the same round. Threads are equal
and stated (1T, 2T). All use the same tensors, on the same 2 MiB pages, and write the same output; PyTorch's own temporaries, as the dense
copies that SoftmaxBackward makes of strided inputs, are on such pages too (THP_MEM_ALLOC_ENABLE=1). Values are normally distributed.
Before a cell is timed, every element of the emulator's output is compared with the reference, bit by bit, and the others are checked to
compute the same operator. G is 1e9 elements per second; GB/s counts each input read once and the output written once.

- **Emulator**: the launches that the second phase puts on the stream, on the Config's threads. "native": the compiled function alone,
  200 calls in a row.
- **PyTorch**: `elu_backward.grad_input` with `is_result`, `log_sigmoid_backward.grad_input` with a true buffer (it reads exp(-|x|) from
  there: a third input, no exp), `_softmax_backward_data.out`, all with preallocated outputs; in native cells the 200 calls are made by
  TorchScript, so no Python call is in the figure.
- **NumPy**: with ml_dtypes for BF16, in the data type itself; the temporary of the tensors' size is preallocated, masks and the sums of
  rows are not. One thread, up to 16 Mi elements (1 Mi along the first and middle dims); absent from forward, strided, random-bit, INT8,
  native and two-thread cells.
- **Limit**: a loop that only streams: it reads as many inputs, adds integers, and writes as many bytes, past the caches from 8 MiB
  of output. On two threads it takes part from there on; in the caches it is a comparison rather than a limit. Its two threads are
  handed each call by Python, which costs 120 to 200 µs: about 4 % of a call of 16 Mi elements of 16 bits, by which it is too slow there.
"""


def page(result: Record, path: Path, plot: Path | None) -> None:
    """Write the page of a run."""
    path.write_text("\n".join(page_lines(result, path, plot)).rstrip() + "\n", encoding="utf-8")


def page_lines(result: Record, path: Path, plot: Path | None) -> Iterator[str]:
    """The page, line by line."""
    yield "# Performance"
    yield ""
    yield "Written by `python -m bench --json docs/performance.json --plot docs/performance.png --page`; do not edit. What bounds the"
    yield "figures and what was tried: `bench/NOTES.md`."
    yield ""
    if result.get("remark"):
        yield f"**{result['remark']}**"
        yield ""
    yield from _machine(result)
    yield from METHOD.strip("\n").splitlines()
    yield ""
    if plot is not None:
        where = os.path.relpath(plot.resolve(), path.resolve().parent)
        yield f"![Speed by length, and ratios to PyTorch by cell]({where})"
        yield ""
    yield "## Targets"
    yield ""
    all_targets = targets(result)
    yield f"{tally(all_targets)}. Ratios above 1: the emulator is faster. Means over data types and operators are geometric."
    yield ""
    yield from table(("cell", "target", "verdict", "values"), ((t.cell, goal(t), t.verdict, values(t)) for t in all_targets))
    yield from _losses(result)
    yield from (line for sentence in hampered(result) for line in (sentence, ""))
    for title, wanted in SECTIONS:
        rows = [cell_row(r) for r in result["cells"] if wanted(r)]
        if rows:
            yield f"## {title}"
            yield ""
            yield from table(CELL_HEAD, rows)
    yield from _others(result)


def _machine(result: Record) -> Iterator[str]:
    m = result["machine"]
    packages = ", ".join(f"{k} {v}" for k, v in m["packages"].items() if v)
    caches = ", ".join(f"{k} {v}" for k, v in m["caches"].items())
    yield f"Machine: {m['cpu']} (family/model {m['family_model']}; {', '.join(m['features'])}), {m['cpus']} CPUs, {caches},"
    yield f"{m['memory_gib']} GiB;"
    yield f"Linux {m['kernel']}, huge pages {m['transparent_huge_pages']}; Python {m['python']}, {packages}. {m['date']}. {_took(result)}"
    yield from missing(result)
    yield ""


def _losses(result: Record) -> Iterator[str]:
    slower = [r for r in result["cells"] if "torch" in r["ratio"] and r["ratio"]["torch"]["median"] < 1]
    count = sum("torch" in r["ratio"] for r in result["cells"])
    if not count:
        return
    yield f"PyTorch is faster in {len(slower)} of {count} cells" + (":" if slower else ".")
    yield ""
    for r in sorted(slower, key=lambda r: float(r["ratio"]["torch"]["median"])):
        row = cell_row(r)
        yield f"- {row[0]}: {row[7]}"
    yield ""


def _others(result: Record) -> Iterator[str]:
    if "lengths" in result:
        yield "## SeluBackward FLOAT by length"
        yield ""
        head = ("elements", "emulator G/s", "PyTorch", "limit", "ratio to PyTorch")
        yield from table(head, (_length_row(r) for r in result["lengths"]))
    if result.get("scaling"):
        yield "## Two threads over one"
        yield ""
        rows = []
        for r in result["scaling"]:
            gains = (r["speedup"][n]["median"] for n in ("emu", "limit"))
            name = f"{r['label']}, {r['dtype']}, {size(r['elements'])}"
            rows.append((name, f"{r['idle_s'] * 1e3:.0f} ms", *(f"{g:.2f}" for g in gains)))
        yield from table(("cell", "idle before", "emulator", "limit"), rows)
    if "latency" in result:
        yield from _latency(result["latency"])
    if "processes" in result:
        yield "## Starting"
        yield ""
        rows = [(n, *(f"{p[k]['median']:.3f} s" if k in p else "–" for k in ("wall", "inside"))) for n, p in result["processes"].items()]
        rows += [(f"C++: {k}", f"{v:.3f} s", "–") for k, v in _ending(result.get("latency", {}).get("c"), "_s")]
        yield from table(("process", "start to end", "inside"), rows)
        yield "Medians. Every process takes the default, a thread for each CPU, unless EMU_NUM_THREADS says otherwise."
        yield ""
    if "memory" in result:
        yield "## Memory"
        yield ""
        rows = [
            (f"{r['operator']} {r['dtype']}, {size(r['elements'])}" + ("" if r["dim"] is None else f", dim {r['dim']}"),
             *(f"{r[k] / MI:.1f}" for k in ("baseline", "tensors", "extra")))
            for r in result["memory"]
        ]  # fmt: skip
        yield from table(("case", "at the first result, MiB", "tensors, MiB", "beyond both, MiB"), rows)
        yield "One call on two threads; the inputs are zeros."
        yield ""


def _ending(figures: object, ending: str) -> list[tuple[str, float]]:
    """The C ABI's figures of one unit, named as text; none when it was not measured."""
    if not isinstance(figures, dict):
        return []
    return [(k.removesuffix(ending).replace("_", " "), v) for k, v in figures.items() if k.endswith(ending)]


def _length_row(r: Record) -> tuple[str, ...]:
    return f"{size(r['elements'])}, {r['threads']}T", *(_gigas(r, n) for n in ("emu", "torch", "limit")), _ratio(r, "torch")


def _latency(found: Record) -> Iterator[str]:
    yield f"## Latency, {found['elements']} elements, SeluBackward FLOAT"
    yield ""
    rows = [(NAMES[n], *(f"{s[k] * 1e6:.2f}" for k in ("median", "q1", "q3"))) for n, s in found["seconds"].items()]
    rows += [(f"C ABI, {k}", f"{v:.2f}", "", "") for k, v in _ending(found["c"], "_us") if k != "torch"]
    yield from table(("call", "µs", "lower quartile", "upper quartile"), rows)
    yield f"Launch rate, Python face: {found['launches_per_s']:,} launches per second."
    yield ""
    yield "The gradient is 1 and `result` is -0.5 in every call. The emulator and PyTorch may use as many threads as in the cells, but"
    yield "compute 16 elements on one; the C++ programs take the default, a thread for each CPU, unless EMU_NUM_THREADS says otherwise."
    yield "Python's figures are medians with quartiles. A figure of the C ABI is the least of 30 samples in a program, the median of"
    yield "some runs of it, and is compared with the least of 30 samples of PyTorch's call on one thread."
    yield ""
