"""What the commands that compare results with each other share: options, progress and the table of differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.cli._common import AsJson, print_json, progress_bar
from emu.cli.study import (
    Columns,
    Count,
    Grad,
    Inputs,
    Markdown,
    Op,
    RowLength,
    Seed,
    check_output,
    count_of,
    guarded,
    print_text,
    say_count,
)  # fmt: skip

if TYPE_CHECKING:
    from emu.study.differ import Difference


def comparison(name: str, count: int, kinds: str, show: Callable[[str, Any, bool, bool], None]) -> Callable[..., None]:
    """The command that runs ``emu.study.<name>``, with `count` elements by default, and gives what it found to `show`; `kinds` says which
    data types are the default."""
    dtypes: Any = typer.Option(None, "--dtype", metavar="A,B", help=f"Data types. Default: {kinds}.", show_default=False)

    def command(
        op: Op,
        dtype: str | None = dtypes,
        soc: Annotated[str, typer.Option("--soc", metavar="A,B", help="Products, or all: one of each architecture.")] = "all",
        inputs: Inputs = "auto",
        grad: Grad = None,
        n: Count = None,
        seed: Seed = 0,
        row_length: RowLength = None,
        columns: Columns = False,
        markdown: Markdown = False,
        as_json: AsJson = False,
    ) -> None:
        import emu.study

        check_output(as_json, markdown)
        with progress_bar() as bar:
            task = bar.add_task(op, total=None)
            found = guarded(
                lambda: getattr(emu.study, name)(
                    op, socs=soc, dtypes=dtype, inputs=inputs, grad=grad,
                    n=count_of(n, inputs, count), seed=seed, row_length=row_length, last=not columns,
                    progress=lambda done, total: bar.update(task, completed=done, total=total),
                )
            )  # fmt: skip
        say_count(n, (d.inputs for d in (found[0] if isinstance(found, tuple) else found)))
        show(op, found, as_json, markdown)

    return command


def show_differences(op: str, found: Sequence[Difference], as_json: bool, markdown: bool) -> None:
    """The pairs as JSON or as a table with the largest difference of each."""
    if as_json:
        from emu.study.result import plain

        print_json(plain([d.row() | {"first": list(d.first)} for d in found]))
        return
    rows = []
    for d in found:
        first = d.first[0] if d.first else None
        ins = "" if first is None else ", ".join(f"{i['name']}={i['decimal']}" for i in first["inputs"])
        case = "" if first is None else f"{ins}: {first['result']} / {first['golden']}"
        rows.append([d.dtype, d.what, d.other, f"{d.differing} of {d.n}", f"{100 * d.share:.3g} %", str(d.steps_max), str(d.special), case])
    header = ["dtype", "this", "other", "differ", "share", "steps, largest", "NaN or inf differ", "largest difference: this / other"]
    print_text([header, *rows], markdown, op)
    if not markdown:
        print("steps: representable values between the two results. Any NaN equals any NaN.")
