"""The kernels of the softmax family, bit for bit against the reference, at every length where the order of the sum changes."""

from __future__ import annotations

import numpy as np
import pytest
from emu_kernels.variant import Variant

from emu.verify import catalog, judge, samples
from emu.verify.provider import NativeKernels

KERNELS = NativeKernels()
OPS = [op for op in catalog.OPS if op.rows]
SHORT = (1, 2, 3, 8, 9, 15, 16, 17, 63, 64, 65, *range(123, 130), 165, 166, 1000, 1023, 1024, 1025, 4097)
LONG = (10512, 10513, 16384, 16385, 40000)


def compare(op: catalog.Op, v: Variant, last: bool, inputs: tuple[np.ndarray, ...]) -> None:
    """Compare one call on arrays (outer, r, inner)."""
    got, want = KERNELS.rows(op.flow, v, last, *inputs), judge.expected_rows(op.flow, v, last, *inputs)
    wrong = np.argwhere(judge.mismatches(v.dtype, got, want))
    first = [(tuple(map(int, i)), hex(got[tuple(i)]), hex(want[tuple(i)])) for i in wrong[:5]]
    assert wrong.size == 0, f"{v} last={last} {got.shape}: {len(wrong)} differ; index, kernel, reference: {first}"


def block(op: catalog.Op, v: Variant, outer: int, r: int, inner: int) -> tuple[np.ndarray, ...]:
    """Arrays (outer, r, inner) whose columns are of the six kinds in turn."""
    columns = samples.row_block(v.dtype, r, outer * inner, op.inputs, seed=r)
    return tuple(np.ascontiguousarray(a.reshape(r, outer, inner).swapaxes(0, 1)) for a in columns)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize("arch", ["dav_2201", "dav_3510"])
@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_every_length_along_first_middle_and_last(op: catalog.Op, arch: str, dtype: str) -> None:
    for v in catalog.variants(op, (arch,), (dtype,)):
        lengths = SHORT + LONG if v.numerics == "device" and not v.saturate else (1, 2, 65, 129)
        for r in lengths:
            rows = 6 if r < 10000 else 4
            compare(op, v, True, block(op, v, rows, r, 1))
            compare(op, v, False, block(op, v, 1, r, rows))
            compare(op, v, False, block(op, v, 2, r, 3))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_other_architectures(op: catalog.Op) -> None:
    for v in catalog.variants(op, ("dav_1001", "dav_2002", "dav_3002"), ("FLOAT", "FLOAT16")):
        for r in (1, 7, 64, 200):
            compare(op, v, True, block(op, v, 7, r, 1))
            compare(op, v, False, block(op, v, 2, r, 7))


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_many_columns(op: catalog.Op) -> None:
    """Wide column blocks and their tails: a kernel that tiles columns must not change a bit at the tile's edge."""
    for v in catalog.variants(op, ("dav_2201", "dav_3510"), ("FLOAT", "BF16")):
        if v.numerics == "device" and not v.saturate:
            compare(op, v, False, block(op, v, 1, 5, 1031))
            compare(op, v, False, block(op, v, 3, 130, 67))


@pytest.mark.parametrize("op", [op for op in OPS if "DOUBLE" in op.dtypes], ids=lambda op: op.name)
def test_double(op: catalog.Op) -> None:
    for v in catalog.variants(op, ("dav_2201", "dav_3510"), ("DOUBLE",)):
        if not v.saturate:
            for r in (1, 9, 65, 166):
                compare(op, v, True, block(op, v, 6, r, 1))
                compare(op, v, False, block(op, v, 2, r, 3))
