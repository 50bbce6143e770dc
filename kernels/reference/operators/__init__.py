"""One file for each operator, named as its flow: `operators.selu_backward.selu_backward` and so on.

`NAME(*patterns, v, trace)` takes one value of each argument; a reduction takes one row of each, and `last`. `NAME_array` does the same on
arrays, for sweeps: elementwise on 1-D arrays, reductions over the last axis. The tests hold the two against each other.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any


def scalar(flow: str) -> Callable[..., Any]:
    """The scalar form of a flow; ModuleNotFoundError for one without a reference."""
    function: Callable[..., Any] = getattr(import_module(f"emu_kernels.reference.operators.{flow}"), flow)
    return function


def array(flow: str) -> Callable[..., Any]:
    """The array form of a flow; ModuleNotFoundError for one without a reference."""
    function: Callable[..., Any] = getattr(import_module(f"emu_kernels.reference.operators.{flow}"), f"{flow}_array")
    return function
