"""Run an operator on .npy files: emu call selu_backward grad.npy result.npy -o out.npy.

The operators, their files and their options come from the declarations: attributes are options with the parameter's name.
"""

from __future__ import annotations

from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperGroup

from emu.cli._common import AsJson, Numerics, Soc, Strict, print_json, progress_bar, settings
from emu.cli._errors import CommandError, usage

if TYPE_CHECKING:
    from emu.opdef.spec import Operator

_HELP = "Run an operator on .npy files: emu call selu_backward grad.npy result.npy -o out.npy."
_DTYPE = "What the files hold; a uint16 file needs it: bf16 or float16."

Output = Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The .npy file to write.")]
Dtype = Annotated[str | None, typer.Option("--dtype", help=_DTYPE)]
OutDtype = Annotated[str | None, typer.Option("--out-dtype", help="Data type of the output, where the operator casts.")]


def _inputs(op: Operator) -> list[Any]:
    from emu.opdef.spec import Role

    return [p for p in op.params if p.role in (Role.IN, Role.INOUT, Role.ATTR)]


def _operator_command(op: Operator) -> Any:
    """The command of one operator."""
    params = _inputs(op)

    def run(**given: Any) -> None:
        _run(op, given)

    kind = Parameter.KEYWORD_ONLY
    signature = []
    for p in params:
        if p.is_tensor:
            hint: Any = Annotated[Path, typer.Argument(metavar=f"<input {p.python}.npy>", show_default=False)]
        else:
            hint = Annotated[int, typer.Option(f"--{p.python.replace('_', '-')}", show_default=False)]
        signature.append(Parameter(p.python, kind, annotation=hint))
    common = (
        ("output_file", Output, Parameter.empty), ("soc", Soc, None), ("numerics", Numerics, None), ("dtype", Dtype, None),
        ("out_dtype", OutDtype, None), ("strict_products", Strict, None), ("as_json", AsJson, False),
    )  # fmt: skip
    signature += [Parameter(name, kind, annotation=hint, default=default) for name, hint, default in common]
    run.__signature__ = Signature(signature)  # type: ignore[attr-defined]
    run.__annotations__ = {p.name: p.annotation for p in signature}
    app = typer.Typer(add_completion=False)
    app.command(op.python_name, help=op.summary)(run)
    return typer.main.get_command(app)


class OperatorGroup(TyperGroup):
    """One subcommand for each declared operator, under its Python name; the C name works as well."""

    def list_commands(self, ctx: Any) -> list[str]:
        from emu.opdef.catalogue import OPERATORS

        return [op.python_name for op in OPERATORS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        from emu.opdef.catalogue import operator

        try:
            return _operator_command(operator(cmd_name))
        except LookupError as error:
            raise usage(str(error.args[0])) from None


app = typer.Typer(cls=OperatorGroup, add_completion=False, no_args_is_help=True, help=_HELP)


@app.callback()
def _group() -> None:
    pass


def _run(op: Operator, given: dict[str, Any]) -> None:
    config = settings(soc=given["soc"], numerics=given["numerics"], strict_products=given["strict_products"])
    from emu import ops
    from emu.cli import _npy
    from emu.status import AclError

    dtype = _npy.data_type(given["dtype"], "--dtype")
    out_dtype = _npy.data_type(given["out_dtype"], "--out-dtype")
    target = _npy.target(given["output_file"])
    values: dict[str, Any] = {}
    with progress_bar() as bar:
        files = {p.python: _npy.read(given[p.python], p.python, dtype, bar) for p in _inputs(op) if p.is_tensor}
        for p in _inputs(op):
            values[p.python] = files[p.python].array if p.is_tensor else given[p.python]
        if out_dtype is not None:
            values["out"] = _npy.empty(next(iter(files.values())).array.shape, out_dtype)
        busy = bar.add_task("computing", total=None)
        try:
            result = ops.function(op)(**values)
        except (OverflowError, TypeError) as error:  # a value that C's parameter cannot hold
            raise usage(f"{op.name}: {error}") from None
        except AclError as error:
            raise CommandError(f"{error}{_npy.hint(files, op, error.code)}") from None
        bar.remove_task(busy)
        _npy.write(target, result, any(f.bits for f in files.values()), bar)
    report = {
        "operator": op.name,
        "soc": config.soc,
        "numerics": config.numerics,
        "output": str(given["output_file"]),
        "shape": list(result.shape),
        "dtype": _npy.name(result),
    }
    if given["as_json"]:
        print_json(report)
    else:
        print(f"{op.name} on {config.soc}, numerics {config.numerics}: {given['output_file']}, shape {result.shape}, {_npy.name(result)}")
