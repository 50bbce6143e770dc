"""Which flows there are, and for what: read without loading a kernel (imports no Numba)."""

from __future__ import annotations

from typing import NamedTuple

from .assumptions import ASSUMPTIONS, chosen
from .variant import ARCHS, BF16_ARCHS, UnknownKernelError, Variant


class Flow(NamedTuple):
    """One operator's arithmetic.

    kind: "elementwise" or "rows" (the function of `build` that makes it).
    inputs: number of input tensors. dtypes: on every arch, BF16 only where the arch has it.
    family: the module under `flows` that defines it.
    """

    name: str
    kind: str
    inputs: int
    dtypes: tuple[str, ...]
    family: str

    def dtypes_on(self, arch: str) -> tuple[str, ...]:
        """The dtypes that `arch` has."""
        return tuple(d for d in self.dtypes if d != "BF16" or arch in BF16_ARCHS)


_FLOATS = ("FLOAT", "FLOAT16", "BF16")

FLOWS: dict[str, Flow] = {
    f.name: f
    for f in (
        Flow("selu_backward", "elementwise", 2, (*_FLOATS, "INT8", "INT32"), "selu"),
        Flow("selu", "elementwise", 1, (*_FLOATS, "INT8", "INT32"), "selu"),
        Flow("log_sigmoid_backward", "elementwise", 2, _FLOATS, "log_sigmoid"),
        Flow("log_sigmoid", "elementwise", 1, _FLOATS, "log_sigmoid"),
        Flow("softmax_backward", "rows", 2, _FLOATS, "softmax"),
        Flow("softmax", "rows", 1, (*_FLOATS, "DOUBLE"), "softmax"),
        Flow("log_softmax", "rows", 1, (*_FLOATS, "DOUBLE"), "softmax"),
        Flow("log_softmax_backward", "rows", 2, _FLOATS, "softmax"),
        Flow("exp", "elementwise", 1, _FLOATS, "exponential"),
        Flow("sigmoid", "elementwise", 1, _FLOATS, "exponential"),
        Flow("gelu", "elementwise", 1, _FLOATS, "exponential"),
        Flow("log", "elementwise", 1, ("FLOAT",), "unary"),
        Flow("log1p", "elementwise", 1, ("FLOAT",), "unary"),
        Flow("tanh", "elementwise", 1, ("FLOAT",), "unary"),
    )
}


def find(kind: str, flow: str, v: Variant) -> Flow:
    """The flow of that name, if it exists for that variant; else UnknownKernelError (a LookupError)."""
    entry = FLOWS.get(flow)
    if entry is None or entry.kind != kind:
        known = [f.name for f in FLOWS.values() if f.kind == kind]
        raise UnknownKernelError(f"no {kind} flow {flow!r}; known: {', '.join(known)}")
    if v.arch not in ARCHS:
        raise UnknownKernelError(f"no architecture {v.arch!r}; known: {', '.join(ARCHS)}")
    if v.dtype not in entry.dtypes_on(v.arch):
        raise UnknownKernelError(f"{flow} has no {v.dtype} on {v.arch}; known: {', '.join(entry.dtypes_on(v.arch))}")
    if v.numerics not in ("device", "document"):
        raise UnknownKernelError(f"no numerics {v.numerics!r}; known: device, document")
    for name, _ in v.assume:
        chosen(v.assume, name)
    return entry


def flushes(v: Variant) -> bool:
    """Whether FLOAT exp, log, division and square root flush subnormals."""
    if v.arch == "dav_3510":
        return True
    return v.arch != "dav_2201" and chosen(v.assume, "exp_subnormal") == "flushed"


__all__ = ["ASSUMPTIONS", "FLOWS", "Flow", "chosen", "find", "flushes"]
