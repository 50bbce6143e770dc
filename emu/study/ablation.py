"""Where the error enters: each part of the computation is made exact in turn, and what is left is the part's share.

T is the exact derivative at x, E the exact function of the stored inputs, C the architecture's formula with its rounded
constants but no other rounding, U the result before its last rounding, a the stored result. Then
a - T = (E - T) + (C - E) + (U - C) + (a - U): input, formula, intermediate and output rounding.
"""

from __future__ import annotations

import numpy as np
from emu_kernels.reference import array_sums, arrays

from emu.study import numbers
from emu.study.dd import F64
from emu.study.exact import SCALE, Golden, golden
from emu.study.numbers import Bits
from emu.study.problem import Problem
from emu.verify.provider import Provider

DEFINITIONS = {
    "input rounding": "exact function of the stored inputs minus the exact derivative at x (only against true)",
    "formula": "the architecture's formula with constants rounded to its compute format, all else exact, minus the exact function",
    "intermediate rounding": "the result before its last rounding minus that formula",
    "output rounding": "the stored result minus the result before its last rounding; operators that end in another step than a "
    "product have no separate output rounding in FLOAT: it counts as intermediate",
}


def native_half(problem: Problem) -> bool:
    """Whether every step rounds to FLOAT16 on this product."""
    return problem.flow == "selu_backward" and problem.dtype == "FLOAT16" and problem.arch != "dav_3510" and problem.numerics == "device"


def _formula(problem: Problem, inputs: tuple[Bits, ...], exact: F64) -> F64:
    """C. Only SELU has constants; its sum y + SA and its products are exact enough in float64 (2^-53)."""
    if not problem.flow.startswith("selu"):
        return exact
    step = np.float16 if native_half(problem) else np.float32
    scale, scale_alpha, alpha = (float(step(c)) for c in (1.0507009873554804934, 1.7580993408473768599, 1.6732632423543772848))
    x = numbers.values(problem.dtype, inputs[-1])
    with np.errstate(all="ignore"):
        if problem.flow == "selu":
            return np.where(x > 0, scale * x, exact * (scale_alpha / (float(SCALE) * 1.6732632423543772848)))
        g = numbers.values(problem.dtype, inputs[0])
        if problem.numerics == "document":
            return np.where(x < 0, g * (x / scale + alpha), g)
        return np.where((x <= 0) if problem.closed else (x < 0), g * (x + scale_alpha), g * scale)


def _rows_unrounded(problem: Problem, inputs: tuple[Bits, ...]) -> F64 | None:
    """U of an operator of rows: FLOAT steps of the array reference, in the dtype's own order of sums."""
    if problem.dtype == "FLOAT" or problem.numerics == "document":
        return None
    v, last = problem.variant, problem.last
    wide = [arrays.widen(problem.dtype, b) for b in inputs]
    x, g = wide[-1], wide[0]
    with np.errstate(all="ignore"):
        if problem.flow == "softmax_backward":
            p = x * g
            s = array_sums.row_sum_array(p, v, last)
            out = array_sums.fma(-x, np.broadcast_to(s, x.shape), p) if v.arch == "dav_3510" else x * (g - s)
        elif problem.flow == "log_softmax_backward":
            out = g - arrays.elementary("exp", x, v) * array_sums.row_sum_array(g, v, last)
        else:
            seen = x
            if problem.flow == "log_softmax" and last and problem.dtype == "BF16":
                seen = arrays.widen("FLOAT16", arrays.to_half(x, v.saturate))
            d = x - seen.max(axis=-1, keepdims=True)
            if problem.flow == "softmax" and problem.dtype == "FLOAT16":
                d = arrays.widen("FLOAT16", arrays.to_half(d, v.saturate))
            e = arrays.elementary("exp", d, v)
            s = array_sums.row_sum_array(e, v, last)
            out = (
                arrays.div(e, np.broadcast_to(s, e.shape), arrays.flushes(v))
                if problem.flow == "softmax"
                else d - arrays.elementary("log", s, v)
            )
    return out.astype(np.float64)


def _unrounded(problem: Problem, provider: Provider, inputs: tuple[Bits, ...]) -> F64 | None:
    """U, or None where the last rounding cannot be told from the others."""
    if problem.rows:
        return _rows_unrounded(problem, inputs)
    compute = problem if native_half(problem) else problem.with_dtype("FLOAT")
    wide = tuple(numbers.from_values(compute.dtype, numbers.values(problem.dtype, b)) for b in inputs)
    if len(inputs) == 1:
        return None if problem.dtype == "FLOAT" else numbers.values("FLOAT", compute.run(provider, wide))
    # Every two-input flow ends in a product with g: with g = 1 it shows the factor, and g * factor is exact in float64.
    one = numbers.from_values(compute.dtype, np.ones(inputs[0].shape))
    factor = numbers.values(compute.dtype, compute.run(provider, (one, wide[-1])))
    with np.errstate(all="ignore"):
        return numbers.values(problem.dtype, inputs[0]) * factor


def parts(
    problem: Problem, provider: Provider, inputs: tuple[Bits, ...], raw: tuple[Bits, ...], result: Bits, true: bool, target: Golden
) -> dict[str, list[float]]:
    """Part -> sum of |ulp|, of signed ulp, maximum of |ulp|, elements; in ulp of the exact derivative."""
    stored = golden(problem.flow, False, tuple(numbers.values(problem.dtype, b) for b in inputs), problem.closed)
    formula = _formula(problem, inputs, stored.hi)
    unrounded = _unrounded(problem, provider, inputs)
    a = numbers.values(problem.dtype, result)
    before = a if unrounded is None else unrounded
    with np.errstate(all="ignore"):
        found = {
            "input rounding": (stored.hi - target.hi) + (stored.lo - target.lo) if true else np.zeros_like(a),
            "formula": formula - stored.hi, "intermediate rounding": before - formula, "output rounding": a - before,
        }  # fmt: skip
        good = np.isfinite(a) & np.isfinite(target.hi) & np.isfinite(formula) & np.isfinite(before)
        ulp = np.ldexp(1.0, numbers.quantum(problem.dtype, np.where(good, target.hi, 0.0)).astype(np.int32))
    out = {}
    for name, error in found.items():
        e = error[good] / ulp[good]
        out[name] = [float(np.abs(e).sum()), float(e.sum()), float(np.abs(e).max(initial=0.0)), float(e.size)]
    return out
