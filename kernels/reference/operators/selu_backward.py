"""The gradient of Selu, one value at a time.

The document of aclnnSeluBackward, with E the loss, x the input and y the output of Selu:

    d selu(x) / dx = alpha * e**x for x < 0, 1 for x >= 0      alpha = 1.6732632423543772848170429916717
    dE / dx        = dE / dy * d selu(x) / dx

It has no scale S. What the architectures compute is the dataflow below, from y: with it, S * alpha * e**x is y + S * alpha below zero.
Each line names its step.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from emu_kernels.reference import arrays
from emu_kernels.reference.arith import Arith, Trace
from emu_kernels.reference.arrays import F32, Bits
from emu_kernels.reference.formats import FLOAT, FLOAT16
from emu_kernels.reference.operands import narrow, signed, widen
from emu_kernels.reference.operators.selu import SCALE, SCALE_ALPHA
from emu_kernels.variant import Variant

ALPHA = "1.6732632423543772848170429916717"


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


def native_half(v: Variant) -> bool:
    """Whether the flow's steps round to FLOAT16 one by one."""
    return v.arch != "dav_3510" and v.dtype in ("FLOAT16", "INT8") and v.numerics == "device"


def _widen(f: Arith, v: Variant, bits: int, name: str) -> int:
    """Bring an argument into the compute format: floats exactly, INT8 and INT32 as the architecture does."""
    if v.dtype not in ("INT8", "INT32"):
        return widen(f, v, bits, name)
    value = signed(v.dtype, bits)
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
    f = Arith(FLOAT16 if native_half(v) else FLOAT, v, trace, flush=False if document else None)
    wide_g, wide_y = _widen(f, v, g, "g"), _widen(f, v, y, "y")
    flow = _gradient_document if document else _gradient_3510 if v.arch == "dav_3510" else _gradient
    out = flow(f, wide_g, wide_y)
    if v.dtype not in ("INT8", "INT32"):
        return narrow(f, v, out, "gradInput")
    if document:
        return f.to_int(out, v.dtype, "gradInput = TRUNC", "TRUNC")
    if v.arch == "dav_3510":
        half = Arith(FLOAT16, v, trace)
        return half.to_int(half.from_format(FLOAT, out, "h = RINT to FLOAT16"), v.dtype, "gradInput = RINT")
    return f.to_int(out, v.dtype, "gradInput = TRUNC")


def _step(native: bool, saturate: bool) -> Callable[[F32], F32]:
    """What one arithmetic step does to its float32 result: nothing in FLOAT, a rounding in native FLOAT16."""
    return (lambda x: arrays.widen("FLOAT16", arrays.to_half(x, saturate))) if native else (lambda x: x)


def selu_backward_array(g: Bits, y: Bits, v: Variant) -> Bits:
    """As :func:`selu_backward`; patterns (or integers) of `v.dtype` in and out."""
    document = v.numerics == "document"
    step = _step(native_half(v), v.saturate)
    with np.errstate(all="ignore"):
        wg, wy = arrays.load(g, v), arrays.load(y, v)
        scale, scale_alpha = step(np.atleast_1d(arrays.const(SCALE))), step(np.atleast_1d(arrays.const(SCALE_ALPHA)))
        if document:
            out = np.where(wy < 0, wg * (wy / arrays.const(SCALE) + arrays.const(ALPHA)), wg)
        else:
            b, c = step(wg * step(wy + scale_alpha)), step(wg * scale)
            if v.arch == "dav_3510":
                out = np.where(wy <= 0, b, c)
            else:
                zero = np.float32(0)
                out = step(np.where(wy < 0, zero, c) + np.where(wy < 0, b, zero))
        if v.dtype not in ("INT8", "INT32"):
            return arrays.narrow(out, v)
        if v.arch == "dav_3510" and not document:
            return arrays.to_integer(arrays.widen("FLOAT16", arrays.to_half(out, v.saturate)), v, rint=True)
        return arrays.to_integer(out, v, rint=False)
