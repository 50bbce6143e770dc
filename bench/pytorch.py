"""PyTorch on the same tensors, with preallocated outputs; the only file that imports torch, and only when it is there."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.arena import huge_share
from bench.work import Work

Run = Callable[[int], None]

#: selu is elu with these.
ALPHA, SCALE = 1.6732632423543772, 1.0507009873554805

#: The loop of the native cells, run by TorchScript: no Python call is in PyTorch's figures.
_LOOPS = f"""
def selu_backward(g, y, out, n: int):
    for i in range(n):
        torch.ops.aten.elu_backward(g, {ALPHA}, {SCALE}, 1.0, True, y, grad_input=out)
def log_sigmoid_backward(g, x, buffer, out, n: int):
    for i in range(n):
        torch.ops.aten.log_sigmoid_backward(g, x, buffer, grad_input=out)
def softmax_backward(g, y, dim: int, kind: int, out, n: int):
    for i in range(n):
        torch.ops.aten._softmax_backward_data(g, y, dim, kind, grad_input=out)
"""
#: c10::ScalarType, which TorchScript takes as a number.
_SCALAR_TYPE = {"FLOAT": 6, "FLOAT16": 5, "BF16": 15}


@cache
def module() -> Any:
    """torch, or None without it. What it allocates itself lies on 2 MiB pages too, as the arena does; it reads the variable once."""
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    return import_module("torch") if find_spec("torch") else None


@cache
def _loops() -> Any:
    """The compiled loops, or None where this PyTorch has no TorchScript."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return module().jit.CompilationUnit(_LOOPS)
    except (AttributeError, RuntimeError):
        return None


def set_threads(threads: int) -> None:
    """Threads of one operator."""
    if module() is not None:
        module().set_num_threads(threads)


def describe(threads: Iterable[int]) -> dict[str, Any] | None:
    """What PyTorch says of itself: the vectors it uses, how many threads it took where so many were asked for, and how much of a tensor
    that it allocates, as its temporaries are, lies on 2 MiB pages; None without it."""
    torch = module()
    if torch is None:
        return None
    took = {}
    for count in threads:
        set_threads(count)
        took[str(count)] = int(torch.get_num_threads())
    own = torch.empty(64 << 20, dtype=torch.uint8).fill_(1)
    share = huge_share(own.data_ptr(), own.numel())
    return {"cpu_capability": torch.backends.cpu.get_cpu_capability(), "threads": took, "huge_share": share}


def as_tensor(array: NDArray[Any]) -> Any:
    """A tensor over the array's own memory, strides included."""
    torch = module()
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def run(work: Work) -> Run | None:
    """The cell's operator; None without torch or without such an operator."""
    torch = module()
    cell = work.cell
    if torch is None or cell.dtype == "INT8":
        return None
    aten = torch.ops.aten
    inputs = [as_tensor(a) for a in work.inputs]
    out = as_tensor(work.out)
    if cell.inputs == 1:
        return _in_python(_forward(work, aten, inputs[0], out))
    g, y = inputs
    loops = _loops() if cell.path == "native" else None
    if cell.operator == "SeluBackward":
        if loops is not None:
            return lambda times: loops.selu_backward(g, y, out, times)
        elu_backward = aten.elu_backward.grad_input
        return _in_python(lambda: elu_backward(g, ALPHA, SCALE, 1.0, True, y, grad_input=out))
    if cell.operator == "LogSigmoidBackward":
        buffer = _true_buffer(work, aten, y)
        if loops is not None:
            return lambda times: loops.log_sigmoid_backward(g, y, buffer, out, times)
        log_sigmoid_backward = aten.log_sigmoid_backward.grad_input
        return _in_python(lambda: log_sigmoid_backward(g, y, buffer, grad_input=out))
    if loops is not None:
        kind = _SCALAR_TYPE[cell.dtype]
        return lambda times: loops.softmax_backward(g, y, cell.dim, kind, out, times)
    softmax_backward = aten._softmax_backward_data.out
    return _in_python(lambda: softmax_backward(g, y, cell.dim, out.dtype, grad_input=out))


def _in_python(call: Callable[[], object]) -> Run:
    def run_in_python(times: int) -> None:
        for _ in repeat(None, times):
            call()

    return run_in_python


def _true_buffer(work: Work, aten: Any, x: Any) -> Any:
    """What PyTorch's forward leaves for its backward: exp(-|x|). Its backward reads it besides x and computes no exp."""
    buffer = as_tensor(work.arena.empty(work.cell.shape, work.out.dtype))
    aten.log_sigmoid_forward.output(x, output=as_tensor(work.out), buffer=buffer)
    return buffer


def _forward(work: Work, aten: Any, x: Any, out: Any) -> Callable[[], object]:
    cell = work.cell
    if cell.operator == "Selu":
        return lambda: aten.elu.out(x, ALPHA, SCALE, 1.0, out=out)
    if cell.operator == "LogSigmoid":
        buffer = as_tensor(work.arena.empty(cell.shape, work.out.dtype))
        return lambda: aten.log_sigmoid_forward.output(x, output=out, buffer=buffer)
    softmax = aten._softmax.out if cell.operator == "Softmax" else aten._log_softmax.out
    return lambda: softmax(x, cell.dim, False, out=out)
