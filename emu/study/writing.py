"""The files that a study leaves: each complete or not there at all, and nothing foreign is replaced or deleted."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from emu.study.errors import StudyError

CHECKPOINT = "checkpoint.json"
#: What every study writes.
TABLES = ("study.json", "table.csv", "acceptance.csv", "worst.csv")
#: How a checkpoint begins, damaged or not.
_MARK = '{"emulator": "aclnn-emu'


def csv_bytes(rows: list[dict[str, Any]]) -> bytes:
    """Rows as CSV; the columns are those of all rows, in the order of their first appearance."""
    names: dict[str, None] = {}
    for row in rows:
        names.update(dict.fromkeys(row))
    text = io.StringIO()
    writer = csv.DictWriter(text, list(names), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue().encode(errors="backslashreplace")  # a file's name need not be UTF-8


def of_a_study(directory: Path) -> set[str]:
    """The names of the files that a study may have left in a directory beside its tables; none where no study.json of
    ours lies."""
    try:
        found = json.loads((directory / "study.json").read_bytes())
        if not str(found["emulator"]).startswith("aclnn-emu"):
            return set()
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return set()
    from emu.study.plots import FILES

    return {"shapes.csv", "report.html", *FILES}


def is_checkpoint(path: Path) -> bool:
    """Whether a study wrote the file."""
    try:
        with path.open("rb") as file:
            return file.read(len(_MARK)) == _MARK.encode()
    except OSError:
        return False


def _check_writable(directory: Path, advice: str) -> None:
    there = directory
    while not there.exists() and there != there.parent:
        there = there.parent
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        why = "no permission to write there" if there.is_dir() else f"{there} is no directory"
        raise StudyError(f"{directory}: {why}; {advice}")


def check_directory(directory: Path, names: Collection[str] = ()) -> None:
    """Raises StudyError for a directory that cannot be written, or where files that no study wrote have the names of
    what is to be written: these and the checkpoint."""
    _check_writable(directory, "give -o a directory that can be written")
    foreign = [] if of_a_study(directory) else [n for n in names if os.path.lexists(directory / n)]
    if os.path.lexists(directory / CHECKPOINT) and not is_checkpoint(directory / CHECKPOINT):
        foreign.append(CHECKPOINT)
    if foreign:
        raise StudyError(f"{directory / foreign[0]} is not of a study, and would be replaced: move it away, or give another -o")


def check_file(path: Path) -> Path:
    """The file to write, behind links. Raises StudyError where that cannot work."""
    real = Path(os.path.realpath(path))
    if real.is_dir():
        raise StudyError(f"-o {path} is a directory: give a file that ends in .csv")
    _check_writable(real.parent, "give -o a file that can be written")
    return real


def write_files(directory: Path, files: dict[str, bytes], stale: Iterable[str] = ()) -> list[Path]:
    """Write files beside each other first, then remove the stale ones and move all into place. Raises StudyError if the
    directory cannot be written."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=".writing-", dir=directory))
        try:
            for name, data in files.items():
                (part / name).write_bytes(data)
            for name in stale:
                (directory / name).unlink(missing_ok=True)
            for name in files:
                (part / name).replace(directory / name)
        finally:
            shutil.rmtree(part, ignore_errors=True)
    except OSError as error:
        raise StudyError(f"{directory}: {error.strerror or error}; give -o a place that can be written") from None
    return [directory / name for name in files]


def write_checkpoint(directory: Path, key: str, cells: dict[str, Any]) -> None:
    """Save what is done so far of the question `key`. Raises StudyError."""
    from emu import __version__

    write_files(directory, {CHECKPOINT: json.dumps({"emulator": f"aclnn-emu {__version__}", "key": key, "cells": cells}).encode()})


def remove_checkpoint(directory: Path) -> None:
    """The study is done. What no study wrote stays."""
    if is_checkpoint(directory / CHECKPOINT):
        try:
            (directory / CHECKPOINT).unlink()
        except OSError as error:
            raise StudyError(f"{directory / CHECKPOINT}: {error.strerror or error}") from None
