"""LogSigmoid and its gradient, one value at a time, in FLOAT with one rounding per step.

The document of aclnnLogSigmoidBackward, with x the input:

    LogSigmoid(x) = log(1 / (1 + e**-x))
    gradInput     = gradOutput * LogSigmoid'(x) = gradOutput * 1 / (1 + e**x)

No architecture computes it in that form. Each factor below is 1 / (1 + e**x) in another form, most of which do not overflow, and the last
bits differ between them.
"""

from __future__ import annotations

from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.formats import FLOAT, FORMATS
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
    wide = f.from_format(FORMATS[v.dtype], x, "x")
    return (_factor_document if document else FACTORS[v.arch])(f, wide)


def log_sigmoid_backward(g: int, x: int, v: Variant, trace: Trace | None = None) -> int:
    """gradInput = gradOutput * 1 / (1 + e**x): f, then f * g, then one rounding.

    Return gradInput for one gradOutput and one self, as bit patterns of `v.dtype`; `buffer` is never read.

    A NaN in either gives NaN (+0 where the dtype saturates); x = +inf gives 0 * g, which is NaN for an infinite g.
    """
    f = Arith(FLOAT, v, trace)
    scale = factor(x, v, trace)
    out = f.mul(scale, f.from_format(FORMATS[v.dtype], g, "g"), "out = f * g")
    return _narrow(f, out, v, "gradInput")


def log_sigmoid(x: int, v: Variant, trace: Trace | None = None) -> int:
    """LogSigmoid(x) = log(1 / (1 + e**-x)), which is -log(1 + e**-x) and also x - log(1 + e**x).

    Return the forward result: x - log1p(exp(x)) up to 0, -log1p(exp(-x)) above and for NaN, narrowed once.

    +inf gives -0.0, -inf gives -inf (the largest negative value where the dtype saturates), NaN gives NaN (there +0).
    """
    f = Arith(FLOAT, v, trace)
    wide = f.from_format(FORMATS[v.dtype], x, "x")
    if f.le(wide, 0):
        out = f.sub(wide, f.log1p(f.exp(wide, "e = exp(x)"), "l = log1p(e)"), "y = x - l")
    else:
        log = f.log1p(f.exp(f.neg(wide), "e = exp(-x)"), "l = log1p(e)")
        out = f.note("y = -l", f.neg(log))
    return _narrow(f, out, v, "out")


def _narrow(f: Arith, bits: int, v: Variant, name: str) -> int:
    """Round a FLOAT result to the dtype of the operator, with the stream's overflow mode."""
    out = Arith(FORMATS[v.dtype], v, f.trace)
    return out.from_format(FLOAT, bits, f"{name} = RINT to {v.dtype}" if v.dtype != "FLOAT" else None)
