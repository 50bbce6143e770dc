"""The command `emu verify`: exit codes, one line for what prevents a comparison, and what it prints."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from emu_kernels.reference import arrays
from typer.testing import CliRunner

from emu import config
from emu.verify import differences, provider
from emu.verify.workers import WorkerError


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return ["--quick", "--op", "SeluBackward", "--dtype", "BF16", "--arch", "dav_3510", "-j", "1", "--state", str(tmp_path / "s"), *more]


def test_command_passes_and_fails_by_exit_code(tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    good = CliRunner().invoke(cli, arguments(tmp_path, "--json"))
    assert good.exit_code == 0, good.output
    result = json.loads(good.stdout)
    assert result["mismatches"] == 0
    assert result["wall_seconds"] > 0
    assert all(r["wall_seconds"] > 0 for r in result["results"])
    assert result["cases"] > 1 << 18
    assert {r["numerics"] for r in result["results"]} == {"device", "document"}
    monkeypatch.setattr(provider, "NativeKernels", lambda: counting(offset=1))
    bad = CliRunner().invoke(cli, arguments(tmp_path))
    assert bad.exit_code == 1
    assert "reference, step by step" in bad.stdout
    assert "out = (y <= 0) ? b : c" in bad.stdout
    assert "\n  kernel\n" in bad.stdout  # this provider has no steps to show


def test_command_resumes_and_says_so(tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = json.loads(CliRunner().invoke(cli, arguments(tmp_path, "--json")).stdout)
    assert (first["resumed_units"], first["resumed_cases"]) == (0, 0)
    idle = counting()
    monkeypatch.setattr(provider, "NativeKernels", lambda: idle)
    again = json.loads(CliRunner().invoke(cli, arguments(tmp_path, "--resume", "--json")).stdout)
    assert idle.calls == 0
    assert again["resumed_units"] == again["units"] == first["units"] > 0
    assert again["resumed_cases"] == again["cases"] == first["cases"]
    with (tmp_path / "s").open("a") as file:
        file.write("{damaged}\n")
    shown = CliRunner().invoke(cli, arguments(tmp_path, "--resume"))
    assert shown.exit_code == 0
    assert f"from the state file: {first['units']} of {first['units']} units, {first['cases']:,} cases\n" in shown.stdout
    assert f"damaged lines of {tmp_path / 's'}, left out: 1\n" in shown.stderr


def test_the_table_fits_80_columns(tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "NativeKernels", counting)
    args = ["--quick", "--op", "LogSigmoidBackward", "--dtype", "FLOAT16", "-j", "1", "--state", str(tmp_path / "s")]
    lines = CliRunner().invoke(cli, args).stdout.splitlines()
    assert lines[0].split() == ["operator", "dtype", "arch", "overflow", "numerics", "cases", "differ"]
    assert any("LogSigmoidBackward FLOAT16 dav_2201 saturation document" in line for line in lines)
    assert max(map(len, lines)) <= 80 - 4  # an exhaustive run has four characters more of cases


@pytest.mark.parametrize("error", [MemoryError, ImportError, arrays.HostError, WorkerError])
def test_what_prevents_a_comparison_is_one_line(
    error: type[Exception], tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = counting(fail_at=1, error=error)
    monkeypatch.setattr(provider, "NativeKernels", lambda: kernels)
    text = refused(cli, *arguments(tmp_path))
    assert (f"go on with --resume (finished work is in {tmp_path / 's'})" in text) == (error in (MemoryError, WorkerError))


def test_without_a_compiler_there_is_nothing_to_compare(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    assert "NUMBA_DISABLE_JIT is set" in refused(cli, "--quick")


@pytest.mark.parametrize("wrong", [["--quick", "--exhaustive"], ["--op", "Mish"], ["--scheduler", "tcp://h:1", "-j", "2"]])
def test_wrong_usage(cli: Any, wrong: list[str]) -> None:
    result = CliRunner().invoke(cli, wrong)
    assert result.exit_code != 0
    assert getattr(result.exception, "code", None) == 2


def test_nothing_to_compare_names_what_was_asked(cli: Any) -> None:
    assert refused(cli, "--dtype", "BF16", "--arch", "dav_1001").endswith("no product has BF16 with dav_1001")
    assert refused(cli, "--op", "SoftmaxBackward", "--dtype", "DOUBLE").endswith("no product has SoftmaxBackward with DOUBLE")


def refused(cli: Any, *args: str) -> str:
    """What the command says when it refuses: as one line, with exit code 2."""
    from emu.cli._errors import CommandError

    error = CliRunner().invoke(cli, list(args)).exception
    assert isinstance(error, CommandError)
    assert error.code == 2
    assert "\n" not in str(error)
    return str(error)


def test_a_file_of_someone_else_is_not_overwritten(tmp_path: Path, cli: Any) -> None:
    for content in (b"my notes\n", b'{"key": 1}\n', b"[]\n", b"\xff\xfe\x00"):
        (tmp_path / "s").write_bytes(content)
        for more in ([], ["--resume"]):
            assert "is not a state file" in refused(cli, *arguments(tmp_path, *more))
        assert (tmp_path / "s").read_bytes() == content


def test_a_state_file_that_cannot_be_written(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file" / "s", tmp_path):
        text = refused(cli, *arguments(tmp_path, "--state", str(path)))
        assert "cannot keep finished work" in text
        assert "--state" in text


def test_a_cache_directory_that_cannot_be_written_stops_only_what_needs_it(
    tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(provider, "NativeKernels", counting)
    (tmp_path / "file").write_text("")
    args = [a for a in arguments(tmp_path) if a not in ("--state", str(tmp_path / "s"))]
    before = config.current().cache_dir
    config.configure(cache_dir=str(tmp_path / "file" / "cache"))
    try:
        run = CliRunner().invoke(cli, args)
        assert run.exit_code == 0
        assert run.stderr.startswith("emu: cannot keep finished work in ")
        assert run.stderr.endswith("This run goes on and keeps nothing\n")
        assert "cannot keep finished work" in refused(cli, *args, "--resume")
    finally:
        config.configure(cache_dir=before)


def test_the_state_may_be_nowhere_or_at_home(tmp_path: Path, cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provider, "NativeKernels", counting)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, arguments(tmp_path, "--state", os.devnull)).exit_code == 0
    assert list(tmp_path.iterdir()) == []
    assert CliRunner().invoke(cli, arguments(tmp_path, "--state", "~/s")).exit_code == 0
    assert [str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*")] == ["home", "home/s"]


@pytest.mark.parametrize(
    "option", [["--jobs", "2"], ["--state", "x"], ["--resume"], ["--scheduler", "tcp://h:1"], ["--quick"], ["--exhaustive"]]
)
def test_differences_refuse_what_they_do_not_use(cli: Any, option: list[str]) -> None:
    assert f"takes no {option[0]}" in refused(cli, "--differences", *option)


@pytest.mark.parametrize("option", [["--op", "Mish"], ["--dtype", "INT8"], ["--arch", "dav_9"]])
def test_differences_know_their_names(cli: Any, option: list[str]) -> None:
    assert "known: " in refused(cli, "--differences", *option)


def test_differences_of_a_selection(cli: Any, counting: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "NativeKernels", counting)
    monkeypatch.setattr(differences, "CASES", 1024)
    args = ["--differences", "--op", "selu", "--dtype", "bf16", "--arch", "dav_3510", "--json"]
    [line] = json.loads(CliRunner().invoke(cli, args).stdout)
    assert (line["operator"], line["dtype"]) == ("Selu", "BF16")
    assert list(line["counts"]) == ["dav_3510", "document", "torch"]
