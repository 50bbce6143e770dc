"""What a caller sees: SeluBackward FLOAT through each face beside PyTorch's out= call, on 16 elements and on more."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench import pytorch
from bench.arena import HUGE, Arena
from bench.cells import KI, MI
from bench.text import CALLS
from bench.timing import Effort, Run, interleave, summary
from bench.usage import one_line
from bench.work import WrongResultError
from emu import aclnn, config, ops
from emu.types import DataType, Format, MemMallocPolicy

#: pyACL's functions are made from declarations; a type checker does not see them.
acl: Any = import_module("emu.acl")
ELEMENTS = 16
#: Lengths of the table of what a caller sees.
SIZES = (ELEMENTS, 4 * KI, 64 * KI, 256 * KI, MI)
Say = Callable[[str], None]
#: Gradient, result and output before the call.
VALUES = (1.0, -0.5, 0.0)
WANT = float(np.float32(np.float32(-0.5) + np.float32(1.7580993)))


def _ok(code: int) -> None:
    if code:
        raise RuntimeError(f"the emulator refused a call of the benchmark with {code}: {aclnn.aclGetRecentErrMsg()}")


class Device:
    """A device with a stream and the three tensors of a SeluBackward."""

    def __init__(self, elements: int = ELEMENTS) -> None:
        self.elements = elements

    def __enter__(self) -> Device:
        _ok(acl.init())
        _ok(acl.rt.set_device(0))
        self.stream, code = acl.rt.create_stream()
        _ok(code)
        self.memory: list[int] = []
        self.tensors: list[int] = []
        shape = (self.elements,)
        for value in VALUES:
            array = np.full(self.elements, value, np.float32)
            address, code = acl.rt.malloc(array.nbytes, MemMallocPolicy.HUGE_FIRST)
            _ok(code)
            _ok(acl.rt.memcpy(address, array.nbytes, array.ctypes.data, array.nbytes, 1))
            self.memory.append(address)
            self.tensors.append(aclnn.aclCreateTensor(shape, DataType.FLOAT, None, 0, Format.ND, shape, address))
        return self

    def __exit__(self, *_: object) -> None:
        for tensor in self.tensors:
            aclnn.aclDestroyTensor(tensor)
        for address in self.memory:
            acl.rt.free(address)
        acl.rt.destroy_stream(self.stream)
        acl.rt.reset_device(0)
        acl.finalize()

    def check(self) -> None:
        """Call once, and compare the output."""
        self.synchronised(1)
        found = set(self.result())
        if found != {WANT}:
            raise WrongResultError(f"the two-phase call on {self.elements} elements gave {sorted(found)}, not {WANT}")

    def result(self) -> list[float]:
        """The output, copied back."""
        out = np.zeros(self.elements, np.float32)
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


def arrays(elements: int = ELEMENTS) -> tuple[Run, Run | None, Run]:
    """The NumPy face with ``out``, PyTorch's out= call and a NumPy expression, all on the same arrays."""
    arena = Arena(3 * (elements * 4 + HUGE))
    g, y, out = (arena.empty((elements,), np.float32) for _ in VALUES)
    for array, value in zip((g, y, out), VALUES, strict=True):
        array.fill(value)
    scale, scale_alpha = np.float32(1.0507010), np.float32(1.7580993)

    def face(times: int) -> None:
        for _ in repeat(None, times):
            ops.selu_backward(g, y, out=out)

    def plain(times: int) -> None:
        for _ in repeat(None, times):
            np.multiply(g, np.where(y < 0, y + scale_alpha, scale), out=out)

    torch = pytorch.module()
    if torch is None:
        _same(out, face, plain)
        return face, None, plain
    call = torch.ops.aten.elu_backward.grad_input
    tg, ty, to = (torch.from_numpy(a) for a in (g, y, out))

    def out_call(times: int) -> None:
        for _ in repeat(None, times):
            call(tg, pytorch.ALPHA, pytorch.SCALE, 1.0, True, ty, grad_input=to)

    _same(out, face, out_call, plain)
    return face, out_call, plain


def _same(out: NDArray[Any], *runs: Run) -> None:
    """All of them compute the same; WrongResultError if not."""
    for run in runs:
        out.fill(np.nan)
        run(1)
        if not np.allclose(out, WANT, rtol=1e-6):
            raise WrongResultError(f"a call on {out.size} elements gave {out.min()} to {out.max()}, not {WANT}")


def measure(effort: Effort, say: Say, c_rounds: int = 7) -> dict[str, Any]:
    """Seconds per call and ratios: ``ratio[x]`` is the time of x over the time of a synchronised two-phase call.

    ``c_rounds``: rounds of the C ABI; 0 leaves it out.
    """
    face, torch_call, plain = arrays()
    with Device() as device:
        device.check()
        runs: dict[str, Run] = {"emu": device.synchronised, "pipelined": device.pipelined, "array": face, "numpy": plain}
        if torch_call is not None:
            runs["torch"] = torch_call
        brief = effort._replace(seconds=max(1.0, effort.seconds), sample=5e-3, rounds=(11, 41))
        times = summary(interleave(runs, brief))
    found: dict[str, Any] = {"elements": ELEMENTS, **times, "launches_per_s": round(1 / times["seconds"]["pipelined"]["median"])}
    for name, s in times["seconds"].items():
        say(f"16 elements, {CALLS[name]}: {s['median'] * 1e6:.2f} us ({s['q1'] * 1e6:.2f} to {s['q3'] * 1e6:.2f})")
    found["c"] = c_abi(c_rounds, say) if c_rounds else "not asked for"
    return found


def calls(effort: Effort, say: Say, threads: tuple[int, ...], sizes: tuple[int, ...] = SIZES) -> list[dict[str, Any]]:
    """What a caller sees, by length and threads: both phases and a synchronisation, the NumPy face with ``out``, PyTorch's out= call.

    ``ratio[x]`` is PyTorch's time over the time of x.
    """
    found = []
    for count in threads:
        config.configure(threads=count)
        pytorch.set_threads(count)
        for n in sizes:
            face, torch_call, _ = arrays(n)
            with Device(n) as device:
                device.check()
                runs: dict[str, Run] = {"emu": device.synchronised, "array": face}
                if torch_call is not None:
                    runs["torch"] = torch_call
                samples = interleave(runs, effort._replace(seconds=effort.seconds / 2), several=count > 1)
            ratio = {x: summary(samples, x)["ratio"]["torch"] for x in ("emu", "array") if torch_call is not None}
            seconds = summary(samples)["seconds"]
            found.append({"elements": n, "threads": count, "seconds": seconds, "ratio": ratio})
            say(f"one call of {n} elements, {count}T  us " + "  ".join(f"{k} {s['median'] * 1e6:.1f}" for k, s in seconds.items()))
    return found


def c_abi(rounds: int, say: Say) -> dict[str, Any] | str:
    """The same through the C ABI, by `latency_c`: ``*_us`` of a call, ``*_s`` of a program, ``*_ratio``; or why not, in words."""
    from bench import latency_c

    try:
        found = latency_c.measure(rounds)
    except Exception as error:  # no C++ compiler, say: everything else is worth having all the same
        say(f"C ABI not measured: {one_line(error)}")
        return one_line(error)
    say("C ABI: " + ", ".join(f"{k} {v}" for k, v in found.items()))
    return found
