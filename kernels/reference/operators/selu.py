"""Selu, one value at a time.

    selu(x) = scale * x for x > 0, scale * alpha * (e**x - 1) else

INT8 and INT32 add the two parts instead of choosing one.
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import Bits
from emu_kernels.reference.formats import FLOAT, FLOAT16
from emu_kernels.reference.operands import narrow, signed, widen
from emu_kernels.variant import Variant

SCALE = "1.0507009873554804934193349852946"
SCALE_ALPHA = "1.7580993408473768599402175208123"  # scale * alpha


def selu(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return the forward result for one value: S * x above zero, else SA * (exp(x) - 1), in FLOAT, narrowed once.

    A NaN gives NaN (+0 where the dtype saturates); -0.0 gives +0.0. INT32 adds the negative and the positive part and
    narrows by the architecture's rule. INT8 rounds the negative part up to an integer, truncates the sum and keeps
    its low 8 bits.
    """
    f = Arith(FLOAT, v, trace)
    scale, scale_alpha, one = f.const(SCALE), f.const(SCALE_ALPHA), f.const("1")
    if v.dtype in ("INT8", "INT32"):
        return _selu_integer(f, x, v)
    wide = widen(f, v, x, "x")
    if f.lt(0, wide):
        out = f.mul(scale, wide, "y = S * x")
    else:
        e = f.sub(f.exp(wide, "e = exp(x)"), one, "e - 1")
        out = f.mul(scale_alpha, e, "y = SA * (e - 1)")
    return narrow(f, v, out, "out")


def _selu_integer(f: Arith, x: int, v: Variant) -> int:
    value = signed(v.dtype, x)
    if v.dtype == "INT8":
        half = Arith(FLOAT16, v, f.trace).from_int(value, "x16 = INT8 to FLOAT16")
        wide = f.from_format(FLOAT16, half, "x")
    else:
        wide = f.from_int(value, "x")
    e = f.sub(f.exp(f.min(wide, 0), "e = exp(min(x, 0))"), f.const("1"), "e - 1")
    n = f.mul(f.const(SCALE_ALPHA), e, "n = SA * (e - 1)")
    p = f.mul(f.const(SCALE), f.max(wide, 0), "p = S * max(x, 0)")
    if v.dtype == "INT32":
        return f.to_int(f.add(n, p, "n + p"), v.dtype, "out")
    total = f.to_int(f.add(f.ceil(n, "ceil(n)"), p, "ceil(n) + p"), "INT32", "TRUNC", "TRUNC")
    return signed("INT8", total)


def selu_array(x: Bits, v: Variant) -> Bits:
    """As :func:`selu`."""
    one, zero, scale, scale_alpha = np.float32(1), np.float32(0), arrays.const(SCALE), arrays.const(SCALE_ALPHA)
    with np.errstate(all="ignore"):
        if v.dtype not in ("INT8", "INT32"):
            wide = arrays.widen(v.dtype, x)
            return arrays.narrow(np.where(wide > 0, scale * wide, scale_alpha * (arrays.elementary("exp", wide, v) - one)), v)
        wide = x.astype(np.float32) if v.dtype == "INT8" else arrays.from_int32(x, v)
        n = scale_alpha * (arrays.elementary("exp", np.minimum(wide, zero), v) - one)
        p = scale * np.maximum(wide, zero)
        if v.dtype == "INT32":
            return arrays.to_integer(n + p, v, rint=v.arch == "dav_3510")
        return arrays.to_integer(np.ceil(n) + p, v, rint=False, dtype="INT32").astype(np.int8)
