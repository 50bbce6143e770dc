"""Every declared operator. A new family is a file of declarations and a line here."""

from __future__ import annotations

from difflib import get_close_matches
from functools import lru_cache

from emu.opdef import activation, exponential, softmax
from emu.opdef.spec import Operator

OPERATORS: tuple[Operator, ...] = (*activation.OPERATORS, *softmax.OPERATORS, *exponential.OPERATORS)


@lru_cache(maxsize=1)
def _by_name() -> dict[str, Operator]:
    table = {op.name: op for op in OPERATORS}
    table.update({op.python_name: op for op in OPERATORS})
    return table


def operator(name: str) -> Operator:
    """The declaration under a C name (``aclnnSeluBackward``) or a Python name (``selu_backward``).

    Raises LookupError with the nearest names.
    """
    table = _by_name()
    if name in table:
        return table[name]
    near = get_close_matches(name, table, n=3, cutoff=0.5)
    hint = f"did you mean {' or '.join(near)}?" if near else f"known: {', '.join(op.python_name for op in OPERATORS)}"
    raise LookupError(f"unknown operator {name!r}: {hint}")
