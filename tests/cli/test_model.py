"""emu model."""

from __future__ import annotations

import json

import pytest


def test_terms(emu):
    ran = emu("model", "sigmoid", "4096x4096", "BF16", "--soc", "Ascend910B2")
    assert ran.code == 0
    assert "aclnnSigmoid 4096x4096 BF16 on Ascend910B2: 34.063 µs simulated; reads 33,554,432 and writes 33,554,432 bytes" in ran.out
    for word in ("floor", "memory", "vector", "sum", "µs (simulated)", "effective, fitted", "L2 binds"):
        assert word in ran.out


def test_json(emu):
    found = json.loads(emu("model", "softmax", "8192x8192", "float16", "--dim", "0", "--soc", "Ascend910B2", "--json").out)
    assert (found["clock"], found["soc"]) == ("simulated", "Ascend910B2")
    (launch,) = found["launches"]
    assert (launch["launch"], launch["binds"], launch["read"]) == ("aclnnSoftmax", "L2+HBM", 3 * 2 * 8192**2)


def test_calibration_shows_every_point_and_marks_what_is_what(emu):
    ran = emu("model", "--calibrate")
    assert ran.code == 0
    fitted, held_out = ran.out.split("Held out")
    assert "published µs" in fitted
    assert "simulated µs" in fitted
    assert fitted.count("sigmoid") == 4
    assert "gelu" in held_out
    assert held_out.count("softmax") == 4
    assert "-71.1%" in held_out, "the misses are shown"
    assert "Effective rates, fitted" in held_out
    points = json.loads(emu("model", "--calibrate", "--json").out)["points"]
    assert len(points) == 10


@pytest.mark.parametrize(
    ("args", "text"),
    [
        ((), "give an operator and a shape"),
        (("sigmod", "8"), "unknown operator 'sigmod': did you mean sigmoid"),
        (("sigmoid", "8", "INT8"), "unknown data type 'INT8'"),
        (("sigmoid", "8 by 8"), "shape '8 by 8' is none"),
        (("sigmoid", "-8"), "No such option"),
        (("sigmoid", "99999999999999999999x99999999999"), "too many elements"),
        (("sigmoid", "0x99999999999999999999"), "too many elements"),
        (("sigmoid", "4294967296x4294967296"), "too many elements"),
        (("softmax", "8x8", "FLOAT", "--dim", "2"), "provided dim 2 not in the range of input size 2"),
        (("sigmoid", "8", "FLOAT", "--soc", "Ascend99"), "unknown SoC 'Ascend99'"),
    ],
)
def test_wrong_usage(emu, args, text):
    ran = emu("model", *args)
    assert (ran.code, ran.out) == (2, "")
    assert text in ran.err


def test_an_empty_tensor_costs_nothing(emu):
    assert "0 µs simulated" in emu("model", "sigmoid", "0").out
