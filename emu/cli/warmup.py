"""Compile the declared operators' kernels into the cache, so that no program waits for the compiler."""

from __future__ import annotations

import signal
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from multiprocessing import active_children, get_context
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from emu.cli._common import AsJson, cache_problem, pick, print_json, progress_bar, settings
from emu.cli._errors import CommandError, usage

if TYPE_CHECKING:
    from emu.opdef.spec import Operator

Socs = Annotated[list[str] | None, typer.Option("--soc", help="Only these products; may be repeated. Default: all.")]
Jobs = Annotated[int | None, typer.Option("--jobs", "-j", min=1, help="Compiling processes [EMU_NUM_THREADS].")]


class Wanted(NamedTuple):
    """A kernel by :func:`emu.plan.kernel_ref`'s arguments and the overflow mode."""

    kind: str
    key: tuple[Any, ...]
    saturate: bool

    @property
    def group(self) -> tuple[Any, ...]:
        """What shares machine code most: kept in one process."""
        if self.kind in ("copy", "cast", "tiles", "lines"):
            return (self.kind,)
        return self.kind, self.key[0], self.key[2]


def command(
    operators: Annotated[list[str] | None, typer.Argument(metavar="[OP]...", help="Only these operators, by C or Python name.")] = None,
    soc: Socs = None,
    casts: Annotated[bool, typer.Option("--casts", help="Also the casts to an output of another data type.")] = False,
    jobs: Jobs = None,
    as_json: AsJson = False,
) -> None:
    """Compile the declared operators' kernels into the cache, so that no program waits for the compiler."""
    from emu.opdef.catalogue import OPERATORS, operator
    from emu.soc import known_socs

    config = settings()
    try:
        ops = [operator(name) for name in operators] if operators else list(OPERATORS)
    except LookupError as error:
        raise usage(str(error.args[0])) from None
    socs = [pick(name, known_socs(), "SoC") for name in soc or known_socs()]
    problem = cache_problem(config)
    if problem is not None:
        raise CommandError(f"the kernel cache cannot be written ({problem}); set EMU_CACHE_DIR to a directory that you may write")
    groups: dict[tuple[Any, ...], list[Wanted]] = {}
    for item in dict.fromkeys(wanted(ops, socs, casts)):
        groups.setdefault(item.group, []).append(item)
    stats = _fill(list(groups.values()), jobs or config.threads, str(config.cache_dir))
    compiled = sorted(name for name, how in stats.items() if how == "compiled")
    if as_json:
        print_json({"cache": str(config.cache_dir), "kernels": len(stats), "compiled": compiled})
    else:
        print(f"{len(stats)} kernels: {len(compiled)} compiled, {len(stats) - len(compiled)} were there; {config.cache_dir}")


def wanted(ops: Iterable[Operator], socs: Iterable[str], casts: bool) -> Iterable[Wanted]:
    """Every kernel that phase 2 of these operators can ask for on these products, and a trace of them."""
    from emu.plan import CAST_TARGETS
    from emu.soc import profile
    from emu.types import ITEMSIZE, DataType, dtype_name

    profiles = {(soc.arch, soc.overflow_modes): soc for soc in map(profile, socs)}.values()
    for size in sorted({ITEMSIZE[DataType[t]] for op in ops for t in op.dtypes}):
        yield Wanted("copy", (size,), False)
    yield Wanted("tiles", (), False)
    yield Wanted("lines", (), False)
    for op in ops:
        for soc in profiles:
            for dtype in op.dtypes_on(soc):
                for saturate in (mode == "saturation" for mode in soc.overflow_modes):
                    for numerics in ("device", "document"):
                        for last in (True, False) if op.flow.kind == "rows" else (False,):
                            yield Wanted(op.flow.kind, (op.flow.name, soc.arch, dtype, numerics, last), saturate)
                    if casts and "cast_targets" in op.assumptions:
                        targets = [dtype_name(t) for t in sorted(CAST_TARGETS) if soc.bf16 or t != DataType.BF16]
                        yield from (Wanted("cast", (dtype, t, soc.arch), saturate) for t in targets if t != dtype)


def _fill(groups: list[list[Wanted]], jobs: int, cache_dir: str) -> dict[str, str]:
    """Build all groups. An interrupt ends the compiling processes at once: each kernel is written to the cache whole or not at all."""
    stats: dict[str, str] = {}
    with progress_bar() as bar:
        task = bar.add_task("kernels", total=sum(map(len, groups)))
        if jobs == 1 or len(groups) == 1:
            for group in groups:
                stats |= _compile(group, cache_dir)
                bar.advance(task, len(group))
            return stats
        with ProcessPoolExecutor(min(jobs, len(groups)), mp_context=get_context("spawn")) as pool:
            others = set(active_children())
            with _children_without_interrupt():
                started = {pool.submit(_compile, group, cache_dir): len(group) for group in groups}
            try:
                for done in as_completed(started):
                    for name, how in done.result().items():
                        if stats.get(name) != "compiled":
                            stats[name] = how
                    bar.advance(task, started[done])
            except KeyboardInterrupt:
                for process in set(active_children()) - others:
                    process.terminate()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return stats


@contextmanager
def _children_without_interrupt() -> Iterator[None]:
    """Processes that are started in here never see Ctrl-C: a pool's process would take it for the result of its task and go on."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _compile(group: list[Wanted], cache_dir: str) -> dict[str, str]:
    """Build a group in this process; kernel name → "compiled" or "cache"."""
    from emu import config
    from emu.kernel_cache import build
    from emu.plan import kernel_ref

    config.configure(cache_dir=cache_dir)
    names = {kernel_ref(item.kind, *item.key).get(item.saturate).name for item in group}
    return {name: how for name, how in build().stats().items() if name in names}
