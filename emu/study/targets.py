"""What a result is compared with: the exact value, a wider dtype, another product, the document's formula, PyTorch, or
a file from a real card."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from emu.study import assume, decide, exact, numbers
from emu.study.dd import DD
from emu.study.errors import LacksError, StudyError, unknown
from emu.study.exact import FORWARD_OF, Golden
from emu.study.files import LazyArray, check_results, load
from emu.study.inputs import Source
from emu.study.numbers import Bits
from emu.study.problem import Problem, find_soc, parse_assume
from emu.verify.provider import Provider

HELP = {
    "exact": "the exact mathematical value for the stored inputs (double-double, MPFR near ties). Like the other formulas (true, "
    "float64, dtype:NAME) it is taken as the product stores it: one that saturates has the largest finite value for an "
    "overflow and +0 for a NaN, and neither is an error",
    "true": "the exact derivative at x, of which the operator sees only y = RN(forward(x)); the inputs are then x",
    "float64": "the operator's formula in FLOAT64 (NumPy)",
    "dtype:NAME": "the same operator on the same product in another dtype",
    "soc:NAME": "the same operator and dtype on another product. As for every device below, bits are compared with bits: a "
    "saturated value against an infinity, or +0 against a NaN, is a difference",
    "assume:NAME=VALUE": "the same product with a named assumption changed",
    "document": "the formula of the operator's document (numerics=document)",
    "torch": "PyTorch on the CPU, in the same dtype (extra: torch)",
    "torch-dummy": "the same, but log_sigmoid_backward gets a buffer of zeros as on an NPU: CPU reads it, so this is no oracle",
    "FILE.npy": "results saved from a real card, in the order and shape of the inputs, in the studied dtype or a wider float",
}

#: What is no device, and so cannot be the other one of the dual benchmark.
_NO_DEVICE = ("exact", "true", "float64", "document")
_DEVICES = [h for h in HELP if h not in _NO_DEVICE]


class Expected(NamedTuple):
    """Golden values, the same rounded once to the dtype, and how many MPFR decided. Arrays in the block's shape.
    `stored`: values as the product stores them (see `Problem.store`), not the bits of another device."""

    golden: Golden
    rounded: Bits
    decided: int
    stored: bool


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
        problem.check_document()
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
        pairs = dict(problem.assume)
        for changed, value in parse_assume([name]):
            assume.check(problem, changed)
            pairs[changed] = value
        return _device(replace(problem, assume=tuple(sorted(pairs.items()))), provider, problem)
    if kind == "dtype" and name:
        other = problem.with_dtype(numbers.dtype_named(name))
        if other.unsupported():
            raise LacksError(other.unsupported())
        return _device(other, provider, problem)
    if against.endswith(".npy"):
        return Saved(problem, Path(against))
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
        return Expected(*problem.store(golden, rounded), decided, True)

    return expect


def _plain(problem: Problem, values: Any, stored: bool) -> Expected:
    zero = np.zeros_like(values)
    rounded, _ = numbers.round_pair(problem.dtype, DD(values, zero), zero, problem.truncates)
    golden = Golden(values, zero, zero)
    return Expected(*(problem.store(golden, rounded) if stored else (golden, rounded)), 0, stored)


def _float64(problem: Problem) -> Target:
    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        arrays = tuple(numbers.values(problem.dtype, b) for b in inputs)
        return _plain(problem, exact.plain(problem.flow, False, arrays, problem.closed), True)

    return expect


def _device(other: Problem, provider: Provider, problem: Problem) -> Target:
    def expect(inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        if other.dtype != problem.dtype:
            inputs = tuple(numbers.from_values(other.dtype, numbers.values(problem.dtype, b)) for b in inputs)
            return _plain(problem, numbers.values(other.dtype, other.run(provider, inputs)), True)
        bits = other.run(provider, inputs)
        values = numbers.values(problem.dtype, bits)
        zero = np.zeros_like(values)
        return Expected(Golden(values, zero, zero), bits, 0, False)

    return expect


def _computed(problem: Problem, compute: Callable[[tuple[Bits, ...], tuple[Bits, ...]], Any]) -> Target:
    return lambda inputs, raw, start: _plain(problem, compute(inputs, raw), False)


class Saved:
    """The target of a file of results, bit for bit: an infinity in it is one, whatever the product would store."""

    def __init__(self, problem: Problem, path: Path) -> None:
        found = load(path)
        check_results(found.dtype, problem.dtype, str(path))
        # A wider float keeps what it has beyond the dtype.
        self._kind = "DOUBLE" if found.dtype.kind == "f" else problem.dtype
        self._problem, self._path, self._shape = problem, path, found.shape
        self._saved = LazyArray(found, self._kind, str(path))

    def __call__(self, inputs: tuple[Bits, ...], raw: tuple[Bits, ...], start: int) -> Expected:
        bits = self._saved.read(start, start + inputs[0].size).reshape(inputs[0].shape)
        return _plain(self._problem, numbers.values(self._kind, bits), False)

    def check(self, source: Source) -> None:
        """Raises StudyError unless there is a result for each element of the inputs."""
        same = "save them from the same inputs"
        if self._saved.size != source.size:
            raise StudyError(f"{self._path} holds {self._saved.size} results, but the inputs have {source.size} elements: {same}")
        if source.shape is not None and self._shape != source.shape:
            raise StudyError(f"{self._path} has shape {self._shape}, but the inputs have {source.shape}: {same}")


def check_size(target: Target, source: Source) -> None:
    """A file of results must fit the inputs. Raises StudyError."""
    if isinstance(target, Saved):
        target.check(source)
