"""Files that a study leaves: what is foreign stays, and what cannot be written is said before anything runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from emu.study import run, writing
from emu.study.errors import StudyError

Emu = Callable[..., Any]
SMALL = ("--dtype", "FLOAT16", "--inputs", "1", "-n", "4")


@pytest.mark.parametrize(("name", "more"), [("checkpoint.json", ()), ("table.csv", ()), ("report.html", ("--html",))])
def test_a_foreign_file_is_not_replaced(emu: Emu, name: str, more: tuple[str, ...]) -> None:
    pytest.importorskip("matplotlib", reason="--html needs it")
    Path("out").mkdir()
    Path("out", name).write_text('{"epoch": 3}')
    ran = emu("study", "selu", *SMALL, "-o", "out", *more)
    assert (ran.code, f"out/{name} is not of a study" in ran.err) == (2, True)
    assert [(p.name, p.read_text()) for p in Path("out").iterdir()] == [(name, '{"epoch": 3}')]


def test_what_is_not_written_may_lie_there(emu: Emu) -> None:
    Path("out").mkdir()
    for name in ("report.html", "error.svg", "rows.csv"):
        Path("out", name).write_text("mine")
    assert emu("study", "selu", *SMALL, "-o", "out").code == 0
    assert emu("study", "selu", *SMALL, "-o", "out").code == 0, "a study's own files are replaced"
    assert Path("out/rows.csv").read_text() == "mine"


def test_a_sweep_has_no_checkpoint_to_remove(emu: Emu) -> None:
    Path("checkpoint.json").write_text('{"epoch": 3}')
    Path("real.csv").write_text("old")
    Path("link.csv").symlink_to("real.csv")
    for name in ("r.csv", "link.csv"):
        assert emu("sweep", "selu", *SMALL, "--soc", "Ascend910B1", "--workers", "1", "-o", name).code == 0
    assert Path("checkpoint.json").read_text() == '{"epoch": 3}'
    assert Path("link.csv").is_symlink()
    assert Path("real.csv").read_text() == Path("r.csv").read_text() != "old"


def test_a_place_that_cannot_be_written_is_said_first(emu: Emu, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*args: object, **more: object) -> None:
        raise AssertionError("computed before the output was looked at")

    monkeypatch.setattr("emu.study.sweep", never)
    monkeypatch.setattr("emu.study.run", never)
    Path("d.csv").mkdir()
    Path("file").write_text("")
    assert "is a directory: give a file that ends in .csv" in emu("sweep", "selu", "-o", "d.csv").err
    assert "file is no directory" in emu("sweep", "selu", "-o", "file/r.csv").err
    assert "file is no directory" in emu("study", "selu", "-o", "file").err
    assert "-o is an empty text" in emu("study", "selu", "-o", "").err


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(StudyError, match="No space left"):
            run("selu", dtypes="FLOAT16", inputs="1", n=4, out=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_is_no_utf8(tmp_path: Path) -> None:
    name = os.fsdecode(b"x\xff.csv")
    (tmp_path / name).write_text('input_shapes,input_dtypes\n"(4,)",float16\n')
    study = run("selu", dtypes="FLOAT16", inputs=str(tmp_path / name), out=tmp_path / "out")
    study.write(tmp_path / "out")
    assert rb"\udcff.csv" in (tmp_path / "out/table.csv").read_bytes()
    assert not writing.is_checkpoint(tmp_path / "out/checkpoint.json")
