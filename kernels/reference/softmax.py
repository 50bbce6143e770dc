"""Softmax, LogSoftmax and their gradients, one row or column at a time.

The document of aclnnSoftmaxBackward:

    out = gradOutput * output - sum(gradOutput * output) * output

FLOAT16 and BF16 are widened to FLOAT, and the result is rounded once to the input dtype. What the document leaves
open, and what decides the last bits, is the order of the sum: see `sums`.
"""

from __future__ import annotations

from functools import reduce

from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.formats import DOUBLE, FLOAT, FLOAT16, FORMATS
from emu_kernels.reference.sums import lanes64, row_sum
from emu_kernels.variant import Variant


def _compute(v: Variant, trace: Trace | None) -> Arith:
    """The compute format: DOUBLE for DOUBLE, else FLOAT."""
    return Arith(DOUBLE if v.dtype == "DOUBLE" else FLOAT, v, trace)


def _widen(f: Arith, v: Variant, row: list[int], name: str) -> list[int]:
    return [f.from_format(FORMATS[v.dtype], bits, f"{name}[{i}]") for i, bits in enumerate(row)]


def _narrow(f: Arith, v: Variant, row: list[int]) -> list[int]:
    out = Arith(FORMATS[v.dtype], v, f.trace)
    name = None if out.fmt is f.fmt else f"RINT to {v.dtype}"
    return [out.from_format(f.fmt, bits, name and f"out[{i}] = {name}") for i, bits in enumerate(row)]


def softmax_backward(g: list[int], y: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """out = gradOutput * output - sum(gradOutput * output) * output, with g for gradOutput and y for output.

    p = y * g is the first product, s the sum, t = s * y the second product. dav_3510 fuses the last product and the subtraction; the
    others take y out: y * (g - s).

    Return one row of gradients from one row of gradOutput and of the forward output, as patterns of `v.dtype`.

    `last`: nothing follows the reduced dimension. A NaN or infinity in a row makes the row NaN or as the arithmetic
    has it; no other row is touched. Where the dtype saturates, a NaN result is +0 and an infinite one the largest
    finite value.
    """
    f = _compute(v, trace)
    wide_g, wide_y = _widen(f, v, g, "g"), _widen(f, v, y, "y")
    p = [f.mul(b, a, f"p[{i}] = y * g") for i, (a, b) in enumerate(zip(wide_g, wide_y, strict=True))]
    if v.numerics == "document":
        # out = gradOutput * output - sum(gradOutput * output) * output
        s = f.note("s = sum(p)", p[0] if len(p) == 1 else lanes64(f, p))
        t = [f.mul(s, b, f"t[{i}] = s * y") for i, b in enumerate(wide_y)]
        out = [f.sub(a, b, f"out[{i}] = p - t") for i, (a, b) in enumerate(zip(p, t, strict=True))]
    elif v.arch == "dav_3510":
        s = row_sum(f, p, last, "s = sum(p)")
        pairs = enumerate(zip(p, wide_y, strict=True))
        out = [f.fma(f.neg(b), s, a, f"out[{i}] = p + (-y) * s") for i, (a, b) in pairs]
    else:
        s = row_sum(f, p, last, "s = sum(p)")
        d = [f.sub(a, s, f"d[{i}] = g - s") for i, a in enumerate(wide_g)]
        out = [f.mul(b, a, f"out[{i}] = y * d") for i, (a, b) in enumerate(zip(d, wide_y, strict=True))]
    return _narrow(f, v, out)


def softmax(x: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """softmax(x) = e**x / sum(e**x), with the maximum taken off first.

    Return softmax of one row: exp(x - max) over its sum, in FLOAT; FLOAT16 takes max and x - max in FLOAT16.

    A NaN makes the row NaN, as does a row of -inf alone or with a +inf. Where FLOAT16 saturates, x - max of a NaN is
    +0 like any other FLOAT16 step.
    """
    f = _compute(v, trace)
    first = Arith(FLOAT16, v, trace) if v.dtype == "FLOAT16" else f
    wide = _widen(first, v, x, "x")
    m = first.note("m = max(x)", reduce(first.max, wide))
    d = [first.sub(a, m, f"d[{i}] = x - m") for i, a in enumerate(wide)]
    e = [f.exp(f.from_format(first.fmt, a), f"e[{i}] = exp(d)") for i, a in enumerate(d)]
    s = row_sum(f, e, last, "s = sum(e)")
    return _narrow(f, v, [f.div(a, s, f"out[{i}] = e / s") for i, a in enumerate(e)])


def log_softmax(x: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """log(softmax(x)) = x - log(sum(e**x)), with the maximum taken off first.

    Return x - max - log(sum(exp(x - max))) of one row, in FLOAT.

    Along the last dimension FLOAT and BF16 take the maximum of the row converted to FLOAT16, with the stream's
    overflow mode: it may exceed the true maximum or be far below it. A NaN makes the row NaN.
    """
    f = _compute(v, trace)
    wide = _widen(f, v, x, "x")
    if last and v.dtype in ("FLOAT", "BF16"):
        half = Arith(FLOAT16, v, trace)
        halves = [half.from_format(FLOAT, a, f"x16[{i}] = RINT to FLOAT16") for i, a in enumerate(wide)]
        m = f.from_format(FLOAT16, reduce(half.max, halves), "m = max(x16)")
    else:
        m = f.note("m = max(x)", reduce(f.max, wide))
    d = [f.sub(a, m, f"d[{i}] = x - m") for i, a in enumerate(wide)]
    s = row_sum(f, [f.exp(a, f"e[{i}] = exp(d)") for i, a in enumerate(d)], last, "s = sum(e)")
    log = f.log(s, "l = log(s)")
    return _narrow(f, v, [f.sub(a, log, f"out[{i}] = d - l") for i, a in enumerate(d)])


def log_softmax_backward(g: list[int], y: list[int], v: Variant, last: bool, trace: Trace | None = None) -> list[int]:
    """The derivative of log(softmax(x)) on g, with y the forward output: e**y is softmax(x).

    Return g - exp(y) * sum(g) of one row, in FLOAT, two roundings after the sum; NaN and infinities propagate."""
    f = _compute(v, trace)
    wide_g, wide_y = _widen(f, v, g, "g"), _widen(f, v, y, "y")
    s = row_sum(f, wide_g, last, "s = sum(g)")
    e = [f.exp(b, f"e[{i}] = exp(y)") for i, b in enumerate(wide_y)]
    t = [f.mul(a, s, f"t[{i}] = e * s") for i, a in enumerate(e)]
    return _narrow(f, v, [f.sub(a, b, f"out[{i}] = g - t") for i, (a, b) in enumerate(zip(wide_g, t, strict=True))])
