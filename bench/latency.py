"""What a call costs when there is nothing to compute: 16 FLOAT elements through each face, beside PyTorch's out= call."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np

from bench import pytorch
from bench.timing import Effort, Run, interleave, summary
from emu import aclnn, ops
from emu.types import DataType, Format, MemMallocPolicy

#: pyACL's functions are made from declarations; a type checker does not see them.
acl: Any = import_module("emu.acl")
ELEMENTS = 16
Say = Callable[[str], None]


def _ok(code: int) -> None:
    if code:
        raise RuntimeError(f"the emulator refused a call of the benchmark with {code}: {aclnn.aclGetRecentErrMsg()}")


class Device:
    """A device with a stream and the three tensors of a SeluBackward of ``ELEMENTS`` elements."""

    def __enter__(self) -> Device:
        _ok(acl.init())
        _ok(acl.rt.set_device(0))
        self.stream, code = acl.rt.create_stream()
        _ok(code)
        self.memory: list[int] = []
        self.tensors: list[int] = []
        for value in (1.0, -0.5, 0.0):
            array = np.full(ELEMENTS, value, np.float32)
            address, code = acl.rt.malloc(array.nbytes, MemMallocPolicy.HUGE_FIRST)
            _ok(code)
            _ok(acl.rt.memcpy(address, array.nbytes, array.ctypes.data, array.nbytes, 1))
            self.memory.append(address)
            self.tensors.append(aclnn.aclCreateTensor((ELEMENTS,), DataType.FLOAT, None, 0, Format.ND, (ELEMENTS,), address))
        return self

    def __exit__(self, *_: object) -> None:
        for tensor in self.tensors:
            aclnn.aclDestroyTensor(tensor)
        for address in self.memory:
            acl.rt.free(address)
        acl.rt.destroy_stream(self.stream)
        acl.rt.reset_device(0)
        acl.finalize()

    def result(self) -> list[float]:
        """The output, copied back."""
        out = np.zeros(ELEMENTS, np.float32)
        _ok(acl.rt.memcpy(out.ctypes.data, out.nbytes, self.memory[2], out.nbytes, 2))
        return [float(x) for x in out]

    def synchronised(self, times: int) -> None:
        """Phase 1, phase 2 and a synchronisation, ``times`` times."""
        phase1, phase2, sync = aclnn.aclnnSeluBackwardGetWorkspaceSize, aclnn.aclnnSeluBackward, acl.rt.synchronize_stream
        g, y, out = self.tensors
        stream = self.stream
        for _ in repeat(None, times):
            size, executor, _code = phase1(g, y, out)
            phase2(0, size, executor, stream)
            sync(stream)

    def pipelined(self, times: int) -> None:
        """Both phases ``times`` times, then one synchronisation."""
        phase1, phase2 = aclnn.aclnnSeluBackwardGetWorkspaceSize, aclnn.aclnnSeluBackward
        g, y, out = self.tensors
        stream = self.stream
        for _ in repeat(None, times):
            size, executor, _code = phase1(g, y, out)
            phase2(0, size, executor, stream)
        acl.rt.synchronize_stream(stream)


def arrays() -> tuple[Run, Run | None, Run]:
    """The NumPy face with ``out``, PyTorch's out= call and a NumPy expression, on 16 elements."""
    g, y, out = (np.full(ELEMENTS, v, np.float32) for v in (1.0, -0.5, 0.0))
    scale, scale_alpha = np.float32(1.0507010), np.float32(1.7580993)

    def face(times: int) -> None:
        for _ in repeat(None, times):
            ops.selu_backward(g, y, out=out)

    def plain(times: int) -> None:
        for _ in repeat(None, times):
            np.multiply(g, np.where(y < 0, y + scale_alpha, scale), out=out)

    torch = pytorch.module()
    if torch is None:
        return face, None, plain
    call = torch.ops.aten.elu_backward.grad_input
    tg, ty, to = (torch.from_numpy(a) for a in (g, y, out))

    def out_call(times: int) -> None:
        for _ in repeat(None, times):
            call(tg, pytorch.ALPHA, pytorch.SCALE, 1.0, True, ty, grad_input=to)

    return face, out_call, plain


def measure(effort: Effort, say: Say, c_rounds: int = 7) -> dict[str, Any]:
    """Seconds per call and ratios: ``ratio[x]`` is the time of x over the time of a synchronised two-phase call.

    ``c_rounds``: rounds of the C ABI; 0 leaves it out.
    """
    face, torch_call, plain = arrays()
    with Device() as device:
        device.synchronised(1)
        want = float(np.float32(np.float32(-0.5) + np.float32(1.7580993)))
        if device.result() != [want] * ELEMENTS:
            raise RuntimeError(f"the two-phase call gave {device.result()}, not {want}")
        runs: dict[str, Run] = {"emu": device.synchronised, "pipelined": device.pipelined, "array": face, "numpy": plain}
        if torch_call is not None:
            runs["torch"] = torch_call
        brief = effort._replace(seconds=max(1.0, effort.seconds), sample=5e-3, rounds=(11, 41))
        times = summary(interleave(runs, brief))
    found: dict[str, Any] = {"elements": ELEMENTS, **times, "launches_per_s": round(1 / times["seconds"]["pipelined"]["median"])}
    for name, s in times["seconds"].items():
        say(f"16 elements, {NAMES[name]}: {s['median'] * 1e6:.2f} us ({s['q1'] * 1e6:.2f} to {s['q3'] * 1e6:.2f})")
    found["c"] = c_abi(c_rounds, say) if c_rounds else "not asked for"
    return found


NAMES = {
    "emu": "two phases and a synchronisation, Python face", "pipelined": "two phases, Python face, one synchronisation at the end",
    "array": "NumPy face", "numpy": "NumPy expression", "torch": "PyTorch out= call",
}  # fmt: skip


def c_abi(rounds: int, say: Say) -> dict[str, Any] | str:
    """The same through the C ABI, by `latency_c`: ``*_us`` of a call, ``*_s`` of a program, ``*_ratio``; or why not, in words."""
    from bench import latency_c

    try:
        found = latency_c.measure(rounds)
    except Exception as error:  # no C++ compiler, say: everything else is worth having all the same
        say(f"C ABI not measured: {error}")
        return f"{type(error).__name__}: {error}".splitlines()[0]
    say("C ABI: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    return found
