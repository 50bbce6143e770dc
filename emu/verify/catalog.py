"""What can be compared: the operators, their flows, and the variants that the products have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from emu_kernels.variant import ARCHS, BF16_ARCHS, Variant


class Op(NamedTuple):
    """One operator of the verification.

    `flow` is the kernels' name, `inputs` the number of tensors, `rows` tells a reduction, `document` whether the
    formula of the operator document exists as a variant of its own.
    """

    name: str
    flow: str
    inputs: int
    rows: bool
    dtypes: tuple[str, ...]
    document: bool = False


_FLOATS = ("FLOAT", "FLOAT16", "BF16")
OPS: tuple[Op, ...] = (
    Op("SeluBackward", "selu_backward", 2, False, (*_FLOATS, "INT8", "INT32"), True),
    Op("LogSigmoidBackward", "log_sigmoid_backward", 2, False, _FLOATS, True),
    Op("SoftmaxBackward", "softmax_backward", 2, True, _FLOATS, True),
    Op("Selu", "selu", 1, False, (*_FLOATS, "INT8", "INT32")),
    Op("LogSigmoid", "log_sigmoid", 1, False, _FLOATS),
    Op("Softmax", "softmax", 1, True, (*_FLOATS, "DOUBLE")),
    Op("LogSoftmax", "log_softmax", 1, True, (*_FLOATS, "DOUBLE")),
    Op("LogSoftmaxBackward", "log_softmax_backward", 2, True, _FLOATS),
    Op("Exp", "exp", 1, False, _FLOATS),
    Op("Sigmoid", "sigmoid", 1, False, _FLOATS),
    Op("Gelu", "gelu", 1, False, _FLOATS),
)
BY_FLOW = {op.flow: op for op in OPS}


def saturation_modes(arch: str) -> tuple[bool, ...]:
    """The overflow modes of an architecture, its default first: True is saturation."""
    return {"dav_2201": (False, True), "dav_3510": (False,)}.get(arch, (True,))


def variants(op: Op, archs: tuple[str, ...] = ARCHS, dtypes: tuple[str, ...] | None = None) -> Iterator[Variant]:
    """List every variant of an operator that some product has; BF16 only where the architecture knows it."""
    for arch in archs:
        for dtype in op.dtypes:
            if (dtypes and dtype not in dtypes) or (dtype == "BF16" and arch not in BF16_ARCHS):
                continue
            for saturate in saturation_modes(arch):
                for numerics in ("device", "document") if op.document else ("device",):
                    yield Variant(arch, dtype, saturate, numerics)


# Two 16-bit inputs, every pair: the combinations that an exhaustive run covers with 2^32 pairs each.
EXHAUSTIVE: tuple[tuple[str, str, str], ...] = (
    ("selu_backward", "BF16", "dav_2201"),
    ("selu_backward", "FLOAT16", "dav_2201"),
    ("selu_backward", "BF16", "dav_3510"),
    ("selu_backward", "FLOAT16", "dav_3510"),
    ("log_sigmoid_backward", "BF16", "dav_2201"),
    ("log_sigmoid_backward", "FLOAT16", "dav_2201"),
)
