"""Softmax, one row or column at a time.

    softmax(x) = e**x / sum(e**x)

with the maximum taken off first, which changes nothing but the range. The order of the sum is in `sums`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.array_sums import row_sum_array
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT16
from emu_kernels.reference.operands import narrow_row, row_format, widen_row
from emu_kernels.reference.sums import row_sum
from emu_kernels.variant import Variant


def softmax(x: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """softmax(x) = e**x / sum(e**x), with the maximum taken off first.

    Return softmax of one row: exp(x - max) over its sum, in FLOAT; FLOAT16 takes max and x - max in FLOAT16.

    A NaN makes the row NaN, as does a row of -inf alone or with a +inf. Where FLOAT16 saturates, x - max of a NaN is
    +0 like any other FLOAT16 step.
    """
    f = row_format(v, trace)
    first = Arith(FLOAT16, v, trace) if v.dtype == "FLOAT16" else f
    wide = widen_row(first, v, x, "x")
    m = first.note("m = max(x)", reduce(first.max, wide))
    d = [first.sub(a, m, f"d[{i}] = x - m") for i, a in enumerate(wide)]
    e = [f.exp(f.from_format(first.fmt, a), f"e[{i}] = exp(d)") for i, a in enumerate(d)]
    s = row_sum(f, e, last, "s = sum(e)")
    return narrow_row(f, v, [f.div(a, s, f"out[{i}] = e / s") for i, a in enumerate(e)])


def softmax_array(x: Bits, v: Variant, last: bool) -> Bits:
    """As :func:`softmax`, for every dtype but DOUBLE."""
    with np.errstate(all="ignore"):
        wide = arrays.widen(v.dtype, x)
        d = wide - wide.max(axis=-1, keepdims=True)
        if v.dtype == "FLOAT16":
            d = arrays.widen("FLOAT16", arrays.to_half(d, v.saturate))
        e = arrays.elementary("exp", d, v)
        return arrays.narrow(arrays.div(e, row_sum_array(e, v, last), arrays.flushes(v)), v)
