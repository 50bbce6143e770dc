"""Every named assumption: those of the device, here, and those of the arithmetic (:mod:`emu_kernels.assumptions`)."""

from __future__ import annotations

from emu_kernels.assumptions import ASSUMPTIONS as ARITHMETIC
from emu_kernels.assumptions import Assumption

DEVICE: tuple[Assumption, ...] = (
    Assumption(
        "ws_950",
        "on Ascend950 a kernel's own tiling workspace adds to phase 1's size: with contiguous tensors 512 bytes for SeluBackward, "
        "16,777,728 for LogSigmoidBackward and SoftmaxBackward; elsewhere 0",
        ("tiling",),
        "tiling",
        (),
    ),
    Assumption(
        "async_error_sticky",
        "a fault of a launch is returned by every later synchronising call of its context until aclrtResetDevice",
        ("sticky",),
        "sticky",
        (),
    ),
)


def all_assumptions() -> tuple[Assumption, ...]:
    """The arithmetic's first, then the device's."""
    return (*ARITHMETIC, *DEVICE)
