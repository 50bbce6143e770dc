"""The example programs run and print what they should."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples" / "python"
SELU = "".join(f"result[{i}] is: 1.050701\n" for i in range(8))
LAST = {
    "selu_backward.py": SELU,
    "pyacl_copy.py": "a message by way of the device\n",
    "two_streams.py": "same results: True\n",
    "products.py": "BF16 softmax gradient of ones over 4096: -4096\n",
}


def test_every_example_is_run_here():
    assert {f.name for f in EXAMPLES.glob("*.py")} == set(LAST)


@pytest.mark.parametrize("name", sorted(LAST))
def test_example(name, tmp_path):
    command = [sys.executable, "-m", "emu", "run", str(EXAMPLES / name)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith(LAST[name])
