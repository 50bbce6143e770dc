"""Process start, imports and the first result, each in processes of its own, in turns."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.timing import spread

Say = Callable[[str], None]
ROOT = Path(__file__).resolve().parent.parent

_CLOCK = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
_FIRST = (
    "import numpy as np; from emu import ops; x = np.full(16, -0.5, np.float32); r = ops.selu_backward(x, x); "
    "assert abs(r[0] + 0.62905) < 1e-4, r"
)
#: Without the hooks of site-packages, as an editable install has: they load modules that the statement then finds.
_NO_SITE = f"import sys; sys.path += {sys.path!r}; " + _CLOCK
#: Name -> arguments of the interpreter. Those of COLD start with an empty kernel cache; a script prints its own seconds.
COMMANDS: dict[str, list[str]] = {
    "bare": ["-c", _CLOCK.format("pass")],
    "import numpy": ["-c", _CLOCK.format("import numpy")],
    "import numba": ["-c", _CLOCK.format("import numba")],
    "import emu": ["-c", _CLOCK.format("import emu")],
    "import numpy, without site": ["-S", "-c", _NO_SITE.format("import numpy")],
    "import emu, without site": ["-S", "-c", _NO_SITE.format("import emu")],
    "first result, warm cache": ["-c", _CLOCK.format(_FIRST)],
    "first result, cold cache": ["-c", _CLOCK.format(_FIRST)],
    "emu demo, warm cache": ["-m", "emu", "demo"],
    "emu demo, cold cache": ["-m", "emu", "demo"],
}
COLD = ("first result, cold cache", "emu demo, cold cache")


def once(name: str, cache: str) -> tuple[float, float | None]:
    """(seconds from start to end of the process, seconds that it measured itself)."""
    environment = {**os.environ, "EMU_CACHE_DIR": cache}
    start = time.perf_counter()
    done = subprocess.run([sys.executable, *COMMANDS[name]], cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    wall = time.perf_counter() - start
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stderr[-2000:]}")
    return wall, float(done.stdout) if "-c" in COMMANDS[name] else None


def measure(rounds: int, cold_rounds: int, say: Say, names: tuple[str, ...] = tuple(COMMANDS)) -> dict[str, Any]:
    """Name -> {"wall": from process start to its end, "inside": what the script measured}; medians and quartiles, seconds."""
    wall: dict[str, list[float]] = {n: [] for n in names}
    inside: dict[str, list[float]] = {n: [] for n in names}
    with tempfile.TemporaryDirectory(prefix="emu-bench-") as warm:
        for name in names:
            once(name, warm)  # files into the page cache, kernels into the warm cache
        for turn in range(rounds):
            for name in names:
                if name not in COLD:
                    _add(name, warm, wall, inside)
                elif turn < cold_rounds:
                    with tempfile.TemporaryDirectory(prefix="emu-bench-") as empty:
                        _add(name, empty, wall, inside)
    found: dict[str, Any] = {}
    for name in names:
        found[name] = {"wall": spread(wall[name]), **({"inside": spread(inside[name])} if inside[name] else {})}
        say(f"{name}: " + ", ".join(f"{s['median']:.3f} s {'as a process' if k == 'wall' else k}" for k, s in found[name].items()))
    return found


def _add(name: str, cache: str, wall: dict[str, list[float]], inside: dict[str, list[float]]) -> None:
    total, own = once(name, cache)
    wall[name].append(total)
    if own is not None:
        inside[name].append(own)
