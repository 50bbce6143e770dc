"""What several commands share: their common options, the present Config, tables and progress."""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu import config
from emu.cli._errors import usage
from emu.config import Config

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

Soc = Annotated[str | None, typer.Option("--soc", help="The product, as Ascend910B1 [EMU_SOC].")]
Numerics = Annotated[str | None, typer.Option("--numerics", help="device or document [EMU_NUMERICS].")]
Strict = Annotated[
    bool | None,
    typer.Option(
        "--strict-products/--no-strict-products",
        help="Refuse what the document lists as not supported [EMU_STRICT_PRODUCTS].",
        show_default=False,
    ),
]
#: What other libraries call data types.
DTYPE_ALIASES = {
    "BFLOAT16": "BF16",
    "FLOAT32": "FLOAT",
    "FP32": "FLOAT",
    "FP16": "FLOAT16",
    "HALF": "FLOAT16",
    "FLOAT64": "DOUBLE",
    "FP64": "DOUBLE",
}
CFFI_ADVICE = "pip install 'aclnn-emu[sdk]'"
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def settings(**changes: Any) -> Config:
    """The present Config with the options that were given (None: not given). A bad value is wrong usage."""
    try:
        config.current()
    except ValueError as error:
        raise usage(str(error)) from None
    try:
        return config.configure(**{k: v for k, v in changes.items() if v is not None})
    except ValueError as error:
        raise usage(str(error)) from None


def has_cffi() -> bool:
    """Whether the libraries for C and C++ can call Python: they need cffi when a program runs."""
    try:
        import_module("_cffi_backend")
    except ImportError:
        return False
    return True


def cache_problem(config: Config) -> str | None:
    """Why compiled kernels cannot be kept, or None."""
    directory = Path(config.cache_dir).expanduser()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=directory):
            return None
    except OSError as error:
        return f"{directory}: {error.strerror or error}"


def dtype_name(text: str) -> str:
    """The name of a data type as aclDataType has it, whether there is one or not."""
    name = text.upper()
    return DTYPE_ALIASES.get(name, name)


def pick(value: str, known: Iterable[str], what: str) -> str:
    """``value`` if it is known; otherwise wrong usage with the nearest names."""
    names = list(known)
    if value in names:
        return value
    near = get_close_matches(value, names, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(names)}"
    raise usage(f"unknown {what} {value!r}: {hint}")


def print_json(value: object) -> None:
    """One JSON document on stdout. A NaN or infinity in it is an error of the caller: JSON has neither."""
    print(json.dumps(value, indent=2, allow_nan=False))


def stdout() -> Console:
    """The console for tables. Its width is the terminal's; into a pipe or a file nothing is wrapped or cut."""
    from rich.console import Console

    wide = None if sys.stdout.isatty() else 100_000
    return Console(width=wide, highlight=False, soft_wrap=wide is not None)


def print_table(header: Sequence[str], rows: Iterable[Sequence[str]], title: str | None = None) -> None:
    """A table on stdout."""
    from rich.table import Table
    from rich.text import Text

    table = Table(title=title, title_justify="left")
    for name in header:
        table.add_column(name, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    stdout().print(table)


def progress_bar() -> Progress:
    """A bar on stderr that leaves nothing behind; silent where stderr is no terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"), TimeElapsedColumn())
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)
