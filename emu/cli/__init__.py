"""The command line. Every module here without a leading underscore is a command; its name, with dashes, is the command's.

The first line of a module's docstring is the command's line in ``emu --help``, which imports none of them. A module has either
``command``, the function with typer annotations, or ``app``, a typer.Typer or a finished command (for a command with subcommands). It
imports nothing heavy at the top: ``emu COMMAND --help`` is to be quick as well.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Sequence
from functools import lru_cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from emu import __version__
from emu.cli._common import pick
from emu.cli._errors import CommandError, escape_output, report, say

_HELP = "A CPU emulator of the Ascend aclnn two-phase operator API."


@lru_cache(maxsize=1)
def summaries() -> dict[str, str]:
    """Command name → what it does, from the modules' docstrings, without importing them."""
    found: dict[str, str] = {}
    for finder, name, is_package in pkgutil.iter_modules(__path__):
        if name.startswith("_") or is_package:
            continue
        spec = finder.find_spec(f"{__name__}.{name}", None)
        source = getattr(spec.loader, "get_source", None) if spec is not None else None
        text = source(f"{__name__}.{name}") if source is not None else None
        doc = ast.get_docstring(ast.parse(text or "")) or ""
        found[name.replace("_", "-")] = doc.splitlines()[0] if doc else ""
    return dict(sorted(found.items()))


class LazyGroup(TyperGroup):
    """Loads a command's module when that command is asked for."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        return list(summaries())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        cmd_name = pick(cmd_name.replace("_", "-"), summaries(), "command")
        if self._listing:
            return TyperCommand(cmd_name, help=summaries()[cmd_name])
        module = import_module(f"{__name__}.{cmd_name.replace('-', '_')}")
        app = getattr(module, "app", None)
        if app is None:
            app = typer.Typer(add_completion=False)
            app.command(cmd_name)(module.command)
        command = typer.main.get_command(app) if isinstance(app, typer.Typer) else app
        command.name = cmd_name
        return command

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"aclnn-emu {__version__}")
        raise typer.Exit


def _root(
    version: Annotated[bool, typer.Option("--version", is_eager=True, callback=_show_version, help="Print the version.")] = False,
) -> None:
    pass


def build() -> Any:
    """The whole command line as one command object."""
    app = typer.Typer(cls=LazyGroup, add_completion=False, no_args_is_help=True, help=_HELP)
    app.callback()(_root)
    return typer.main.get_command(app)


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0 done, 1 failed, 2 wrong usage. Never a traceback for a user's mistake."""
    given = list(sys.argv[1:] if args is None else args)
    escape_output()
    try:
        if sys.stdout is None and given[:1] not in (["run"], ["cxx"]):  # other programs decide for themselves
            raise CommandError("standard output is closed: there is nowhere to print to")
        result = build()(given, prog_name="emu", standalone_mode=False)
        if result == 130:  # how typer ends at Ctrl-C, without a word
            say("interrupted")
        if sys.stdout is not None:
            sys.stdout.flush()  # here, where a full disk can still be reported
    except Exception as error:
        return report(error)
    return result if isinstance(result, int) else 0
