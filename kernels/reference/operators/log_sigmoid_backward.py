"""The gradient of LogSigmoid, one value at a time, in FLOAT with one rounding per step.

The document of aclnnLogSigmoidBackward, with x the input:

    LogSigmoid(x) = log(1 / (1 + e**-x))
    gradInput     = gradOutput * LogSigmoid'(x) = gradOutput * 1 / (1 + e**x)

No architecture computes it in that form. Each factor below is 1 / (1 + e**x) in another form, most of which do not overflow, and the last
bits differ between them.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import F32, Bits
from emu_kernels.reference.formats import FLOAT
from emu_kernels.reference.operands import narrow, widen
from emu_kernels.variant import Variant


def _factor_2201(f: Arith, x: int) -> int:
    """dav_2201 and dav_3002: e / (e + 1) of e = exp(-|x|), and 1 minus that for a negative x.

    For x >= 0, 1 / (1 + e**x) = e**-x / (e**-x + 1); for x < 0 it is 1 less what -x gives.
    """
    one = f.const("1")
    e = f.exp(f.neg(f.abs(x)), "e = exp(-|x|)")
    d = f.add(e, one, "d = e + 1")
    z = f.div(e, d, "z = e / d")
    if f.lt(x, 0):
        return f.sub(one, z, "f = 1 - z")
    return f.note("f = z", z)


def _factor_3510(f: Arith, x: int) -> int:
    """dav_3510: the numerator is selected, a negative x costs no subtraction; exp and division flush subnormals.

    For x >= 0, 1 / (1 + e**x) = e**-x / (e**-x + 1); for x < 0 e**x is exp(-|x|) itself.
    """
    one = f.const("1")
    e = f.exp(f.neg(f.abs(x)), "e = exp(-|x|)")
    d = f.add(e, one, "d = e + 1")
    n = f.note("n = (x < 0) ? 1 : e", one if f.lt(x, 0) else e)
    return f.div(n, d, "f = n / d")


def _factor_1001(f: Arith, x: int) -> int:
    """dav_1001 and dav_2002: exp(-log(exp(x) + 1)); +0 above x = 88.73, where exp overflows.

    1 / (1 + e**x) = exp(-log(e**x + 1)).
    """
    u = f.add(f.exp(x, "exp(x)"), f.const("1"), "u = exp(x) + 1")
    log = f.log(u, "l = log(u)")
    return f.exp(f.neg(log), "f = exp(-l)")


def _factor_document(f: Arith, x: int) -> int:
    """The document's formula: 1 / (1 + exp(x))."""
    one = f.const("1")
    d = f.add(one, f.exp(x, "e = exp(x)"), "d = 1 + e")
    return f.div(one, d, "f = 1 / d")


FACTORS = {
    "dav_1001": _factor_1001,
    "dav_2002": _factor_1001,
    "dav_2201": _factor_2201,
    "dav_3002": _factor_2201,
    "dav_3510": _factor_3510,
}


def factor(x: int, v: Variant, trace: Trace | None = None) -> int:
    """Return the factor of g, a FLOAT pattern, for one x of `v.dtype`. NaN gives NaN, +inf +0, -inf 1."""
    document = v.numerics == "document"
    f = Arith(FLOAT, v, trace, flush=False if document else None)
    wide = widen(f, v, x, "x")
    return (_factor_document if document else FACTORS[v.arch])(f, wide)


def log_sigmoid_backward(g: int, x: int, v: Variant, trace: Trace | None = None) -> int:
    """gradInput = gradOutput * 1 / (1 + e**x): f, then f * g, then one rounding.

    Return gradInput for one gradOutput and one self, as bit patterns of `v.dtype`; `buffer` is never read.

    A NaN in either gives NaN (+0 where the dtype saturates); x = +inf gives 0 * g, which is NaN for an infinite g.
    """
    f = Arith(FLOAT, v, trace)
    scale = factor(x, v, trace)
    out = f.mul(scale, widen(f, v, g, "g"), "out = f * g")
    return narrow(f, v, out, "gradInput")


@cache
def factors(v: Variant) -> F32:
    """The factors of all 65,536 patterns of a 16-bit dtype: a sweep asks for each of them 65,536 times."""
    return _factor(arrays.widen(v.dtype, np.arange(1 << 16, dtype=np.uint16)), v)


def _factor(x: F32, v: Variant) -> F32:
    """Array form of `factor`, of widened values."""
    one = np.float32(1)
    if v.numerics == "document":
        return arrays.div(np.ones_like(x), one + arrays.elementary("exp", x, v, flush=False), flush=False)
    if v.arch in ("dav_1001", "dav_2002"):
        return arrays.elementary("exp", -arrays.elementary("log", arrays.elementary("exp", x, v) + one, v), v)
    e = arrays.elementary("exp", -np.abs(x), v)
    if v.arch == "dav_3510":
        return arrays.div(np.where(x < 0, one, e), e + one, arrays.flushes(v))
    z = arrays.div(e, e + one, arrays.flushes(v))
    out: F32 = np.where(x < 0, one - z, z)
    return out


def log_sigmoid_backward_array(g: Bits, x: Bits, v: Variant) -> Bits:
    """As :func:`log_sigmoid_backward`; 16-bit dtypes use a table of factors."""
    with np.errstate(all="ignore"):
        # The factor does not depend on the overflow mode: share the table.
        f = _factor(arrays.widen(v.dtype, x), v) if v.dtype == "FLOAT" else factors(v._replace(saturate=False))[x]
        return arrays.narrow(f * arrays.widen(v.dtype, g), v)
