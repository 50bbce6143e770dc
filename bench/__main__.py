"""``python -m bench``: measure, judge, print; ``--report`` writes the page of an earlier run."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

from bench import usage

INTERRUPTED = 130


class Outputs:
    """Standard output and the files. One that fails is reported once on stderr, and costs nothing but itself."""

    def __init__(self) -> None:
        self.failed = False

    def attempt(self, name: str, write: Callable[[], object]) -> None:
        """Write one of them."""
        try:
            write()
        except Exception as error:
            self._report(name, error)

    def _report(self, name: str, error: Exception) -> None:
        self.failed = True
        usage.complain(f"{name}: {usage.one_line(error)}")

    def say(self, text: str) -> None:
        """Print at once. When nobody reads any more or the disk is full, the rest goes nowhere and the run goes on."""
        try:
            print(text, flush=True)
        except OSError as error:
            self._report("standard output", error)
            usage.to_nowhere(sys.stdout)


def main(argv: Sequence[str] | None = None) -> int:
    """0; 1 when a competitor computes something wrong, an output or a part of the run fails; 2 for wrong usage; 130 when interrupted."""
    argv = sys.argv[1:] if argv is None else argv
    options = usage.parser().parse_args(argv)
    try:
        result = usage.check(options)
    except usage.UsageError as error:
        usage.complain(str(error))
        return 2
    outputs = Outputs()
    kept: list[tuple[Any, Any]] = []
    if result is None:
        from bench import run
        from bench.work import WrongResultError

        result = {"command": usage.command(argv)}
        try:
            run.measure(run.settings(usage.amount(options)), outputs.say, result, kept)
        except WrongResultError as error:
            usage.complain(f"wrong result, so the run ends without a figure: {error}")
            return 1
        except KeyboardInterrupt:
            _interrupted(options, result, outputs, kept)
            return INTERRUPTED
        except Exception:
            _interrupted(options, result, outputs, kept)
            raise
    if options.remark:
        result["remark"] = options.remark
    try:
        _write(options, result, outputs, kept)
    except KeyboardInterrupt:
        usage.complain("interrupted while the outputs were written")
        return INTERRUPTED
    return int(outputs.failed or bool(result.get("failed")))


def _interrupted(options: argparse.Namespace, result: dict[str, Any], outputs: Outputs, kept: list[tuple[Any, Any]]) -> None:
    """What was finished is kept, but not as the page of a full run."""
    result["interrupted"] = True
    cells = len(result.get("cells", []))
    named = options.json or options.pyperf or options.page or options.plot
    usage.complain(f"interrupted after {cells} cells" + (", which are kept in the files that were named" if cells and named else ""))
    if options.page is not None and options.page.resolve() == usage.PAGE:
        options.page = None
    if cells:
        _write(options, result, outputs, kept, text=False)


def _write(options: argparse.Namespace, result: dict[str, Any], outputs: Outputs, kept: list[tuple[Any, Any]], text: bool = True) -> None:
    """Every output that was asked for, the figures first."""
    from bench import report

    if options.json is not None:
        outputs.attempt(f"--json {options.json}", lambda: options.json.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8"))
    if options.pyperf is not None:
        from bench import pyperf_file

        outputs.attempt(f"--pyperf {options.pyperf}", lambda: pyperf_file.write(kept, options.pyperf))
    if text:
        outputs.attempt("report", lambda: outputs.say(report.text(result)))
    if options.plot is not None:
        from bench import plot

        outputs.attempt(f"--plot {options.plot}", lambda: plot.draw(result, options.plot))
    if options.page is not None:
        outputs.attempt(f"--page {options.page}", lambda: report.page(result, options.page, options.plot))


if __name__ == "__main__":
    sys.exit(main())
