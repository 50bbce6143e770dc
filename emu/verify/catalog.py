"""What can be compared: the operators, their flows, and the variants that the products have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from emu_kernels.reference import operators
from emu_kernels.variant import ARCHS, BF16_ARCHS, Variant


class Op(NamedTuple):
    """One operator of the verification: `flow` is the kernels' name, `inputs` the number of tensors, `rows` tells a reduction."""

    name: str
    flow: str
    inputs: int
    rows: bool

    @property
    def dtypes(self) -> tuple[str, ...]:
        """What there is a reference for."""
        return operators.DTYPES[self.flow]

    @property
    def document(self) -> bool:
        """Whether the formula of the operator document exists as a variant of its own."""
        return self.flow in operators.DOCUMENT


OPS: tuple[Op, ...] = (
    Op("SeluBackward", "selu_backward", 2, False),
    Op("LogSigmoidBackward", "log_sigmoid_backward", 2, False),
    Op("SoftmaxBackward", "softmax_backward", 2, True),
    Op("Selu", "selu", 1, False),
    Op("LogSigmoid", "log_sigmoid", 1, False),
    Op("Softmax", "softmax", 1, True),
    Op("LogSoftmax", "log_softmax", 1, True),
    Op("LogSoftmaxBackward", "log_softmax_backward", 2, True),
    Op("Exp", "exp", 1, False),
    Op("Sigmoid", "sigmoid", 1, False),
    Op("Gelu", "gelu", 1, False),
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
