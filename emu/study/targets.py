"""What a result is compared with: the exact value, a wider dtype, another product, the document's formula, PyTorch, or
a file from a real card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from emu.study import decide, exact, numbers
from emu.study.dd import DD
from emu.study.errors import LacksError, StudyError, unknown
from emu.study.exact import FORWARD_OF, Golden
from emu.study.files import LazyArray, load
from emu.study.numbers import Bits
from emu.study.problem import Problem, find_soc, parse_assume
from emu.verify.provider import Provider

HELP = {
    "exact": "the exact mathematical value for the stored inputs (double-double, MPFR near ties)",
    "true": "the exact derivative at x, of which the operator sees only y = RN(forward(x)); the inputs are then x",
    "float64": "the operator's formula in FLOAT64 (NumPy)",
    "dtype:NAME": "the same operator on the same product in another dtype",
    "soc:NAME": "the same operator and dtype on another product",
    "assume:NAME=VALUE": "the same product with a named assumption changed",
    "document": "the formula of the operator's document (numerics=document)",
    "torch": "PyTorch on the CPU, in the same dtype (extra: torch)",
    "torch-dummy": "the same, but log_sigmoid_backward gets a buffer of zeros as on an NPU: CPU reads it, so this is no oracle",
    "FILE.npy": "results saved from a real card, in the order of the inputs",
}

#: What is no device, and so cannot be the other one of the dual benchmark.
_NO_DEVICE = ("exact", "true", "float64", "document")
_DEVICES = [h for h in HELP if h not in _NO_DEVICE]


class Expected(NamedTuple):
    """Golden values, the same rounded once to the dtype, and how many MPFR decided. Arrays in the block's shape."""

    golden: Golden
    rounded: Bits
    decided: int


#: inputs of the operator, raw inputs (x where the operator sees y), number of the block's first element.
Target = Callable[[tuple[Bits, ...], tuple[Bits, ...], int], Expected]


def derive(problem: Problem, raw: tuple[Bits, ...]) -> tuple[Bits, ...]:
    """Inputs of the operator from raw ones: the last is replaced by the correctly rounded forward result."""
    x = numbers.values(problem.dtype, raw[-1])
    forward = FORWARD_OF[problem.flow]
    value = exact.golden(forward, False, (x,), problem.closed)
    bits, _ = decide.rounded(problem.dtype, value, _decider(forward, False, (x,), problem.closed), problem.truncates)
    return (*raw[:-1], bits)


def _decider(flow: str, true: bool, arrays: tuple[Any, ...], closed: bool) -> Callable[[int], Any]:
    def better(place: int) -> Any:
        if flow in exact.ROWS:
            r = arrays[0].shape[-1]
            row = tuple(a.reshape(-1, r)[place // r] for a in arrays)
            return decide.mpfr(flow, true, row, place % r, closed)
        return decide.mpfr(flow, true, tuple(a.reshape(-1)[place : place + 1] for a in arrays), 0, closed)

    return better


def make(against: str, problem: Problem, provider: Provider, option: str = "--against") -> Target:
    """The target of `--against`, or of another option. Raises StudyError with what is known, and LacksError where this
    cell alone has none."""
    if against in ("exact", "true"):
        return _mathematical(problem, against == "true")
    if against == "float64":
        return _float64(problem)
    if against == "document":
        from emu.verify.catalog import BY_FLOW

        if problem.flow not in BY_FLOW or not BY_FLOW[problem.flow].document:
            raise LacksError(f"{problem.op.python_name} has no document variant; --against document is for the backward operators with one")
        return _device(replace(problem, numerics="document", assume=()), provider, problem)
    if against in ("torch", "torch-dummy"):
        from emu.study.torch_cpu import check, compute

        check(problem.flow, problem.dtype)
        dummy = against == "torch-dummy"
        return _computed(problem, lambda inputs, raw: compute(problem.flow, problem.dtype, inputs, dummy))
    kind, _, name = against.partition(":")
    if kind == "soc" and name:
        other = replace(problem, soc=find_soc(name))
        if other.unsupported():
            raise LacksError(other.unsupported())
        return _device(other, provider, problem)
    if kind == "assume" and name:
        pairs = dict(problem.assume) | dict(parse_assume([name]))
        return _device(replace(problem, assume=tuple(sorted(pairs.items()))), provider, problem)
    if kind == "dtype" and name:
        other = problem.with_dtype(name.upper())
        if other.unsupported():
            raise LacksError(other.unsupported())
        return _device(other, provider, problem)
    if against.endswith(".npy"):
        return _file(problem, Path(against))
    raise unknown(option, against, HELP if option == "--against" else _DEVICES)


def make_peer(peer: str, problem: Problem, provider: Provider) -> Target:
    """The target of `--peer`: a device. Raises as `make` does."""
    if peer in _NO_DEVICE:
        raise StudyError(f"--peer {peer} is no device: give {', '.join(_DEVICES[:-1])} or {_DEVICES[-1]}")
    return make(peer, problem, provider, "--peer")


def _mathematical(problem: Problem, true: bool) -> Target:
    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        arrays = tuple(numbers.values(problem.dtype, b) for b in (raw if true else inputs))
        golden = exact.golden(problem.flow, true, arrays, problem.closed)
        rounded, decided = decide.rounded(problem.dtype, golden, _decider(problem.flow, true, arrays, problem.closed), problem.truncates)
        return Expected(*problem.store(golden, rounded), decided)

    return expect


def _plain(problem: Problem, values: Any) -> Expected:
    zero = np.zeros_like(values)
    rounded, _ = numbers.round_pair(problem.dtype, DD(values, zero), zero, problem.truncates)
    return Expected(*problem.store(Golden(values, zero, zero), rounded), 0)


def _float64(problem: Problem) -> Target:
    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        arrays = tuple(numbers.values(problem.dtype, b) for b in inputs)
        return _plain(problem, exact.plain(problem.flow, False, arrays, problem.closed))

    return expect


def _device(other: Problem, provider: Provider, problem: Problem) -> Target:
    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        if other.dtype != problem.dtype:
            inputs = tuple(numbers.from_values(other.dtype, numbers.values(problem.dtype, b)) for b in inputs)
            return _plain(problem, numbers.values(other.dtype, other.run(provider, inputs)))
        bits = other.run(provider, inputs)
        values = numbers.values(problem.dtype, bits)
        zero = np.zeros_like(values)
        return Expected(*problem.store(Golden(values, zero, zero), bits), 0)

    return expect


def _computed(problem: Problem, compute: Callable[[tuple[Bits, ...], tuple[Bits, ...]], Any]) -> Target:
    return lambda inputs, raw, start: _plain(problem, compute(inputs, raw))


def _file(problem: Problem, path: Path) -> Target:
    found = load(path)
    name = {"FLOAT16": "float16", "FLOAT": "float32", "DOUBLE": "float64"}.get(problem.dtype)
    if found.dtype.kind not in "fiuV":
        raise StudyError(f"{path} has dtype {found.dtype}: save the results as numbers, or BF16 as uint16 patterns")
    if found.dtype.kind == "f" and name is not None and found.dtype.itemsize < np.dtype(name).itemsize:
        raise StudyError(
            f"{path} has dtype {found.dtype}, narrower than the study's {problem.dtype}: choose the --dtype of the saved results"
        )
    # Floats keep what they have beyond the dtype; numbers that stand for patterns become values.
    saved = LazyArray(found, "DOUBLE" if found.dtype.kind == "f" else problem.dtype, str(path))

    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        bits = saved.read(start, start + inputs[0].size).reshape(inputs[0].shape)
        return _plain(problem, numbers.values("DOUBLE" if found.dtype.kind == "f" else problem.dtype, bits))

    expect.elements = saved.size  # type: ignore[attr-defined]
    expect.path = str(path)  # type: ignore[attr-defined]
    return expect


def check_size(target: Target, size: int) -> None:
    """A file of results must have as many elements as the inputs. Raises StudyError."""
    elements = getattr(target, "elements", size)
    if elements != size:
        raise StudyError(
            f"{getattr(target, 'path', '')} holds {elements} results, but the inputs have {size} elements: save them from the same inputs"
        )
