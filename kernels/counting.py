"""How many vector instructions a flow costs per element: counted by running the flow itself on numbers that count.

A flow's file is executed a second time with stand-ins for the modules that speak to the compiler, and with ``a if c else b`` turned into a
select. Its scalar functions then build a graph instead of machine code; equal subexpressions are one node. Rules:
- add, subtract, multiply, negate, compare, select, a fused multiply-add, exp, log, division and every conversion are one instruction each;
- loads, stores, bit casts, constants and rounding inside native FLOAT16 arithmetic cost nothing;
- a maximum or a sum over rows is one instruction per element;
- where the host looks a 16-bit result up in a table, the card computes: the FLOAT flow and a conversion for each tensor.

That exp and division take as long as an addition, and that a conversion counts where the card would stay in FLOAT16, is a simplification:
no instruction timings are public. Imports no Numba.
"""

from __future__ import annotations

import ast
import builtins
import threading
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from types import ModuleType, SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from . import catalog
from .variant import Variant

Key = tuple[Any, ...]


class CountError(Exception):
    """A flow does something that is not counted; the text says what. It can run all the same."""


class Work(NamedTuple):
    """What one element of a flow costs.

    operations: vector instructions. passes: how often a row is read when it does not fit on chip (1 for elementwise flows).
    """

    operations: int
    passes: int


_lock = threading.Lock()
#: The nodes of the flow that is being counted.
_nodes: set[Key] = set()


def _key(x: Any) -> Key:
    return x.key if isinstance(x, Value) else ("constant", repr(x))


def node(name: str, *args: Any) -> Value:
    """One instruction; the same one twice is counted once."""
    key = (name, *map(_key, args))
    _nodes.add(key)
    return Value(key)


def _select(condition: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    """``yes if condition else no``; of a counting condition both sides are computed."""
    if not isinstance(condition, Value):
        return yes() if condition else no()
    return node("select", condition, yes(), no())


class _Selects(ast.NodeTransformer):
    """``a if c else b`` -> ``_select(c, lambda: a, lambda: b)``."""

    def visit_IfExp(self, found: ast.IfExp) -> ast.AST:
        self.generic_visit(found)
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        sides: list[ast.expr] = [ast.Lambda(nothing, side) for side in (found.body, found.orelse)]
        return ast.Call(ast.Name("_select", ast.Load()), [found.test, *sides], [])


def _operator(name: str, *, swap: bool = False) -> Callable[[Value, Any], Value]:
    def apply(self: Value, other: Any) -> Value:
        return node(name, other, self) if swap else node(name, self, other)

    return apply


class Value:
    """A number that counts what is done with it. NumPy scalars leave their operators to it."""

    __slots__ = ("key",)
    __array_ufunc__ = None
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, key: Key) -> None:
        self.key = key

    __add__ = _operator("add")
    __radd__ = _operator("add", swap=True)
    __sub__ = _operator("sub")
    __rsub__ = _operator("sub", swap=True)
    __mul__ = _operator("mul")
    __rmul__ = _operator("mul", swap=True)
    __truediv__ = _operator("div")
    __rtruediv__ = _operator("div", swap=True)
    __lt__ = _operator("lt")
    __le__ = _operator("le")
    __gt__ = _operator("gt")
    __ge__ = _operator("ge")
    __and__ = _operator("and")
    __rand__ = _operator("and", swap=True)
    __or__ = _operator("or")
    __ror__ = _operator("or", swap=True)
    __lshift__ = _operator("shl")
    __rshift__ = _operator("shr")

    def __eq__(self, other: object) -> Any:
        return node("eq", self, other)

    def __ne__(self, other: object) -> Any:
        return node("ne", self, other)

    def __neg__(self) -> Value:
        return node("neg", self)

    def __bool__(self) -> bool:
        raise TypeError("a flow branches on a value: write a conditional expression, which is a select")


def _same(x: Any) -> Any:
    return x


def _instruction(name: str) -> Callable[..., Value]:
    return lambda *args: node(name, *args)


def _convert(kind: Any) -> Callable[[Any], Any]:
    if kind is np.int64:  # an index into a table
        return _same
    return lambda x: node("cast", x, np.dtype(kind).name) if isinstance(x, Value) else kind(x)


class _Slots:
    """load and store: element i of an array, whatever i is."""

    def __init__(self, *, write: bool) -> None:
        self.write = write

    def __getitem__(self, kind: str) -> Any:
        if self.write:
            return lambda p, i, x: None
        return lambda p, i: Value(("load", p))


def _reader(dtype: str, s32: str = "rint") -> Any:
    wide = dtype in ("FLOAT", "DOUBLE")
    return lambda p, i: Value(("load", p)) if wide else node("cast", Value(("load", p)), "FLOAT")


def _writer(dtype: str, *options: Any) -> Any:
    wide = dtype in ("FLOAT", "DOUBLE")
    return lambda p, i, x: None if wide else node("cast", x, dtype)


def _reader_through_half() -> Any:
    return lambda p, i: node("cast", node("cast", Value(("load", p)), "FLOAT16"), "FLOAT")


def _to(dtype: str) -> Callable[[Any], Value]:
    return lambda x: node("cast", x, dtype)


class _Elementary:
    def __init__(self, flush: bool) -> None:
        self.exp, self.log, self.log1p, self.tanh, self.div = map(_instruction, ("exp", "log", "log1p", "tanh", "div"))
        self.exp_tile = lambda x, n: node("exp", x)


class _Bits(SimpleNamespace):
    """Bit casts are free; any other helper is one instruction."""

    def __getattr__(self, name: str) -> Any:
        return _same if "_of_" in name else _instruction(name)


_STAND_INS: dict[str, Any] = {
    "bits": _Bits(
        inline=_same, load=_Slots(write=False), store=_Slots(write=True), scratch=lambda nbytes: lambda: "scratch",
    ),
    "elementary": SimpleNamespace(Elementary=_Elementary, EXP_TILE=128, flush_positive=_same),
    "formats": SimpleNamespace(
        reader=_reader, writer=_writer, int_writer=_writer, reader_int32_through_half=_reader_through_half,
        round_half=lambda saturate: _same, saturate_half=_same, half_codecs=lambda: (_to("FLOAT"), _to("FLOAT16")),
    ),
    "loops": SimpleNamespace(TILE_BYTES=512),
    "double": SimpleNamespace(exp64=_instruction("exp"), log64=_instruction("log"), div64=_instruction("div")),
}  # fmt: skip


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
    if level == 2 and name in _STAND_INS:
        return _STAND_INS[name]
    if level == 2 and not name:
        return SimpleNamespace(**{part: _STAND_INS[part] for part in fromlist})
    return builtins.__import__(name, globals, locals, fromlist, level)


@cache
def _family(name: str) -> ModuleType:
    """The flow file once more, over the stand-ins."""
    package = f"{__package__}.flows"
    spec = find_spec(f"{package}.{name}")
    assert spec is not None
    assert spec.origin is not None
    module = ModuleType(f"{package}.{name} (counting)")
    module.__dict__.update(__package__=package, __builtins__={**vars(builtins), "__import__": _import}, _select=_select)
    with open(spec.origin, encoding="utf-8") as file:
        tree = ast.fix_missing_locations(_Selects().visit(ast.parse(file.read())))
    exec(compile(tree, spec.origin, "exec"), module.__dict__)
    # Constants are made by now; from here on a NumPy type is a conversion.
    for key, value in list(vars(module).items()):
        if isinstance(value, type) and issubclass(value, np.generic):
            setattr(module, key, _convert(value))
    if "np" in module.__dict__:
        kinds = [t for t in vars(np).values() if isinstance(t, type) and issubclass(t, np.number)]
        module.__dict__["np"] = SimpleNamespace(**{t.__name__: _convert(t) for t in kinds})
    return module


def _count(run: Callable[[], object]) -> int:
    _nodes.clear()
    run()
    return len(_nodes)


def _elementwise(function: Callable[[Variant], Any], v: Variant) -> int:
    plan = function(v)
    if plan.table is not None:
        return _elementwise(function, v._replace(dtype="FLOAT")) + len(plan.inputs) + 1
    pointers = [f"in{k}" for k in range(len(plan.inputs))]
    return _count(lambda: plan.tile()("out", *pointers, "table", 1))


def _rows(plan: Any) -> tuple[int, int]:
    read, write = _reader(plan.dtype), _writer(plan.dtype)

    def run() -> None:
        _prepare, term, _finish, last_step = plan.scalars()
        a = read("in0", 0)
        b = read("in1", 0) if plan.inputs == 2 else 0.0
        m = Value(("row", "maximum")) if plan.maximum else 0.0
        node("sum", term(a, b, m))
        if plan.maximum:
            node("max", a)
        write("out", 0, last_step(a, b, m, Value(("row", "sum"))))

    return _count(run), 2 + plan.maximum


@cache
def work(kind: str, flow: str, v: Variant, last: bool = True) -> Work:
    """What one element of a flow costs; ``kind`` and the rest as in `build`.

    What is done once for a row (the logarithm of a sum) is left out. LookupError for an unknown flow, dtype or architecture; CountError.
    """
    entry = catalog.find(kind, flow, v)
    with _lock:
        try:
            function = getattr(_family(entry.family), flow)
            return Work(*_rows(function(v, last))) if kind == "rows" else Work(_elementwise(function, v), 1)
        except Exception as error:
            raise CountError(f"{flow} {v.dtype} on {v.arch}: {type(error).__name__}: {error}") from error
