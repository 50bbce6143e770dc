"""The same bits for every CPU that the kernels may be compiled for."""

from __future__ import annotations

import json
import os
import subprocess
import sys

PROGRAM = r"""
import json, os, sys, zlib
import numpy as np
from emu_kernels import build, catalog, machine
from emu_kernels.call import call
from emu_kernels.variant import Variant

if "NUMBA_CPU_NAME" not in os.environ:
    build.set_cache_dir(os.environ.get("EMU_CACHE_DIR"))  # of this CPU the other tests have compiled most
rng = np.random.default_rng(11)
n = 3001
edges32 = np.array([0, 1 << 31, 1, 0x7FFFFF, 0x800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xC16912CD], np.uint32)
wide = [rng.integers(0, 1 << 32, n, dtype=np.uint64).astype(np.uint32) for _ in range(2)]
wide[1][: 81] = np.repeat(edges32, 9)
wide[0][: 81] = np.tile(edges32, 9)
narrow = [rng.integers(0, 1 << 16, n, dtype=np.uint64).astype(np.uint16) for _ in range(2)]

def plain(dtype, a):
    if dtype == "INT8":
        return a
    if dtype == "FLOAT":
        return np.where(a & 0x7FFFFFFF > 0x7F800000, np.uint32(0x7FC00000), a)
    return np.where(a & 0x7FFF > (0x7C00 if dtype == "FLOAT16" else 0x7F80), np.uint16(0x7FFF), a)

sums, zmm, flows = {}, [], set()
def note(kernel, dtype, out):
    sums[kernel.name] = zlib.crc32(plain(dtype, out).tobytes())
    if "NUMBA_CPU_NAME" in os.environ and "zmm" in kernel.keep[0]._library.get_asm_str():
        zmm.append(kernel.name)

def inputs(flow, dtype):
    count = catalog.FLOWS[flow].inputs
    if dtype == "INT8":
        return [a.astype(np.int8) for a in narrow][:count]
    return (wide if dtype == "FLOAT" else narrow)[:count]

# Every flow; the gradients with the variants whose steps differ most.
for flow, arch, dtype in (
    ("selu_backward", "dav_2201", "FLOAT"), ("selu_backward", "dav_2201", "FLOAT16"), ("selu_backward", "dav_3510", "BF16"),
    ("selu_backward", "dav_2201", "INT8"),
    ("log_sigmoid_backward", "dav_2201", "FLOAT"), ("log_sigmoid_backward", "dav_3510", "FLOAT16"),
    ("selu", "dav_2201", "FLOAT16"), ("log_sigmoid", "dav_3510", "FLOAT"),
    ("exp", "dav_2201", "BF16"), ("sigmoid", "dav_3510", "FLOAT"), ("gelu", "dav_2201", "FLOAT"),
    ("log", "dav_2201", "FLOAT"), ("log1p", "dav_2201", "FLOAT"), ("tanh", "dav_2201", "FLOAT"),
):
    kernel = build.elementwise(flow, Variant(arch, dtype, False))
    arrays = inputs(flow, dtype)
    out = np.empty_like(arrays[0])
    call(kernel, (out, *arrays), (), 0, n)
    note(kernel, dtype, out)
    flows.add(flow)
# Arguments of ordinary size: exp in FLOAT settles most tiles of these, and none of those above.
for arch in ("dav_2201", "dav_3510"):
    kernel = build.elementwise("log_sigmoid_backward", Variant(arch, "FLOAT", False))
    arrays = list((rng.standard_normal((2, n)) * 4).astype(np.float32))
    out = np.empty_like(arrays[0])
    call(kernel, (out, *arrays), (), 0, n)
    sums[kernel.name + " ordinary"] = zlib.crc32(out.tobytes())
for flow, arch, dtype, last in (
    ("softmax_backward", "dav_2201", "FLOAT16", True), ("softmax_backward", "dav_3510", "FLOAT", True),
    ("softmax_backward", "dav_2201", "BF16", False),
    ("softmax", "dav_2201", "FLOAT16", True), ("log_softmax", "dav_3510", "FLOAT", False),
    ("log_softmax_backward", "dav_2201", "FLOAT", True),
):
    kernel = build.rows(flow, Variant(arch, dtype, False), last)
    small = rng.standard_normal((2, 2, 300, 5)).astype(np.float32)
    if dtype == "FLOAT":
        arrays = list(small.view(np.uint32))
    elif dtype == "BF16":
        arrays = list((small.view(np.uint32) >> 16).astype(np.uint16))
    else:
        arrays = list(small.astype(np.float16).view(np.uint16))
    arrays = [np.ascontiguousarray(a) for a in arrays][: catalog.FLOWS[flow].inputs]
    out = np.empty_like(arrays[0])
    shape = (10, 300, 1) if last else (2, 300, 5)
    call(kernel, (out, *arrays), shape, 0, 10)
    note(kernel, dtype, out)
    flows.add(flow)
assert flows == set(catalog.FLOWS), set(catalog.FLOWS) - flows
print(json.dumps({"sums": sums, "zmm": zmm, "half": machine.converts_half()}))
"""


def results(**env: str) -> dict[str, object]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("NUMBA_CPU")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, env={**clean, **env}, timeout=550)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def test_generic_avx2_and_this_cpu_give_the_same_bits() -> None:
    host = results()
    generic = results(NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    avx2 = results(NUMBA_CPU_NAME="x86-64-v3", NUMBA_CPU_FEATURES="")
    assert len(host["sums"]) == 22  # type: ignore[arg-type]
    assert generic["sums"] == host["sums"]
    assert avx2["sums"] == host["sums"]
    # The two were really compiled for what they claim: no AVX-512, and no FLOAT16 conversion on the first.
    assert generic["zmm"] == []
    assert avx2["zmm"] == []
    assert generic["half"] is False
    assert avx2["half"] is True
