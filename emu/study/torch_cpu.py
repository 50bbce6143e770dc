"""PyTorch's CPU operators on bit patterns: the other device of a comparison. Only this file imports torch."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from emu.study import numbers
from emu.study.dd import F64
from emu.study.errors import LacksError, StudyError
from emu.study.numbers import Bits

_SCALE, _ALPHA = 1.0507009873554804934193349852946, 1.6732632423543772848170429916717


def _torch() -> Any:
    try:
        return import_module("torch")
    except ImportError:
        raise StudyError("PyTorch is not installed: pip install 'aclnn-emu[torch]'") from None


def _tensor(torch: Any, dtype: str, bits: Bits) -> Any:
    if dtype == "BF16":
        return torch.from_numpy(bits.view(np.int16).copy()).view(torch.bfloat16)
    kinds = {"FLOAT16": np.float16, "FLOAT": np.float32, "DOUBLE": np.float64}
    return torch.from_numpy(bits.view(kinds[dtype]).copy())


def check(flow: str, dtype: str) -> None:
    """Raises StudyError if PyTorch is missing, LacksError for a dtype that it has not: before anything is computed."""
    if dtype not in ("FLOAT", "FLOAT16", "BF16", "DOUBLE"):
        raise LacksError(f"PyTorch's {flow} has no {dtype}: choose a float dtype")
    _torch()


def compute(flow: str, dtype: str, inputs: tuple[Bits, ...], dummy: bool = False) -> F64:
    """PyTorch's result as values. log_sigmoid_backward gets the buffer of its own forward pass, for CPU reads it;
    `dummy`: zeros instead."""
    check(flow, dtype)
    torch = _torch()
    aten = torch.ops.aten
    t = [_tensor(torch, dtype, b) for b in inputs]
    kind = t[0].dtype

    def buffer() -> Any:
        return torch.zeros_like(t[-1]) if dummy else aten.log_sigmoid_forward(t[-1])[1]

    calls = {
        "selu": lambda: torch.selu(t[0]),
        "exp": lambda: torch.exp(t[0]),
        "sigmoid": lambda: torch.sigmoid(t[0]),
        "gelu": lambda: torch.nn.functional.gelu(t[0], approximate="tanh"),
        "log_sigmoid": lambda: torch.nn.functional.logsigmoid(t[0]),
        "selu_backward": lambda: aten.elu_backward(t[0], _ALPHA, _SCALE, 1.0, True, t[-1]),
        "log_sigmoid_backward": lambda: aten.log_sigmoid_backward(t[0], t[-1], buffer()),
        "softmax": lambda: torch.softmax(t[0], -1),
        "log_softmax": lambda: torch.log_softmax(t[0], -1),
        "softmax_backward": lambda: aten._softmax_backward_data(t[0], t[-1], -1, kind),
        "log_softmax_backward": lambda: aten._log_softmax_backward_data(t[0], t[-1], -1, kind),
    }
    with torch.no_grad():
        out = calls[flow]()
    if dtype == "BF16":
        return numbers.values("BF16", out.view(torch.int16).numpy().view(np.uint16))
    found: F64 = out.numpy().astype(np.float64)
    return found
