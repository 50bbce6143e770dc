"""What a kernel is asked for (Variant) and what the caller gets (Kernel). Imports no Numba."""

from __future__ import annotations

from typing import NamedTuple

ARCHS = ("dav_1001", "dav_2002", "dav_2201", "dav_3002", "dav_3510")
#: Architectures whose vector unit knows BF16.
BF16_ARCHS = ("dav_2201", "dav_3510")


class Variant(NamedTuple):
    """One arithmetic of one operator.

    arch: the NPU architecture, "dav_2201" and the like.
    dtype: aclDataType name without ACL_ ("FLOAT", "FLOAT16", "BF16", "INT8", "INT32", "DOUBLE").
    saturate: overflow mode of the stream. True: a 16-bit result that overflows is the largest finite value and a NaN
        result is +0. False: infinities and NaN stay.
    numerics: "device" computes as the card does; "document" by the formula of the operator's document.
    assume: assumptions that differ from their default, (name, choice) pairs sorted by name. See
        `assumptions`.
    """

    arch: str
    dtype: str
    saturate: bool
    numerics: str = "device"
    assume: tuple[tuple[str, str], ...] = ()


class Kernel:
    """A native function `void kernel(int64_t *args, int64_t start, int64_t stop)`.

    name: unique per arithmetic; the key of `stats()`.
    address: of the function. It may be called from any thread without the GIL.
    aux: what to append to args: the addresses of tables, which live as long as this object (`build` keeps it for the
        process), and for flows a last word, 0: bytes of the result of which this call computes a part. `tiles` fills it in.
    grain: fewest units (elements, rows or columns) that are worth a block of their own.
    """

    __slots__ = ("address", "aux", "grain", "keep", "name")

    def __init__(self, name: str, address: int, aux: tuple[int, ...], grain: int, keep: object) -> None:
        self.name = name
        self.address = address
        self.aux = aux
        self.grain = grain
        self.keep = keep  # the owner of the machine code and of the tables

    def __repr__(self) -> str:
        return f"Kernel({self.name}, 0x{self.address:x})"


class UnknownKernelError(LookupError):
    """No such flow, dtype or architecture; the message lists the known ones."""
