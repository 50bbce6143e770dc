"""What is timed on the tensors of a cell: the emulator, PyTorch, NumPy with ml_dtypes, and the streaming limit.

A competitor is a function of a number of calls, made in a row. All write the same output array.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Any

import numpy as np

from bench.limit import STREAM_BYTES, Limit
from bench.work import NUMPY, SOC, Work, WrongResultError, check_close, check_exact, spoil
from emu.executor import Fault, Launch, prepare, submit
from emu.opdef.catalogue import operator
from emu.opdef.spec import Role
from emu.ops import ArraySpace, descriptor
from emu.plan import Refused, bind
from emu.runtime.cores import PROTOTYPE
from emu.soc import profile

Run = Callable[[int], None]
#: Calls of the native function in a row in one sample.
CALLS_IN_A_ROW = 200
#: NumPy takes part up to this (seconds per call in 16-bit types), and along other dims than the last up to NUMPY_STRIDED.
NUMPY_ELEMENTS, NUMPY_STRIDED = 16 << 20, 1 << 20


def launches(work: Work) -> list[Launch]:
    """What the operator's second phase puts on a stream for these tensors."""
    cell = work.cell
    op = operator("aclnn" + cell.operator)
    space = ArraySpace()
    tensors = iter(work.inputs)
    args: list[Any] = []
    for p in op.params:
        if p.role is Role.ATTR:
            args.append(cell.dim)
            continue
        array = work.out if p.name == op.output.name else next(tensors, work.inputs[0])
        space.add(p.python, array)
        args.append(descriptor(array, p.python, written=array is work.out))
    made = prepare(bind(op.name, SOC), args, "device", True)
    if isinstance(made, Refused):
        raise WrongResultError(f"{op.name} refuses the cell {cell}: {made.text}")
    workspace = 0
    if made.plan.workspace:
        buffer = work.arena.empty((made.plan.workspace,), np.uint8)
        workspace = buffer.ctypes.data
        space.add("workspace", buffer)
    queue: list[Launch] = []

    def enqueue(task: Launch | Fault) -> None:
        if not isinstance(task, Launch):
            raise WrongResultError(task.text)
        queue.append(task)

    submit(made, workspace, space, profile(SOC).saturates, enqueue)
    return queue


def emulator(work: Work) -> Run:
    """The launches as a stream runs them, on the Config's threads; with path "native" the compiled function alone."""
    queue = launches(work)
    if work.cell.path == "native":
        (only,) = queue
        call, args, total = PROTOTYPE(only.form.address), only.args, only.form.total

        def native(times: int) -> None:
            for _ in repeat(None, times):
                call(args, 0, total)

        return native
    if len(queue) == 1:
        run_only = queue[0].run

        def one(times: int) -> None:
            for _ in repeat(None, times):
                run_only()

        return one

    def run(times: int) -> None:
        for _ in repeat(None, times):
            for launch in queue:
                launch.run()

    return run


def limit(work: Work) -> Run:
    """The streaming loop over as many bytes, contiguous whatever the layout, on as many threads."""
    cell = work.cell
    size = work.out.nbytes
    bases = [a if a.flags.c_contiguous else work.arena.empty((size,), np.uint8) for a in work.inputs]
    for base, tensor in zip(bases, work.inputs, strict=True):
        if base is not tensor:
            base.fill(1)
    return Limit(work.out.ctypes.data, [b.ctypes.data for b in bases], size, cell.threads).run


def _numpy_steps(work: Work) -> Callable[[], None]:
    cell, out = work.cell, work.out
    kind = NUMPY[cell.dtype]
    one, scale, scale_alpha = kind(1), kind(1.0507009873554805), kind(1.7580993408473766)
    t = work.arena.empty(cell.shape, kind)
    if cell.operator == "SeluBackward":
        g, y = work.inputs

        def selu_backward() -> None:
            np.add(y, scale_alpha, out=t)
            np.copyto(t, scale, where=y > 0)
            np.multiply(g, t, out=out)

        return selu_backward
    if cell.operator == "LogSigmoidBackward":
        g, x = work.inputs

        def log_sigmoid_backward() -> None:
            np.exp(x, out=t)
            np.add(t, one, out=t)
            np.divide(g, t, out=out)

        return log_sigmoid_backward
    g, y = work.inputs
    dim = cell.dim

    def softmax_backward() -> None:
        np.multiply(g, y, out=t)
        total = np.sum(t, axis=dim, dtype=np.float32, keepdims=True).astype(kind)
        np.subtract(g, total, out=t)
        np.multiply(t, y, out=out)

    return softmax_backward


def numpy(work: Work) -> Run | None:
    """NumPy, BF16 by ml_dtypes, in the data type itself, masks and sums of rows allocated anew; plain backward, one thread."""
    cell = work.cell
    plain = cell.layout == "contiguous" and cell.values == "normal" and cell.path == "launch"
    most = NUMPY_ELEMENTS if cell.place in ("", "last") else NUMPY_STRIDED
    if not plain or cell.inputs == 1 or cell.threads > 1 or cell.elements > most or cell.dtype == "INT8":
        return None
    step = _numpy_steps(work)

    def run(times: int) -> None:
        with np.errstate(all="ignore"):
            for _ in repeat(None, times):
                step()

    return run


def competitors(work: Work) -> dict[str, Run]:
    """Name -> run, each checked on these tensors first: the emulator bit by bit against the reference, the others roughly.

    Raises WrongResultError. PyTorch is left out when it is not installed and for INT8, which it lacks.
    """
    from bench import pytorch

    made: dict[str, Run] = {"emu": emulator(work)}
    for name, build in (("torch", pytorch.run), ("numpy", numpy)):
        run = build(work)
        if run is not None:
            made[name] = run
    for name, run in made.items():
        spoil(work)
        run(1)
        (check_exact if name == "emu" else check_close)(work, name)
    # Below that, handing work to a second thread costs more than the work: no limit of anything.
    if work.cell.threads == 1 or work.out.nbytes >= STREAM_BYTES:
        made["limit"] = limit(work)
    return made
