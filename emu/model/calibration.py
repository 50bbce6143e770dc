"""Published kernel times beside the model, and the fit of the effective rates.

The points are kernel times of an Ascend910B2 from the metadata of cann-bench; bytes are counted by the model. The three fitted
numbers (floor, share of L2's peak, share of HBM's peak) come from the sigmoid and exp points alone; gelu and softmax are held out.
"""

from __future__ import annotations

from typing import NamedTuple

from emu.model.cost import Cost, price, traffic_of
from emu.model.rates import MEASURED_ON, Rates, rates
from emu.objects import Tensor, row_major
from emu.plan import Bound, Step, bind
from emu.soc import SocProfile, profile
from emu.types import DataType, Format


class Point(NamedTuple):
    """One published kernel time in µs. ``fitted``: the rates were fitted on it."""

    op: str
    dtype: str
    shape: tuple[int, ...]
    dim: int | None
    microseconds: float
    fitted: bool


_MI = 1 << 20
POINTS: tuple[Point, ...] = (
    Point("sigmoid", "FLOAT16", (_MI,), None, 5.3, True),
    Point("sigmoid", "FLOAT", (4 * _MI,), None, 18.1, True),
    Point("sigmoid", "BF16", (16 * _MI,), None, 35.9, True),
    Point("sigmoid", "FLOAT", (64 * _MI,), None, 360.0, True),
    Point("exp", "FLOAT16", (64 * _MI,), None, 143.0, True),
    Point("gelu", "FLOAT", (64 * _MI,), None, 354.0, False),
    Point("softmax", "FLOAT", (2048, 2048), 1, 38.0, False),
    Point("softmax", "BF16", (4096, 4096), 1, 91.8, False),
    Point("softmax", "FLOAT", (8192, 8192), 1, 423.0, False),
    Point("softmax", "FLOAT16", (8192, 8192), 0, 1006.0, False),
)


class Row(NamedTuple):
    """A point and what the model says of it. ``residual`` is model / published - 1."""

    point: Point
    cost: Cost
    residual: float


class Fit(NamedTuple):
    """What the fit gives: the floor in ns, and the shares of the peaks."""

    floor_ns: float
    l2_share: float
    hbm_share: float


def steps_of(
    op: str, shape: tuple[int, ...], dtype: str, soc: str, dim: int | None = None, strict: bool = False
) -> tuple[Bound, tuple[Step, ...]]:
    """The launches of an operator whose tensors all have one shape and data type. ``strict``: not on a product that its document excludes.

    LookupError for an unknown operator or data type, ValueError when phase 1 refuses the call (with its text and code).
    """
    from emu.executor import prepare
    from emu.opdef.catalogue import operator
    from emu.plan import Refused

    bound = bind(operator(op).name, profile(soc).name)
    if dtype not in DataType.__members__:
        raise LookupError(f"unknown data type {dtype!r}; {bound.op.python_name} takes {', '.join(bound.op.dtypes_on(bound.soc))}")
    tensor = Tensor(shape, int(DataType[dtype]), row_major(shape), 0, int(Format.ND), shape, 0)
    args = [tensor if p.is_tensor else -1 if dim is None else dim for p in bound.op.params]
    made = prepare(bound, args, "device", strict)
    if isinstance(made, Refused):
        raise ValueError(f"{bound.op.python_name}: {made.text} ({made.code})")
    return bound, made.plan.steps


def _step(point: Point) -> Step:
    _, steps = steps_of(point.op, point.shape, point.dtype, MEASURED_ON, point.dim)
    (step,) = steps
    return step


def fit() -> Fit:
    """Least squares of the relative errors over the fitted points: the model is linear in floor, 1/L2 and 1/HBM while memory binds."""
    import numpy as np

    soc: SocProfile = profile(MEASURED_ON)
    rows = []
    for point in POINTS:
        if point.fitted:
            traffic = traffic_of(_step(point), soc)
            share = min(1.0, soc.l2_bytes / traffic.footprint)
            moved = traffic.read + traffic.written
            rows.append(np.array([1.0, moved * share, moved * (1 - share)]) / (point.microseconds * 1000))
    solution = np.linalg.lstsq(np.array(rows), np.ones(len(rows)), rcond=None)[0]
    r: Rates = rates(soc)
    return Fit(float(solution[0]), float(1 / solution[1] / r.l2_peak), float(1 / solution[2] / r.hbm_peak))


def residuals() -> list[Row]:
    """Every published point with the model's cost on Ascend910B2, the fitted ones first."""
    soc = profile(MEASURED_ON)
    rows = []
    for point in POINTS:
        step = _step(point)
        cost = price(traffic_of(step, soc), step.total * step.unit, rates(soc))
        rows.append(Row(point, cost, cost.ns / (point.microseconds * 1000) - 1))
    return rows
