"""One comparison: what the reference expects of a batch, and where the kernel differs."""

from __future__ import annotations

from typing import Any

import numpy as np
from emu_kernels.reference import arrays, operators
from emu_kernels.reference.arith import Trace
from emu_kernels.reference.formats import FORMATS
from emu_kernels.variant import Variant
from numpy.typing import NDArray

Bits = NDArray[Any]

BLOCK = 1 << 14  # elements at a time: the temporaries of larger arrays leave the cache, which costs a factor of 4


def expected(flow: str, v: Variant, *inputs: Bits) -> Bits:
    """Return the reference's result of an elementwise flow of 1-D arrays, equally long or of length 1.

    Raises arrays.HostError on a host whose arithmetic is not IEEE.
    """
    arrays.check_host()
    n = max(a.size for a in inputs)
    starts = range(0, max(n, 1), BLOCK)
    form = operators.array(flow, v)
    return np.concatenate([form(*(a if a.size == 1 else a[i : i + BLOCK] for a in inputs)) for i in starts])


def expected_rows(flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
    """Return the reference's result of arrays (outer, r, inner), reduced over r."""
    arrays.check_host()
    rows = [np.ascontiguousarray(a.swapaxes(1, 2)) for a in inputs]
    out: Bits = _scalar_rows(flow, v, last, rows) if v.dtype == "DOUBLE" else operators.array(flow, v)(*rows, last=last)
    return np.ascontiguousarray(out.swapaxes(1, 2))


def _scalar_rows(flow: str, v: Variant, last: bool, rows: list[Bits]) -> Bits:
    """DOUBLE has no array form: its exp is not correctly rounded in NumPy."""
    flat = [a.reshape(-1, a.shape[-1]) for a in rows]
    form = operators.scalar(flow, v)
    out = [form(*([int(b) for b in row] for row in group), last=last) for group in zip(*flat, strict=True)]
    return np.array(out, rows[0].dtype).reshape(rows[0].shape)


def scalar(flow: str, v: Variant, inputs: tuple[Any, ...], last: bool | None = None) -> tuple[Any, Trace]:
    """Return the scalar reference's result of one case and its steps; for rows, `inputs` are lists."""
    trace: Trace = []
    form = operators.scalar(flow, v)
    return (form(*inputs, trace=trace) if last is None else form(*inputs, last=last, trace=trace)), trace


def mismatches(dtype: str, got: Bits, want: Bits) -> NDArray[np.bool_]:
    """Return where two arrays of patterns differ; any NaN equals any NaN."""
    differ: NDArray[np.bool_] = got != want
    fmt = FORMATS.get(dtype)
    if fmt is None or not differ.any():
        return differ
    mask, inf = got.dtype.type(fmt.sign - 1), got.dtype.type(fmt.inf)
    both_nan = ((got & mask) > inf) & ((want & mask) > inf)
    return np.asarray(differ & ~both_nan)
