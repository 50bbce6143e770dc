"""Memory of a process that uses the emulator: its baseline, and what a call of 64 Mi elements takes beyond its tensors.

``python -m bench.memory OPERATOR DTYPE DIM ELEMENTS THREADS`` (DIM -1: none) is the measured process; it prints JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

Say = Callable[[str], None]
ROOT = Path(__file__).resolve().parent.parent
MI = 1 << 20
ROW = 1024
#: Operator, data type, dim of a tensor (n / ROW, ROW), if it has one.
CASES = (
    ("SeluBackward", "FLOAT", None), ("LogSigmoidBackward", "FLOAT", None), ("LogSigmoidBackward", "BF16", None),
    ("SoftmaxBackward", "FLOAT", 1), ("SoftmaxBackward", "FLOAT", 0), ("SoftmaxBackward", "BF16", 0),
)  # fmt: skip


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(field + ":"):
            return int(line.split()[1]) << 10
    raise LookupError(field)


def _forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def child(operator: str, dtype: str, dim: int | None, elements: int, threads: int) -> dict[str, int]:
    """Bytes: resident after a first small result, the tensors, and the peak of a call beyond both; and how many kernels were compiled."""
    import emu

    emu.configure(threads=threads)
    acl: Any = import_module("emu.acl")
    _ok(acl.init())
    _ok(acl.rt.set_device(0))
    _two_phases(operator, dtype, dim, 16)
    baseline = _status("VmRSS")
    _forget_peak()
    tensors = _two_phases(operator, dtype, dim, elements)
    peak = _status("VmHWM")
    acl.finalize()
    from emu.kernel_cache import build

    compiled = sum(how == "compiled" for how in build().stats().values())
    return {"baseline": baseline, "tensors": tensors, "peak": peak, "extra": peak - baseline - tensors, "compiled": compiled}


def _ok(code: int) -> None:
    if code:
        raise RuntimeError(f"the emulator refused a call of the benchmark with {code}")


def _two_phases(operator: str, dtype: str, dim: int | None, n: int) -> int:
    """Run the operator on device memory filled with zeros, free it; returns the bytes of the tensors and the workspace."""
    from emu import aclnn
    from emu.opdef.catalogue import operator as find
    from emu.types import ITEMSIZE, DataType, Format, MemMallocPolicy

    acl: Any = import_module("emu.acl")
    op = find("aclnn" + operator)
    kind = DataType[dtype]
    shape = (max(1, n // ROW), min(n, ROW))
    args: list[Any] = []
    blocks: list[int] = []
    used = 0
    for p in op.params:
        if not p.is_tensor:
            args.append(dim)
            continue
        nbytes = n * ITEMSIZE[kind]
        if p.name == "buffer":  # never read: it shares the first input's memory
            address = blocks[0]
        else:
            address = _malloc(nbytes, MemMallocPolicy.HUGE_FIRST, blocks)
            used += nbytes
            _ok(acl.rt.memset(address, nbytes, 0, nbytes))
        args.append(aclnn.aclCreateTensor(shape, kind, None, 0, Format.ND, shape, address))
    size, executor, code = getattr(aclnn, op.name + "GetWorkspaceSize")(*args)
    _ok(code)
    workspace = _malloc(size, MemMallocPolicy.HUGE_FIRST, blocks) if size else 0
    _ok(getattr(aclnn, op.name)(workspace, size, executor, 0))
    _ok(acl.rt.synchronize_device())
    for p, arg in zip(op.params, args, strict=True):
        if p.is_tensor:
            aclnn.aclDestroyTensor(arg)
    for block in blocks:
        _ok(acl.rt.free(block))
    return used + int(size)


def _malloc(nbytes: int, policy: int, blocks: list[int]) -> int:
    acl: Any = import_module("emu.acl")
    address, code = acl.rt.malloc(nbytes, policy)
    _ok(code)
    blocks.append(address)
    return int(address)


def _run(command: list[str]) -> dict[str, int]:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} failed: {done.stderr[-2000:]}")
    figures: dict[str, int] = json.loads(done.stdout)
    return figures


def measure(quick: bool, say: Say, elements: int = 64 * MI, cases: tuple[tuple[str, str, int | None], ...] = CASES) -> list[dict[str, Any]]:
    """Each case in a process of its own, on two threads, with its kernels in the cache."""
    found = []
    for operator, dtype, dim in cases[:2] if quick else cases:
        command = [sys.executable, "-m", "bench.memory", operator, dtype, str(-1 if dim is None else dim), str(elements), "2"]
        figures = _run(command)
        if figures["compiled"]:  # the compiler's own memory is no part of the question
            figures = _run(command)
        record: dict[str, Any] = {"operator": operator, "dtype": dtype, "dim": dim, "elements": elements, **figures}
        found.append(record)
        mib = {k: record[k] / MI for k in ("baseline", "tensors", "extra")}
        say(f"memory {operator} {dtype}: baseline {mib['baseline']:.0f} MiB, tensors {mib['tensors']:.0f}, beyond them {mib['extra']:.1f}")
    return found


def main(argv: list[str]) -> int:
    """The measured process."""
    try:
        operator, dtype, dim, elements, threads = argv
        numbers = int(dim), int(elements), int(threads)
    except ValueError:
        print("usage: python -m bench.memory OPERATOR DTYPE DIM ELEMENTS THREADS (DIM -1: none)", file=sys.stderr)
        return 2
    print(json.dumps(child(operator, dtype, None if numbers[0] == -1 else numbers[0], *numbers[1:])))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
