"""One file for each operator, named as its flow: `operators.selu_backward.selu_backward` and so on.

`NAME(*patterns, v, trace)` takes one value of each argument; a reduction takes one row of each, and `last`. `NAME_array` does the same on
arrays, for sweeps: elementwise on 1-D arrays, reductions over the last axis. The tests hold the two against each other.

They trust their variant. `scalar` and `array` are the way in: they check it and return the function with `v` filled in.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Any

from emu_kernels.assumptions import chosen
from emu_kernels.variant import ARCHS, BF16_ARCHS, Variant

_FLOATS = ("FLOAT", "FLOAT16", "BF16")
#: What there is a reference of: flow -> dtypes. BF16 is on `variant.BF16_ARCHS` only.
DTYPES: dict[str, tuple[str, ...]] = {
    "selu_backward": (*_FLOATS, "INT8", "INT32"),
    "log_sigmoid_backward": _FLOATS,
    "softmax_backward": _FLOATS,
    "selu": (*_FLOATS, "INT8", "INT32"),
    "log_sigmoid": _FLOATS,
    "softmax": (*_FLOATS, "DOUBLE"),
    "log_softmax": (*_FLOATS, "DOUBLE"),
    "log_softmax_backward": _FLOATS,
    "exp": _FLOATS,
    "sigmoid": _FLOATS,
    "gelu": _FLOATS,
}
#: Flows whose document gives a formula of its own, the numerics "document"; of the others that is the same as "device".
DOCUMENT = ("selu_backward", "log_sigmoid_backward", "softmax_backward")


def scalar(flow: str, v: Variant) -> Callable[..., Any]:
    """The scalar form: patterns (or, for a reduction, lists of them and `last`) in, the pattern or list of the result out.

    `trace=[]` collects the steps. INT8 and INT32 results are integers. ValueError for a flow or variant without a reference; it names the
    choices.
    """
    check(flow, v)
    return partial(getattr(_module(flow), flow), v=v)


def array(flow: str, v: Variant) -> Callable[..., Any]:
    """The array form, of every dtype but DOUBLE. ValueError as :func:`scalar`."""
    check(flow, v)
    if v.dtype == "DOUBLE":
        raise ValueError("DOUBLE has no array form: use scalar")
    return partial(getattr(_module(flow), f"{flow}_array"), v=v)


@cache
def check(flow: str, v: Variant) -> None:
    """Raise ValueError, with the choices, if there is no reference of a flow for a variant; LookupError for an unknown assumption."""
    _one_of("flow", flow, tuple(DTYPES))
    _one_of("architecture", v.arch, ARCHS)
    _one_of(f"dtype of {flow} on {v.arch}", v.dtype, tuple(d for d in DTYPES[flow] if d != "BF16" or v.arch in BF16_ARCHS))
    _one_of("numerics", v.numerics, ("device", "document"))
    for name, _ in v.assume:
        chosen(v.assume, name)


def _one_of(what: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {what}: {value!r}; known: {', '.join(choices)}")


def _module(flow: str) -> Any:
    return import_module(f"emu_kernels.reference.operators.{flow}")
