"""Named distributions of input values, each block from its own seeded generator: block i is the same alone or in a run.

The L0, L1 and L2 mixtures are those that CANN's operator precision standard prescribes.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from emu_kernels.reference.formats import FORMATS, INTEGERS

from emu.study import numbers
from emu.study.dd import F64
from emu.study.errors import StudyError, unknown
from emu.study.numbers import Bits

Draw = Callable[[np.random.Generator, int], F64]
Sampler = Callable[[np.random.Generator, int], Bits]

HELP = {
    "l0": "half uniform [-5, 5], half normal with a mean in [-100, 100] and a standard deviation in [1, 25]",
    "l1": "10 % uniform [-0.001, 0.001], 30 % uniform [-5, 5], 40 % normal as in l0, 20 % normal with 0.1 % of the values times 1000",
    "l2": "as l1",
    "specials": "every combination of zeros, ones, ends of the ranges, infinities and NaN; and special shapes through both "
    "phases: empty, all ones, ranks 1 to 8, views, a dimension of 2^31+1",
    "uniform:LOW,HIGH": "uniform in value",
    "normal:MEAN,SD": "normal",
    "bits": "uniform over all bit patterns, NaN included",
    "binade": "each binade equally often, both signs, subnormals as one binade",
    "exhaustive": "every pattern of an 8 or 16-bit dtype once for the last input, the gradient as --grad says (1 by default)",
}
#: These are made for all inputs of the operator at once.
_WHOLE = ("specials", "exhaustive")
#: Kind of each tenth of a block.
_LEVELS = {"l0": "uuuuunnnnn", "l1": "tuuunnnnoo", "l2": "tuuunnnnoo"}


def _segment(kind: str, rng: np.random.Generator, n: int) -> F64:
    if kind == "t":
        return rng.uniform(-0.001, 0.001, n)
    if kind == "u":
        return rng.uniform(-5, 5, n)
    x = rng.normal(rng.uniform(-100, 100), rng.uniform(1, 25), n)
    if kind == "o":
        x = np.where(rng.random(n) < 1e-3, x * 1000, x)
    return x


def _level(name: str) -> Draw:
    def draw(rng: np.random.Generator, n: int) -> F64:
        edges = np.linspace(0, n, 11).astype(int)
        return np.concatenate([_segment(k, rng, b - a) for k, a, b in zip(_LEVELS[name], edges[:-1], edges[1:], strict=True)])

    return draw


def _numbers(spec: str, name: str, text: str, low_first: bool) -> tuple[float, float]:
    try:
        a, b = (float(t) for t in text.split(","))
    except ValueError:
        raise StudyError(f"{spec!r}: {name} needs two numbers, as in {name}:-5,5") from None
    if not (np.isfinite(a) and np.isfinite(b)) or (low_first and a > b) or (not low_first and b < 0):
        raise StudyError(f"{spec!r}: {name} needs {'low <= high' if low_first else 'a standard deviation >= 0'}, both finite")
    return a, b


def special_values(dtype: str) -> Bits:
    """Zeros, ones, ends of the ranges, neighbours of 0, infinities and NaN."""
    if not numbers.is_float(dtype):
        low, high = INTEGERS[dtype]
        return np.array([0, 1, -1, 2, -2, high, low], numbers.BITS[dtype])
    fmt = FORMATS[dtype]
    one = numbers.from_values(dtype, np.array([1.0, 0.5, 2.0, 1.7580993408473766]))
    positive = np.concatenate([np.array([0, 1, 1 << fmt.fraction, fmt.max, fmt.inf, fmt.nan], one.dtype), one])
    return np.concatenate([positive, positive | one.dtype.type(fmt.sign)])


def _uniform(low: float, high: float) -> Draw:
    if np.isfinite(high - low):
        return lambda rng, n: rng.uniform(low, high, n)

    def draw(rng: np.random.Generator, n: int) -> F64:
        # The width is no float64: each end has its share instead, and neither product nor sum can overflow.
        share = rng.random(n)
        return low * (1 - share) + high * share

    return draw


def sampler(spec: str, dtype: str, option: str = "--inputs") -> Sampler:
    """The sampler of a specification: patterns of `dtype`. Raises StudyError with what is known for the option."""
    name, _, text = spec.partition(":")
    if name in ("bits", "binade") and text:
        raise StudyError(f"{spec!r}: {name} takes no numbers")
    if name == "bits":
        return lambda rng, n: _random_bits(dtype, rng, n)
    if name == "binade":
        return lambda rng, n: _binade(dtype, rng, n)
    if name == "uniform":
        low, high = _numbers(spec, name, text, True)
        return _rounded(dtype, _uniform(low, high))
    if name == "normal":
        mean, sd = _numbers(spec, name, text, False)
        return _rounded(dtype, lambda rng, n: rng.normal(mean, sd, n))
    if name in _LEVELS and not text:
        return _rounded(dtype, _level(name))
    try:
        value = float(spec)
    except ValueError:
        if option == "--inputs":
            raise unknown("input distribution", spec, [*HELP, "a number", "a .npy, .npz, .csv or .json file"]) from None
        known = [h for h in HELP if h not in _WHOLE]
        if spec in _WHOLE or spec.endswith((".npy", ".npz", ".csv", ".json")):
            raise StudyError(
                f"{option} {spec}: {spec} is for --inputs alone, the input that is differentiated; {option} takes "
                f"{', '.join(known)} or a number"
            ) from None
        raise unknown(f"{option} distribution", spec, [*known, "a number"]) from None
    return _rounded(dtype, lambda rng, n: np.full(n, value))


def _rounded(dtype: str, draw: Draw) -> Sampler:
    return lambda rng, n: numbers.from_values(dtype, draw(rng, n))


def _random_bits(dtype: str, rng: np.random.Generator, n: int) -> Bits:
    kind = np.dtype(numbers.BITS[dtype])
    return np.frombuffer(rng.bytes(n * kind.itemsize), kind)


def _binade(dtype: str, rng: np.random.Generator, n: int) -> Bits:
    if not numbers.is_float(dtype):
        bits = np.dtype(numbers.BITS[dtype]).itemsize * 8 - 1
        size = rng.random(n) * 2.0 ** rng.integers(0, bits + 1, n)
        return numbers.from_values(dtype, np.floor(size) * rng.choice([-1.0, 1.0], n))
    fmt = FORMATS[dtype]
    field = rng.integers(0, (1 << fmt.exponent) - 1, n).astype(np.uint64) << np.uint64(fmt.fraction)
    rest = rng.integers(0, 1 << fmt.fraction, n, dtype=np.uint64)
    sign = rng.integers(0, 2, n).astype(np.uint64) << np.uint64(fmt.bits - 1)
    out: Bits = (field | rest | sign).astype(numbers.BITS[dtype])
    return out
