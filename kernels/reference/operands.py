"""Between an operator's dtype and its compute format: arguments widened, results rounded once, with the names that traces show."""

from __future__ import annotations

from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.formats import DOUBLE, FLOAT, FORMATS
from emu_kernels.variant import Variant


def row_format(v: Variant, trace: Trace | None) -> Arith:
    """The compute format of reductions: DOUBLE for DOUBLE, else FLOAT."""
    return Arith(DOUBLE if v.dtype == "DOUBLE" else FLOAT, v, trace)


def widen(f: Arith, v: Variant, bits: int, name: str) -> int:
    """Bring a pattern of the operator's float dtype into the compute format `f`: exact, unless `f` is narrower."""
    return f.from_format(FORMATS[v.dtype], bits, name)


def widen_row(f: Arith, v: Variant, row: list[int], name: str) -> list[int]:
    """As :func:`widen`, of a row. ValueError for an empty one: its sum and its maximum are not defined."""
    if not row:
        raise ValueError(f"{name} is an empty row: a reduction needs at least one element")
    return [widen(f, v, bits, f"{name}[{i}]") for i, bits in enumerate(row)]


def narrow(f: Arith, v: Variant, bits: int, name: str) -> int:
    """Round a result once to the operator's float dtype, with the stream's overflow mode; nothing to do, and no step, if that is `f`."""
    if v.dtype == f.fmt.name:
        return bits
    return Arith(FORMATS[v.dtype], v, f.trace).from_format(f.fmt, bits, f"{name} = RINT to {v.dtype}")


def narrow_row(f: Arith, v: Variant, row: list[int]) -> list[int]:
    return [narrow(f, v, bits, f"out[{i}]") for i, bits in enumerate(row)]


def signed(dtype: str, bits: int) -> int:
    """Read an INT8 or INT32 argument: either a Python integer or its two's complement pattern."""
    width = {"INT8": 8, "INT32": 32}[dtype]
    return (bits + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))
