"""Kernels that are right by construction, or wrong in every bit, or fail: what the engine is tested with."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import typer
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from emu.cli import verify as command
from emu.verify import judge
from emu.verify.units import Unit


class Counting:
    """Right results, or too large by `offset`; counts calls and fails at one of them."""

    def __init__(self, fail_at: int = 0, offset: int = 0, error: type[BaseException] = KeyboardInterrupt) -> None:
        self.calls, self.fail_at, self.offset, self.error = 0, fail_at, offset, error

    def elementwise(self, flow: str, v: Variant, *inputs: NDArray[Any]) -> NDArray[Any]:
        self.calls += 1
        if self.calls == self.fail_at:
            raise self.error
        return judge.expected(flow, v, *inputs) + np.uint16(self.offset)

    def rows(self, flow: str, v: Variant, last: bool, *inputs: NDArray[Any]) -> NDArray[Any]:
        return judge.expected_rows(flow, v, last, *inputs) + inputs[0].dtype.type(self.offset)


@pytest.fixture(scope="session")
def counting() -> type[Counting]:
    return Counting


@pytest.fixture(scope="session")
def small() -> list[Unit]:
    """Four units of 2^17 cases each."""
    v = Variant("dav_2201", "BF16", False)
    return [Unit("selu_backward", v, "pairs", low, low + 2) for low in (0, 0x8000, 0xBF80, 0xFFFE)]


@pytest.fixture(scope="session")
def cli() -> typer.Typer:
    app = typer.Typer()
    app.command()(command.command)
    return app
