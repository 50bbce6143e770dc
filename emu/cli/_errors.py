"""What a failed command says, and its exit code."""

from __future__ import annotations

import errno
import os
import sys
from io import TextIOWrapper
from typing import Any

import typer

from emu.status import AclError

#: What a full disk, a closed descriptor or a broken device says when output is written to it.
_NO_OUTPUT = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)

# Typer brings its own copy of Click, or uses the installed one, by version: reach Click's exceptions through typer's name for one of them.
_USAGE: Any = typer.BadParameter.__bases__[0]
_CLICK: Any = _USAGE.__bases__[0]


class CommandError(Exception):
    """A command cannot go on. The text says what to do; ``code`` is 2 for wrong usage."""

    def __init__(self, text: str, code: int = 1) -> None:
        super().__init__(text)
        self.code = code


def usage(text: str) -> CommandError:
    """Wrong usage: exit code 2."""
    return CommandError(text, 2)


def say(text: str) -> None:
    """One message on stderr, never wrapped."""
    print(f"emu: {text}", file=sys.stderr)


def report(error: Exception) -> int:
    """Print what went wrong; the exit code. An exception that is no user's mistake is raised again, with its traceback."""
    if isinstance(error, CommandError):
        say(str(error))
        return error.code
    if isinstance(error, _USAGE):
        ctx = error.ctx
        where = f" Try {ctx.command_path} --help" if ctx is not None else ""
        text = error.format_message()
        if text:
            say(f"{text}{'' if text.endswith('.') else '.'}{where}")
        return 2  # without a text: the help, which is on the screen already
    if isinstance(error, _CLICK):
        say(error.format_message())
        return int(error.exit_code)
    if isinstance(error, typer.Abort):
        say("interrupted")
        return 130
    if isinstance(error, AclError):
        say(str(error))
        return 1
    if isinstance(error, MemoryError):
        say(f"out of memory{f': {error}' if str(error) else ''}; try smaller arrays")
        return 1
    if isinstance(error, BrokenPipeError):
        _drop_stdout()  # the reader has gone
        return 1
    if isinstance(error, OSError) and error.errno in _NO_OUTPUT and error.filename is None:
        say(f"the output cannot be written: {error.strerror}")
        _drop_stdout()
        return 1
    raise error


def _drop_stdout() -> None:
    """Keep the interpreter from complaining about what is still buffered when it flushes at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


_before: list[str] = []


def escape_output() -> None:
    """Let stdout escape the signs that its encoding has not, as stderr does, instead of failing at them."""
    stream = sys.stdout
    if isinstance(stream, TextIOWrapper) and stream.errors in ("strict", "surrogateescape"):
        _before[:] = [stream.errors]
        stream.reconfigure(errors="backslashreplace")


def restore_output() -> None:
    """Undo :func:`escape_output`, for a script that is to find stdout as Python makes it."""
    if _before and isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(errors=_before.pop())
