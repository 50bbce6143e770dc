"""What a run ran on."""

from __future__ import annotations

import os
import platform
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("numpy", "numba", "llvmlite", "ml_dtypes", "torch")


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
    }
