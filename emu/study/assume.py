"""Where a named assumption has a say: elsewhere a study refuses it, so that none is recorded that changed nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from emu_kernels.assumptions import ASSUMPTIONS

from emu.study.errors import LacksError

if TYPE_CHECKING:
    from emu.study.problem import Problem


class _Rule(NamedTuple):
    """`where`, as the end of "it is for …", and the same as a test."""

    where: str
    holds: Callable[[Problem], bool]


#: What an assumption asks beyond its flows.
_RULES = {
    "exp_subnormal": _Rule(
        "the architectures of Ascend310P3, Ascend910A and Ascend310B1", lambda p: p.arch in ("dav_1001", "dav_2002", "dav_3002")
    ),
    "forward_all_archs": _Rule("other architectures than that of Ascend910B1", lambda p: p.arch != "dav_2201"),
    "tbe_row_order": _Rule("sums along the last dimension, on other products than Ascend950", lambda p: p.arch != "dav_3510" and p.last),
    "tbe_col_order": _Rule(
        "sums along another dimension than the last (--columns), on other products than Ascend950",
        lambda p: p.arch != "dav_3510" and not p.last,
    ),
    "wide_tile": _Rule(
        "sums along another dimension than the last (--columns), on Ascend950", lambda p: p.arch == "dav_3510" and not p.last
    ),
    "s32_f32_mode": _Rule(
        "INT32, and for selu_backward other products than Ascend950, which converts through FLOAT16",
        lambda p: p.dtype == "INT32" and (p.flow != "selu_backward" or p.arch != "dav_3510" or p.numerics == "document"),
    ),
    "selu_int8": _Rule("INT8 on other architectures than that of Ascend910B1", lambda p: p.dtype == "INT8" and p.arch != "dav_2201"),
    "softmax_f64": _Rule("DOUBLE", lambda p: p.dtype == "DOUBLE"),
    "exp_precision": _Rule("FLOAT16 and BF16", lambda p: p.dtype in ("FLOAT16", "BF16")),
    "document_flush": _Rule("--numerics document", lambda p: p.numerics == "document"),
}
_ANYWHERE = _Rule("", lambda p: True)
#: The formulas of the documents have no card under them: only these reach them.
_OF_DOCUMENT = ("document_flush", "s32_f32_mode", "elementary_rn", "div_rn")
_FLOWS = {a.name: a.flows for a in ASSUMPTIONS}


def check(problem: Problem, name: str) -> None:
    """Raises LacksError, with where it applies, for an assumption that cannot change the cell's results."""
    flows = _FLOWS[name]
    rule = _RULES.get(name, _ANYWHERE)
    if problem.flow not in flows:
        where = "conversions of the output to another dtype, which no study runs" if flows == ("cast",) else ", ".join(flows)
    elif problem.numerics == "document" and name not in _OF_DOCUMENT:
        where = "--numerics device"
    elif not rule.holds(problem):
        where = rule.where
    else:
        return
    raise LacksError(
        f"the assumption {name} does not apply to {problem.op.python_name} in {problem.dtype} on {problem.soc}: it is for {where}"
    )


def applies(problem: Problem, name: str) -> bool:
    """Whether `check` lets it pass."""
    try:
        check(problem, name)
    except LacksError:
        return False
    return True
