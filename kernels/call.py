"""Call a kernel on NumPy arrays: for tests, studies and tables. The emulated device calls kernels by address itself."""

from __future__ import annotations

import ctypes
from typing import Any

from .variant import Kernel

#: The C type of every kernel: (args, start, stop).
FUNCTION = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


def call(kernel: Kernel, arrays: tuple[Any, ...], numbers: tuple[int, ...], start: int, stop: int) -> None:
    """Run `kernel` on [start, stop): args are the addresses of `arrays`, then `numbers`, then the kernel's aux.

    The arrays must be as the kernel expects them: nothing is checked or copied here.
    """
    values = [*(a.ctypes.data for a in arrays), *numbers, *kernel.aux]
    args = (ctypes.c_int64 * len(values))(*values)
    FUNCTION(kernel.address)(ctypes.addressof(args), start, stop)
