"""Show which operators there are, on which products, with which data types.

A cell lists the data types that phase 1 takes. "document: not supported" marks a product that the operator's document excludes: it
is refused (561103) unless strict_products is off; what real cards are known to do stands beside it.
"""

from __future__ import annotations

from typing import Annotated

import typer

from emu.cli._common import AsJson, print_json, print_table
from emu.cli._errors import usage


def command(
    operators: Annotated[list[str] | None, typer.Argument(metavar="[OP]...", help="Only these operators, by C or Python name.")] = None,
    as_json: AsJson = False,
    markdown: Annotated[bool, typer.Option("--markdown", help="Print the table in Markdown.")] = False,
    assumptions: Annotated[bool, typer.Option("--assumptions", help="Show what is assumed, not measured, and by whom.")] = False,
) -> None:
    """Show which operators there are, on which products, with which data types."""
    from emu.cli import _matrix
    from emu.opdef.catalogue import OPERATORS, operator

    try:
        ops = [operator(name) for name in operators] if operators else list(OPERATORS)
    except LookupError as error:
        raise usage(str(error.args[0])) from None
    if assumptions:
        _assumptions([op.name for op in ops], as_json)
    elif as_json:
        print_json(_matrix.as_dict(ops))
    elif markdown:
        print(_matrix.markdown(ops))
    else:
        print_table(_matrix.header(), _matrix.rows(ops))
        print("document: not supported = refused with 561103; --no-strict-products or EMU_STRICT_PRODUCTS=0 runs it all the same.")
        print(
            "Columns are families of products. --soc and EMU_SOC take the name of a SoC: "
            + ", ".join(f"{family}: {socs[0].name} …" for family, socs in _matrix.families().items())
            + ". The SoC Ascend910B is an Atlas training card of the family Ascend910."
        )
        print("Names in Python and here: " + ", ".join(op.python_name for op in ops))


def _assumptions(names: list[str], as_json: bool) -> None:
    from emu.assumptions import all_assumptions
    from emu.opdef.catalogue import OPERATORS, operator

    ops = [operator(name) for name in names]
    table = [(a, [op.name for op in ops if a.name in op.assumptions]) for a in all_assumptions()]
    if len(ops) < len(OPERATORS):
        table = [(a, users) for a, users in table if users]
    if as_json:
        print_json(
            [{"name": a.name, "text": a.text, "default": a.default, "values": list(a.values), "operators": users} for a, users in table]
        )
        return
    print("Assumed: no public source settles these, and no card has measured them.")
    for a, users in table:
        print(f"\n{a.name}: {a.text}.")
        print(
            f"  in force: {a.default}"
            + (f"; others known: {', '.join(v for v in a.values if v != a.default)}" if len(a.values) > 1 else "")
        )
        print(f"  operators: {', '.join(users) if users else 'none by itself'}")
