"""Measure how wrong an operator is: metrics, acceptance rules, worst inputs, plots, a report.

emu study selu_backward --dtype BF16,FLOAT16 --soc Ascend910B1,Ascend950PR_9599 --against true -o out --html
"""

from __future__ import annotations

import textwrap
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.cli._common import AsJson, print_json, print_table, progress_bar, stdout
from emu.cli._errors import CommandError, say, usage

if TYPE_CHECKING:
    from emu.study.acceptance import Verdict
    from emu.study.result import Study

Op = Annotated[str, typer.Argument(metavar="OP", help="An operator, by C or Python name.")]
Dtypes = Annotated[str | None, typer.Option("--dtype", metavar="A,B", help="Data types. Default: FLOAT16 and BF16.")]
Socs = Annotated[
    str | None, typer.Option("--soc", metavar="A,B", help="Products, or all: one of each architecture. Default: the present one [EMU_SOC].")
]
Inputs = Annotated[str, typer.Option("--inputs", metavar="SPEC", help="Where the inputs come from; --list shows all.")]
Grad = Annotated[
    str | None, typer.Option("--grad", metavar="SPEC", help="Distribution of the gradient. Default: as --inputs; 1 when exhaustive.")
]
Against = Annotated[str, typer.Option("--against", metavar="WHAT", help="What to compare with; --list shows all.")]
Count = Annotated[int | None, typer.Option("-n", help="Elements of a random study. Default: 2^20; sweep, diff-assumption: 2^18.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of the random inputs.")]
RowLength = Annotated[int | None, typer.Option("--row-length", help="Length of the rows that a softmax operator reduces. Default: 64.")]
Columns = Annotated[bool, typer.Option("--columns", help="Reduce a dimension that is not the last: another order of sums.")]
Numerics = Annotated[
    str | None, typer.Option("--numerics", help="device, or document: the formula of the operator's document [EMU_NUMERICS].")
]
Assume = Annotated[list[str] | None, typer.Option("--assume", metavar="NAME=VALUE", help="Change a named assumption; may be repeated.")]
Peer = Annotated[
    str | None, typer.Option("--peer", metavar="WHAT", help="The other device of the dual benchmark: torch, soc:NAME or FILE.npy.")
]
Ablate = Annotated[bool, typer.Option("--ablate", help="Show where the error enters: input, formula, intermediate and output rounding.")]
Output = Annotated[
    str | None,
    typer.Option(
        "--output",
        "-o",
        metavar="DIR",
        help="Write study.json and tables there, in place of an earlier study's files; an interrupted study goes on.",
    ),
]
Plots = Annotated[bool, typer.Option("--plots", help="With -o: also write the plots.")]
Markdown = Annotated[bool, typer.Option("--markdown", help="Print the table alone, in Markdown.")]
Metrics = Annotated[str | None, typer.Option("--metrics", metavar="A,B", help="Columns of the table; --list shows the metrics.")]
Html = Annotated[bool, typer.Option("--html", help="With -o: also write report.html.")]


def split(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(t.strip() for t in text.split(",") if t.strip())


def guarded(work: Any, resumes: bool = False) -> Any:
    """Run `work()`; a request that makes no sense is wrong usage. `resumes`: the command goes on after an interruption."""
    from emu.study.errors import StudyError, StudyWarning

    try:
        with warnings.catch_warnings():
            show = warnings.showwarning

            def told(message: Any, category: Any, *where: Any, **more: Any) -> None:
                if issubclass(category, StudyWarning):
                    say(str(message))
                else:
                    show(message, category, *where, **more)

            warnings.simplefilter("always", StudyWarning)
            warnings.showwarning = told
            return work()
    except StudyError as error:
        raise usage(str(error)) from None
    except ImportError as error:
        raise CommandError(str(error)) from None
    except KeyboardInterrupt:
        raise CommandError("interrupted" + ("; with -o the same command goes on where it stopped" if resumes else ""), 130) from None


def check_output(as_json: bool, markdown: bool, metrics: str | None = None) -> None:
    """--json has all that was found, in one form."""
    if as_json and (markdown or metrics is not None):
        raise usage(f"--json prints every metric, in JSON: leave out {'--markdown' if markdown else '--metrics'}")


def count_of(n: int | None, spec: str, default: int) -> int | None:
    """The elements of a random study: as given, else the command's default; None where --inputs says how many there are."""
    from emu.study.inputs import kind

    return default if n is None and kind(spec) in ("auto", "random") else n


def say_count(n: int | None, used: Iterable[str]) -> None:
    """Where -n was given and --inputs auto took every pattern all the same; `used` are the inputs of each study."""
    if n is not None and "exhaustive" in used:
        say(f"-n {n} has no effect where --inputs auto takes every pattern of an 8 or 16-bit dtype: try --inputs l1")


def command(
    op: Op = "",
    dtype: Dtypes = None,
    soc: Socs = None,
    inputs: Inputs = "auto",
    grad: Grad = None,
    against: Against = "exact",
    n: Count = None,
    seed: Seed = 0,
    row_length: RowLength = None,
    columns: Columns = False,
    numerics: Numerics = None,
    assume: Assume = None,
    peer: Peer = None,
    ablate: Ablate = False,
    output: Output = None,
    plots: Plots = False,
    html: Html = False,
    metrics: Metrics = None,
    markdown: Markdown = False,
    as_json: AsJson = False,
    listing: Annotated[bool, typer.Option("--list", help="List the inputs, what to compare with, and the metrics.")] = False,
) -> None:
    """Measure how wrong an operator is: metrics, acceptance rules, worst inputs, plots, a report."""
    if listing:
        _list()
        return
    if not op:
        raise usage("which operator? emu ops lists them")
    check_output(as_json, markdown, metrics)
    if output == "":
        raise usage("-o is an empty text: name a directory, or . for the present one")
    if (plots or html) and output is None:
        raise usage("--plots and --html need -o DIR")

    def check() -> None:
        # What is known to fail at the end fails before anything runs.
        from emu.study.inputs import kind
        from emu.study.plots import FILES
        from emu.study.plots import check as check_plots
        from emu.study.result import check_columns
        from emu.study.writing import TABLES, check_directory

        check_columns(split(metrics or ""), peer=peer is not None, ablate=ablate)
        if plots or html:
            check_plots()
        if output is not None:
            special = ("shapes.csv",) if kind(inputs) == "specials" else ()
            check_directory(Path(output), (*TABLES, *special, *(FILES if plots else ()), *(("report.html",) if html else ())))

    def work() -> Study:
        from emu.study import run

        with progress_bar() as bar:
            task = bar.add_task(op, total=None)
            found = run(
                op, dtypes=dtype, socs=soc, inputs=inputs, grad=grad, against=against, n=n,
                seed=seed, row_length=row_length, last=not columns, numerics=numerics, assume=tuple(assume or ()), peer=peer,
                ablate=ablate, out=output, progress=lambda done, total: bar.update(task, completed=done, total=total),
            )  # fmt: skip
            if output is not None:
                found.write(output, plots=plots, html=html)
            return found

    guarded(check)
    study = guarded(work, resumes=True)
    say_count(n, (cell.inputs for cell in study.cells))
    text = guarded(lambda: study.table() if metrics is None else study.table(("dtype", "soc", *split(metrics))))
    if as_json:
        print_json(study.to_dict())
        return
    print_text(text, markdown, f"{study.question['op']} against {study.question['against']}")
    if markdown:
        return
    _show(study)
    if output is not None:
        print(f"written to {output}")


def print_text(text: list[list[str]], markdown: bool, title: str) -> None:
    """A table, header first, for the terminal or in Markdown. Where the terminal is too narrow, each row is a paragraph
    of its own: no number is broken."""
    if markdown:
        print("\n".join("| " + " | ".join(line) + " |" for line in (text[0], ["---"] * len(text[0]), *text[1:])))
    elif sum(max(map(len, column)) + 3 for column in zip(*text, strict=True)) + 1 <= stdout().width:
        print_table(text[0], text[1:], title=title)
    else:
        print(title)
        name = max(map(len, text[0]))
        for row in text[1:]:
            print()
            for header, value in zip(text[0], row, strict=True):
                print(textwrap.fill(value, max(stdout().width, name + 12), initial_indent=f"{header:{name}}  ",
                                    subsequent_indent=" " * (name + 2), break_long_words=False, break_on_hyphens=False)
                      or header)  # fmt: skip


def _show(study: Study) -> None:
    for cell in study.cells:
        if cell.tally is None:
            continue
        rules = [v for v in cell.verdicts() if v.passed is not None]
        print(f"\n{cell.label}" + (f" ({cell.note})" if cell.note else ""))
        print("  passed: " + (", ".join(_rule(v) for v in rules if v.passed) or "no rule"))
        failed = [v for v in rules if not v.passed]
        print(
            "  failed: "
            + (", ".join(f"{_rule(v)} ({v.measured}, not {v.threshold})" for v in failed if not v.why.endswith("pass")) or "no rule")
        )
        placed = [v for v in failed if v.why.endswith("pass")]
        if placed:
            print(f"  failed for {placed[0].why.split(';')[0]} only: " + ", ".join(_rule(v) for v in placed))
        for part in cell.ablation():
            print(f"  {part['part']}: mean {part['mean_ulp']:.4g} ulp, largest {part['max_ulp']:.4g} ulp")
        if cell.shapes:
            passed = sum(s["verdict"] == "pass" for s in cell.shapes)
            print(f"  special shapes: {passed} of {len(cell.shapes)} give the bits of the flat values")
            for s in cell.shapes:
                if s["verdict"] != "pass":
                    why = s["why"] or f"{s['differ']} of {s['elements']} differ"
                    print(f"    {s['what']} {s['shape']}: {why}")
        for w in cell.traces[:1]:
            ins = ", ".join(f"{i['name']} = {i['decimal']} ({i['hex']})" for i in w["inputs"])
            print(f"  worst: {ins}: {w['result']} ({w['result_hex']}) instead of {w['golden']}, {w['ulp']:.4g} ulp")
            print("    " + "; ".join(f"{s['step']} -> {s['decimal']}" for s in w["steps_of_computation"]))
    print("\nulp: |a-g| over the spacing of the dtype at g. steps: representable values between a and g rounded once. --list defines all.")


def _rule(v: Verdict) -> str:
    return v.rule if v.level == "-" else f"{v.rule} {v.level}"


def _list() -> None:
    from emu.study import cases, distributions, measure, targets

    print_table(["--inputs", "what"], list(distributions.HELP.items()) + list(cases.HELP.items()))
    print_table(["--against", "what"], list(targets.HELP.items()))
    print_table(["metric", "definition"], list(measure.DEFINITIONS.items()))
