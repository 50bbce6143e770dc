"""Run a matrix of studies, operators × dtypes × products, and show one summary."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from emu.cli._common import AsJson, print_json, progress_bar
from emu.cli._errors import usage
from emu.cli.study import (
    Against,
    Count,
    Grad,
    Inputs,
    Markdown,
    Peer,
    RowLength,
    Seed,
    check_output,
    count_of,
    guarded,
    print_text,
    say_count,
)


def command(
    operators: Annotated[list[str] | None, typer.Argument(metavar="[OP]...", help="Operators. Default: all.")] = None,
    dtype: Annotated[str, typer.Option("--dtype", metavar="A,B", help="Data types.")] = "FLOAT,FLOAT16,BF16",
    soc: Annotated[str, typer.Option("--soc", metavar="A,B", help="Products, or all: one of each architecture.")] = "all",
    inputs: Inputs = "auto",
    grad: Grad = None,
    against: Against = "exact",
    n: Count = None,
    seed: Seed = 0,
    row_length: RowLength = None,
    peer: Peer = None,
    workers: Annotated[int, typer.Option("--workers", min=1, help="Local processes.")] = 2,
    scheduler: Annotated[
        str | None, typer.Option("--scheduler", metavar="tcp://HOST:PORT", help="A dask scheduler to use instead.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FILE.csv", help="Write the rows there.")] = None,
    markdown: Markdown = False,
    as_json: AsJson = False,
) -> None:
    """Run a matrix of studies, operators × dtypes × products, and show one summary."""
    check_output(as_json, markdown)
    if output is not None and output.suffix != ".csv":
        raise usage(f"-o {output}: give a file that ends in .csv")
    with progress_bar() as bar:
        task = bar.add_task("sweep", total=None)

        def work() -> object:
            from emu.study import sweep
            from emu.study.writing import check_file, csv_bytes, write_files

            target = None if output is None else check_file(output)
            found = sweep(
                operators or None, dtypes=dtype, socs=soc, workers=workers, scheduler=scheduler, inputs=inputs, grad=grad,
                against=against, n=count_of(n, inputs, 1 << 18), seed=seed, row_length=row_length, peer=peer,
                progress=lambda done, total: bar.update(task, completed=done, total=total),
            )  # fmt: skip
            if target is not None:
                write_files(target.parent, {target.name: csv_bytes(found)})
            return found

        rows = guarded(work)
    say_count(n, (row.get("inputs", "") for row in rows))
    from emu.study.result import plain, text_of

    if as_json:
        print_json(plain(rows))
        return
    columns = (
        "op",
        "dtype",
        "soc",
        "n",
        "compared",
        "exact_hits",
        "wrong_by_one",
        "steps_max",
        "ulp_mean",
        "ulp_max",
        "mere",
        "mare",
        "accepted",
        "note",
    )
    print_text([list(columns), *([text_of(row.get(c, "")) for c in columns] for row in rows)], markdown, "sweep")
