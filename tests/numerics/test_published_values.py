"""Values that are published or follow by hand: they hold the reference itself to account."""

from __future__ import annotations

import math

import numpy as np
import pytest
from emu_kernels.reference import formats
from emu_kernels.reference.operators.log_sigmoid import log_sigmoid
from emu_kernels.reference.operators.log_sigmoid_backward import log_sigmoid_backward
from emu_kernels.reference.operators.log_softmax import log_softmax
from emu_kernels.reference.operators.log_softmax_backward import log_softmax_backward
from emu_kernels.reference.operators.selu import selu
from emu_kernels.reference.operators.selu_backward import selu_backward
from emu_kernels.reference.operators.softmax import softmax
from emu_kernels.reference.operators.softmax_backward import softmax_backward
from emu_kernels.variant import ARCHS, BF16_ARCHS, Variant

A2 = Variant("dav_2201", "FLOAT", False)
A5 = A2._replace(arch="dav_3510")


def pack(v: Variant, *values: float) -> list[int]:
    """Patterns of values, by one rounding from DOUBLE."""
    fmt = formats.FORMATS[v.dtype]
    return [formats.convert(formats.DOUBLE, fmt, int(np.float64(x).view(np.uint64))) for x in values]


def unpack(v: Variant, patterns: list[int]) -> list[float]:
    """Values of patterns."""
    return [formats.to_float(formats.FORMATS[v.dtype], b) for b in patterns]


def test_selu_backward_example_of_the_operator_document() -> None:
    """The document's example: gradOutput 1, result 0 to 7, printed with %f."""
    one = pack(A2, 1.0)[0]
    for v, first in ((A2, "1.758099"), (A5, "1.758099")):
        out = unpack(v, [selu_backward(one, y, v) for y in pack(v, *range(8))])
        assert [f"{x:f}" for x in out] == ["1.050701" if v is A2 else first] + ["1.050701"] * 7
    assert unpack(A2, [selu_backward(one, 0, A2)]) == [1.0507010221481323]
    assert unpack(A5, [selu_backward(one, 0x80000000, A5)]) == [1.7580993175506592]


def test_softmax_backward_4_by_2() -> None:
    g, y = pack(A2, *range(8)), pack(A2, 1, 1, 1, 2, 2, 2, 3, 3)
    for arch in ARCHS:
        v = A2._replace(arch=arch)
        columns = [unpack(v, softmax_backward(g[c::2], y[c::2], v, last=False)) for c in (0, 1)]
        out = [x for pair in zip(*columns, strict=True) for x in pair]
        assert out == [-28.0, -37.0, -26.0, -70.0, -48.0, -66.0, -66.0, -93.0]


def test_softmax_backward_accumulates_in_float() -> None:
    """4,096 ones in BF16: a BF16 accumulator would stop at 256 and give -255."""
    for arch in BF16_ARCHS:
        for last in (True, False):
            v = Variant(arch, "BF16", False)
            ones = pack(v, *[1.0] * 4096)
            assert set(unpack(v, softmax_backward(ones, ones, v, last))) == {-4096.0}


def test_softmax_backward_special_rows() -> None:
    nan, inf = math.nan, math.inf
    for v in (A2, A5):
        zeros = pack(v, 0, 0, 0)
        assert unpack(v, softmax_backward(pack(v, 1, 2, 3), zeros, v, True)) == [0.0, 0.0, 0.0]
        masked = unpack(v, softmax_backward(pack(v, 1, 2, 3), pack(v, nan, nan, nan), v, True))
        assert all(math.isnan(x) for x in masked)
        assert all(math.isnan(x) for x in unpack(v, softmax_backward(pack(v, inf, 1, 1), zeros, v, True)))


def test_log_sigmoid_backward_decays_like_exp() -> None:
    """A derivative taken as s * (1 - s) would be 0 from 16.75 on in FLOAT."""
    for v in (A2, A5):
        one, big = pack(v, 1.0, 1e38)
        for x in (6.25, 16.75, 50.0, 87.0):
            [out] = unpack(v, [log_sigmoid_backward(one, pack(v, x)[0], v)])
            assert out == pytest.approx(math.exp(-x) / (1 + math.exp(-x)), rel=3e-7)
        for x in (88.0, 100.0, 103.0):
            [small] = unpack(v, [log_sigmoid_backward(one, pack(v, x)[0], v)])
            [scaled] = unpack(v, [log_sigmoid_backward(big, pack(v, x)[0], v)])
            assert (small, scaled) == (0.0, 0.0) if v is A5 else small > 0.0 < scaled
        assert unpack(v, [log_sigmoid_backward(one, pack(v, 104.0)[0], v)]) == [0.0]


def test_log_sigmoid_backward_special_values() -> None:
    for arch in ARCHS:
        for dtype in ("FLOAT", "FLOAT16"):
            v = Variant(arch, dtype, False)
            g, inf, minus_inf, nan = pack(v, 3.0, math.inf, -math.inf, math.nan)
            assert unpack(v, [log_sigmoid_backward(g, inf, v), log_sigmoid_backward(g, minus_inf, v)]) == [0.0, 3.0]
            results = [log_sigmoid_backward(inf, inf, v), log_sigmoid_backward(g, nan, v), log_sigmoid_backward(nan, g, v)]
            assert all(math.isnan(x) for x in unpack(v, results))
            half = pack(v, 1.5)
            assert [log_sigmoid_backward(g, 0, v)] == half
            if dtype == "FLOAT16":
                saturating = v._replace(saturate=True)
                assert log_sigmoid_backward(g, nan, saturating) == 0
                assert log_sigmoid_backward(inf, minus_inf, saturating) == 0x7BFF


def test_selu_backward_special_values() -> None:
    for arch in ARCHS:
        for dtype in ("FLOAT", "FLOAT16"):
            v = Variant(arch, dtype, False)
            one, nan, inf = pack(v, 1.0, math.nan, math.inf)
            assert selu_backward(one, nan, v) == selu_backward(one, one, v)  # a NaN in y is lost
            assert all(math.isnan(x) for x in unpack(v, [selu_backward(nan, y, v) for y in pack(v, -1.0, 0.0, 2.0)]))
            assert selu_backward(inf, one, v) == inf
            minus_zero = pack(v, -0.0)[0]
            assert selu_backward(minus_zero, one, v) == (minus_zero if arch == "dav_3510" else 0)
    half = Variant("dav_2201", "FLOAT16", True)
    assert selu_backward(0x7E00, 0x3C00, half) == 0
    assert selu_backward(0x7C00, 0x3C00, half) == 0x7BFF
    assert selu_backward(0, 0xFC00, half) == 0
    # The zero of the gradient: SA rounds to 1.7578125 in FLOAT16.
    assert selu_backward(0x3C00, pack(half, -1.7578125)[0], half) == 0


def test_selu_backward_integers() -> None:
    for arch, want in (("dav_2201", [1, -1, 5, -5, 0]), ("dav_3510", [1, -1, 5, -5, 0])):
        v = Variant(arch, "INT32", False)
        assert [selu_backward(g, 1, v) for g in (1, -1, 5, -5, 0)] == want
    assert selu_backward(2**31 - 1, 1, Variant("dav_2201", "INT32", False)) == 2**31 - 1
    assert selu_backward(70000, 1, Variant("dav_3510", "INT32", False)) == 2**31 - 1  # FLOAT16 overflows to inf
    assert selu_backward(0, -70000, Variant("dav_3510", "INT32", False)) == 0  # 0 * -inf is NaN, which gives 0
    assert selu_backward(2049, 1, Variant("dav_3510", "INT32", False)) == 2152  # 2048 * S, then FLOAT16, steps of 2
    assert selu_backward(127, 1, Variant("dav_2201", "INT8", False)) == 127
    assert [selu_backward(2, -1, Variant(a, "INT8", False)) for a in ("dav_2201", "dav_3510")] == [1, 2]


def test_document_variants() -> None:
    for arch in ("dav_2201", "dav_3510"):
        v = Variant(arch, "FLOAT", False, "document")
        one, zero, minus = pack(v, 1.0, 0.0, -1.0)
        assert selu_backward(one, zero, v) == one
        [slope] = unpack(v, [selu_backward(one, minus, v)])
        assert slope == pytest.approx(1.6732632423543772 - 1 / 1.0507009873554805, rel=1e-6)
        assert unpack(v, [log_sigmoid_backward(one, zero, v)]) == [0.5]
        assert unpack(v, softmax_backward(pack(v, 1, 2), pack(v, 0.25, 0.75), v, True)) == [-0.1875, 0.1875]
    integer = Variant("dav_3510", "INT8", False, "document")
    assert [selu_backward(3, y, integer) for y in (0, -1)] == [3, 2]


def test_forward_operators() -> None:
    one, zero, minus_zero, inf, minus_inf = pack(A2, 1.0, 0.0, -0.0, math.inf, -math.inf)
    assert unpack(A2, [selu(one, A2), selu(minus_inf, A2), selu(minus_zero, A2)]) == [
        1.0507010221481323,
        -1.7580993175506592,
        0.0,
    ]
    assert [selu(x, Variant("dav_2201", "INT8", False)) for x in (127, 1, 0, -1, -128)] == [-123, 1, 0, -1, -1]
    assert [selu(x, Variant("dav_2201", "INT32", False)) for x in (100, -100)] == [105, -1]
    assert log_sigmoid(inf, A2) == minus_zero
    assert unpack(A2, [log_sigmoid(minus_inf, A2), log_sigmoid(zero, A2)]) == [-math.inf, -0.6931471824645996]
    for last in (True, False):
        assert unpack(A2, softmax(pack(A2, 5, 5, 5, 5), A2, last)) == [0.25] * 4
        assert unpack(A2, log_softmax(pack(A2, 7.0), A2, last)) == [0.0]
        assert unpack(A2, log_softmax_backward(pack(A2, 1, 2), pack(A2, 0, 0), A2, last)) == [-2.0, -1.0]


def test_log_softmax_takes_its_maximum_in_float16() -> None:
    """1e-9 short of the true maximum is invisible; 1e5 overflows the FLOAT16 maximum and the row is lost."""
    row = pack(A2, 100000.0, 0.0)
    assert all(math.isnan(x) for x in unpack(A2, log_softmax(row, A2, last=True)))
    assert unpack(A2, log_softmax(row, A2, last=False)) == [0.0, -100000.0]
    saturating = A2._replace(saturate=True)
    assert math.isinf(unpack(A2, log_softmax(row, saturating, last=True))[0])


def test_a_nan_makes_its_row_nan() -> None:
    row = pack(A2, 1.0, math.nan, 3.0)
    for v in (A2, A5):
        for last in (True, False):
            for out in (softmax(row, v, last), log_softmax(row, v, last), softmax_backward(row, row, v, last)):
                assert all(math.isnan(x) for x in unpack(v, out))
