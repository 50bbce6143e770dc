"""Selu and its gradient, one value at a time.

The document of aclnnSeluBackward, with E the loss, x the input and y the output of Selu:

    d selu(x) / dx = alpha * e**x for x < 0, 1 for x >= 0      alpha = 1.6732632423543772848170429916717
    dE / dx        = dE / dy * d selu(x) / dx

It has no scale S. What the architectures compute is the dataflow below, from y: with it, S * alpha * e**x is y + S * alpha below zero.
Each line names its step.
"""

from __future__ import annotations

from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.formats import FLOAT, FLOAT16, FORMATS
from emu_kernels.variant import Variant

SCALE = "1.0507009873554804934193349852946"
SCALE_ALPHA = "1.7580993408473768599402175208123"  # scale * alpha
ALPHA = "1.6732632423543772848170429916717"


def _signed(dtype: str, bits: int) -> int:
    """Read an INT8 or INT32 argument: either a Python integer or its two's complement pattern."""
    width = {"INT8": 8, "INT32": 32}[dtype]
    return (bits + (1 << (width - 1))) % (1 << width) - (1 << (width - 1))


def _gradient_3510(f: Arith, g: int, y: int) -> int:
    """dav_3510: the branch is y <= 0 and a -0.0 result stays.

    g * alpha * e**x for x < 0 is b = g * (y + SA), g * 1 for x >= 0 is c = g * S: both S times the document's.
    """
    c = f.mul(g, f.const(SCALE), "c = g * S")
    a = f.add(y, f.const(SCALE_ALPHA), "a = y + SA")
    b = f.mul(g, a, "b = g * a")
    return f.note("out = (y <= 0) ? b : c", b if f.le(y, 0) else c)


def _gradient(f: Arith, g: int, y: int) -> int:
    """Every other architecture: the branch is y < 0, false for NaN; the last addition turns -0.0 into +0.0.

    g * alpha * e**x for x < 0 is b = g * (y + SA), g * 1 for x >= 0 is c = g * S: both S times the document's.
    """
    a = f.add(y, f.const(SCALE_ALPHA), "a = y + SA")
    b = f.mul(g, a, "b = g * a")
    c = f.mul(g, f.const(SCALE), "c = g * S")
    negative = f.lt(y, 0)
    p = f.note("p = (y < 0) ? 0 : c", 0 if negative else c)
    n = f.note("n = (y < 0) ? b : 0", b if negative else 0)
    return f.add(p, n, "out = p + n")


def _gradient_document(f: Arith, g: int, y: int) -> int:
    """dE/dx = g * alpha * e**x for x < 0, g * 1 for x >= 0, as the document has it, with alpha * e**x = y / S + alpha of the result y.

    g for y >= 0 and for NaN, else g * (y / S + alpha).
    """
    if not f.lt(y, 0):
        return f.note("out = g", g)
    q = f.div(y, f.const(SCALE), "q = y / S")
    e = f.add(q, f.const(ALPHA), "e = q + alpha")
    return f.mul(g, e, "out = g * e")


def _narrow(f: Arith, bits: int, v: Variant, name: str) -> int:
    """Round a result in FLOAT to the dtype of the operator, with the stream's overflow mode."""
    if v.dtype == f.fmt.name:
        return bits
    out = Arith(FORMATS[v.dtype], v, f.trace)
    return out.from_format(f.fmt, bits, name)


def _widen(f: Arith, v: Variant, bits: int, name: str) -> int:
    """Bring an argument into the compute format: floats exactly, INT8 and INT32 as the architecture does."""
    if v.dtype not in ("INT8", "INT32"):
        return f.from_format(FORMATS[v.dtype], bits, name)
    value = _signed(v.dtype, bits)
    through_half = v.dtype == "INT8" or v.arch == "dav_3510"
    if f.fmt is FLOAT and through_half and v.numerics == "device":
        half = Arith(FLOAT16, v, f.trace).from_int(value, f"{name}16 = {v.dtype} to FLOAT16")
        return f.from_format(FLOAT16, half, name)
    return f.from_int(value, name)


def selu_backward(g: int, y: int, v: Variant, trace: Trace | None = None) -> int:
    """Return gradInput for one gradOutput and one forward result, as bit patterns of `v.dtype`.

    INT8 and INT32 arguments may be integers or patterns; their result is an integer. A NaN in y takes the positive
    branch and is lost; a NaN or infinity in g propagates, save where FLOAT16 or BF16 saturates. Traces every step.
    """
    document = v.numerics == "document"
    native = v.arch != "dav_3510" and v.dtype in ("FLOAT16", "INT8") and not document
    f = Arith(FLOAT16 if native else FLOAT, v, trace, flush=False if document else None)
    wide_g, wide_y = _widen(f, v, g, "g"), _widen(f, v, y, "y")
    flow = _gradient_document if document else _gradient_3510 if v.arch == "dav_3510" else _gradient
    out = flow(f, wide_g, wide_y)
    if v.dtype not in ("INT8", "INT32"):
        return _narrow(f, out, v, f"gradInput = RINT to {v.dtype}")
    if document:
        return f.to_int(out, v.dtype, "gradInput = TRUNC", "TRUNC")
    if v.arch == "dav_3510":
        half = Arith(FLOAT16, v, trace)
        return half.to_int(half.from_format(FLOAT, out, "h = RINT to FLOAT16"), v.dtype, "gradInput = RINT")
    return f.to_int(out, v.dtype, "gradInput = TRUNC")


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
    wide = f.from_format(FORMATS[v.dtype], x, "x")
    if f.lt(0, wide):
        out = f.mul(scale, wide, "y = S * x")
    else:
        e = f.sub(f.exp(wide, "e = exp(x)"), one, "e - 1")
        out = f.mul(scale_alpha, e, "y = SA * (e - 1)")
    return _narrow(f, out, v, f"out = RINT to {v.dtype}")


def _selu_integer(f: Arith, x: int, v: Variant) -> int:
    value = _signed(v.dtype, x)
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
    return _signed("INT8", total)
