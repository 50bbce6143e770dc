"""What a run ran on."""

from __future__ import annotations

import os
import platform
import subprocess
import time
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from emu import __version__

PACKAGES = ("numpy", "numba", "llvmlite", "ml_dtypes", "torch")
#: Variables that libraries here read when they start.
VARIABLES = (
    "ATEN_", "EMU_", "GLIBC_", "GOMP_", "KMP_", "LD_PRELOAD", "MALLOC_", "MKL_", "NUMBA_", "OMP_", "OPENBLAS_", "PYTORCH_", "THP_", "TORCH_"
)  # fmt: skip
#: Those that change no ratio.
HARMLESS = ("EMU_CACHE_DIR", "EMU_DOC_EXAMPLES")
ROOT = Path(__file__).resolve().parent.parent


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        return ""


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def environment() -> dict[str, str]:
    """The variables that are set and their values, paths left out."""
    return {n: "(a path)" if "/" in v else v for n, v in sorted(os.environ.items()) if n.startswith(VARIABLES)}


def warnings(result: dict[str, Any]) -> list[str]:
    """Variables that change ratios, in a sentence."""
    found = result["machine"].get("environment", {})
    some = [f"{n}={v}" for n, v in found.items() if n not in HARMLESS and (n, v) != ("THP_MEM_ALLOC_ENABLE", "1")]
    return [f"these variables were set and may change ratios: {', '.join(some)}"] if some else []


def emulator() -> dict[str, Any]:
    """Version of the emulator, and in a checkout its commit, with "+changes" where files differ from it."""
    found = {"version": __version__}
    if (ROOT / ".git").exists():
        line = ["git", "-C", str(ROOT), "describe", "--always", "--exclude=*", "--dirty=+changes"]
        with suppress(OSError, subprocess.CalledProcessError):
            found["commit"] = subprocess.run(line, check=True, capture_output=True, text=True).stdout.strip()
    return found


def describe() -> dict[str, Any]:
    """CPU, caches, page policy, versions. Names neither host nor user."""
    info = _read("/proc/cpuinfo")
    fields = dict(line.split(":", 1) for line in info.split("\n\n")[0].splitlines() if ":" in line)
    fields = {k.strip(): v.strip() for k, v in fields.items()}
    flags = set(fields.get("flags", fields.get("Features", "")).split())
    wanted = ("avx2", "f16c", "fma", "avx512f", "avx512_fp16", "avx512_bf16", "asimd", "sve")
    caches = {}
    for k in range(5):
        base = f"/sys/devices/system/cpu/cpu0/cache/index{k}"
        if _read(f"{base}/type") in ("Data", "Unified"):
            caches["L" + _read(f"{base}/level")] = _read(f"{base}/size")
    return {
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "cpu": fields.get("model name", platform.machine()),
        "family_model": f"{fields.get('cpu family', '?')}/{fields.get('model', '?')}",
        "features": [f for f in wanted if f in flags],
        "cpus": len(os.sched_getaffinity(0)),
        "caches": caches,
        "memory_gib": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "transparent_huge_pages": _read("/sys/kernel/mm/transparent_hugepage/enabled"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "packages": {p: _version(p) for p in PACKAGES},
        "environment": environment(),
    }
