"""Count how many inputs change with each named assumption that an operator rests on."""

from __future__ import annotations

from typing import Annotated

import typer

from emu.cli._common import AsJson, progress_bar
from emu.cli.diff_soc import show
from emu.cli.study import Columns, Count, Dtypes, Grad, Inputs, Markdown, Op, RowLength, Seed, guarded, products, split


def command(
    op: Op,
    dtype: Dtypes = None,
    soc: Annotated[str, typer.Option("--soc", metavar="A,B", help="Products, or all: one of each architecture.")] = "all",
    inputs: Inputs = "auto",
    grad: Grad = None,
    n: Count = 1 << 18,
    seed: Seed = 0,
    row_length: RowLength = 64,
    columns: Columns = False,
    markdown: Markdown = False,
    as_json: AsJson = False,
) -> None:
    """Count how many inputs change with each named assumption that an operator rests on."""
    with progress_bar() as bar:
        task = bar.add_task(op, total=None)

        def work() -> object:
            from emu.study import diff_assumption

            return diff_assumption(
                op, socs=products(soc), dtypes=None if dtype is None else [d.upper() for d in split(dtype)], inputs=inputs, grad=grad, n=n,
                seed=seed, row_length=row_length, last=not columns,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )  # fmt: skip

        found, single = guarded(work)
    show(op, found, as_json, markdown)
    if single and not as_json and not markdown:
        print("One value only is known, nothing to compare: " + ", ".join(single))
