"""Compare the kernels with the independent reference, bit for bit, up to all 2^32 pairs of 16-bit inputs."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.cli._common import AsJson, print_json, print_table, progress_bar, settings
from emu.cli._errors import CommandError, say, usage

if TYPE_CHECKING:
    from rich.progress import Progress

    from emu.verify.state import State
    from emu.verify.units import Outcome, Unit


def verify(
    quick: Annotated[
        bool, typer.Option("--quick", help="Directed values and some random ones: about 25 s of CPU time once the kernels are compiled.")
    ] = False,
    exhaustive: Annotated[
        bool,
        typer.Option("--exhaustive", help="All 2^32 pairs of the main 16-bit gradients; of the rest every pattern or 2^26 random cases."),
    ] = False,
    op: Annotated[list[str] | None, typer.Option("--op", help="Only this operator, as SeluBackward; may be repeated.")] = None,
    dtype: Annotated[list[str] | None, typer.Option("--dtype", help="Only this dtype, as BF16; may be repeated.")] = None,
    arch: Annotated[list[str] | None, typer.Option("--arch", help="Only this architecture, as dav_2201; may be repeated.")] = None,
    jobs: Annotated[int, typer.Option("--jobs", "-j", min=0, help="Processes, at most one for each CPU; 0 = as many.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a stopped run of the same sources, compiler and CPU target.")
    ] = False,
    state: Annotated[
        Path | None, typer.Option("--state", help="File of finished work. Default: in the cache directory; /dev/null: none.")
    ] = None,
    scheduler: Annotated[str | None, typer.Option("--scheduler", help="Send the work to dask.distributed, as tcp://host:8786.")] = None,
    differences: Annotated[
        bool, typer.Option("--differences", help="Count instead how many inputs differ between products and from PyTorch.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare the kernels with the independent reference, bit for bit. Exit code 1 if anything differs, 2 without a comparison."""
    from emu_kernels.reference.arrays import HostError

    from emu.verify import report
    from emu.verify.engine import execute
    from emu.verify.plan import plan
    from emu.verify.provider import NativeKernels
    from emu.verify.state import VerifyError, stamp
    from emu.verify.workers import WorkerError

    if quick and exhaustive:
        raise usage("--quick and --exhaustive exclude each other")
    settings()
    _need_compiler()
    if differences:
        given = {
            "--quick": quick,
            "--exhaustive": exhaustive,
            "--jobs": jobs,
            "--resume": resume,
            "--state": state,
            "--scheduler": scheduler,
        }
        for name, value in given.items():
            if value:
                raise usage(f"--differences takes no {name}: it counts in this process and keeps nothing")
        _differences(op or (), dtype or (), arch or (), as_json)
        return
    if scheduler and jobs:
        raise usage("--scheduler takes no --jobs: its workers are what it has")
    level = "quick" if quick else "exhaustive" if exhaustive else "default"
    try:
        units = plan(level, op or (), dtype or (), arch or ())
    except LookupError as error:
        raise usage(str(error.args[0])) from None
    if not units:
        named = " with ".join(", ".join(names) for names in (op, dtype, arch) if names)
        raise usage(f"nothing to compare: no product has {named}")
    kept = _state(state, level, () if resume else units)
    go_on = f"; go on with --resume (finished work is in {kept.path})" if kept.path else ""
    provider = NativeKernels()
    before = [kept.done[unit.key] for unit in units if unit.key in kept.done]
    begin = time.perf_counter()
    try:
        with _progress() as bar:
            done = _Bar(bar, units)
            most = len(os.sched_getaffinity(0))
            outcomes = execute(units, provider, jobs=min(jobs, most), scheduler=scheduler, state=kept, finished=done)
        seconds = time.perf_counter() - begin
        about = {"level": level, "stamp": stamp(), "wall_seconds": round(seconds, 1), "units": len(units)}
        resumed = {"resumed_units": len(before), "resumed_cases": sum(outcome.cases for outcome in before)}
        rows = report.totals(units, outcomes)
        result = report.as_json(rows, provider, **about, **resumed)
    except KeyboardInterrupt:
        raise CommandError(f"stopped{go_on}", 130) from None
    except WorkerError as error:
        raise usage(f"{error}{go_on}") from None
    except (VerifyError, HostError, ImportError) as error:
        raise usage(str(error)) from None
    except MemoryError:
        raise usage(f"out of memory: fewer processes (-j 1) need less{go_on}") from None
    if as_json:
        print_json(result)
    else:
        _show(rows, result, seconds)
    if result["mismatches"]:
        raise typer.Exit(1)


def _need_compiler() -> None:
    from numba import config

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise usage("NUMBA_DISABLE_JIT is set, so there is no compiler and no machine code to compare: unset it")


def _state(named: Path | None, level: str, fresh: Sequence[Unit]) -> State:
    """The file of finished work, or none if the default one cannot be used and nothing is to be read; `fresh` units are to run again."""
    from emu.verify.state import State, StateError

    path = named or Path(settings().cache_dir) / "verify" / f"{level}.jsonl"
    keys = [unit.key for unit in fresh]
    try:
        state = State(None if path == Path(os.devnull) else path.expanduser(), keys)
    except StateError as error:
        if named or not fresh:
            raise usage(str(error)) from None
        say(f"{error}. This run goes on and keeps nothing")
        return State(None)
    if state.damaged:
        say(f"damaged lines of {path}, left out: {state.damaged}")
    return state


command = verify


def _progress() -> Progress:
    """A bar on stderr with cases, rate and time left; silent where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%  {task.fields[rate]}  left"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


class _Bar:
    """Advances the bar by the cases of each finished unit."""

    def __init__(self, bar: Progress, units: list[Unit]) -> None:
        self.bar, self.begin, self.cases, self.wrong = bar, time.perf_counter(), 0, 0
        self.task = bar.add_task("verify", total=sum(u.weight for u in units), rate="")

    def __call__(self, unit: Unit, outcome: Outcome) -> None:
        self.cases += outcome.cases
        self.wrong += outcome.mismatches
        rate = self.cases / max(time.perf_counter() - self.begin, 1e-3) / 1e6
        text = f"{unit.flow} {unit.v.dtype} {unit.v.arch}" + (f", {self.wrong} differ" if self.wrong else "")
        self.bar.update(self.task, advance=unit.weight, description=text, rate=f"{rate:.1f} M/s")


def _show(rows: list[dict[str, Any]], result: dict[str, Any], seconds: float) -> None:
    from emu.verify.report import explanation_lines

    keys = ("operator", "dtype", "arch", "overflow", "numerics")
    lines = [[*keys, "cases", "differ"], *([*(row[k] for k in keys), f"{row['cases']:,}", f"{row['mismatches']:,}"] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:  # no frame: it would not fit 80 columns
        texts = [cell.ljust(width) for cell, width in zip(line[:5], widths[:5], strict=True)]
        numbers = [cell.rjust(width) for cell, width in zip(line[5:], widths[5:], strict=True)]
        print(*texts, *numbers)
    for row, shown in zip(rows, result["results"], strict=True):
        for found in shown["examples"]:
            print("\n".join(explanation_lines(row, found)))
    if result["resumed_units"]:
        print(f"from the state file: {result['resumed_units']:,} of {result['units']:,} units, {result['resumed_cases']:,} cases")
    print(f"{result['cases']:,} cases, {result['mismatches']:,} mismatches, {seconds:.0f} s wall time")


def _differences(ops: Sequence[str], dtypes: Sequence[str], archs: Sequence[str], as_json: bool) -> None:
    from emu_kernels.variant import ARCHS

    from emu.verify.catalog import OPS
    from emu.verify.differences import DTYPES, OTHERS, measure
    from emu.verify.plan import select

    try:
        chosen_ops = select(ops, [o.name for o in OPS], "operator")
        chosen_dtypes = select(dtypes, DTYPES, "dtype")
        chosen_archs = select(archs, ARCHS, "architecture")
    except LookupError as error:
        raise usage(str(error.args[0])) from None
    others = [o for o in OTHERS if o in chosen_archs or o not in ARCHS]
    with progress_bar() as bar:
        task = bar.add_task("differences", total=len(chosen_ops) * len(chosen_dtypes))
        lines = measure(
            chosen_dtypes,
            ops=chosen_ops,
            others=others,
            finished=lambda operator, dtype: bar.update(task, advance=1, description=f"{operator} {dtype}"),
        )
    if as_json:
        print_json([line._asdict() for line in lines])
        return
    header = ("operator", "dtype", "inputs", "cases", *others)
    cells = [[f"{line.counts[o]:,}" if line.counts[o] is not None else "–" for o in others] for line in lines]
    rows = [[x.operator, x.dtype, x.inputs, f"{x.cases:,}", *c] for x, c in zip(lines, cells, strict=True)]
    print_table(header, rows, title="Inputs whose result has other bits than on dav_2201")
