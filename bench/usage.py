"""What is asked before anything is measured: are the options sensible, is everything there, does the emulator come from one place."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TextIO

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "performance.md"
INSTALL = "pip install -e '.[bench]'"
EPILOG = (
    f"Run it from the checkout, after pip install torch==2.13.0 (a CPU build; without PyTorch its columns are missing) and {INSTALL}, "
    "which brings gmpy2 for the reference, cffi for the C ABI (with a C++ compiler), matplotlib for --plot and pyperf for --pyperf."
)
#: Changes when the shape of the JSON does.
FORMAT = 2


class UsageError(Exception):
    """Nothing is measured; the text is one sentence."""


def parser() -> argparse.ArgumentParser:
    """The options."""
    about = "Measure, judge, print; --report prints and writes the page of an earlier run."
    p = argparse.ArgumentParser(prog="python -m bench", description=about, epilog=EPILOG)
    amount = p.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="the cells that say most, within 3 minutes (all of them: within 30)")
    amount.add_argument("--tiny", action="store_true", help="exercise the harness in seconds; the figures mean nothing")
    amount.add_argument("--report", type=Path, metavar="JSON", help="measure nothing: take the figures of an earlier --json FILE")
    p.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    p.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures (needs matplotlib)")
    p.add_argument("--pyperf", type=Path, metavar="FILE", help="write the samples for `python -m pyperf compare_to` (needs pyperf)")
    p.add_argument("--page", type=Path, nargs="?", const=PAGE, metavar="FILE", help="write the page; without FILE docs/performance.md")
    p.add_argument("--remark", default="", help="a sentence for the page about this run")
    return p


def amount(options: argparse.Namespace) -> str:
    """The name of the amount that is to be measured."""
    return "quick" if options.quick else "tiny" if options.tiny else "full"


def command(argv: Sequence[str]) -> str:
    """The command as it was given; of a file elsewhere only its name, for it goes into files that are published."""
    return shlex.join(["python", "-m", "bench", *(Path(a).name if a.startswith("/") else a for a in argv)])


def check(options: argparse.Namespace) -> dict[str, Any] | None:
    """Raise UsageError for what cannot work; returns the figures that --report names."""
    _files(options)
    for option, given, module in (("--plot", options.plot, "matplotlib"), ("--pyperf", options.pyperf, "pyperf")):
        if given is not None:
            _module(module, option)
    if options.plot is not None:
        _ending(options.plot)
    if options.report is None:
        _settings()
        one_place()
        _module("gmpy2", "the reference that every result is compared with")
        return _page(options, amount(options), None)
    if options.pyperf is not None:
        raise UsageError("--pyperf writes samples, and --report has none: measure")
    result = load(options.report)
    return _page(options, "interrupted" if result.get("interrupted") else result["amount"], result)


def _files(options: argparse.Namespace) -> None:
    seen: dict[Path, str] = {}
    for option in ("json", "plot", "pyperf", "page"):
        path = getattr(options, option)
        if path is None:
            continue
        if not _writable(path):
            raise UsageError(f"cannot write {path}: name a file in a directory that exists and is yours")
        other = seen.setdefault(path.resolve(), option)
        if other != option:
            raise UsageError(f"--{other} and --{option} are the same file {path}: name two")


def _writable(path: Path) -> bool:
    """Whether a file can be written there, asked before a run of half an hour and without making one."""
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


def _module(name: str, what_for: str) -> None:
    """Imported, not only looked for: a module that is there and broken costs the run as well."""
    try:
        import_module(name)
    except Exception as error:
        why = "" if find_spec(name) is None else f" (here it cannot be imported: {one_line(error)})"
        raise UsageError(f"{what_for} needs {name}: {INSTALL}{why}") from None


def _ending(path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    known = FigureCanvasAgg.get_supported_filetypes()
    if path.suffix.removeprefix(".").lower() not in known:
        raise UsageError(f"--plot {path}: the file's ending says what is drawn, one of {', '.join(sorted(known))}")


def _page(options: argparse.Namespace, found: str, result: dict[str, Any] | None) -> dict[str, Any] | None:
    if options.page is not None and options.page.resolve() == PAGE and (found != "full" or options.plot is None):
        raise UsageError("docs/performance.md is the page of a full run with its --plot: name another file, as --page FILE")
    return result


def one_place() -> None:
    """The emulator and its kernels are of one place: beside an installed copy the checkout's emu/ would run with the copy's kernels."""
    again = f"install the checkout itself: {INSTALL}"
    try:
        where = {name: _directory(name) for name in ("emu", "emu_kernels")}
    except ImportError as error:
        raise UsageError(f"the emulator cannot be imported ({one_line(error)}): {again}") from None
    if where["emu"] != where["emu_kernels"]:
        places = " and ".join(f"{name} of {place}" for name, place in where.items())
        raise UsageError(f"this would measure {places}, which need not belong together; {again}")


def _directory(name: str) -> Path:
    return Path(str(import_module(name).__file__)).resolve().parents[1]


def _settings() -> None:
    from emu import config

    try:
        config.current()
    except ValueError as error:
        raise UsageError(str(error)) from None


def load(path: Path) -> dict[str, Any]:
    """The figures of an earlier run."""
    try:
        result = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise UsageError(f"--report {path}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"--report {path}: this is no JSON file") from None
    if not isinstance(result, dict) or not {"format", "amount", "cells", "machine"} <= result.keys():
        raise UsageError(f"--report {path}: this is no file that `python -m bench --json` wrote")
    if not isinstance(result["cells"], list) or not {"packages", "cpu"} <= set(result["machine"] or ()):
        raise UsageError(f"--report {path}: this is no file that `python -m bench --json` wrote")
    if result["format"] != FORMAT:
        raise UsageError(f"--report {path}: its format is {result['format']}, and this version reads {FORMAT}: measure again")
    return result


def no_cffi() -> str | None:
    """What the C ABI lacks, in words."""
    return f"needs cffi ({INSTALL})" if find_spec("_cffi_backend") is None else None


def complain(text: str) -> None:
    """One line on stderr; where nobody reads it, the run goes on all the same."""
    try:
        print(f"python -m bench: {text}", file=sys.stderr, flush=True)
    except OSError:
        to_nowhere(sys.stderr)


def to_nowhere(stream: TextIO) -> None:
    """What the stream still has and what comes goes to no file: nobody reads it, and Python would fail to write it at its end."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def one_line(error: BaseException) -> str:
    """The error without its further lines and without a full stop."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
