"""Which inputs give other bits on another product, or under another assumption, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

from emu_kernels.assumptions import ASSUMPTIONS

from emu.opdef.spec import Operator
from emu.soc import profile
from emu.study import assume
from emu.study.errors import StudyError, unknown
from emu.study.files import check_formats
from emu.study.problem import PRODUCTS, Problem, find_operator
from emu.study.question import check_keywords, default_dtypes, dtypes_of, products_of, settings
from emu.study.result import Cell
from emu.study.runner import Progress, run
from emu.verify.provider import Provider

#: The keyword of `run` that a comparison sets itself.
_SET = ("against",)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One pair: `what` against `other` in one dtype. `differing` of `n` elements have other bits (any NaN equals any
    NaN); `steps_max` and `ulp_max` over the finite pairs; `first` are the elements that differ most."""

    op: str
    dtype: str
    what: str
    other: str
    inputs: str
    n: int
    differing: int
    wrong_by_one: int
    steps_max: int
    ulp_max: float
    special: int
    note: str
    first: tuple[dict[str, Any], ...]

    @property
    def share(self) -> float:
        return self.differing / self.n if self.n else 0.0

    def row(self) -> dict[str, Any]:
        """Flat, without the examples."""
        out = asdict(self) | {"share": self.share}
        del out["first"]
        return out


def _difference(cell: Cell, what: str, other: str, note: str) -> Difference:
    assert cell.tally is not None
    s, p = cell.tally.sums, cell.problem
    special = sum(s[f"{k}_{side}"] for k in ("nan", "inf") for side in ("result", "golden"))
    return Difference(
        op=p.op.python_name, dtype=p.dtype, what=what, other=other, inputs=cell.inputs, n=int(s["n"]), differing=int(s["unequal"]),
        wrong_by_one=int(s["wrong_by_one"]), steps_max=int(cell.tally.tops["steps"]), ulp_max=cell.tally.tops["ulp"], special=int(special),
        note=note, first=cell.traces,
    )  # fmt: skip


def _lacks(op: Operator, dtype: str, soc: str) -> bool:
    """The operator has the dtype, the product does not: such a pair is passed over."""
    return dtype in op.dtypes and dtype not in op.dtypes_on(profile(soc))


def _checked(op: Operator, dtypes: Sequence[str], socs: Sequence[str]) -> list[str]:
    """The products. Raises StudyError for an unknown dtype, before anything runs."""
    for dtype in dtypes:
        if dtype not in op.dtypes:
            raise unknown(f"dtype of {op.python_name}", dtype, op.dtypes)
    return list(socs)


def diff_soc(
    op: str, *, socs: str | Sequence[str] = tuple(PRODUCTS.values()), dtypes: str | Sequence[str] | None = None,
    provider: Provider | None = None, progress: Progress | None = None, **asked: Any,
) -> list[Difference]:  # fmt: skip
    """Every pair of products in every dtype that both have. The keyword arguments are `run`'s, without `against`."""
    check_keywords("diff_soc", asked, _SET)
    declared = find_operator(op)
    dtypes = default_dtypes(op) if dtypes is None else dtypes_of(dtypes)
    socs = _checked(declared, dtypes, products_of(socs))
    check_formats((asked.get("inputs"), asked.get("peer")), dtypes)
    if len(socs) < 2:
        raise StudyError(f"give at least two products to compare, not {', '.join(socs) or 'none'}")
    found = []
    for dtype in dtypes:
        for a, b in combinations(socs, 2):
            if any(_lacks(declared, dtype, soc) for soc in (a, b)):
                continue
            study = run(op, dtypes=(dtype,), socs=(a,), against=f"soc:{b}", provider=provider, progress=progress, **asked)
            found.append(_difference(study.cells[0], a, b, study.cells[0].note))
    if not found:
        raise StudyError(f"nothing to compare: no two of {', '.join(socs)} have {' or '.join(dtypes) or 'a dtype: none is given'}")
    return found


def diff_assumption(
    op: str, *, socs: str | Sequence[str] = tuple(PRODUCTS.values()), dtypes: str | Sequence[str] | None = None,
    provider: Provider | None = None, progress: Progress | None = None, **asked: Any,
) -> tuple[list[Difference], list[str]]:  # fmt: skip
    """The default of each named assumption that the operator's flow rests on against each of its other values, in the
    dtypes and on the products that it applies to; and the names of those with a single known value, which cannot be
    compared."""
    check_keywords("diff_assumption", asked, _SET)
    declared = find_operator(op)
    flow = declared.flow.name
    dtypes = tuple(d for d in declared.dtypes if d != "DOUBLE") if dtypes is None else dtypes_of(dtypes)
    socs = _checked(declared, dtypes, products_of(socs))
    check_formats((asked.get("inputs"), asked.get("peer")), dtypes)
    numerics = asked.get("numerics") or settings().numerics
    touching = [a for a in ASSUMPTIONS if flow in a.flows]
    found = []
    for a in touching:
        for value in a.values:
            if value == a.default:
                continue
            # An order of sums shows where its dimension is reduced, whatever was asked.
            place = {"tbe_col_order": {"last": False}, "tbe_row_order": {"last": True}}.get(a.name, {})
            last = (asked | place).get("last", True)
            for dtype in dtypes:
                for soc in socs:
                    cell = Problem(op=declared, dtype=dtype, soc=soc, numerics=numerics, last=last)
                    if _lacks(declared, dtype, soc) or not assume.applies(cell, a.name):
                        continue
                    change = f"{a.name}={value}"
                    study = run(
                        op,
                        dtypes=(dtype,),
                        socs=(soc,),
                        against=f"assume:{change}",
                        provider=provider,
                        progress=progress,
                        **(asked | place),
                    )
                    found.append(_difference(study.cells[0], f"{soc}, {a.name}={a.default}", change, study.cells[0].note))
    return found, [a.name for a in touching if len(a.values) == 1]
