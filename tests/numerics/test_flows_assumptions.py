"""Kernels and reference agree on every value of every named assumption, and each value that differs from the default matters."""

from __future__ import annotations

import numpy as np
import pytest
from emu_kernels.assumptions import ASSUMPTIONS
from emu_kernels.variant import Variant

from emu.verify import judge, samples
from emu.verify.catalog import BY_FLOW
from emu.verify.provider import NativeKernels

KERNELS = NativeKernels()
ALTERNATIVES = [(a.name, value) for a in ASSUMPTIONS for value in a.values if value != a.default]
# Where an alternative shows: variants and flows.
WHERE = {
    "exp_subnormal": (Variant("dav_3002", "FLOAT", True), ("log_sigmoid_backward", "log_sigmoid")),
    "s32_f32_mode": (Variant("dav_2201", "INT32", False), ("selu_backward", "selu")),
    "tbe_row_order": (Variant("dav_2201", "FLOAT", False), ("softmax_backward", "log_softmax_backward")),
    "tbe_col_order": (Variant("dav_1001", "FLOAT", True), ("softmax_backward", "log_softmax_backward")),
}


def test_every_alternative_is_tried() -> None:
    assert {name for name, _ in ALTERNATIVES} == set(WHERE)


@pytest.mark.parametrize(("name", "value"), ALTERNATIVES)
def test_alternative(name: str, value: str) -> None:
    default, flows = WHERE[name]
    v = default._replace(assume=((name, value),))
    changed = 0
    for flow in flows:
        count = BY_FLOW[flow].inputs
        if BY_FLOW[flow].rows:
            last = name == "tbe_row_order"
            columns = samples.row_block(v.dtype, 777, 6, count, seed=9)
            arrays = tuple(np.ascontiguousarray(a.T[:, :, None] if last else a[None]) for a in columns)
            got, want = KERNELS.rows(flow, v, last, *arrays), judge.expected_rows(flow, v, last, *arrays)
            before = KERNELS.rows(flow, default, last, *arrays)
        else:
            rng = np.random.default_rng(51)
            directed = samples.directed(v.dtype)
            arrays = tuple(np.concatenate([samples.random(v.dtype, 50000, rng), directed]) for _ in range(count))
            got, want = KERNELS.elementwise(flow, v, *arrays), judge.expected(flow, v, *arrays)
            before = KERNELS.elementwise(flow, default, *arrays)
        assert not judge.mismatches(v.dtype, got, want).any()
        changed += int(judge.mismatches(v.dtype, got, before).sum())
    assert changed > 0
