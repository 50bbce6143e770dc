"""``python -m bench``: measure, judge, print; ``--report`` writes the page of an earlier run."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

INSTALL = "Run it from the checkout, after pip install torch==2.13.0 '.[bench]' (a CPU build; without PyTorch its columns are missing)."
PAGE = Path(__file__).resolve().parent.parent / "docs" / "performance.md"


def parser() -> argparse.ArgumentParser:
    """The options."""
    p = argparse.ArgumentParser(prog="python -m bench", description=__doc__, epilog=INSTALL)
    amount = p.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="the cells that say most, within 3 minutes (all of them: within 30)")
    amount.add_argument("--tiny", action="store_true", help="exercise the harness in seconds; the figures mean nothing")
    p.add_argument("--json", type=Path, metavar="FILE", help="write every figure")
    p.add_argument("--plot", type=Path, metavar="FILE", help="draw the figures (needs matplotlib)")
    p.add_argument("--pyperf", type=Path, metavar="FILE", help="write the samples for `python -m pyperf compare_to` (needs pyperf)")
    p.add_argument("--report", type=Path, metavar="JSON", help="measure nothing: take the figures of an earlier --json FILE")
    p.add_argument("--page", type=Path, nargs="?", const=PAGE, metavar="FILE", help="write the page; without FILE docs/performance.md")
    p.add_argument("--remark", default="", help="a sentence for the page about this run")
    return p


def say(text: str) -> None:
    """Progress, at once."""
    print(text, flush=True)


def writable(path: Path) -> bool:
    """Whether a file can be written there, asked before a run of half an hour and without making one."""
    if path.exists():
        return not path.is_dir() and os.access(path, os.W_OK)
    return path.parent.is_dir() and os.access(path.parent, os.W_OK)


def main(argv: list[str] | None = None) -> int:
    """0; 1 when a competitor computes something wrong; 2 for wrong usage."""
    options = parser().parse_args(argv)
    for option, given, module in (("--plot", options.plot, "matplotlib"), ("--pyperf", options.pyperf, "pyperf")):
        if given is not None and find_spec(module) is None:
            parser().error(f"{option} needs {module}: pip install 'aclnn-emu[bench]'")
    if options.pyperf is not None and options.report is not None:
        parser().error("--pyperf writes samples, and --report has none: measure")
    for path in (options.json, options.plot, options.pyperf, options.page):
        if path is not None and not writable(path):
            print(f"python -m bench: cannot write {path}: name a file in a directory that exists and is yours", file=sys.stderr)
            return 2
    from bench import report

    result: dict[str, Any]
    if options.report is not None:
        result = json.loads(options.report.read_text(encoding="utf-8"))
    else:
        from bench import run
        from bench.work import WrongResultError

        name = "quick" if options.quick else "tiny" if options.tiny else "full"
        suite = None
        if options.pyperf is not None:
            from bench.pyperf_file import Suite

            suite = Suite()
        try:
            result = run.measure(run.settings(name), say, None if suite is None else suite.keep)
        except WrongResultError as error:
            print(f"wrong result, so the run ends without a figure: {error}", file=sys.stderr)
            return 1
        if suite is not None:
            suite.write(options.pyperf)
    if options.remark:
        result["remark"] = options.remark
    if options.json is not None:
        options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(report.text(result))
    if options.plot is not None:
        from bench import plot

        plot.draw(result, options.plot)
    if options.page is not None:
        report.page(result, options.page, options.plot)
    return 0


if __name__ == "__main__":
    sys.exit(main())
