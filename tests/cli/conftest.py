"""Running the command line: in this process for speed, in one of its own where streams, pipes or imports matter."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from emu import config
from emu.cli import main


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture(autouse=True)
def _all_as_before() -> Iterator[None]:
    """The Config, and the environment, which `emu run` prepares for the program."""
    before, environment = config.current(), dict(os.environ)
    yield
    os.environ.clear()
    os.environ.update(environment)
    config.configure(**{name: getattr(before, name) for name in before.__dataclass_fields__})


@pytest.fixture
def emu(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """``emu("ops", "--json")`` in this process, in a directory of the test's own."""
    monkeypatch.chdir(tmp_path)

    def run(*args: str) -> Ran:
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        assert "Traceback" not in err
        return Ran(code, out, err)

    return run


@pytest.fixture
def emu_process(tmp_path: Path) -> Callable[..., Ran]:
    """``emu …`` as a process of its own, its output into pipes."""

    def run(*args: str, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, "-m", "emu", *args],
            cwd=tmp_path,
            env={**os.environ, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=300,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run
