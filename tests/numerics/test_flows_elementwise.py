"""The kernels of the elementwise operators, bit for bit against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from emu_kernels.reference import arrays
from emu_kernels.variant import Variant

from emu.verify import catalog, judge, samples
from emu.verify.provider import NativeKernels

KERNELS = NativeKernels()
CASES = [(op, v) for op in catalog.OPS if not op.rows for v in catalog.variants(op)]
# gradOutput: 1, -1, 65504, 2^-24, NaN, inf, -0.
GRADIENTS = np.array([1.0, -1.0, 65504.0, 2.0**-24, np.nan, np.inf, -0.0], np.float32)


def case_id(case: object) -> str:
    """selu_backward-dav_2201-BF16-saturate-document, say."""
    if isinstance(case, Variant):
        parts = [case.arch, case.dtype, *(["saturate"] if case.saturate else []), case.numerics]
        return "-".join(parts)
    return case.flow if isinstance(case, catalog.Op) else str(case)


def inputs_of(op: catalog.Op, v: Variant) -> tuple[np.ndarray, ...]:
    """Every 16-bit or 8-bit pattern, else directed and random ones; gradients as listed, all of INT8, random for the rest."""
    rng = np.random.default_rng(21)
    if op.inputs == 1:
        return (np.concatenate([samples.directed(v.dtype), samples.random(v.dtype, 1 << 16, rng)]),)
    if v.dtype == "INT8":
        g, y = np.meshgrid(samples.directed("INT8"), samples.directed("INT8"))
    elif v.dtype == "INT32":
        g, y = np.meshgrid(samples.directed("INT32"), samples.directed("INT32"))
    else:
        values = arrays.narrow(GRADIENTS, v._replace(saturate=False))
        g, y = np.meshgrid(values, samples.directed(v.dtype))
    random = [samples.random(v.dtype, 1 << 16, rng) for _ in "gy"]
    # A few random gradients on every directed y as well: rounding needs more than round numbers.
    more = samples.directed(v.dtype)
    random[0] = np.concatenate([random[0], samples.random(v.dtype, more.size, rng)])
    random[1] = np.concatenate([random[1], more])
    return np.concatenate([g.ravel(), random[0]]), np.concatenate([y.ravel(), random[1]])


@pytest.mark.parametrize(("op", "v"), CASES, ids=case_id)
def test_kernel_equals_reference(op: catalog.Op, v: Variant) -> None:
    inputs = inputs_of(op, v)
    got, want = KERNELS.elementwise(op.flow, v, *inputs), judge.expected(op.flow, v, *inputs)
    wrong = np.flatnonzero(judge.mismatches(v.dtype, got, want))
    first = [[hex(int(a[i])) for a in (*inputs, got, want)] for i in wrong[:5]]
    assert wrong.size == 0, f"{wrong.size} of {got.size} differ; inputs, kernel, reference: {first}"
