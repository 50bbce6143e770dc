"""Compile C++ programs against the emulator: emu cxx FILE... -o PROGRAM.

The C++ compiler of the machine (or Zig's, from PyPI) with the flags for the emulator's headers and libraries; everything else on the
line is given to the compiler as it stands.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from emu.cli._common import CFFI_ADVICE, has_cffi, settings
from emu.cli._errors import CommandError

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def command(
    arguments: Annotated[list[str], typer.Argument(metavar="FILE... [-o PROGRAM] [COMPILER OPTIONS]", show_default=False)],
    sdk: Annotated[Path | None, typer.Option("--sdk", help="An SDK of `emu sdk build` [default: one in the cache].")] = None,
) -> None:
    """Run the C++ compiler with the emulator's headers and libraries."""
    from emu.sdk import toolchain
    from emu.sdk.build import compile_flags, default, link_flags

    if not has_cffi():
        raise CommandError(f"the program could not call the emulator: cffi is missing: {CFFI_ADVICE}")
    try:
        compiler = toolchain.cxx_compiler()
        root = default(settings().cache_dir) if sdk is None else sdk.resolve()
    except (toolchain.NoCompilerError, toolchain.BuildError) as error:
        raise CommandError(str(error)) from None
    if not (root / "include" / "acl" / "acl.h").is_file():
        raise CommandError(f"{root} is no SDK: there is no include/acl/acl.h; write one with `emu sdk build {root}`")
    links = [] if "-c" in arguments or "-E" in arguments or "-S" in arguments else link_flags(root)
    line = [*compiler, *compile_flags(root), *arguments, *links]
    os.execvp(line[0], line)
