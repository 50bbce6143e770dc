"""The elementary functions of a FLOAT as kernels of their own, for tests and studies."""

from __future__ import annotations

from typing import Any

from ..bits import inline, load, store
from ..catalog import flushes
from ..elementary import Elementary
from ..variant import Variant
from . import Plan

_get, _put = load["f32"], store["f32"]


def _plan(name: str, v: Variant) -> Plan:
    flush = flushes(v)

    def make() -> Any:
        function = getattr(Elementary(flush), name)

        @inline
        def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                _put(out, i, function(_get(xs, i)))

        return tile

    return Plan(("FLOAT", "ftz" if flush else "sub"), ("FLOAT",), "FLOAT", make)


def log(v: Variant) -> Plan:
    """Natural logarithm, correctly rounded; the subnormal rule of the architecture applies (as to all of these)."""
    return _plan("log", v)


def log1p(v: Variant) -> Plan:
    """log(1 + x), correctly rounded."""
    return _plan("log1p", v)


def tanh(v: Variant) -> Plan:
    """Hyperbolic tangent, correctly rounded."""
    return _plan("tanh", v)
