"""``python -m bench.latency_c``: what a C++ program pays for a call of 16 elements and for its start, as ratios of one run.

A call is compared with PyTorch's out= call of the same arithmetic in this process, a whole program with ``import numba`` in a fresh
interpreter; both sides are measured in turns. The operator documents' own programs take part where EMU_DOC_EXAMPLES names their
directory. Needs cffi and a C++ compiler.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

from bench import latency, pytorch
from bench.usage import UsageError, no_cffi, one_place

HERE = Path(__file__).resolve().parent
#: Rounds of everything; the machine's slow minutes hit both sides of a ratio.
ROUNDS = 7

#: A program that does what the documents' programs do: start, one operator of 8 elements, the end. Without "operator": the start alone.
_WHOLE = r"""
#include <vector>
#include "acl/acl.h"
#include "aclnnop/aclnn_selu_backward.h"
int main(int count, char **) {
  if (aclInit(nullptr) || aclrtSetDevice(0)) return 1;
  if (count == 1) return 0;
  aclrtStream stream; void *data; uint64_t size; aclOpExecutor *executor; std::vector<float> host(8, 1.0f); const int64_t shape[] = {8};
  if (aclrtCreateStream(&stream) || aclrtMalloc(&data, 32, ACL_MEM_MALLOC_HUGE_FIRST)) return 2;
  if (aclrtMemcpy(data, 32, host.data(), 32, ACL_MEMCPY_HOST_TO_DEVICE)) return 3;
  aclTensor *t = aclCreateTensor(shape, 1, ACL_FLOAT, nullptr, 0, ACL_FORMAT_ND, shape, 1, data);
  if (aclnnSeluBackwardGetWorkspaceSize(t, t, t, &size, &executor) || aclnnSeluBackward(nullptr, size, executor, stream)) return 4;
  if (aclrtSynchronizeStream(stream) || aclrtMemcpy(host.data(), 32, data, 32, ACL_MEMCPY_DEVICE_TO_HOST)) return 5;
  aclDestroyTensor(t); aclrtFree(data); aclrtDestroyStream(stream); aclrtResetDevice(0); aclFinalize();
  return host[7] == 1.0507009873554804934f ? 0 : 6;
}
"""


def _compile(place: Path) -> tuple[Path, Path, dict[str, Path]]:
    """The latency program, the whole program, and the documents' programs by name."""
    from emu.sdk import toolchain
    from emu.sdk.build import build, compile_flags, link_flags

    sdk = build(place / "sdk")
    (place / "whole.cpp").write_text(_WHOLE)
    examples = os.environ.get("EMU_DOC_EXAMPLES")
    documents = sorted(Path(examples).glob("*.cpp")) if examples else []
    made = []
    for source in (HERE / "latency.cpp", place / "whole.cpp", *documents):
        made.append(place / source.stem)
        line = [*toolchain.cxx_compiler(), "-O2", *compile_flags(sdk), str(source), "-o", str(made[-1]), *link_flags(sdk)]
        toolchain.run(line)
    return made[0], made[1], {path.name: path for path in made[2:]}


def _seconds(line: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(line, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def _nanoseconds(program: Path) -> dict[str, float]:
    done = subprocess.run([str(program)], check=True, capture_output=True, text=True)
    return {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}


def _torch_ns() -> float | None:
    """The best of some samples of PyTorch's out= call, on one thread, as the program takes the best of its own."""
    call = latency.arrays()[1]
    torch = pytorch.module()
    if call is None or torch is None:
        return None
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    times = []
    for _ in range(30):
        began = time.perf_counter()
        call(2000)
        times.append((time.perf_counter() - began) / 2000)
    torch.set_num_threads(threads)
    return min(times) * 1e9


def measure(rounds: int = ROUNDS) -> dict[str, Any]:
    """Figures by name: ``*_us`` of one call, ``*_s`` of a start (medians), ``*_ratio`` (median of each round's ratio)."""
    problem = no_cffi()
    if problem is not None:
        raise RuntimeError(problem)
    with tempfile.TemporaryDirectory(prefix="aclnn-emu-bench-") as scratch:
        calls, whole, documents = _compile(Path(scratch))
        numba = [sys.executable, "-c", "import numba"]
        lines = {"program": [str(whole), "operator"], "start_alone": [str(whole)]}
        lines |= {f"document_program_{name}": [str(path)] for name, path in documents.items()}
        for line in (numba, *lines.values()):  # the kernels are compiled and cached, files are read once
            _seconds(line)
        ns: list[dict[str, float]] = []
        torch: list[float] = []
        base: list[float] = []
        starts: dict[str, list[float]] = {name: [] for name in lines}
        for _ in range(rounds):
            ns.append(_nanoseconds(calls))
            other = _torch_ns()
            if other is not None:
                torch.append(other)
            base.append(_seconds(numba))
            for name, line in lines.items():
                starts[name].append(_seconds(line))
    found: dict[str, Any] = {f"{name}_us": round(median(one[name] for one in ns) / 1e3, 2) for name in ns[0]}
    if torch:
        found["torch_us"] = round(median(torch) / 1e3, 2)
        for name in ("pipelined", "synchronous"):
            found[f"{name}_ratio"] = round(median(one[name] / t for one, t in zip(ns, torch, strict=True)), 2)
    found["import_numba_s"] = round(median(base), 3)
    for name, seconds in starts.items():
        found[f"{name}_s"] = round(median(seconds), 3)
        found[f"{name}_ratio"] = round(median(s / n for s, n in zip(seconds, base, strict=True)), 2)
    return found


def main() -> int:
    """Measure and print; 1 and one line where that is not possible."""
    try:
        one_place()
        found = measure()
    except (RuntimeError, UsageError) as error:
        print(f"python -m bench.latency_c: {error}", file=sys.stderr)
        return 1
    print(json.dumps(found, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
