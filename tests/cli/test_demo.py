"""emu demo: the documents' values, where products differ, and lines that stay whole in a pipe."""

from __future__ import annotations

import json
import re

import pytest

from emu.cli import demo

ROW = re.compile(r"  (gradInput|out)\[\d\] ")
SELU_A2 = ["1.050701"] * 8
LOG_SIGMOID = ["0.268941", "0.119203", "0.047426", "0.017986"]
SOFTMAX = ["-28.000000", "-37.000000", "-26.000000", "-70.000000", "-48.000000", "-66.000000", "-66.000000", "-93.000000"]


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    import os
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-m", "emu", "demo"],
        cwd=tmp_path_factory.mktemp("demo"),
        env={**os.environ, "COLUMNS": "20"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def column(text: str, operator: str, place: int) -> list[str]:
    part = text.split(f"\n{operator}, ")[1].split("\naclnn")[0]
    return [line.split()[1 + place] for line in part.splitlines() if ROW.match(line)]


def test_the_documents_values(printed):
    assert column(printed, "aclnnSeluBackward", 0) == SELU_A2
    assert column(printed, "aclnnSeluBackward", 1) == ["1.758099", *SELU_A2[1:]]
    assert column(printed, "aclnnLogSigmoidBackward", 0) == column(printed, "aclnnLogSigmoidBackward", 1) == LOG_SIGMOID
    assert column(printed, "aclnnSoftmaxBackward", 0) == column(printed, "aclnnSoftmaxBackward", 1) == SOFTMAX
    assert column(printed, "aclnnSeluBackward", 2) == ["1.000000"] * 8


def test_it_says_where_and_why(printed):
    assert [line.split()[0] for line in printed.splitlines() if "<- the cards differ" in line] == ["gradInput[0]"]
    words = " ".join(printed.split())
    assert "element 0 of result is 0" in words
    assert "asks result < 0" in words
    assert "asks result <= 0" in words
    assert "document's formula" in printed


def test_strict_products_off_is_marked_where_it_matters(printed):
    heads = [line for line in printed.splitlines() if demo.A950 in line]
    assert [f"{demo.A950}*" in line for line in heads] == [True, True, False]
    assert printed.count("* strict_products off") == 2


def test_one_line_per_element_and_no_colour(printed):
    lines = [line for line in printed.splitlines() if ROW.match(line)]
    assert len(lines) == 8 + 4 + 8
    assert all(re.fullmatch(r"  (?:gradInput|out)\[\d\]( +-?\d+\.\d{6}){3}( .*)?", line) for line in lines)
    assert "\x1b" not in printed


def test_json(emu):
    ran = emu("demo", "--json")
    assert ran.code == 0
    found = {e["operator"]: e for e in json.loads(ran.out)}
    assert [f"{v:f}" for v in found["aclnnSeluBackward"]["values"][demo.A950]] == ["1.758099", *SELU_A2[1:]]
    assert found["aclnnSeluBackward"]["differ"] == [0]
    assert [e["output"] for e in found.values()] == ["gradInput", "gradInput", "out"]
    assert found["aclnnSoftmaxBackward"]["workspace"] == {demo.A2: 0, demo.A950: 16_777_728}
    assert found["aclnnSeluBackward"]["workspace"] == {demo.A2: 0, demo.A950: 512}
    assert [e["strict_products_off"] for e in found.values()] == [[demo.A950], [demo.A950], []]


def test_leaves_no_device_open(emu):
    from emu import config

    assert emu("demo").code == 0
    assert config.configure(devices=2).devices == 2
