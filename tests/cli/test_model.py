"""emu model."""

from __future__ import annotations

import json

import pytest

from emu.model import rates


def test_terms(emu):
    ran = emu("model", "sigmoid", "4096x4096", "BF16", "--soc", "Ascend910B2")
    assert ran.code == 0
    assert "aclnnSigmoid 4096x4096 BF16 on Ascend910B2: 34.063 µs simulated; reads 33,554,432 and writes 33,554,432 bytes" in ran.out
    for word in ("floor", "memory", "vector", "sum", "µs (simulated)", "(effective, fitted;", "shorter (fitted)", "L2 binds"):
        assert word in ran.out
    assert "compared" not in ran.out


def test_what_is_assumed_of_other_products(emu):
    said = emu("model", "gelu", "32768x32768", "--soc", "Ascend910B1").out
    assert said.count("assumed: fitted on Ascend910B2") == 3, "floor, L2 and HBM"
    assert said.endswith("No published time was compared with the model for Ascend910B1.\n")
    said = emu("model", "gelu", "32768x32768", "--soc", "Ascend950DT_9591").out
    assert "of L2 (effective, assumed: no less than HBM's; peak" in said
    found = json.loads(emu("model", "gelu", "8", "--soc", "Ascend910B1", "--json").out)
    assert found["rates"] == found["l2_rate"] == "assumed: fitted on Ascend910B2"


def test_a_product_that_the_document_excludes(emu):
    ran = emu("model", "selu_backward", "4", "FLOAT", "--soc", "Ascend310B1")
    assert (ran.code, ran.out) == (2, "")
    assert "aclnnSeluBackward has no kernel for Ascend310B1" in ran.err
    assert "(561103)" in ran.err
    assert emu("model", "selu_backward", "4", "FLOAT", "--soc", "Ascend310B1", "--no-strict-products").code == 0


@pytest.mark.parametrize(
    "args", [("sigmoid", "()"), ("softmax", "()"), ("selu", "1x1x1x1x1x1x1x1x9"), ("gelu", "8", "fp16"), ("gelu", "8", "fp32")]
)
def test_any_shape_that_the_operator_takes(emu, args):
    assert emu("model", *args).code == 0


def test_a_profile_without_a_rate_is_one_line(emu, monkeypatch):
    from emu.soc import profile

    soc = profile("Ascend910B3")
    monkeypatch.setitem(soc.rates, "pcie_gbs", 0)
    rates.cache_clear()
    ran = emu("model", "gelu", "8", "--soc", "Ascend910B3")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "emu: profiles.toml: pcie_gbs for Ascend910B3 is 0, not a number above 0, so no time can be simulated\n"


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
        (("sigmoid", "1_000"), "shape '1_000' is none"),
        (("sigmoid", "\uff14"), "is none"),
        (("sigmoid", "1x1x1x1x1x1x1x1x9"), "cannot be larger than 8 dimensions"),
        (("sigmoid", "8", "FLOAT", "--dim", "0"), "sigmoid has no dim"),
        (("--calibrate", "gelu", "3"), "it takes no operator"),
        (("--calibrate", "--soc", "Ascend310P3"), "no other product"),
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
