"""The figures that the emulator is to reach, and whether a run reached them.

A ratio is the time of the other over the time of the emulator, in the same round of the same run, so above 1 the emulator is ahead;
"of the limit" is the same against the streaming loop. Means over data types and operators are geometric. "16-bit" is FLOAT16 and BF16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import exp, log
from typing import Any, NamedTuple

from bench.cells import KI, MI, full
from bench.hampered import MARGIN, marked

SIXTEEN = ("FLOAT16", "BF16")
ALL = ("FLOAT", *SIXTEEN)
LARGE = (16 * MI, 64 * MI)
LONG_ROW = 1000


class Value(NamedTuple):
    """One figure; None where it was not measured. doubtful: it rests on a cell in which the other one was hampered."""

    label: str
    value: float | None
    doubtful: bool = False


class Target(NamedTuple):
    """One figure to reach: every value at least (at most, where ``upper``) ``goal``. ``unit`` follows a value in print."""

    cell: str
    goal: float
    values: tuple[Value, ...]
    upper: bool = False
    unit: str = ""

    @property
    def met(self) -> bool | None:
        """None when nothing was measured."""
        return all(map(self._reached, self._known)) if self._known else None

    @property
    def doubtful(self) -> bool:
        """Met, but by a value that may owe it to a hampered competitor."""
        return bool(self.met) and any(v.doubtful for v in self.values)

    @property
    def _known(self) -> list[float]:
        return [v.value for v in self.values if v.value is not None]

    def _reached(self, v: float) -> bool:
        return v <= self.goal if self.upper else v >= self.goal

    @property
    def verdict(self) -> str:
        if self.met is None:
            return "not measured"
        if self.met:
            return "met, in doubt" if self.doubtful else "met"
        missed = sum(not self._reached(v) for v in self._known)
        return "missed" if len(self._known) == 1 else f"missed in {missed} of {len(self._known)}"


def mean(values: Iterable[float]) -> float | None:
    """Geometric mean; None of nothing."""
    logs = [log(v) for v in values]
    return exp(sum(logs) / len(logs)) if logs else None


class _Cells:
    def __init__(self, result: dict[str, Any]) -> None:
        self.records: list[dict[str, Any]] = result.get("cells", [])
        self.threads = sorted({r["threads"] for r in self.records})
        self._hampered = {other: marked(self.records, other) for other in ("torch", "limit")}

    def value(self, label: str, other: str, found: list[dict[str, Any]]) -> Value:
        """Mean ratio of these records."""
        return Value(label, mean(r["ratio"][other]["median"] for r in found), any(id(r) in self._hampered[other] for r in found))

    def mean(self, label: str, other: str, dtypes: tuple[str, ...], /, **wanted: Any) -> Value:
        """Mean ratio of the plain cells with these fields; a cell of every data type must be there."""
        fields = {"layout": "contiguous", "values": "normal", "path": "launch", **wanted}
        found = [r for r in self.records if r["dtype"] in dtypes and all(r[k] == v for k, v in fields.items())]
        if {r["dtype"] for r in found} != set(dtypes) or not all(other in r["ratio"] for r in found):
            return Value(label, None)
        return self.value(label, other, found)

    def by_size(self, other: str, dtypes: tuple[str, ...], sizes: Iterable[int], **wanted: Any) -> tuple[Value, ...]:
        """Labelled means by size and threads, those that were measured."""
        pairs = [(n, t) for n in sizes for t in self.threads]
        found = [self.mean(f"{n // MI} Mi {t}T", other, dtypes, elements=n, threads=t, **wanted) for n, t in pairs]
        return tuple(v for v in found if v.value is not None)


def targets(result: dict[str, Any]) -> list[Target]:
    """Every target with its values in this run."""
    cells = _Cells(result)
    by_cell = (_large, _softmax, _small, _layouts)
    others = (_scaling, _latency, _start, _memory)
    return [t for find in by_cell for t in find(cells)] + [t for find in others for t in find(result)]


def _large(cells: _Cells) -> Iterator[Target]:
    selu = {"operator": "SeluBackward"}
    yield Target("SeluBackward FLOAT / PyTorch", 1.30, cells.by_size("torch", ("FLOAT",), LARGE, **selu))
    yield Target("SeluBackward 16-bit / PyTorch", 1.25, cells.by_size("torch", SIXTEEN, LARGE, **selu))
    yield Target("SeluBackward FLOAT, of the limit", 0.85, cells.by_size("limit", ("FLOAT",), LARGE, **selu))
    yield Target("SeluBackward 16-bit, of the limit, 16 Mi", 0.85, cells.by_size("limit", SIXTEEN, LARGE[:1], **selu))
    yield Target("SeluBackward 16-bit, of the limit, 64 Mi", 0.75, cells.by_size("limit", SIXTEEN, LARGE[1:], **selu))
    log_sigmoid = {"operator": "LogSigmoidBackward"}
    yield Target("LogSigmoidBackward FLOAT / PyTorch", 1.20, cells.by_size("torch", ("FLOAT",), LARGE, **log_sigmoid))
    yield Target("LogSigmoidBackward 16-bit / PyTorch", 1.10, cells.by_size("torch", SIXTEEN, LARGE, **log_sigmoid))


def _softmax(cells: _Cells) -> Iterator[Target]:
    last = {"operator": "SoftmaxBackward", "place": "last"}
    yield Target("SoftmaxBackward last dim FLOAT / PyTorch", 1.40, cells.by_size("torch", ("FLOAT",), LARGE, **last))
    yield Target("SoftmaxBackward last dim 16-bit / PyTorch", 1.15, cells.by_size("torch", SIXTEEN, LARGE, **last))
    for place in ("first", "middle"):
        planned = (c for c in full((1,)) if c.operator == "SoftmaxBackward" and c.place == place and c.elements in LARGE)
        found = {c.label: c.shape[c.dim or 0] for c in planned}
        for label, r in sorted(found.items(), key=lambda item: -item[1]):
            yield Target(f"{label} / PyTorch", 2.5 if r >= LONG_ROW else 1.5, cells.by_size("torch", ALL, LARGE, label=label))


def _small(cells: _Cells) -> Iterator[Target]:
    def native(dtypes: tuple[str, ...], **wanted: Any) -> tuple[Value, ...]:
        return (cells.mean("1T", "torch", dtypes, path="native", elements=64 * KI, **wanted),)

    head = "64 Ki, native function alone, "
    yield Target(head + "SeluBackward / PyTorch", 1.2, native(ALL, operator="SeluBackward"))
    yield Target(head + "SoftmaxBackward last dim / PyTorch", 1.0, native(ALL, operator="SoftmaxBackward", place="last"))
    yield Target(head + "LogSigmoidBackward FLOAT / PyTorch", 0.45, native(("FLOAT",), operator="LogSigmoidBackward"))
    yield Target(head + "LogSigmoidBackward 16-bit / PyTorch", 0.9, native(SIXTEEN, operator="LogSigmoidBackward"))
    values = []
    for t in cells.threads:
        three = (("SeluBackward", ""), ("LogSigmoidBackward", ""), ("SoftmaxBackward", "last"))
        parts = [cells.mean("", "torch", ALL, elements=MI, threads=t, operator=op, place=place) for op, place in three]
        known = [p.value for p in parts if p.value is not None]
        values.append(Value(f"{t}T", mean(known) if len(known) == len(parts) else None, any(p.doubtful for p in parts)))
    yield Target("1 Mi, mean of the three operators / PyTorch", 1.0, tuple(values))


def _layouts(cells: _Cells) -> Iterator[Target]:
    for layout in ("transposed", "transposed both", "padded"):
        values = []
        for t in cells.threads:
            strided = (r for r in cells.records if r["layout"] == layout and r["elements"] == 16 * MI)
            some = [r for r in strided if r["threads"] == t and "torch" in r["ratio"]]
            for op in sorted({r["operator"] for r in some}):
                values.append(cells.value(f"{op} {t}T", "torch", [r for r in some if r["operator"] == op]))
        if values or layout != "transposed both":
            yield Target(f"{layout} input, 16 Mi / PyTorch", 1.0, tuple(values))


def _scaling(result: dict[str, Any]) -> Iterator[Target]:
    for idle in (False, True):
        values = []
        for r in result.get("scaling", []):
            if (r["idle_s"] > 0) == idle:
                gain = r["speedup"]["emu"]["median"]
                label = f"{r['operator']} {r['dtype']} {r['elements'] // MI} Mi (gains {gain:.2f})"
                most = r["speedup"]["limit"]["median"]
                values.append(Value(label, gain / most, most < 1 / MARGIN))
        yield Target("2 threads over 1, of what the limit gains" + (", after 20 ms of idleness" if idle else ""), 0.9, tuple(values))


def _latency(result: dict[str, Any]) -> Iterator[Target]:
    found = result.get("latency", {})
    ratio = found.get("ratio", {}).get("torch")
    cost = None if ratio is None else 1 / ratio["median"]
    yield Target("16 elements, two phases and sync, Python face, in PyTorch out= calls", 6, (Value("", cost),), upper=True)
    c = found.get("c")
    value = c.get("pipelined_ratio") if isinstance(c, dict) else None
    yield Target("16 elements, two phases pipelined, C ABI, in PyTorch out= calls", 5, (Value("", value),), upper=True)
    whole = {k.removesuffix("_ratio"): v for k, v in c.items() if "program" in k and k.endswith("_ratio")} if isinstance(c, dict) else {}
    labelled = tuple(Value(k.removeprefix("document_program_"), v) for k, v in whole.items()) or (Value("", None),)
    yield Target("whole C++ program of one operator, warm cache / a process that imports numba", 2, labelled, upper=True)


def _start(result: dict[str, Any]) -> Iterator[Target]:
    found = result.get("processes", {})

    def ratio(a: str, b: str, kind: str) -> tuple[Value, ...]:
        if kind not in found.get(a, {}) or kind not in found.get(b, {}):
            return (Value("", None),)
        return (Value("", found[a][kind]["median"] / found[b][kind]["median"]),)

    imports = ratio("import emu, without site", "import numpy, without site", "inside")
    yield Target("import emu / import numpy, inside the process", 2, imports, upper=True)
    first = ratio("first result, warm cache", "import numba", "wall")
    yield Target("process start to first result, warm cache / a process that imports numba", 3, first, upper=True)
    demo = ratio("emu demo, cold cache", "import numba", "wall")
    yield Target("emu demo from an empty cache / a process that imports numba", 40, demo, upper=True)


def _memory(result: dict[str, Any]) -> Iterator[Target]:
    found = result.get("memory", [])
    names = [f"{r['operator']} {r['dtype']}" + ("" if r["dim"] is None else f" dim {r['dim']}") for r in found]
    extra = tuple(Value(name, r["extra"] / MI) for name, r in zip(names, found, strict=True))
    base = tuple(Value(name, r["baseline"] / MI) for name, r in zip(names, found, strict=True))
    yield Target("memory beyond the tensors, 64 Mi", 16, extra, upper=True, unit=" MiB")
    yield Target("memory of the process at its first result", 150, base, upper=True, unit=" MiB")
