"""LogSoftmax, one row or column at a time.

    log(softmax(x)) = x - log(sum(e**x))

with the maximum taken off first. The order of the sum is in `sums`.
"""

from __future__ import annotations

from functools import reduce

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.array_sums import row_sum_array
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT, FLOAT16
from emu_kernels.reference.operands import narrow_row, row_format, widen_row
from emu_kernels.reference.sums import row_sum
from emu_kernels.variant import Variant


def log_softmax(x: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """log(softmax(x)) = x - log(sum(e**x)), with the maximum taken off first.

    Return x - max - log(sum(exp(x - max))) of one row, in FLOAT.

    Along the last dimension FLOAT and BF16 take the maximum of the row converted to FLOAT16, with the stream's
    overflow mode: it may exceed the true maximum or be far below it. A NaN makes the row NaN.
    """
    f = row_format(v, trace)
    wide = widen_row(f, v, x, "x")
    if last and v.dtype in ("FLOAT", "BF16"):
        half = Arith(FLOAT16, v, trace)
        halves = [half.from_format(FLOAT, a, f"x16[{i}] = RINT to FLOAT16") for i, a in enumerate(wide)]
        m = f.from_format(FLOAT16, reduce(half.max, halves), "m = max(x16)")
    else:
        m = f.note("m = max(x)", reduce(f.max, wide))
    d = [f.sub(a, m, f"d[{i}] = x - m") for i, a in enumerate(wide)]
    s = row_sum(f, [f.exp(a, f"e[{i}] = exp(d)") for i, a in enumerate(d)], last, "s = sum(e)")
    log = f.log(s, "l = log(s)")
    return narrow_row(f, v, [f.sub(a, log, f"out[{i}] = d - l") for i, a in enumerate(d)])


def log_softmax_array(x: Bits, v: Variant, last: bool) -> Bits:
    """As :func:`log_softmax`, for every dtype but DOUBLE."""
    with np.errstate(all="ignore"):
        wide = arrays.widen(v.dtype, x)
        seen = wide
        if last and v.dtype in ("FLOAT", "BF16"):
            seen = arrays.widen("FLOAT16", arrays.to_half(wide, v.saturate))
        d = wide - seen.max(axis=-1, keepdims=True)
        s = row_sum_array(arrays.elementary("exp", d, v), v, last)
        return arrays.narrow(d - arrays.elementary("log", s, v), v)
