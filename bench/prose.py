"""The sentences of the page, and the figures in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from bench.cells import BACKWARD, MI
from bench.hampered import marked
from bench.machine import warnings
from bench.targets import Target, mean, targets
from bench.text import special

Record = dict[str, Any]

SMALL = """
Ratios of small sizes compare the launch or the compiled function alone with PyTorch's whole call, dispatch included. No caller sees them:
the emulator's two phases are not in them.
"""
BESIDE = '"What a caller sees" has both sides from Python to the result.'

METHOD = """
How it is measured: all competitors of a cell take turns in one process, the order turned round by round, each warmed by its own calls
before each sample; medians, quartiles in brackets, and how many rounds there were (a competitor that takes longer than 0.4 s a call takes
part in fewer of them). A ratio is the other's time over the emulator's in the same round. Threads are equal
and stated (1T, 2T). All use the same tensors, on the same 2 MiB pages, and write the same output{temporaries}.
Values are normally distributed. Before a cell is timed, every element of the emulator's output is compared with the reference, bit by
bit. Of PyTorch's and NumPy's output the first and the last block of at most 1 Mi elements are compared with it, to 1e-4 (FLOAT), 2e-2
(FLOAT16) or 1e-1 (BF16) of the largest value; on random bit patterns they are not.
G is 1e9 elements per second; GB/s counts each input read once and the output written once.

- **Emulator**: the launches that the second phase puts on the stream, on the Config's threads. "native": the compiled function alone,
  200 calls in a row. Neither has the two phases in it.
- **PyTorch**: `elu_backward.grad_input` with `is_result`, `log_sigmoid_backward.grad_input` with a true buffer (it reads exp(-|x|) from
  there: a third input, no exp), `_softmax_backward_data.out`, all with preallocated outputs, called from Python; in native cells the 200
  calls are made by TorchScript, so no Python call is in the figure, but PyTorch's dispatch is.
- **NumPy**: with ml_dtypes for BF16, in the data type itself; the temporary of the tensors' size is preallocated, masks and the sums of
  rows are not. One thread, up to 16 Mi elements (1 Mi along the first and middle dims); absent from forward, strided, random-bit, INT8,
  native and two-thread cells.
- **Limit**: a loop that only streams: it reads as many inputs, adds integers, and writes as many bytes, past the caches from 8 MiB
  of output. On two threads it takes part from there on; in the caches it is a comparison rather than a limit. Its second thread is a native
  one that waits for work, as the emulator's own.
"""

FIELDS = """
## The JSON file

Times are seconds, sizes bytes; speeds follow from them.

- `cells`: what was measured (`operator`, `dtype`, `shape`, `dim` or null, `threads`, `path`, `layout`, `values`), `label`, and `place`
  of the reduced dim; `elements`, `bytes` that have to move, `seconds` and `ratio` by competitor, the `load` average afterwards.
- `seconds.*`, of a call: `median`, `q1`, `q3`, `best`, `samples` (rounds), `calls` in a sample. `ratio.*`: the competitor's time over the
  emulator's in the same round, `median`, `q1`, `q3`, and `worst`, of the round that was worst for the emulator.
- `lengths`, `calls`: like cells. In `calls`, what a caller sees, `emu` is both phases and a synchronisation, `array` the NumPy face, and
  `ratio.*` PyTorch's time over theirs.
- `scaling`: `seconds.*` by number of threads, `speedup.*` time on one over time on two, `idle_s` before the call.
- `latency`: like a cell, `ratio.*` over the synchronised call; in `c`, `*_us` are microseconds of a call, `*_s` seconds of a program,
  `*_ratio` to PyTorch's call or to `import numba`.
- `processes`: `wall` from start to end, `inside` as the process measured it. `memory`: `baseline` at the first result, `tensors`, `peak`,
  and `extra`, what is beyond both.
- `pytorch`: its vectors, threads taken by threads asked for, `huge_share` of its own memory; `huge_share`: of the tensors' memory;
  `limit_ahead`: how far ahead the limit prefetches. `failed`: parts that broke, and why.
"""

TARGETS = """
Ratios above 1: the emulator is faster. Means over data types and operators are geometric. The targets are the project's own aims, and stand
in bench/targets.py. A question mark, here and in the tables: in the cell PyTorch (or the limit) was slower on two threads than on one, as
listed below, and the ratio flatters the emulator. A target that is met with such a value is "met, in doubt".
"""

CALLS = """
Every call is made from Python and waited for. A ratio is PyTorch's time over the emulator's. The two phases work on device memory, the
other two on one set of arrays.
"""

SCALING = """
The gain is the time on one thread over that on two, 2 at most. What the limit gains is bound by memory: for a kernel that is bound by
memory too, its part of that says how well it uses the second thread; one that computes may gain more than the limit, and only its
distance from 2 tells.
"""

STARTING = """
Medians. Every process takes the default, a thread for each CPU, unless EMU_NUM_THREADS says otherwise. "Without site": in an interpreter
that runs no hooks of site-packages (python -S) and has loaded nothing for them, as an editable install makes it.
"""

FROM_C = """
From C++: the least of 30 samples in a process, the median of some such processes, PyTorch's beside them in turns; "in PyTorch calls" is the
median of the ratios by round.
"""

LATENCY = """
The gradient is 1 and `result` is -0.5 in every call. The emulator and PyTorch may use as many threads as in the cells, but
compute 16 elements on one; the C++ programs take the default, a thread for each CPU, unless EMU_NUM_THREADS says otherwise.
"""


def lines(text: str) -> list[str]:
    """A paragraph and the empty line after it."""
    return [*text.strip("\n").splitlines(), ""]


def method(result: Record) -> list[str]:
    """How the figures were taken; of PyTorch's own memory what was found."""
    share = (result.get("pytorch") or {}).get("huge_share")
    own = "" if share is None else f"; PyTorch's own temporaries, as dense copies of strided inputs, lay on such pages to {share:.0%}"
    return lines(METHOD.format(temporaries=own))


def missing(result: Record) -> list[str]:
    """What this run could not measure or did otherwise, in sentences."""
    found = []
    if result.get("interrupted"):
        found.append("This run was interrupted: what comes after is missing.")
    if result["machine"]["packages"].get("torch") is None:
        found.append("PyTorch is not installed: its columns and every ratio to it are missing (pip install torch==2.13.0, a CPU build).")
    c = result.get("latency", {}).get("c")
    if isinstance(c, str):
        found.append(f"The C ABI was not measured: {c.rstrip('.')}.")
    found += [f"Not measured, {part}: {why}." for part, why in result.get("failed", {}).items()]
    if result["machine"]["cpus"] < 2:
        found.append("One CPU: nothing on two threads.")
    if result["amount"] != "full":
        found.append(f"This is a {result['amount']} run: cells are left out and rounds are few.")
    share = result.get("huge_share")
    if share is not None and share < 0.95:
        found.append(f"The system gave 2 MiB pages for {share:.0%} of the tensors' memory only, the same for every competitor.")
    took = {asked: n for asked, n in ((result.get("pytorch") or {}).get("threads") or {}).items() if int(asked) != n}
    found += [f"PyTorch used {n} threads where {asked} were asked for." for asked, n in took.items()]
    return found + [w[0].upper() + w[1:] + "." for w in warnings(result)]


def tally(all_targets: list[Target]) -> str:
    """How many were met."""
    met = [t.met for t in all_targets]
    doubt = sum(t.doubtful for t in all_targets)
    some = f" ({doubt} of them in doubt)" if doubt else ""
    return f"{met.count(True)} met{some}, {met.count(False)} missed, {met.count(None)} not measured"


def large(result: Record) -> str | None:
    """The mean ratios of large contiguous tensors, one sentence; None where an operator was not measured."""
    found = []
    slow = marked(result["cells"])
    for op in (*BACKWARD, "SoftmaxBackward"):
        some = (r for r in result["cells"] if r["operator"] == op and r["elements"] >= 16 * MI and "torch" in r["ratio"])
        value = mean(r["ratio"]["torch"]["median"] for r in some if not special(r) and id(r) not in slow)
        if value is None:
            return None
        found.append(f"{op} {value:.1f}")
    cells = "on average over the contiguous cells of 16 Mi elements and more without the disturbed ones"
    return f"PyTorch's time over the emulator's, {cells}: {', '.join(found)}."


def small(result: Record) -> str | None:
    """What a call costs when there is nothing to compute."""
    cost = result.get("latency", {}).get("ratio", {}).get("torch")
    if cost is None:
        return None
    return f"A call of 16 elements, from Python to the result, takes {1 / cost['median']:.1f} times as long as PyTorch's."


def losses(result: Record) -> tuple[int, int]:
    """In how many cells PyTorch is faster, and of how many."""
    return _losses(r["ratio"]["torch"]["median"] for r in result["cells"] if "torch" in r["ratio"])


def _losses(ratios: Iterable[float]) -> tuple[int, int]:
    known = list(ratios)
    return sum(x < 1 for x in known), len(known)


def summary(result: Record) -> Iterator[str]:
    """The page in three sentences."""
    yield from (s for s in (large(result), small(result)) if s is not None)
    slower, count = losses(result)
    behind = f"PyTorch is faster in {slower} of {count} cells"
    seen, cases = _losses(ratio["median"] for r in result.get("calls", []) for ratio in r.get("ratio", {}).values())
    if cases:
        behind += f", which are launches, and in {seen} of {cases} cases of what a caller sees"
    behind = f"{behind}; of" if count else "Of"
    all_targets = targets(result)
    yield f"{behind} {len(all_targets)} targets {tally(all_targets)}."


def took(result: Record) -> str:
    """How long the run was and what else the machine did."""
    load = result["load"]
    return f"The run took {result['duration_s']:.0f} s; load average {load['before']:.1f} before it, {load['after']:.1f} after."


def machine(result: Record) -> Iterator[str]:
    """What was measured, on what."""
    m, e, p = result["machine"], result.get("emulator"), result.get("pytorch")
    if e is not None:
        yield f"aclnn-emu {e['version']}" + (f", commit {e['commit']}" if e.get("commit") else "") + "."
    packages = ", ".join(f"{k} {v}" for k, v in m["packages"].items() if v)
    caches = ", ".join(f"{k} {v}" for k, v in m["caches"].items())
    yield f"Machine: {m['cpu']} (family/model {m['family_model']}; {', '.join(m['features'])}), {m['cpus']} CPUs, {caches},"
    yield f"{m['memory_gib']} GiB;"
    vectors = f" (computing with {p['cpu_capability']})" if p else ""
    yield f"Linux {m['kernel']}, huge pages {m['transparent_huge_pages']}; Python {m['python']}, {packages}{vectors}. {m['date']}."
    yield took(result)
    if m.get("environment"):
        yield "Environment: " + ", ".join(f"`{n}={v}`" for n, v in m["environment"].items()) + "."
    yield from missing(result)


def native_note(result: Record, records: list[Record]) -> list[str]:
    """The warning beside a table that has small cells."""
    if not any(r["elements"] <= MI for r in records):
        return []
    return lines(SMALL + (BESIDE if "calls" in result else ""))
