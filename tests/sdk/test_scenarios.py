"""What must hold of a C++ program's whole life: threads, signals, forks, pipes, the end."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from .conftest import CLEAN, run

SCENARIOS = (
    "threads", "first", "fork", "fork-first", "sigint-handler", "busy", "messages", "not-emulated", "values", "small-stack",
)  # fmt: skip


@pytest.mark.parametrize("name", SCENARIOS)
def test_scenario(name: str, scenarios: Path) -> None:
    done = run(scenarios, name)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{name}: right\n", "")


@pytest.mark.parametrize("schedule", ["eager", "lazy", "shuffle:7"])
def test_threads_on_every_schedule(schedule: str, scenarios: Path) -> None:
    done = run(scenarios, "first", env={**CLEAN, "EMU_SCHEDULE": schedule})
    assert (done.returncode, done.stdout, done.stderr) == (0, "first: right\n", "")


def test_sigint_ends_the_program(scenarios: Path) -> None:
    done = run(scenarios, "sigint")
    assert done.returncode == -signal.SIGINT
    assert done.stdout == "ready\n"


def test_output_and_exit_code_through_a_pipe(scenarios: Path) -> None:
    done = run(scenarios, "output")
    assert done.returncode == 7
    assert done.stdout == "".join(f"line {i}\n" for i in range(20000))


def test_a_closed_pipe_kills_as_usual(scenarios: Path) -> None:
    # SIGPIPE keeps its default: the interpreter's own choice (to ignore it) must not reach the program.
    with subprocess.Popen([str(scenarios), "output"], env=CLEAN, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(timeout=60) == -signal.SIGPIPE
