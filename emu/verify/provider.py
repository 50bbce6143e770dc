"""Kernels as functions of arrays. A test hands the engine another provider to see that wrong kernels are caught."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np
from emu_kernels.variant import Kernel, Variant
from numpy.typing import NDArray

Bits = NDArray[Any]


class Provider(Protocol):
    """What computes one flow on arrays of bit patterns (integers for INT8 and INT32). Must be picklable."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        """Return the flow of equally long 1-D arrays."""
        ...

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        """Return the flow of arrays (outer, r, inner), reduced over r; `last` goes with inner = 1."""
        ...


_FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def call(kernel: Kernel, args: list[int], start: int, stop: int) -> None:
    """Run a kernel on raw addresses and sizes over [start, stop); the kernel's own addresses are appended."""
    words = np.array([*args, *kernel.aux], np.int64)
    _FUNCTION(kernel.address)(words.ctypes.data, start, stop)


class NativeKernels:
    """The emulator's own kernels, called as a launch calls them, in one block."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        """See `Provider`."""
        from emu import kernel_cache

        arrays = [np.ascontiguousarray(a) for a in inputs]
        out = np.empty_like(arrays[0])
        addresses = [a.ctypes.data for a in (out, *arrays)]
        call(kernel_cache.build().elementwise(flow, v), addresses, 0, out.size)
        return out

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        """See `Provider`."""
        from emu import kernel_cache

        arrays = [np.ascontiguousarray(a) for a in inputs]
        out = np.empty_like(arrays[0])
        outer, r, inner = out.shape
        addresses = [a.ctypes.data for a in (out, *arrays)]
        units = outer if last else outer * inner
        call(kernel_cache.build().rows(flow, v, last), [*addresses, outer, r, inner], 0, units)
        return out
