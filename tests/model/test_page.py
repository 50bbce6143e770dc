"""The figures of docs/device_time.md are what the commands that it names print."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from emu.model.calibration import POINTS, residuals

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "device_time.md").read_text(encoding="utf-8")


def test_table_of_published_points():
    rows = re.findall(r"^\| (\w+) (\w+)[^|]* \| ([\d.]+) \| ([\d.]+) \| ([−+][\d.]+) % \| (fitted|held out) \|$", PAGE, re.MULTILINE)
    found = {(op, dtype, float(published)): (simulated, residual, kind) for op, dtype, published, simulated, residual, kind in rows}
    assert len(found) == len(POINTS)
    for row in residuals():
        simulated, residual, kind = found[row.point.op, row.point.dtype, row.point.microseconds]
        assert simulated == f"{row.cost.ns / 1000:.1f}"
        assert residual.replace("−", "-") == f"{100 * row.residual:+.1f}"
        assert kind == ("fitted" if row.point.fitted else "held out")


def test_times_of_the_two_streams(tmp_path):
    line = [sys.executable, str(ROOT / "examples" / "python" / "two_streams.py"), str(tmp_path / "traces")]
    said = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    overlapped, serialised = re.findall(r"([\d.]+) ms simulated", said)
    assert f"{overlapped} ms become {serialised} ms simulated" in PAGE
    assert sorted(p.name for p in (tmp_path / "traces").iterdir()) == ["overlapped.json", "serialised.json"]
