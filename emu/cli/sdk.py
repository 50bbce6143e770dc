"""Headers and libraries for C and C++ programs: emu sdk build, emu sdk symbols."""

from __future__ import annotations

from typing import Annotated

import typer

from emu.cli._common import AsJson, pick, print_json, print_table
from emu.cli._errors import CommandError, usage

app = typer.Typer(add_completion=False, no_args_is_help=True)

_STATES = ("works", "refuses", "absent")


@app.callback()
def _root() -> None:
    """The C ABI: what a C or C++ program is compiled and linked against."""


@app.command()
def build(directory: Annotated[str, typer.Argument(metavar="DIR", help="Where it is written; the directory can be moved later.")]) -> None:
    """Write headers, libraries, a CMake package and set_env.sh into DIR."""
    from emu.sdk import interpreter, toolchain
    from emu.sdk.build import build as build_sdk

    if not directory:
        raise usage("DIR is empty; give the directory that the SDK is to be written into")
    try:
        root = build_sdk(directory)
    except (toolchain.NoCompilerError, toolchain.BuildError) as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        raise CommandError(f"{error.filename or directory}: {error.strerror}") from None
    print(f"SDK in {root}")
    print(f"  . {root}/set_env.sh")
    print("  g++ program.cpp -o program -lascendcl -lnnopbase -lopapi")
    if interpreter.shared_library() is None:
        raise CommandError(
            "this Python has no shared libpython: the libraries work in a Python process only, other programs will get an error from "
            "aclInit. Build with a Python that has one (Debian: apt install libpython3; pyenv: --enable-shared)."
        )


@app.command()
def symbols(
    state: Annotated[str | None, typer.Option("--state", help="Only these: works, refuses or absent.", show_default=False)] = None,
    json: AsJson = False,
) -> None:
    """List what the libraries export, what of it works, and what is known by name only (absent)."""
    from emu.sdk.symbols import symbols as all_symbols

    if state is not None:
        pick(state, _STATES, "state")
    chosen = [s for s in all_symbols() if state in (None, s.state)]
    if json:
        print_json([s._asdict() for s in chosen])
    else:
        print_table(("function", "library", "header", "state"), [(s.name, s.library, s.header, s.state) for s in chosen])
