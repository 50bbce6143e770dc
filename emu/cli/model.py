"""Print what one launch costs in simulated time and which term binds, or compare the model with published times."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Annotated, Any

import typer

from emu.cli._common import AsJson, Soc, Strict, dtype_name, pick, print_json, print_table, settings
from emu.cli._errors import usage

if TYPE_CHECKING:
    from emu.model import Cost, Rates

#: Of the widest data type, 16 bytes, this fills a signed 64-bit size.
_MAX_ELEMENTS = 1 << 59
Dim = Annotated[int | None, typer.Option("--dim", help="The dim of operators that have one; -1 when it is not given.")]
Calibrate = Annotated[bool, typer.Option("--calibrate", help="Published times beside the model, and the fit of its effective rates.")]


def command(
    op: Annotated[str | None, typer.Argument(metavar="OP", help="As emu ops lists it.", show_default=False)] = None,
    shape: Annotated[
        str | None, typer.Argument(metavar="SHAPE", help="As 8192x8192 or 1048576; () for a scalar.", show_default=False)
    ] = None,
    dtype: Annotated[str, typer.Argument(metavar="DTYPE", help="As FLOAT, FLOAT16, BF16.")] = "FLOAT",
    soc: Soc = None,
    dim: Dim = None,
    strict_products: Strict = None,
    calibrate: Calibrate = False,
    as_json: AsJson = False,
) -> None:
    """Print what one launch costs in simulated time and which term binds, or compare the model with published times."""
    from emu.model.rates import MEASURED_ON

    config = settings(soc=soc, strict_products=strict_products)
    if calibrate:
        if op is not None or dim is not None or soc not in (None, MEASURED_ON):
            raise usage(f"--calibrate compares the published times of an {MEASURED_ON}: it takes no operator, no dim and no other product")
        _calibrate(as_json)
        return
    if op is None or shape is None:
        raise usage("give an operator and a shape, as in: emu model sigmoid 4096x4096 FLOAT16; or --calibrate")
    from emu.model import rates, step_cost
    from emu.model.calibration import steps_of
    from emu.opdef.catalogue import OPERATORS
    from emu.plan import bind
    from emu.types import DataType

    known = [o.python_name for o in OPERATORS]
    name = next((o.python_name for o in OPERATORS if o.name == op), None) or pick(op, known, "operator")
    operator = next(o for o in OPERATORS if o.python_name == name)
    code = pick(dtype_name(dtype), [t for t in DataType.__members__ if t in operator.dtypes], "data type")
    if dim is not None and bind(operator.name, config.soc).dim is None:
        raise usage(f"{name} has no dim: leave --dim out")
    try:
        bound, steps = steps_of(name, _shape(shape), code, config.soc, dim, config.strict_products)
        r = rates(bound.soc)
        costs = [(step.name, step_cost(step, bound.soc)) for step in steps]
    except ValueError as error:
        raise usage(str(error)) from None
    if as_json:
        what = {"clock": "simulated", "soc": config.soc, "op": name, "shape": shape, "dtype": code}
        print_json({**what, "rates": r.source, "l2_rate": r.l2_source, "launches": [_as_dict(*c) for c in costs]})
        return
    if not costs:
        print(f"{name} of an empty tensor launches nothing: 0 µs simulated")
    for label, cost in costs:
        _explain(label, cost, r, f"{shape} {code} on {config.soc}")
    if r.soc.name != MEASURED_ON:
        print(f"No published time was compared with the model for {r.soc.name}.")


def _shape(text: str) -> tuple[int, ...]:
    parts = [] if text == "()" else text.lower().replace(",", "x").split("x")
    if not all(part.isascii() and part.isdigit() and len(part) < 40 for part in parts):
        raise usage(f"shape {text!r} is none: write 8192x8192, 1048576 or () for a scalar")
    shape = tuple(map(int, parts))
    if max(prod(shape), *shape, 0) > _MAX_ELEMENTS:
        raise usage(f"shape {text!r} has too many elements: their bytes must fit into 64 bits, at most 2^59 elements")
    return shape


def _as_dict(label: str, cost: Cost) -> dict[str, Any]:
    rest = {k: v for k, v in cost._asdict().items() if k != "traffic"}
    return {"launch": label, **rest, **cost.traffic._asdict()}


def _explain(label: str, cost: Cost, r: Rates, what: str) -> None:
    t = cost.traffic
    where = f"{r.l2:,.0f} GB/s of L2 (effective, {r.l2_source}; peak {r.l2_peak:,.0f})"
    if cost.l2_share < 1:
        where += f" for {cost.l2_share:.0%} of it, {r.hbm:,.0f} GB/s of HBM (effective, {r.source}; peak {r.hbm_peak:,.0f}) for the rest"
    terms = [
        ("floor", f"{cost.floor_ns / 1000:.3f}", f"no launch is shorter ({r.source})"),
        ("memory", f"{cost.memory_ns / 1000:.3f}", f"{t.read + t.written:,} bytes at {where}"),
        ("vector", f"{cost.vector_ns / 1000:.3f}", f"{t.operations:,.0f} operations at {r.vector:,.0f} per ns on {r.cores} cores"),
        ("sum", f"{cost.ns / 1000:.3f}", f"floor + the larger of memory and vector; {cost.binds} binds"),
    ]
    title = f"{label} {what}: {cost.ns / 1000:.3f} µs simulated; reads {t.read:,} and writes {t.written:,} bytes"
    print_table(("term", "µs (simulated)", "from"), terms, title)


def _calibrate(as_json: bool) -> None:
    from emu.model.calibration import fit, residuals
    from emu.model.rates import MEASURED_ON
    from emu.soc.profile import shared_numbers

    rows = residuals()
    found, used = fit(), shared_numbers("fitted")
    if as_json:
        points = [
            {**row.point._asdict(), "simulated_us": row.cost.ns / 1000, "residual": row.residual, "binds": row.cost.binds} for row in rows
        ]
        print_json({"clock": "simulated", "soc": MEASURED_ON, "fit": found._asdict(), "in_use": used, "points": points})
        return
    for fitted, title in ((True, "Fitted on these"), (False, "Held out: not used in the fit")):
        lines = []
        for row in rows:
            p = row.point
            if p.fitted == fitted:
                what = f"{p.op} {p.dtype} {'x'.join(map(str, p.shape))}" + ("" if p.dim is None else f" dim {p.dim}")
                lines.append((what, f"{p.microseconds:g}", f"{row.cost.ns / 1000:.1f}", f"{row.residual:+.1%}", row.cost.binds))
        print_table(("kernel", "published µs", "simulated µs", "residual", "binds"), lines, f"{title} ({MEASURED_ON})")
    print(
        f"Effective rates, fitted: floor {found.floor_ns:.0f} ns, {found.l2_share:.3f} of L2's peak, {found.hbm_share:.3f} of HBM's "
        f"(in use: {used['floor_ns']:.0f}, {used['l2_share']:.3f}, {used['hbm_share']:.3f}). "
        "The published times are measured (cann-bench metadata); everything else here is simulated."
    )
