"""docs/findings.md: each table is what its command prints, and each plot is there."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def _maker() -> Any:
    spec = importlib.util.spec_from_file_location("make_findings", DOCS / "findings" / "make.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MAKER = _maker()
FINDINGS = MAKER.findings(MAKER.PAGE.read_text())


def test_page_has_its_findings_and_plots() -> None:
    text = MAKER.PAGE.read_text()
    assert text.count("```console") == len(FINDINGS) >= 12
    assert text.count("## ") >= 8
    drawn = [f for f in FINDINGS if f.image]
    assert text.count("\n![") == len(drawn) >= 8
    for finding in drawn:
        assert (DOCS / finding.image).stat().st_size > 1000


@pytest.mark.parametrize("finding", FINDINGS, ids=lambda f: f.command[:60])
def test_command_prints_the_table(finding: Any) -> None:
    if "torch" in finding.command:
        pytest.importorskip("torch", reason="this finding compares with PyTorch")
    assert MAKER.run(finding.command) == finding.table


def test_pytorch_takes_the_positive_branch_for_a_lone_nan() -> None:
    """Section 5: the scalar loop and the vectors of PyTorch's elu_backward differ where the result is NaN."""
    torch = pytest.importorskip("torch", reason="this finding compares with PyTorch")
    alone = torch.tensor([float("nan")], dtype=torch.bfloat16)
    found = torch.ops.aten.elu_backward(torch.ones_like(alone), 1.6732632423543772, 1.0507009873554805, 1.0, True, alone)
    assert found.tolist() == [1.046875]
