"""How many inputs differ between products, between a product and the document's formula, and against PyTorch on the
CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from emu_kernels.reference.formats import FORMATS
from emu_kernels.variant import BF16_ARCHS, Variant
from numpy.typing import NDArray

from emu.verify import judge, samples
from emu.verify.catalog import OPS, Op, saturation_modes
from emu.verify.provider import NativeKernels, Provider

Bits = NDArray[Any]
BASE = "dav_2201"
DTYPES = ("FLOAT", "FLOAT16", "BF16")
OTHERS = ("dav_1001", "dav_2002", "dav_3002", "dav_3510", "document", "torch")
CASES = 1 << 20
ROW = 1024  # elements of a row


class Difference(NamedTuple):
    """One line: of `cases` inputs, how many give other bits than dav_2201 (None: there is no such computation)."""

    operator: str
    dtype: str
    inputs: str
    cases: int
    counts: dict[str, int | None]


def _inputs(op: Op, dtype: str, cases: int) -> list[tuple[str, tuple[Bits, ...]]]:
    """Finite inputs: each 16-bit pattern with g = 1, and normal values of many scales."""
    rng = np.random.default_rng(2024)
    if op.rows:
        shape = (cases // ROW, ROW, 1)
        x = rng.standard_normal(shape)
        y = np.exp(x) / np.exp(x).sum(axis=1, keepdims=True)
        second = np.log(y) if op.flow == "log_softmax_backward" else y
        arrays = (rng.standard_normal(shape), second) if op.inputs == 2 else (4 * x,)
        return [(f"{cases // ROW} rows of {ROW}, last dim", tuple(samples.values(dtype, a) for a in arrays))]
    sets: list[tuple[str, tuple[Bits, ...]]] = []
    if dtype in ("FLOAT16", "BF16"):
        every = samples.directed(dtype)
        every = every[(every & 0x7FFF) < FORMATS[dtype].inf]
        one = np.full(every.size, samples.values(dtype, np.ones(1))[0])
        label = "every finite value" + (", g = 1" if op.inputs == 2 else "")
        sets.append((label, (one, every) if op.inputs == 2 else (every,)))
    if op.inputs == 2 or dtype == "FLOAT":
        x = rng.standard_normal(cases) * 3
        # A forward result is at least -SA; what lies below is no output of Selu.
        second = np.where(x > 0, 1.0507 * x, 1.7581 * np.expm1(x)) if op.flow == "selu_backward" else x
        arrays = (rng.standard_normal(cases), second) if op.inputs == 2 else (x,)
        sets.append(("random normal", tuple(samples.values(dtype, a) for a in arrays)))
    return sets


def measure(
    dtypes: Sequence[str] = DTYPES,
    provider: Provider | None = None,
    cases: int = CASES,
    *,
    ops: Sequence[str] = (),
    others: Sequence[str] = OTHERS,
    finished: Callable[[str, str], None] = lambda operator, dtype: None,
) -> list[Difference]:
    """Count for every operator, or those named `ops`, against `others`; the overflow mode is each architecture's default.

    `cases` is the number of random inputs, a multiple of 1,024; where a dtype has 16 bits, every pattern is tried too. "torch" is
    None without PyTorch. `finished` is called after each operator and dtype.
    """
    kernels = provider or NativeKernels()
    lines = []
    for op in OPS:
        if ops and op.name not in ops:
            continue
        for dtype in dtypes:
            for label, inputs in _inputs(op, dtype, cases):
                base = _compute(kernels, op, Variant(BASE, dtype, False), inputs)
                counts: dict[str, int | None] = {}
                for other in others:
                    result = _other(kernels, op, dtype, other, inputs)
                    count = None if result is None else int(judge.mismatches(dtype, result, base).sum())
                    counts[other] = count
                lines.append(Difference(op.name, dtype, label, base.size, counts))
            finished(op.name, dtype)
    return lines


def _compute(kernels: Provider, op: Op, v: Variant, inputs: tuple[Bits, ...]) -> Bits:
    return kernels.rows(op.flow, v, True, *inputs) if op.rows else kernels.elementwise(op.flow, v, *inputs)


def _other(kernels: Provider, op: Op, dtype: str, other: str, inputs: tuple[Bits, ...]) -> Bits | None:
    if other == "torch":
        return _torch(op, dtype, inputs)
    if other == "document":
        return _compute(kernels, op, Variant(BASE, dtype, False, "document"), inputs) if op.document else None
    if dtype == "BF16" and other not in BF16_ARCHS:
        return None
    return _compute(kernels, op, Variant(other, dtype, saturation_modes(other)[0]), inputs)


def _torch(op: Op, dtype: str, inputs: tuple[Bits, ...]) -> Bits | None:
    """The same operator of PyTorch on the CPU, or None without PyTorch."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    kind = {"FLOAT": torch.float32, "FLOAT16": torch.float16, "BF16": torch.bfloat16}[dtype]
    aten = torch.ops.aten
    signed = np.int32 if dtype == "FLOAT" else np.int16
    tensors = [torch.from_numpy(a.view(signed).copy()).view(kind) for a in inputs]
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    calls: dict[str, Callable[..., Any]] = {
        "selu_backward": lambda g, y: aten.elu_backward(g, alpha, scale, 1.0, True, y),
        # On the CPU the buffer of the forward pass is an input of the gradient: it must be the true one.
        "log_sigmoid_backward": lambda g, x: aten.log_sigmoid_backward(g, x, aten.log_sigmoid_forward(x)[1]),
        "softmax_backward": lambda g, y: aten._softmax_backward_data(g, y, 1, kind),
        "selu": torch.selu,
        "log_sigmoid": lambda x: aten.log_sigmoid_forward(x)[0],
        "exp": torch.exp,
        "sigmoid": torch.sigmoid,
        "gelu": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
        "softmax": lambda x: torch.softmax(x, 1),
        "log_softmax": lambda x: torch.log_softmax(x, 1),
        "log_softmax_backward": lambda g, y: aten._log_softmax_backward_data(g, y, 1, kind),
    }
    result: Bits = calls[op.flow](*tensors).contiguous().view(getattr(torch, signed.__name__)).numpy()
    return result.view(inputs[0].dtype)
