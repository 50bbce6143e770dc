"""What holds for every command: the version, help without heavy imports, exit codes, messages without tracebacks."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import emu as package
from emu.cli import summaries

HEAVY = ("numba", "llvmlite", "numpy", "ml_dtypes")


def test_version(emu):
    ran = emu("--version")
    assert (ran.code, ran.out) == (0, f"aclnn-emu {package.__version__}\n")


def test_help_lists_every_command_with_its_line(emu_process):
    ran = emu_process("--help", COLUMNS="200")
    assert ran.code == 0
    for name, line in summaries().items():
        assert name in ran.out
        assert line
        assert line.split("`")[0][:40] in ran.out


def test_commands_are_the_modules():
    files = {f.stem.replace("_", "-") for f in Path(package.__file__).parent.joinpath("cli").glob("*.py") if not f.name.startswith("_")}
    assert files == set(summaries())
    assert {"call", "demo", "doctor", "info", "ops", "run", "warmup"} <= files


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["call", "--help"], ["ops", "--help"], ["warmup", "--help"], ["ops"]])
def test_light_commands_import_nothing_heavy(args):
    code = f"import sys; from emu.cli import main; main({args!r}); print('HEAVY', [m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []"


@pytest.mark.parametrize("name", sorted(summaries()))
def test_every_command_has_help(emu, name):
    ran = emu(name, "--help")
    assert ran.code == 0
    assert "Usage" in ran.out


def test_no_command_is_wrong_usage_and_shows_the_help_once(emu):
    ran = emu()
    assert ran.code == 2
    assert (ran.out + ran.err).count("Usage") == 1


def test_unknown_command_names_the_nearest(emu):
    ran = emu("opps")
    assert ran.code == 2
    assert ran.err == "emu: unknown command 'opps': did you mean ops?\n"


def test_unknown_option(emu):
    ran = emu("ops", "--jsn")
    assert ran.code == 2
    assert "--jsn" in ran.err
    assert "Try emu ops --help" in ran.err


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("EMU_SOC", "Ascend910B9", "did you mean"),
        ("EMU_DEVICES", "many", "expected a whole number"),
        ("EMU_HOST", "soon", "a number of microseconds"),
        ("EMU_SCHEDULE", "asink", "did you mean 'async'"),
        ("EMU_NUM_THREADS", "0", "threads must be 1 to 1024"),
    ],
)
def test_bad_environment_is_named(emu_process, name, value, says):
    ran = emu_process("info", **{name: value})
    assert ran.code == 2
    assert says in ran.err
    assert ran.err.startswith(f"emu: {name}={value!r}: ")
    assert "Traceback" not in ran.err


def test_reader_that_goes_away_leaves_no_traceback(tmp_path):
    with subprocess.Popen(
        [sys.executable, "-m", "emu", "ops"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        err = process.stderr.read()
    assert "Traceback" not in err
    assert "BrokenPipeError" not in err


@pytest.mark.parametrize("args", [["ops"], ["demo"], ["doctor"], ["info", "--json"], ["--version"], ["ops", "--help"]])
def test_output_on_a_full_device_is_one_line(args, tmp_path):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "emu", *args], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False
        )
    assert (done.returncode, done.stderr) == (1, "emu: the output cannot be written: No space left on device\n")


def test_closed_output_is_one_line(tmp_path):
    done = subprocess.run(
        ["bash", "-c", f"'{sys.executable}' -m emu ops >&-"], stderr=subprocess.PIPE, cwd=tmp_path, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (1, "emu: standard output is closed: there is nowhere to print to\n")


@pytest.mark.parametrize("args", [["call", "softmax_backward", "--help"], ["run", "--help"], ["ops"]])
def test_an_encoding_without_our_signs(emu_process, args):
    ran = emu_process(*args, PYTHONIOENCODING="ascii", COLUMNS="60")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.isascii()


def test_a_defect_of_ours_keeps_its_traceback(monkeypatch):
    from emu.cli import info, main

    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(info, "describe", broken)
    with pytest.raises(ZeroDivisionError):
        main(["info"])
