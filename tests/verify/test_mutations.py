"""A verification that cannot fail proves nothing: each of these wrong kernels must be caught by the quick level."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from emu_kernels.reference import fast, fast_rows
from emu_kernels.reference.selu import SCALE, SCALE_ALPHA
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from emu.verify import judge, report
from emu.verify.engine import execute
from emu.verify.plan import plan

Bits = NDArray[Any]


class Right:
    """A provider that is right by construction."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        return judge.expected(flow, v, *inputs)

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        return judge.expected_rows(flow, v, last, *inputs)


class Selu(Right):
    """SeluBackward of dav_2201 with one fault; without a fault it is right."""

    def __init__(self, fault: str = "") -> None:
        self.fault = fault

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        if v.numerics == "document" or v.saturate:
            return super().elementwise(flow, v, *inputs)
        half = v.dtype == "FLOAT16"

        def step(x: Any) -> Any:
            return fast.widen("FLOAT16", fast.to_half(np.atleast_1d(x), False)) if half else x

        with np.errstate(all="ignore"):
            g, y = (fast.widen(v.dtype, a) for a in inputs)
            scale, scale_alpha = step(fast.const(SCALE)), step(fast.const(SCALE_ALPHA))
            a = y + scale_alpha
            b = step(g * (a if self.fault == "no rounding of y + SA" else step(a)))
            c = step(g * scale)
            below = y <= 0 if self.fault == "<= for <" else y < 0
            zero = np.float32(0)
            out = np.where(below, b, c)
            if self.fault != "no final addition":
                out = step(np.where(below, zero, c) + np.where(below, b, zero))
            return fast.narrow(out, v)


class OneUlpExp(Right):
    """LogSigmoidBackward whose exp is one ulp too large for one argument in 256."""

    def elementwise(self, flow: str, v: Variant, *inputs: Bits) -> Bits:
        with np.errstate(all="ignore"):
            x = fast.widen("FLOAT", inputs[1])
            e = fast.elementary("exp", -np.abs(x), v)
            wrong = (inputs[1] & 0xFF == 0x5A) & (e < 1)
            e = np.where(wrong, np.nextafter(e, np.float32(np.inf)), e)
            z = e / (e + np.float32(1))
            return fast.narrow(np.where(x < 0, np.float32(1) - z, z) * fast.widen("FLOAT", inputs[0]), v)


class OtherOrder(Right):
    """SoftmaxBackward whose sum is NumPy's pairwise one."""

    def rows(self, flow: str, v: Variant, last: bool, *inputs: Bits) -> Bits:
        with np.errstate(all="ignore"):
            g, y = (fast.widen(v.dtype, a) for a in inputs)
            total = np.sum(y * g, axis=1, keepdims=True, dtype=np.float32)
            return fast.narrow(fast_rows.fma(-y, total, y * g) if v.arch == "dav_3510" else y * (g - total), v)


class Mutant(NamedTuple):
    """A wrong provider and where it is wrong."""

    provider: Any
    op: str
    dtype: str
    arch: str


MUTANTS = {
    "<= for <": Mutant(Selu("<= for <"), "SeluBackward", "BF16", "dav_2201"),
    "no final addition": Mutant(Selu("no final addition"), "SeluBackward", "FLOAT", "dav_2201"),
    "one rounding too few": Mutant(Selu("no rounding of y + SA"), "SeluBackward", "FLOAT16", "dav_2201"),
    "exp one ulp off": Mutant(OneUlpExp(), "LogSigmoidBackward", "FLOAT", "dav_2201"),
    "another order of the sum": Mutant(OtherOrder(), "SoftmaxBackward", "FLOAT", "dav_2201"),
    "another order of the sum, 3510": Mutant(OtherOrder(), "SoftmaxBackward", "BF16", "dav_3510"),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_quick_catches_a_wrong_kernel(name: str) -> None:
    wrong = MUTANTS[name]
    units = plan("quick", [wrong.op], [wrong.dtype], [wrong.arch])
    outcomes = execute(units, wrong.provider, jobs=1)
    rows = report.totals(units, outcomes)
    device = next(row for row in rows if row["numerics"] == "device")
    assert 0 < device["mismatches"] < device["cases"]
    found = report.explain(device, device["examples"][0], wrong.provider)
    assert found["kernel"] != found["reference"]
    assert found["reference_steps"][-1][1] == found["reference"]
    assert found["kernel_steps"][-1][1].split()[0] == found["kernel"].split()[0]


@pytest.mark.parametrize("dtype", ["FLOAT", "FLOAT16", "BF16"])
def test_the_mutants_are_right_without_their_fault(dtype: str) -> None:
    units = plan("quick", ["SeluBackward"], [dtype], ["dav_2201"])
    assert sum(o.mismatches for o in execute(units, Selu(), jobs=1)) == 0


def test_nothing_is_found_where_nothing_is_wrong() -> None:
    units = plan("quick", ["SoftmaxBackward", "LogSigmoidBackward"], ["FLOAT16"], ["dav_3510"])
    outcomes = execute(units, Right(), jobs=1)
    assert sum(o.mismatches for o in outcomes) == 0
    assert sum(o.cases for o in outcomes) > 1 << 19
