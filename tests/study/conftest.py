"""A small study for the tests that look at its forms, and the command line in this process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from emu.cli import main
from emu.study import Study, run


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str


@pytest.fixture
def emu(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """``emu("study", …)`` in this process, in a directory of the test's own."""
    monkeypatch.chdir(tmp_path)

    def call(*args: str) -> Ran:
        capsys.readouterr()
        code = main(args)
        out, err = capsys.readouterr()
        return Ran(code, out, err)

    return call


@pytest.fixture(scope="session")
def small() -> Study:
    """SeluBackward in FLOAT16 on two products, every result, against the derivative in x, with all options."""
    return run(
        "selu_backward", dtypes=("FLOAT16",), socs=("Ascend910B1", "Ascend950PR_9599"), against="true", ablate=True, peer="soc:Ascend310P3"
    )
