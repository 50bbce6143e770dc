"""How a public function is declared: its C prototype beside its Python body.

The prototype says everything that both faces need. ``out`` marks what C returns through a pointer: Python returns it first, in C's order,
and the code last. From the types of the others follow the argument checks of pyACL, which raise before anything happens.
The table :data:`ENTRIES` is what a generator of C headers and entry points reads.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from operator import index
from typing import Any, NamedTuple, TypeVar, cast

from emu.types import C_ENUMS

F = TypeVar("F", bound=Callable[..., Any])

_U64 = (1 << 64) - 1


class Parameter(NamedTuple):
    """One parameter of a C prototype; ``ctype`` without the ``*`` of an ``out``."""

    ctype: str
    name: str
    out: bool


class Entry(NamedTuple):
    """One public function. ``function`` takes the inputs in C's order, unchecked."""

    c_name: str
    returns: str
    parameters: tuple[Parameter, ...]
    python_name: str
    function: Callable[..., Any]
    #: False where the C signature is not public as a whole: Python offers it, C cannot.
    c_known: bool
    #: How many of the last inputs may be left out.
    optional: int

    @property
    def inputs(self) -> list[Parameter]:
        """What the Python function takes."""
        return [p for p in self.parameters if not p.out]

    @property
    def outputs(self) -> list[Parameter]:
        """What it returns before the code."""
        return [p for p in self.parameters if p.out]


#: C name -> declaration.
ENTRIES: dict[str, Entry] = {}

#: Integer C types -> (lowest, highest, mask for a value of the other sign or 0).
_INTEGERS: dict[str, tuple[int, int, int]] = {
    "int32_t": (-(1 << 31), (1 << 31) - 1, 0),
    "int64_t": (-(1 << 63), (1 << 63) - 1, 0),
    "uint16_t": (0, 0xFFFF, 0),
    "uint32_t": (0, 0xFFFFFFFF, 0xFFFFFFFF),
    "uint64_t": (0, _U64, _U64),
    "size_t": (0, _U64, _U64),
    **dict.fromkeys(C_ENUMS, (-(1 << 31), (1 << 31) - 1, 0)),
}
_HANDLES = {"aclrtStream", "aclrtEvent", "aclrtContext", "aclDataBuffer*", "aclrtStreamConfigHandle*"}
_FUNCTIONS = {"aclrtCallback", "aclrtHostFunc", "aclrtExceptionInfoCallback"}


def _bounds(ctype: str) -> tuple[int, int, int] | None:
    """The range of an integer type; pointers and handles are 64-bit numbers; None for everything else."""
    if ctype in _HANDLES or (ctype.endswith("*") and ctype not in ("const char*", "any*", "const aclrtExceptionInfo*")):
        return (0, _U64, _U64)
    return _INTEGERS.get(ctype)


def _convert(ctype: str, value: Any) -> Any:
    """``value`` as ``ctype``; TypeError or ValueError when it is none. A negative number for an unsigned type wraps, as in C."""
    bounds = _bounds(ctype)
    if bounds is not None:
        low, high, mask = bounds
        number = index(value)
        if low <= number <= high:
            return number
        if mask and -(mask // 2) - 1 <= number < 0:
            return number & mask
        raise ValueError(f"{number} does not fit {ctype}")
    if ctype == "float":
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"expected a number, not {type(value).__name__}")
        return float(value)
    if ctype == "const char*":
        if value is None or isinstance(value, str):
            return value
        if isinstance(value, bytes):
            return value.decode()
        raise TypeError(f"expected a str, not {type(value).__name__}")
    if ctype in _FUNCTIONS:
        if value is None or callable(value):
            return value
        return index(value)
    return value


def entry(prototype: str, *, name: str = "acl.rt", returns: str = "aclError", optional: int = 0, c_known: bool = True) -> Callable[[F], F]:
    """Declare ``prototype`` = ``cName(type name, out type name, …)``; ``any*`` is a pointer that Python passes as any object.

    The decorated function takes exactly the inputs, positionally; TypeError ("acl.rt.malloc args parse failed: …") for another count or a
    wrong type, as pyACL does. The last ``optional`` arguments may be left out and are None then.
    """
    c_name, _, rest = prototype.partition("(")
    parameters = []
    for text in filter(None, (part.strip() for part in rest.rstrip(")").split(","))):
        out = text.startswith("out ")
        ctype, _, parameter = text.removeprefix("out ").rpartition(" ")
        parameters.append(Parameter(ctype, parameter, out))

    def declare(function: F) -> F:
        made = Entry(c_name, returns, tuple(parameters), f"{name}.{function.__name__}", function, c_known, optional)
        ENTRIES[c_name] = made
        return cast(F, checked(made, function))

    return declare


def checked(declared: Entry, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` behind the argument checks of a declaration."""
    full, inputs, optional = declared.python_name, declared.inputs, declared.optional
    ranges = [(_bounds(p.ctype) or (1, 0, 0))[:2] for p in inputs]
    count = len(inputs)

    @wraps(declared.function)
    def call(*args: Any) -> Any:
        if len(args) == count:
            for value, (low, high) in zip(args, ranges):  # noqa: B905  (strict= costs on the hot path)
                if value.__class__ is not int or not low <= value <= high:
                    break
            else:
                return function(*args)
        return function(*parse(args))

    def parse(args: tuple[Any, ...]) -> list[Any]:
        if count - optional <= len(args) < count:
            args += (None,) * (count - len(args))
        if len(args) != count:
            raise TypeError(f"{full} args parse failed: takes {count} arguments ({_list(inputs)}), got {len(args)}")
        values = []
        for value, parameter in zip(args, inputs, strict=True):
            try:
                values.append(_convert(parameter.ctype, value))
            except (TypeError, ValueError, OverflowError) as error:
                text = f"{full} args parse failed: {parameter.name} ({parameter.ctype}): {error}"
                raise TypeError(text) from None
        return values

    return call


def names(module: str) -> list[str]:
    """What a file of the face exports: exactly the functions that it declares."""
    return [e.function.__name__ for e in ENTRIES.values() if e.function.__module__ == module]


def _list(parameters: list[Parameter]) -> str:
    return ", ".join(p.name for p in parameters) or "none"


def unsupported(c_name: str, code: int) -> Callable[..., int]:
    """A function that CANN has and the emulator has not: ``code`` with a message that names it, whatever the arguments."""
    from emu.runtime import errors

    def call(*args: Any) -> int:
        return errors.fail(code, "EE1005", f"{c_name} is not emulated")

    call.__doc__ = f"{c_name}: not emulated, returns {code}."
    return call
