"""Kernels as functions of arrays. A test hands the engine another provider to see that wrong kernels are caught."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
from emu_kernels import catalog
from emu_kernels.reference.arith import Step
from emu_kernels.reference.arrays import BITS_DTYPE, load, narrow, to_half
from emu_kernels.reference.formats import FORMATS, is_nan
from emu_kernels.reference.operators.selu_backward import native_half
from emu_kernels.variant import Kernel, Variant
from numpy.typing import NDArray

from emu.verify import playback

if TYPE_CHECKING:
    from emu.verify.units import Example

Bits = NDArray[Any]


class Provider(Protocol):
    """What computes one flow on arrays of bit patterns (integers for INT8 and INT32). Must be picklable."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        """Return the flow of equally long 1-D arrays."""
        ...

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        """Return the flow of arrays (outer, r, inner), reduced over r; `last` goes with inner = 1."""
        ...


class Steps(NamedTuple):
    """What a kernel did on one case: how that is known, and the steps."""

    how: str
    steps: list[Step]


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def call(kernel: Kernel, args: list[int], start: int, stop: int) -> None:
    """Run a kernel on raw addresses and sizes over [start, stop); the kernel's own addresses are appended."""
    words = np.array([*args, *kernel.aux], np.int64)
    _FUNCTION(kernel.address)(words.ctypes.data, start, stop)


class NativeKernels:
    """The emulator's own kernels, called as a launch calls them, in one block.

    `package`: another copy of the kernels, for tests; it caches nothing on disk.
    """

    def __init__(self, package: str = playback.KERNELS) -> None:
        self.package = package

    def _build(self) -> ModuleType:
        if self.package == playback.KERNELS:
            from emu import kernel_cache

            return kernel_cache.build()
        return import_module(f"{self.package}.build")

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        """See `Provider`."""
        arrays = [np.ascontiguousarray(a) for a in inputs]
        out = np.empty_like(arrays[0])
        addresses = [a.ctypes.data for a in (out, *arrays)]
        call(self._build().elementwise(flow, v), addresses, 0, out.size)
        return out

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        """See `Provider`."""
        arrays = [np.ascontiguousarray(a) for a in inputs]
        out = np.empty_like(arrays[0])
        outer, r, inner = out.shape
        addresses = [a.ctypes.data for a in (out, *arrays)]
        units = outer if last else outer * inner
        call(self._build().rows(flow, v, last), [*addresses, outer, r, inner], 0, units)
        return out

    def steps(self, flow: str, v: Variant, example: Example) -> Steps:
        """Return the steps of a counterexample: the kernel's source run in Python, or what can be observed from outside.

        What was run must end in the result of the machine code; `how` says if it does not, or why nothing was run.
        """
        family = catalog.FLOWS[flow].family
        try:
            if example.last is None:
                steps = playback.elementwise(self.package, family, flow, v, example.inputs)
            else:
                steps = playback.rows(self.package, family, flow, v, example.last, example.inputs, example.element)
        except playback.PlaybackError as error:
            return Steps(f"kernel, as far as it can be observed ({error})", list(self.observe(flow, v, example)))
        width = FORMATS[v.dtype].bits if v.dtype in FORMATS else {"INT8": 8, "INT32": 32}[v.dtype]
        same = steps[-1].bits % (1 << width) == example.got % (1 << width)
        nan = v.dtype in FORMATS and is_nan(FORMATS[v.dtype], steps[-1].bits) and is_nan(FORMATS[v.dtype], example.got)
        if same or nan:
            return Steps("kernel, its source step by step", steps)
        return Steps("kernel, its source step by step; the machine code gave another result: the compiler, a table or tiling", steps)

    def observe(self, flow: str, v: Variant, example: Example) -> Iterator[Step]:
        """Yield what can be observed of a counterexample from outside the machine code.

        That is the result of the kernel of the compute format (FLOAT, or FLOAT16 where every step rounds to it) on the
        widened inputs, before the rounding to the operator's dtype; for the gradients of one value also the factor that
        this kernel multiplies g by, which is its result for g = 1.
        """
        half = flow == "selu_backward" and native_half(v)
        dtype = "FLOAT16" if half else v.dtype if v.dtype == "DOUBLE" else "FLOAT"
        wide = v._replace(dtype=dtype)
        arrays = [np.atleast_1d(np.array(a, BITS_DTYPE[v.dtype])) for a in example.inputs]
        if v.dtype != dtype:
            values = [load(a, v) for a in arrays]
            arrays = [to_half(x, v.saturate) if half else x.view(np.uint32) for x in values]
        if example.last is not None:
            if v.dtype != dtype:
                out = self.rows(flow, wide, example.last, *(a.reshape(1, -1, 1) for a in arrays)).ravel()[example.element]
                yield Step(f"{dtype} kernel", int(out), "", dtype)
            return
        if len(arrays) == 2:
            one = narrow(np.ones(1, np.float32), wide)
            yield Step(f"{dtype} kernel, g = 1", int(self.elementwise(flow, wide, one, arrays[1])[0]), "", dtype)
        if v.dtype != dtype:
            yield Step(f"{dtype} kernel", int(self.elementwise(flow, wide, *arrays)[0]), "", dtype)
