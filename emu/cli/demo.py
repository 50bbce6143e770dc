"""Run the operator documents' three examples on an A2 and on a 950, side by side, and say where they differ."""

from __future__ import annotations

import textwrap
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from emu.cli._common import AsJson, print_json, progress_bar, settings
from emu.cli._errors import CommandError

if TYPE_CHECKING:
    from emu.opdef.spec import Operator

A2, A950 = "Ascend910B1", "Ascend950PR_9599"


class Example(NamedTuple):
    """An example of an operator's document: phase 1's inputs by name, FLOAT, and what is to be said of the results."""

    operator: str
    shape: tuple[int, ...]
    tensors: dict[str, tuple[float, ...]]
    attributes: dict[str, int]
    why: str
    formula: str


EXAMPLES = (
    Example(
        "aclnnSeluBackward",
        (4, 2),
        {"gradOutput": (1,) * 8, "result": (0, 1, 2, 3, 4, 5, 6, 7)},
        {},
        "element 0 of result is 0, where the branches meet: the A2 kernel asks result < 0 and multiplies by scale, the 950 kernel asks "
        "result <= 0 and multiplies by (result + scale*alpha).",
        "It leaves SELU's scale out: no card computes it, and the document's own example is the cards' value.",
    ),
    Example(
        "aclnnLogSigmoidBackward",
        (2, 2),
        {"gradOutput": (1,) * 4, "self": (1, 2, 3, 4), "buffer": (1, 2, 3, 4)},
        {},
        "",
        "Cards work with exp(-|x|), the formula with exp(x): the last bits may differ.",
    ),
    Example(
        "aclnnSoftmaxBackward",
        (4, 2),
        {"gradOutput": (0, 1, 2, 3, 4, 5, 6, 7), "output": (1, 1, 1, 2, 2, 2, 3, 3)},
        {"dim": 0},
        "",
        "A2 computes y * (g - sum), the 950 y * g + (-y) * sum with one rounding: small whole numbers come out exact.",
    ),
)


class Outcome(NamedTuple):
    """What one run of an example gave."""

    values: list[float]
    workspace: int


def command(as_json: AsJson = False) -> None:
    """Run the operator documents' three examples on an A2 and on a 950, side by side, and say where they differ."""
    columns = ((A2, "device"), (A950, "device"), (A2, "document"))
    results: list[list[Outcome]] = [[] for _ in EXAMPLES]
    with progress_bar() as bar:
        task = bar.add_task("running", total=len(columns) * len(EXAMPLES))
        for soc, numerics in columns:
            settings(soc=soc, numerics=numerics, strict_products=soc != A950)
            for example, outcomes in zip(EXAMPLES, results, strict=True):
                outcomes.append(two_phases(example))
                bar.advance(task)
    if as_json:
        print_json([_as_dict(example, outcomes) for example, outcomes in zip(EXAMPLES, results, strict=True)])
        return
    print("The examples of the three operator documents through the two-phase contract. EMULATED: no NPU is used.")
    for example, outcomes in zip(EXAMPLES, results, strict=True):
        _show(example, outcomes)


def two_phases(example: Example) -> Outcome:
    """An example as its document's program runs it: device, stream, tensors, phase 1, workspace, phase 2, synchronise, copy back."""
    import numpy as np

    from emu import aclnn
    from emu.opdef.catalogue import operator
    from emu.types import DataType, Format, MemcpyKind, MemMallocPolicy

    acl: Any = import_module("emu.acl")  # its functions are gathered when it is imported: unknown to a type checker
    op = operator(example.operator)
    phase1, phase2 = getattr(aclnn, op.name + "GetWorkspaceSize"), getattr(aclnn, op.name)
    _check(acl.init(), "acl.init")
    _check(acl.rt.set_device(0), "acl.rt.set_device")
    stream, code = acl.rt.create_stream()
    _check(code, "acl.rt.create_stream")
    arguments: list[Any] = []
    host: dict[str, Any] = {}
    device: dict[str, int] = {}
    for p in op.params:
        if not p.is_tensor:
            arguments.append(example.attributes[p.name])
            continue
        array = np.array(example.tensors.get(p.name, (0,) * len(next(iter(example.tensors.values())))), np.float32)
        address, code = acl.rt.malloc(array.nbytes, MemMallocPolicy.HUGE_FIRST)
        _check(code, "acl.rt.malloc")
        host[p.name], device[p.name] = array, address
        source = acl.util.numpy_to_ptr(array)
        _check(acl.rt.memcpy(address, array.nbytes, source, array.nbytes, MemcpyKind.HOST_TO_DEVICE), "acl.rt.memcpy")
        arguments.append(aclnn.aclCreateTensor(example.shape, DataType.FLOAT, None, 0, Format.ND, example.shape, address))
    size, executor, code = phase1(*arguments)
    _check(code, phase1.__name__)
    workspace = 0
    if size > 0:
        workspace, code = acl.rt.malloc(size, MemMallocPolicy.HUGE_FIRST)
        _check(code, "acl.rt.malloc")
    _check(phase2(workspace, size, executor, stream), phase2.__name__)
    _check(acl.rt.synchronize_stream(stream), "acl.rt.synchronize_stream")
    out = host[op.output.name]
    target = acl.util.numpy_to_ptr(out)
    _check(acl.rt.memcpy(target, out.nbytes, device[op.output.name], out.nbytes, MemcpyKind.DEVICE_TO_HOST), "acl.rt.memcpy")
    for p, handle in zip(op.params, arguments, strict=True):
        if p.is_tensor:
            aclnn.aclDestroyTensor(handle)
    for address in (*device.values(), *([workspace] if workspace else [])):
        acl.rt.free(address)
    acl.rt.destroy_stream(stream)
    acl.rt.reset_device(0)
    acl.finalize()
    return Outcome([float(v) for v in out.reshape(-1)], size)


def _check(code: int, what: str) -> None:
    if code:
        from emu import aclnn
        from emu.status import name_of

        raise CommandError(f"{what} failed: {name_of(code)} ({code}). {aclnn.aclGetRecentErrMsg() or ''}")


def _declared(example: Example) -> Operator:
    from emu.opdef.catalogue import operator

    return operator(example.operator)


def _refused_on_950(example: Example) -> bool:
    from emu.soc import profile

    return profile(A950).family in _declared(example).refused


def _show(example: Example, outcomes: list[Outcome]) -> None:
    a2, a950, formula = outcomes
    mark = "*" if _refused_on_950(example) else ""
    given = [f"{name} = {' '.join(f'{v:g}' for v in values)}" for name, values in example.tensors.items()]
    given += [f"{name} = {value}" for name, value in example.attributes.items()]
    print(f"\n{example.operator}, FLOAT, shape {list(example.shape)}")
    for line in given:
        print(f"  {line}")
    heads = (A2, A950 + mark, "document's formula")
    label = _declared(example).output.name
    width = max(len(f"{label}[0]"), len("workspace"))
    print("  " + " " * width + "".join(f"  {h:>18}" for h in heads))
    for i, values in enumerate(zip(a2.values, a950.values, formula.values, strict=True)):
        note = "   <- the cards differ" if values[0] != values[1] else ""
        print(f"  {f'{label}[{i}]':<{width}}" + "".join(f"  {v:18f}" for v in values) + note)
    print(f"  {'workspace':<{width}}" + "".join(f"  {o.workspace:18d}" for o in (a2, a950)) + "  bytes")
    if a2.values == a950.values:
        print("  A2 and 950 agree in every bit.")
    elif example.why:
        _say(f"Why: {example.why}")
    else:
        print("  A2 and 950 differ in the last bits.")
    same = "gives the same as A2" if formula.values == a2.values else "differs from A2"
    _say(f"The document's formula {same} here. {example.formula}")
    if mark:
        _say("* strict_products off: the document lists the 950 as not supported, and by default it is refused (561103).")


def _say(text: str) -> None:
    print(textwrap.fill(text, 100, initial_indent="  ", subsequent_indent="  "))


def _as_dict(example: Example, outcomes: list[Outcome]) -> dict[str, Any]:
    a2, a950, formula = outcomes
    return {
        "operator": example.operator,
        "shape": list(example.shape),
        "output": _declared(example).output.name,
        "tensors": {name: list(values) for name, values in example.tensors.items()},
        "attributes": example.attributes,
        "values": {A2: a2.values, A950: a950.values, "document": formula.values},
        "workspace": {A2: a2.workspace, A950: a950.workspace},
        "strict_products_off": [A950] if _refused_on_950(example) else [],
        "differ": [i for i, (x, y) in enumerate(zip(a2.values, a950.values, strict=True)) if x != y],
        "why": example.why,
        "formula": example.formula,
    }
