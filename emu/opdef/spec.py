"""What a declaration of an operator says.

Everything else is derived from it: phase 1, phase 2, Python functions, C headers, the CLI.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from emu.soc import SocProfile


class Role(Enum):
    """What phase 1 and the kernels do with a parameter."""

    IN = "in"
    OUT = "out"
    #: Read and written (aclnnInplace…).
    INOUT = "inout"
    #: A tensor that must not be null and that nothing looks at.
    UNUSED = "unused"
    #: An attribute that is passed by value.
    ATTR = "attr"


@dataclass(frozen=True)
class Param:
    """One parameter of phase 1: its C name, its name in Python and the command line, its role and C type."""

    name: str
    python: str
    role: Role
    ctype: str = "tensor"
    #: An output in the C signature although no kernel writes it (LogSigmoidForward's buffer).
    name_is_output: bool = False

    @property
    def is_tensor(self) -> bool:
        return self.ctype == "tensor"

    @property
    def c_declaration(self) -> str:
        """As it stands in the C header."""
        if self.is_tensor:
            written = self.role in (Role.OUT, Role.INOUT) or (self.role is Role.UNUSED and self.name_is_output)
            return f"aclTensor *{self.name}" if written else f"const aclTensor *{self.name}"
        return f"{self.ctype} {self.name}"


def tensor_in(name: str, python: str | None = None) -> Param:
    return Param(name, python or snake(name), Role.IN)


def tensor_out(name: str, python: str = "out") -> Param:
    return Param(name, python, Role.OUT)


def tensor_inout(name: str, python: str | None = None) -> Param:
    return Param(name, python or snake(name), Role.INOUT)


def tensor_unused(name: str, python: str | None = None, *, output: bool = False) -> Param:
    return Param(name, python or snake(name), Role.UNUSED, name_is_output=output)


def attr_int64(name: str, python: str | None = None) -> Param:
    return Param(name, python or snake(name), Role.ATTR, "int64_t")


class Binding(NamedTuple):
    """What a check may look at when it is bound, once for each operator and product."""

    op: Operator
    soc: SocProfile

    def place(self, name: str) -> int:
        """Position of a parameter in phase 1's argument list."""
        return next(i for i, p in enumerate(self.op.params) if p.name == name)


#: A bound check looks at phase 1's arguments (Tensor objects and attributes, in order) and says what is wrong, or None.
BoundCheck = Callable[[Sequence[Any]], "str | None"]
#: A check in a declaration: a function that binds it, or gives None where it does not apply to the product.
Check = Callable[["Binding"], "BoundCheck | None"]
#: What a bound check returns to end the checks with success (an empty tensor that skips the rest).
EMPTY = "\0empty"


@dataclass(frozen=True, kw_only=True)
class Flow:
    """How the operator is computed: one kernel over the named tensors.

    ``kind`` is "elementwise" or "rows"; rows reduce along the attribute ``dim``. ``cast_first`` names the input that
    is cast to the output's dtype before the kernel runs; otherwise the kernel's dtype is ``dtype_of``'s, and a
    different output dtype is a Cast after it.
    """

    name: str
    kind: str
    inputs: tuple[str, ...]
    output: str
    dtype_of: str
    dim: str | None = None
    cast_first: str | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Operator:
    """One declaration. Field by field:

    ``name`` is the C name, ``stem`` that of its header; ``params`` phase 1's parameters in order; ``dtypes`` what the
    operator takes (BF16 only on products that have it); ``checks`` phase 1's checks after the null checks, in order;
    ``empty`` the tensors of which one empty makes the call a success that launches nothing; ``flow`` the computation;
    ``contiguous_code`` the code of a view outside its storage; ``refused`` maps a family of products that the
    operator's document marks unsupported to what real cards are known to do; ``tiling_bytes`` the workspace that a
    family's kernel asks for itself; ``assumptions`` the named assumptions that its results rest on.
    """

    name: str
    stem: str
    params: tuple[Param, ...]
    dtypes: tuple[str, ...]
    checks: tuple[Check, ...]
    empty: tuple[str, ...]
    flow: Flow
    summary: str
    python: str = ""
    contiguous_code: int = 561103
    refused: dict[str, str] = field(default_factory=dict)
    tiling_bytes: dict[str, int] = field(default_factory=dict)
    assumptions: tuple[str, ...] = ()
    #: The products that the operator's document lists as supported, by family; None where no document was at hand.
    document: tuple[str, ...] | None = None

    @cached_property
    def python_name(self) -> str:
        """``log_sigmoid_backward`` for aclnnLogSigmoidBackward."""
        return self.python or snake(self.name.removeprefix("aclnn"))

    @cached_property
    def tensors(self) -> tuple[Param, ...]:
        return tuple(p for p in self.params if p.is_tensor)

    @cached_property
    def output(self) -> Param:
        return next(p for p in self.params if p.name == self.flow.output)

    def dtypes_on(self, soc: SocProfile) -> tuple[str, ...]:
        """The data types that phase 1 accepts on a product."""
        return tuple(t for t in self.dtypes if t != "BF16" or soc.bf16)


def snake(name: str) -> str:
    """``gradOutput`` → ``grad_output``, ``LogSigmoidBackward`` → ``log_sigmoid_backward``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()
