"""Precision studies: how wrong an operator is, where, and why.

`run` takes a question (operator, dtypes, products, inputs, what to compare with) and returns a `Study`: metrics with
their definitions, verdicts of the acceptance rules, worst inputs with their steps, rows for a table, plots.
Nothing here computes an operator's result: that comes from the kernels, through their bit patterns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from emu.study.differ import diff_assumption, diff_soc
    from emu.study.matrix import sweep
    from emu.study.result import Study
    from emu.study.runner import run

__all__ = ["Study", "diff_assumption", "diff_soc", "run", "sweep"]

_HOME = {"Study": "result", "run": "runner", "diff_soc": "differ", "diff_assumption": "differ", "sweep": "matrix"}


def __getattr__(name: str) -> Any:
    if name in _HOME:
        from importlib import import_module

        value = getattr(import_module(f"emu.study.{_HOME[name]}"), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'emu.study' has no attribute {name!r}")
