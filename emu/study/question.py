"""What a study is asked: its fields, and the checks that need no operator's arithmetic."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from operator import index
from typing import Any

from emu import config
from emu.opdef.spec import Operator
from emu.study import inputs, numbers
from emu.study.errors import StudyError, unknown
from emu.study.exact import ROWS
from emu.study.problem import PRODUCTS, find_operator, find_soc

#: Elements of a study: a day of work already. More is a slip of the hand, and would run on without a word.
MAX_ELEMENTS = 1 << 39
#: Keywords of `run` that are no part of the question.
_OF_RUN = ("out", "provider", "threads", "progress")


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked, as it stands in the output: with the same question and sources, the same bytes come out.

    inputs "auto": exhaustive for 8 and 16-bit elementwise studies, else l1. grad: distribution of the gradient, where
    the operator takes one. against: see `targets.HELP`. peer: the other device of the dual benchmark. n: elements of a
    random study. row_length: r of the operators of rows. last: rows lie along the last dimension. assume: NAME=VALUE.
    """

    op: str
    dtypes: tuple[str, ...]
    socs: tuple[str, ...]
    inputs: str = "auto"
    grad: str | None = None
    against: str = "exact"
    peer: str | None = None
    n: int = 1 << 20
    seed: int = 0
    row_length: int = 64
    last: bool = True
    numerics: str = "device"
    assume: tuple[str, ...] = ()
    ablate: bool = False


def _wrong(name: str, needed: str, value: object) -> StudyError:
    return StudyError(f"{name} must be {needed}, not {value!r} ({type(value).__name__})")


def names_of(name: str, value: object) -> tuple[str, ...]:
    """The names that an argument holds: a sequence of str, or one str with names between commas; each once. Raises
    StudyError."""
    if isinstance(value, str):
        return tuple(dict.fromkeys(t.strip() for t in value.split(",") if t.strip()))
    found = tuple(value) if isinstance(value, Iterable) and not isinstance(value, bytes | Mapping) else (value,)
    if not all(isinstance(v, str) for v in found):
        raise _wrong(name, "a name or a sequence of names", value)
    return tuple(dict.fromkeys(found))


def settings() -> config.Config:
    """The present Config. Raises StudyError for a bad environment variable."""
    try:
        return config.current()
    except ValueError as error:
        raise StudyError(str(error)) from None


def products_of(value: object) -> tuple[str, ...]:
    """The same for products, by their own names; ``all`` is one of each architecture, None the present one."""
    if value is None:
        return (settings().soc,)
    return tuple(PRODUCTS.values()) if value == "all" else tuple(dict.fromkeys(map(find_soc, names_of("socs", value))))


def dtypes_of(value: object) -> tuple[str, ...]:
    """The same for data types, by their own names."""
    return tuple(dict.fromkeys(map(numbers.dtype_named, names_of("dtypes", value))))


def default_dtypes(op: str) -> tuple[str, ...]:
    """FLOAT16 and BF16, as far as the operator has them."""
    return tuple(d for d in ("FLOAT16", "BF16") if d in find_operator(op).dtypes)


def check_keywords(function: str, asked: Mapping[str, Any], taken: Sequence[str] = ()) -> None:
    """Raises StudyError for a keyword that `function` has not; `taken`: those that it sets itself."""
    known = [k for k in dict.fromkeys((*(f.name for f in fields(Question)), *_OF_RUN)) if k not in ("op", *taken)]
    for name in asked:
        if name in taken:
            raise StudyError(f"emu.study.{function} takes no {name}")
        if name not in known:
            raise unknown(f"keyword of emu.study.{function}", name, known)


def text(name: str, value: object, none: bool = False) -> str:
    """A str, also of a path; `none` says that None would do. Raises StudyError."""
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if not isinstance(value, str):
        raise _wrong(name, "a str" + (" or None" if none else ""), value)
    return value


def whole(name: str, value: Any) -> int:
    """An int. Raises StudyError."""
    if isinstance(value, bool):
        raise _wrong(name, "a whole number", value)
    try:
        return index(value)
    except TypeError:
        raise _wrong(name, "a whole number", value) from None


def ask(op: str, dtypes: object, socs: object, asked: Mapping[str, Any]) -> Question:
    """The question of a call of `run`, every field of its type and in its range. Raises StudyError."""
    check_keywords("run", asked)
    asked = {name: value for name, value in asked.items() if value is not None}
    for name in ("inputs", "grad", "against", "peer", "numerics"):
        if name in asked:
            asked[name] = text(name, asked[name], none=name in ("grad", "peer"))
    for name in ("inputs", "grad"):
        if name in asked and inputs.kind(asked[name]) not in ("arrays", "cases"):
            asked[name] = asked[name].lower()
    for name in ("n", "seed", "row_length"):
        if name in asked:
            asked[name] = whole(name, asked[name])
    for name in ("last", "ablate"):
        if name in asked and not isinstance(asked[name], bool):
            raise _wrong(name, "True or False", asked[name])
    if "assume" in asked:
        asked["assume"] = names_of("assume", asked["assume"])
    declared = find_operator(op)
    kinds = default_dtypes(op) if dtypes is None else dtypes_of(dtypes)
    socs = products_of(socs)
    q = Question(op=declared.python_name, dtypes=kinds, socs=socs, **({"numerics": settings().numerics} | asked))
    _check_ranges(q)
    _check_used(declared, q, asked)
    return q


def ignored(op: Operator) -> tuple[str, ...]:
    """The keywords that mean nothing to an operator."""
    alone = () if len(op.flow.inputs) == 2 else ("grad",)
    return alone if op.flow.name in ROWS else (*alone, "row_length", "last")


def _check_used(op: Operator, q: Question, asked: Mapping[str, Any]) -> None:
    """Raises StudyError for an option that was given and would have no effect."""
    kind, useless = inputs.kind(q.inputs), ignored(op)
    if "grad" in asked:
        if "grad" in useless:
            raise StudyError(f"--grad is for operators that take a gradient: {op.python_name} reads {op.flow.inputs[0]} alone")
        if kind in ("arrays", "cases", "specials"):
            raise StudyError(f"--grad has no effect: --inputs {q.inputs} gives the gradient too; leave --grad out")
    if ("row_length" in asked and "row_length" in useless) or (not q.last and "last" in useless):
        rows = "--row-length and --columns are for operators of rows"
        raise StudyError(f"{rows}, {', '.join(sorted(ROWS))}: {op.python_name} is elementwise")
    if "row_length" in asked and kind in ("arrays", "cases"):
        raise StudyError(f"--row-length has no effect: the rows of --inputs {q.inputs} have their own; leave it out")
    if "n" in asked and kind not in ("auto", "random"):
        raise StudyError(f"-n has no effect: --inputs {q.inputs} says how many there are; leave -n out, or try --inputs l1")


def _check_ranges(q: Question) -> None:
    if q.n < 1:
        raise StudyError(f"-n must be at least 1, not {q.n}")
    check_count(q.n, "-n")
    if not 1 <= q.row_length <= inputs.MAX_ROW:
        raise StudyError(f"--row-length must be 1 to {inputs.MAX_ROW}, not {q.row_length}")
    if q.numerics not in ("device", "document"):
        raise StudyError(f"numerics must be device or document, not {q.numerics!r}")
    if not q.dtypes or not q.socs:
        raise StudyError("a study needs at least one dtype and one SoC")
    if q.seed < 0:
        raise StudyError(f"--seed must not be negative, not {q.seed}")


def check_count(n: int, what: str) -> None:
    """Raises StudyError for more than MAX_ELEMENTS."""
    if n > MAX_ELEMENTS:
        raise StudyError(f"{what}: a study takes at most 2^39 = {MAX_ELEMENTS} elements, not {n}")
