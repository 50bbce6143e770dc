"""The support matrix, derived from the declarations: operators × products × data types. README's table is :func:`markdown`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from emu.opdef.catalogue import OPERATORS
from emu.opdef.spec import Operator
from emu.soc import SocProfile, known_socs, profile


@dataclass(frozen=True)
class Cell:
    """One operator on one family of products.

    ``dtypes``: what phase 1 takes; on a refused product, what it takes with strict_products off. ``document``: whether the operator's
    document lists the product as supported; None where no document was at hand. ``cards``: what is known of real cards, for a refused
    product.
    """

    family: str
    arch: str
    dtypes: tuple[str, ...]
    refused: bool
    document: bool | None
    cards: str | None

    @property
    def text(self) -> str:
        if self.refused:
            return f"document: not supported; cards: {(self.cards or 'not known').split(' (')[0]}"
        return " ".join(self.dtypes)


def families() -> dict[str, list[SocProfile]]:
    """Family → its products, in the order of the profiles."""
    found: dict[str, list[SocProfile]] = {}
    for name in known_socs():
        soc = profile(name)
        found.setdefault(soc.family, []).append(soc)
    return found


def product_names(socs: Sequence[SocProfile]) -> str:
    """``Ascend 950PR / Ascend 950DT``."""
    return " / ".join(dict.fromkeys(soc.product for soc in socs))


def cells(op: Operator) -> list[Cell]:
    """One operator on every family."""
    found = []
    for family, socs in families().items():
        document = None if op.document is None else family in op.document
        refused = family in op.refused
        found.append(Cell(family, socs[0].arch, op.dtypes_on(socs[0]), refused, document, op.refused.get(family)))
    return found


def header() -> list[str]:
    """The columns of the table: families, each with the products under it."""
    return ["Operator", *(f"{family} ({product_names(socs)})" for family, socs in families().items())]


def rows(ops: Sequence[Operator] = OPERATORS) -> list[list[str]]:
    return [[op.name, *(cell.text for cell in cells(op))] for op in ops]


def markdown(ops: Sequence[Operator] = OPERATORS) -> str:
    """The table as README shows it."""
    head = header()
    lines = [head, ["---"] * len(head), *rows(ops)]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def as_dict(ops: Sequence[Operator] = OPERATORS) -> dict[str, Any]:
    """For machines."""
    return {
        "products": {f: {"names": product_names(s), "socs": [soc.name for soc in s], "arch": s[0].arch} for f, s in families().items()},
        "operators": [
            {
                "name": op.name,
                "python": op.python_name,
                "header": f"aclnnop/aclnn_{op.stem}.h",
                "summary": op.summary,
                "parameters": [{"name": p.name, "python": p.python, "role": p.role.value, "type": p.ctype} for p in op.params],
                "dtypes": list(op.dtypes),
                "products": {cell.family: asdict(cell) | {"text": cell.text} for cell in cells(op)},
                "assumptions": list(op.assumptions),
            }
            for op in ops
        ],
    }
