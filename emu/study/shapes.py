"""The shapes that CANN's operator precision standard prescribes, through both phases of the operator.

The values of a study go to the kernels as flat blocks. Here the same kernels are reached by way of aclTensors of special
shapes and views, and must give the bits that they give for the flat values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from emu.executor import Executor, prepare, submit
from emu.opdef.spec import Role
from emu.ops import ArraySpace, descriptor, numpy_types
from emu.plan import Refused, bind
from emu.soc import profile
from emu.status import AclError
from emu.study.distributions import sampler
from emu.study.numbers import BITS, Bits
from emu.study.problem import Problem
from emu.types import DataType
from emu.verify.provider import Provider

#: Elements of the dimension that only a view with stride 0 has.
HUGE = 2**31 + 1


class Shape(NamedTuple):
    """A shape, what is special about it, and how a view of it is made of a plain array of the shape `plain`."""

    dims: tuple[int, ...]
    what: str
    view: str = "plain"


SHAPES = (
    Shape((1,), "scalar"), Shape((1, 1, 1, 1), "all ones"), Shape((0, 3, 4), "empty dimension 0"), Shape((3, 0, 4), "empty dimension 1"),
    Shape((3, 4, 0), "empty dimension 2"), Shape((37,), "rank 1"), Shape((5, 37), "rank 2"), Shape((3, 5, 7), "rank 3"),
    Shape((2, 3, 5, 7), "rank 4"), Shape((2, 1, 3, 5, 7), "rank 5"), Shape((2, 3, 1, 2, 3, 5), "rank 6"),
    Shape((2, 1, 3, 1, 2, 3, 5), "rank 7"), Shape((2, 3, 1, 2, 1, 3, 2, 5), "rank 8"), Shape((100_003,), "no multiple of a block"),
    Shape((3, 4099), "long rows, no multiple of 32 bytes"), Shape((4099, 3), "short rows"),
    Shape((17, 31), "transposed view", "transposed"), Shape((17, 31), "every other element", "stepped"),
    Shape((17, 31), "reversed view", "reversed"), Shape((17, 31), "one row repeated with stride 0", "repeated"),
    Shape((HUGE, 1), "a dimension of 2^31+1, a view with stride 0", "huge"),
)  # fmt: skip
DEFINITION = (
    "results of the two-phase call on tensors of this shape whose bits differ from those for the same values as a flat block; "
    "a dimension of 2^31+1 goes through the first phase only: its copies would need more memory than a study takes"
)


def check(problem: Problem, provider: Provider, seed: int) -> tuple[dict[str, Any], ...]:
    """One record for each of SHAPES: shape, what, elements, code of the first phase, workspace in bytes, results that
    differ (None: not launched), verdict. Named assumptions keep their defaults, and excluded products run."""
    problem = replace(problem, assume=())
    return tuple(_one(problem, provider, shape, np.random.Generator(np.random.PCG64([seed, i]))) for i, shape in enumerate(SHAPES))


def _one(problem: Problem, provider: Provider, shape: Shape, rng: np.random.Generator) -> dict[str, Any]:
    arrays = [_view(_values(problem.dtype, rng, _stored(shape)), shape) for _ in problem.names]
    out = _view(np.zeros((1,), arrays[0].dtype), shape) if shape.view == "huge" else np.empty(shape.dims, arrays[0].dtype)
    record: dict[str, Any] = {"shape": list(shape.dims), "what": shape.what, "elements": prod(shape.dims)}
    space, made = _first_phase(problem, arrays, out)
    if isinstance(made, Refused):
        return record | {"code": made.code, "workspace": 0, "differ": None, "verdict": "FAIL", "why": made.text}
    record |= {"code": 0, "workspace": made.plan.workspace}
    if shape.view == "huge":
        return record | {"differ": None, "verdict": "pass", "why": "first phase only"}
    workspace = np.empty(made.plan.workspace + 64, np.uint8)
    start = -(-workspace.ctypes.data // 64) * 64
    space.add("workspace", workspace)
    if problem.op.output.role is Role.INOUT:
        out[...] = arrays[0]
    submit(made, start, space, profile(problem.soc).saturates, lambda task: task.run())
    kind = BITS[problem.dtype]
    differ = int((out.view(kind) != _expected(problem, provider, [np.ascontiguousarray(a).view(kind) for a in arrays])).sum())
    return record | {"differ": differ, "verdict": "FAIL" if differ else "pass", "why": ""}


def _stored(shape: Shape) -> tuple[int, ...]:
    """The shape of the array that the view is made of."""
    first, *rest = shape.dims
    by_view = {"transposed": shape.dims[::-1], "stepped": (first, *(2 * d for d in rest)), "repeated": (1, *rest), "huge": (1,)}
    return by_view.get(shape.view, shape.dims)


def _view(a: NDArray[Any], shape: Shape) -> NDArray[Any]:
    views: dict[str, Callable[[], NDArray[Any]]] = {
        "transposed": lambda: np.transpose(a), "stepped": lambda: a[..., ::2], "reversed": lambda: a[::-1, ::-1],
        "repeated": lambda: np.broadcast_to(a, shape.dims), "huge": lambda: np.broadcast_to(a, shape.dims),
    }  # fmt: skip
    return views[shape.view]() if shape.view in views else a


def _values(dtype: str, rng: np.random.Generator, dims: tuple[int, ...]) -> NDArray[Any]:
    return sampler("l1", dtype)(rng, prod(dims)).view(numpy_types()[DataType[dtype]]).reshape(dims)


def _first_phase(problem: Problem, arrays: Sequence[NDArray[Any]], out: NDArray[Any]) -> tuple[ArraySpace, Executor | Refused]:
    op = problem.op
    given = dict(zip(op.flow.inputs, arrays, strict=True))
    space = ArraySpace()
    args: list[Any] = []
    for p in op.params:
        if p.role is Role.ATTR:
            args.append(-1 if problem.last else 0)
            continue
        # A tensor that the operator does not read, as LogSigmoidBackward's buffer, has the shape of the others.
        array = given.get(p.name, arrays[-1]) if p.role is Role.IN else out
        space.add(p.python, array)
        try:
            args.append(descriptor(array, p.python, written=p.role is not Role.IN))
        except AclError as error:
            return space, Refused(error.code, str(error))
    return space, prepare(bind(op.name, problem.soc), args, problem.numerics, False)


def _expected(problem: Problem, provider: Provider, arrays: Sequence[Bits]) -> Bits:
    """The kernel's result for the values as a flat block, in the shape of the arrays."""
    shape = arrays[0].shape
    if arrays[0].size == 0:
        return arrays[0]
    if not problem.rows:
        out = problem.run(provider, tuple(a.reshape(-1) for a in arrays))
    elif problem.last:
        out = problem.run(provider, tuple(a.reshape(-1, shape[-1]) for a in arrays))
    else:
        columns = tuple(np.ascontiguousarray(a.reshape(shape[0], -1).T) for a in arrays)
        # Dimension 0 is the last one if there is nothing behind it.
        out = replace(problem, last=columns[0].shape[0] == 1).run(provider, columns).T
    found: Bits = out.reshape(shape)
    return found
