"""Run every command of docs/findings.md again: put its table below it and draw its plot.

python docs/findings/make.py          rewrite the page and the plots
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

PAGE = Path(__file__).resolve().parent.parent / "findings.md"
_BLOCK = re.compile(
    r"```console\n\$ emu (?P<command>[^\n]+)\n```\n\n(?P<table>(?:\|[^\n]*\n)*)(?:\n!\[[^\]]*\]\((?P<image>\S+) \"(?P<kind>\w+)\"\))?"
)


class Finding(NamedTuple):
    """One command of the page, the table that stands below it, and its plot: file name and kind, or None."""

    command: str
    table: str
    image: str | None
    kind: str | None


def findings(text: str) -> list[Finding]:
    """The commands of the page, in order."""
    return [Finding(m["command"], m["table"], m["image"], m["kind"]) for m in _BLOCK.finditer(text)]


def run(command: str) -> str:
    """What the command prints. Raises RuntimeError if it fails."""
    from emu.cli import main

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(shlex.split(command))
    if code:
        raise RuntimeError(f"emu {command}: exit code {code}: {err.getvalue()}")
    return out.getvalue()


def _plot(finding: Finding) -> None:
    with tempfile.TemporaryDirectory() as directory:
        run(f"{finding.command} -o {directory} --plots")
        (PAGE.parent / str(finding.image)).write_bytes((Path(directory) / f"{finding.kind}.svg").read_bytes())


def remake() -> None:
    """Rewrite the page's tables and draw its plots."""
    text = PAGE.read_text()
    for finding in findings(text):
        print(f"emu {finding.command}", file=sys.stderr, flush=True)
        head = f"$ emu {finding.command}\n```\n\n"
        text = text.replace(head + finding.table, head + run(finding.command), 1)
        if finding.image:
            _plot(finding)
    PAGE.write_text(text)


if __name__ == "__main__":
    remake()
