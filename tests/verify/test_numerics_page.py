"""docs/numerics.md says what the code says: the assumed items, the options of the command, and the counts that need no other machine."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
import typer
from emu_kernels.assumptions import ASSUMPTIONS
from typer.testing import CliRunner

from emu.cli import verify as command
from emu.verify import catalog, differences

PAGE = Path(__file__).resolve().parents[2] / "docs" / "numerics.md"


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text()


def cells(page: str, heading: str) -> list[list[str]]:
    """Rows of the first table after a heading, without its header."""
    section = page.split(f"## {heading}\n", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows[2:]]


def test_every_assumption_is_listed_as_it_is(page: str) -> None:
    want = [[f"`{a.name}`", a.text, a.default, ", ".join(x for x in a.values if x != a.default) or "–"] for a in ASSUMPTIONS]
    assert cells(page, "What is assumed") == want


def test_commands_of_the_page_exist(page: str) -> None:
    app = typer.Typer()
    app.command()(command.command)
    described = CliRunner(env={"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1"}).invoke(app, ["--help"]).output
    commands = set(re.findall(r"emu verify ([^#\n]*)", page))
    options = sorted({o for text in commands for o in re.findall(r"--[a-z]+", text)})
    assert len(commands) >= 6
    assert {"--quick", "--exhaustive", "--resume", "--scheduler", "--differences"} <= set(options)
    for option in options:
        assert option in described, option


def test_counts_of_every_pattern_are_still_true(page: str) -> None:
    """The rows that try every pattern have no random inputs; PyTorch's column depends on its version and is not checked."""
    listed = {(r[0], r[1]): r for r in cells(page, "How many inputs differ") if r[2].startswith("every finite value")}
    assert {op.name for op in catalog.OPS if not op.rows} == {name for name, _ in listed}
    checked = [o for o in differences.OTHERS if o != "torch"]
    for line in differences.measure(("BF16",), cases=1024):
        if line.inputs.startswith("every finite value"):
            row = listed[line.operator, line.dtype]
            counts = ["–" if line.counts[o] is None else f"{line.counts[o]:,}" for o in checked]
            assert row[3:] == [f"{line.cases:,}", *counts, row[-1]], line.operator


def test_snippets_print_what_the_page_says(page: str) -> None:
    pairs = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", page, re.DOTALL)
    assert len(pairs) == page.count("```python") == 1
    for code, output in pairs:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(code, {})
        assert printed.getvalue() == output
