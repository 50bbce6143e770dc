"""Run a pyACL script or a C++ program: emu run [OPTIONS] PROGRAM [ARGS]...

``import acl`` gives the emulator, in a script and in the Python processes that it or a program starts; any other program finds the
emulator's libraries. Everything after the program's name belongs to the program. The options become environment variables, so that
processes which the program starts have them as well.
"""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from emu.cli._common import CFFI_ADVICE, Numerics, Soc, Strict, has_cffi, settings
from emu.cli._errors import CommandError, restore_output, say, usage

Devices = Annotated[int | None, typer.Option("--devices", help="How many devices the machine has [EMU_DEVICES].")]
Schedule = Annotated[str | None, typer.Option("--schedule", help="eager, async, lazy or shuffle:SEED [EMU_SCHEDULE].")]

Trace = Annotated[Path | None, typer.Option("--trace", metavar="OUT.json", help="Write a timeline of the program [EMU_TRACE].")]
Clock = Annotated[str | None, typer.Option("--clock", help="simulated or wall: what events and the timeline report [EMU_CLOCK].")]
Host = Annotated[str | None, typer.Option("--host", help="Simulated host time of one call: none, cpp, python or µs [EMU_HOST].")]

#: Where ``import acl`` finds the emulator without :func:`emu.install`.
_SHIM = str(Path(__file__).parents[1] / "shim")
_SOURCES = (".c", ".cc", ".cpp", ".cxx")

app = typer.Typer(add_completion=False)


@app.command(context_settings={"allow_interspersed_args": False, "ignore_unknown_options": False})
def command(
    program: Annotated[Path, typer.Argument(metavar="PROGRAM", show_default=False)],
    args: Annotated[list[str] | None, typer.Argument(metavar="[ARGS]...", show_default=False)] = None,
    soc: Soc = None,
    devices: Devices = None,
    numerics: Numerics = None,
    schedule: Schedule = None,
    strict_products: Strict = None,
    trace: Trace = None,
    clock: Clock = None,
    host: Host = None,
) -> None:
    """Run a Python script with `import acl` resolved to the emulator, or a program with its libraries. Options stand before it."""
    settings(soc=soc, devices=devices, numerics=numerics, schedule=schedule, strict_products=strict_products, clock=clock, host=host)
    strict = None if strict_products is None else str(int(strict_products))
    given: dict[str, object] = {"SOC": soc, "DEVICES": devices, "NUMERICS": numerics, "SCHEDULE": schedule, "STRICT_PRODUCTS": strict}
    given |= {"CLOCK": clock, "HOST": host, "TRACE": trace and trace.resolve()}
    os.environ.update({f"EMU_{name}": str(value) for name, value in given.items() if value is not None})
    if not program.exists():
        raise CommandError(f"{program}: no such file; give the path of a Python script or of a program")
    if program.is_dir():
        raise CommandError(f"{program} is a directory; give the path of a Python script or of a program")
    if trace is not None:
        _check_trace(trace)
    _for_children()
    if program.suffix not in (".py", ".pyw") and os.access(program, os.X_OK) and not _is_python(program):
        run_program(program, args or [])
    run_script(program, args or [])


def _check_trace(path: Path) -> None:
    """Wrong usage when no timeline can be written there; nothing is changed, nor left behind."""
    from emu.timeline import events

    new = not path.exists()
    try:
        os.close(events.claim(path))
    except OSError as error:
        raise usage(f"--trace {path}: {error.strerror}; give the name of a file that can be written") from None
    if new:
        path.unlink()


def run_program(program: Path, args: list[str]) -> NoReturn:
    """Become the program: its output, signals and exit code are its own. It finds the emulator's libraries before any others."""
    from emu.sdk import toolchain
    from emu.sdk.build import default

    if not has_cffi():
        say(f"{program}: the emulator's libraries will not work in it without cffi: {CFFI_ADVICE}")
    try:
        libraries = str(default(settings().cache_dir) / "lib64")
    except toolchain.NoCompilerError:
        # A program that was built for an SDK elsewhere has its path inside.
        libraries = ""
    except toolchain.BuildError as error:
        raise CommandError(str(error)) from None
    found = ":".join(filter(None, (libraries, os.environ.get("LD_LIBRARY_PATH"))))
    if found:
        os.environ["LD_LIBRARY_PATH"] = found
    try:
        os.execv(program.resolve(), [str(program), *args])
    except OSError as error:
        raise CommandError(f"{program}: {error.strerror}") from None


def run_script(script: Path, args: list[str]) -> None:
    """Run a Python script in this process as ``python script args`` would, with the emulator's ``acl``.

    Its exit code is the script's, or 1 when that is 0 and the timeline could not be written.
    """
    import emu

    if script.suffix not in (".py", ".pyw") and not _is_python(script):
        hint = f"; compile it first: emu cxx {script} -o {script.with_suffix('')}" if script.suffix in _SOURCES else ""
        raise usage(f"{script} is no Python script; its name should end in .py{hint}")
    emu.install()
    trace = os.environ.get("EMU_TRACE")  # the first context takes it away
    before = _state(trace)
    sys.argv = [str(script), *args]
    sys.path[0] = str(script.resolve().parent)
    sys.path.insert(1, _SHIM)  # processes that multiprocessing spawns take this list from us
    restore_output()
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as done:
        if done.code not in (None, 0):
            raise
    except Exception as error:
        _print_as_python_does(error, script)
        raise typer.Exit(1) from None
    if trace:
        from emu import timeline

        if timeline.lost():
            raise typer.Exit(1)
        if os.environ.get("EMU_TRACE") and _state(trace) == before:  # else a process that it started has written it
            say(f"{trace}: no timeline was written: {script} opened no device")


def _state(path: str | None) -> tuple[int, int] | None:
    """What changes with each trace that is written there; None when there is no file."""
    if not path or not os.path.exists(path):
        return None
    found = os.stat(path)
    return found.st_ino, found.st_mtime_ns


def _for_children() -> None:
    """Let Python processes that the program starts find ``acl`` before an installed pyACL."""
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (_SHIM, os.environ.get("PYTHONPATH"))))


def _is_python(script: Path) -> bool:
    try:
        with script.open("rb") as file:
            first = file.readline(200)
    except OSError as error:
        raise CommandError(f"{script}: {error.strerror}") from None
    return first.startswith(b"#!") and b"python" in first


def _print_as_python_does(error: Exception, script: Path) -> None:
    """The script's own frames, without ours below them."""
    import traceback

    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename != str(script):
        tb = tb.tb_next
    sys.stdout.flush()
    traceback.print_exception(type(error), error, tb)
