"""What one block of results says about the errors, in a form that adds up: blocks in any grouping give one answer."""

from __future__ import annotations

from typing import Any

import numpy as np
from emu_kernels.reference.formats import FORMATS
from numpy.typing import NDArray

from emu.study import acceptance, numbers
from emu.study.dd import F64
from emu.study.exact import Golden
from emu.study.numbers import Bits

WORST = 10
#: Bins of the histogram of ulp: 256 to an ulp up to 4, then 32 to an octave up to 2^32.
LINEAR, OCTAVE, OCTAVES = 256, 32, 30
ULP_BINS = 4 * LINEAR + OCTAVE * OCTAVES
STEP_BINS = 66  # 0 to 64, and more

DEFINITIONS = {
    "n": "elements studied",
    "compared": "elements whose result and golden value are both finite: the numbers below are over these",
    "exact_hits": "elements whose pattern is the golden value rounded once (correctly rounded)",
    "wrong_by_one": "elements one representable value away from that",
    "steps_max": "largest number of representable values between the result and the correctly rounded golden value",
    "ulp_mean": "mean of |a-g| / ulp(g): real-valued; ulp(g) is the spacing of the dtype in the binade of g (Goldberg), that of the "
    "subnormals below",
    "ulp_max": "maximum of the same",
    "ulp_p50": "percentile of the same, upper edge of a bin (1/256 ulp wide up to 4 ulp, then 2.2 %)",
    "ulp_p99": "percentile of the same",
    "ulp_p999": "99.9th percentile of the same",
    "bias_ulp": "mean of (a-g) / ulp(g), signed: 0 for an unbiased rounding",
    "bias": "mean of a-g, signed, in the unit of the output",
    "abs_max": "maximum of |a-g|, in the unit of the output",
    "rmse": "root of the mean of (a-g)^2, in the unit of the output",
    "mere": "mean of |a-g| / (|g| + 1e-7)",
    "mare": "maximum of |a-g| / (|g| + 1e-7)",
    "onset_negative": "the negative input nearest to 0 whose result is off by more than 1 % of the golden value (nan: none)",
    "onset_positive": "the positive input nearest to 0 whose result is off by more than 1 % of the golden value (nan: none)",
    "zero_from_negative": "the negative input nearest to 0 whose result is 0 where the rounded golden value is not (nan: none)",
    "zero_from_positive": "the positive input nearest to 0 whose result is 0 where the rounded golden value is not (nan: none)",
    "nan_result": "results that are NaN where the golden value is not",
    "nan_golden": "golden values that are NaN where the result is not",
    "inf_result": "results that are infinite where the golden value is not, or of the other sign",
    "inf_golden": "golden values that are infinite where the result is finite",
    "zero_result": "results that are 0 where the rounded golden value is not",
    "zero_golden": "rounded golden values that are 0 where the result is not",
    "zero_sign": "zeros on both sides with different signs",
    "subnormal_result": "results that are subnormal where the rounded golden value is not",
    "subnormal_golden": "rounded golden values that are subnormal where the result is not",
    "repeat_differs": "results that differ when computed again with other blocks",
    "mpfr_decided": "golden values too near a tie for double-double, rounded with MPFR",
}

_SUMS = (
    "n", "compared", "exact_hits", "wrong_by_one", "unequal", "ulp", "ulp_signed", "signed", "sq", "rel", "nan_result", "nan_golden",
    "inf_result", "inf_golden", "zero_result", "zero_golden", "zero_sign", "subnormal_result", "subnormal_golden", "repeat_differs",
    "mpfr_decided", "mixed_off", "mixed_far", "half_off", "torch_off", "small", "small_off", "normal", "normal_rel", "normal_sq",
)  # fmt: skip
_WORST = {"index", "ulp", "steps", "inputs", "result", "rounded", "golden"}
_TOPS = ("steps", "ulp", "abs", "rel", "normal_mare")


#: Low bits of a magnitude that one point of the curve covers: at most 4,096 points a dtype. Those of INT32 are the
#: patterns of FLOAT, as near to each other at 100 as at 2^30.
_CURVE_SHIFT = {"FLOAT16": 4, "BF16": 4, "FLOAT": 20, "DOUBLE": 52, "INT8": 0, "INT32": 20}


def curve_bins(dtype: str) -> int:
    """Points of one sign."""
    bits = 8 * int(np.dtype(numbers.BITS[dtype]).itemsize) - 1
    return (1 << bits >> _CURVE_SHIFT[dtype]) + 1


def _curve_bin(dtype: str, magnitude: NDArray[np.int64]) -> NDArray[np.int64]:
    """The point of the curve for an ordinal without its sign."""
    if dtype == "INT32":
        magnitude = magnitude.astype(np.float32).view(np.uint32).astype(np.int64)
    return magnitude >> _CURVE_SHIFT[dtype]


def curve_values(dtype: str) -> F64:
    """The value in the middle of each point's stretch; those that begin at infinity are not finite."""
    kind, shift = np.dtype(numbers.BITS[dtype]), _CURVE_SHIFT[dtype]
    middle = (np.arange(curve_bins(dtype), dtype=np.int64) << shift) + ((1 << shift) >> 1)
    middle = np.minimum(middle, (1 << (8 * kind.itemsize - 1)) - 1)
    kept = "FLOAT" if dtype == "INT32" else dtype
    x = np.abs(numbers.values(kept, middle.astype(np.dtype(f"u{kind.itemsize}")).view(np.uint32 if dtype == "INT32" else kind)))
    return np.floor(x) if dtype == "INT32" else x


class Tally:
    """Sums, maxima, histograms, the curve of the error over the input, and the worst elements."""

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.sums: dict[str, float] = dict.fromkeys(_SUMS, 0.0)
        self.tops: dict[str, float] = dict.fromkeys(_TOPS, 0.0)
        #: Nearest negative and positive input with more than 1 % of error, as the largest of x and of -x; then the
        #: nearest ones whose result is 0 in error.
        self.onset = [float("-inf")] * 4
        self.ulp_hist = np.zeros(ULP_BINS + 1, np.int64)
        self.step_hist = np.zeros(STEP_BINS, np.int64)
        points = 2 * curve_bins(dtype)
        self.curve = {k: np.zeros(points) for k in ("count", "ulp", "signed")}
        self.curve_top = {k: np.zeros(points) for k in ("ulp", "rel")}
        self.worst: list[dict[str, Any]] = []
        #: Part of the error -> sum of |ulp|, sum of signed ulp, maximum of |ulp|, elements. See `ablation`.
        self.parts: dict[str, list[float]] = {}

    def add(self, other: Tally) -> None:
        """Take in the next block. Called in the order of the blocks: floating sums then never depend on threads."""
        for key, value in other.sums.items():
            self.sums[key] += value
        for key, value in other.tops.items():
            self.tops[key] = max(self.tops[key], value)
        self.onset = [max(a, b) for a, b in zip(self.onset, other.onset, strict=True)]
        self.ulp_hist += other.ulp_hist
        self.step_hist += other.step_hist
        for key in self.curve:
            self.curve[key] += other.curve[key]
        for key in self.curve_top:
            np.maximum(self.curve_top[key], other.curve_top[key], out=self.curve_top[key])
        for key, (size, signed, top, n) in other.parts.items():
            old = self.parts.get(key, [0.0, 0.0, 0.0, 0.0])
            self.parts[key] = [old[0] + size, old[1] + signed, max(old[2], top), old[3] + n]
        self.worst = sorted([*self.worst, *other.worst], key=lambda w: (-w["ulp"], w["index"]))[:WORST]

    def to_dict(self) -> dict[str, Any]:
        """For a checkpoint: JSON that gives back the same Tally."""
        return {
            "dtype": self.dtype, "sums": self.sums, "tops": self.tops, "ulp_hist": self.ulp_hist.tolist(),
            "step_hist": self.step_hist.tolist(), "curve": {k: v.tolist() for k, v in self.curve.items()},
            "curve_top": {k: v.tolist() for k, v in self.curve_top.items()}, "worst": self.worst,
            "parts": self.parts, "onset": self.onset,
        }  # fmt: skip

    @staticmethod
    def from_dict(d: dict[str, Any], dtype: str) -> Tally:
        """The Tally that `to_dict` gave. Raises ValueError, KeyError or TypeError for anything else."""
        t = Tally(dtype)
        if _form(d) != _form(t.to_dict()) or d["dtype"] != dtype or not all(set(w) == _WORST for w in d["worst"]):
            raise ValueError(f"no tally in {dtype}")
        t.sums, t.tops, t.worst, t.parts = d["sums"], d["tops"], d["worst"], d["parts"]
        t.onset = d["onset"]
        t.ulp_hist, t.step_hist = np.array(d["ulp_hist"], np.int64), np.array(d["step_hist"], np.int64)
        t.curve = {k: np.array(v, np.float64) for k, v in d["curve"].items()}
        t.curve_top = {k: np.array(v, np.float64) for k, v in d["curve_top"].items()}
        return t

    def percentile(self, share: float) -> float:
        """Upper edge of the bin below which `share` of the compared elements lie; 0 if all are exact there."""
        total = int(self.ulp_hist.sum())
        if total == 0:
            return 0.0
        at = int(np.searchsorted(np.cumsum(self.ulp_hist), share * total))
        return min(float(ulp_edges()[min(at, ULP_BINS)]), self.tops["ulp"])

    def metrics(self) -> dict[str, float]:
        """The numbers of DEFINITIONS."""
        s, n = self.sums, self.sums["compared"] or float("nan")
        out = {k: int(s[k]) for k in ("n", "compared", "exact_hits", "wrong_by_one")}
        found: dict[str, float] = dict(out)
        found |= {
            "steps_max": int(self.tops["steps"]), "ulp_mean": s["ulp"] / n, "ulp_max": self.tops["ulp"], "ulp_p50": self.percentile(0.5),
            "ulp_p99": self.percentile(0.99), "ulp_p999": self.percentile(0.999), "bias_ulp": s["ulp_signed"] / n, "bias": s["signed"] / n,
            "abs_max": self.tops["abs"], "rmse": (s["sq"] / n) ** 0.5, "mere": s["rel"] / n, "mare": self.tops["rel"],
        }  # fmt: skip
        for name, place in zip(("onset_negative", "onset_positive", "zero_from_negative", "zero_from_positive"), self.onset, strict=True):
            found[name] = float("nan") if not np.isfinite(place) else -place if name.endswith("positive") else place
        found |= {k: int(s[k]) for k in DEFINITIONS if k not in found}
        return found


def _form(value: Any) -> Any:
    """Names, lengths and kinds of what a checkpoint holds; only the worst elements and the parts vary."""
    if isinstance(value, dict):
        return {k: type(v) if k in ("worst", "parts") else _form(v) for k, v in value.items()}
    if isinstance(value, list):
        return len(value), all(isinstance(v, int | float) for v in value)
    return isinstance(value, int | float)


def ulp_edges() -> F64:
    """Upper edges of the bins of the ulp histogram; bin 0 holds the exact values, the last what lies beyond."""
    linear = np.arange(4 * LINEAR) / LINEAR
    return np.concatenate([linear, 4.0 * 2.0 ** (np.arange(OCTAVE * OCTAVES) / OCTAVE), [np.inf]])


def _ulp_bin(ulp: F64) -> NDArray[np.int64]:
    low = np.ceil(np.minimum(ulp, 4.0) * LINEAR)
    high = 4 * LINEAR + np.ceil(np.log2(np.maximum(ulp, 4.0) / 4.0) * OCTAVE)
    out: NDArray[np.int64] = np.minimum(np.where(ulp < 4.0 - 1.0 / LINEAR, low, high), ULP_BINS).astype(np.int64)
    return out


def _classes(dtype: str, bits: Bits) -> tuple[NDArray[np.bool_], ...]:
    """NaN, infinite, zero, subnormal."""
    if not numbers.is_float(dtype):
        never = np.zeros(bits.shape, bool)
        return never, never, np.asarray(bits == 0), never
    fmt = FORMATS[dtype]
    m = bits & bits.dtype.type(fmt.sign - 1)
    return m > fmt.inf, m == fmt.inf, m == 0, (m > 0) & (m < 1 << fmt.fraction)


def measure(dtype: str, result: Bits, golden: Golden, rounded: Bits, inputs: tuple[Bits, ...], input_dtype: str, start: int) -> Tally:
    """The Tally of one block of flat arrays: results and rounded golden values as patterns, inputs for the curve and
    the worst elements, `start` the number of the block's first element."""
    t = Tally(dtype)
    s = t.sums
    s["n"] = result.size
    rc, gc = _classes(dtype, result), _classes(dtype, rounded)
    for name, in_result, in_golden in zip(("nan", "inf", "zero", "subnormal"), rc, gc, strict=True):
        s[f"{name}_result"], s[f"{name}_golden"] = float((in_result & ~in_golden).sum()), float((in_golden & ~in_result).sum())
    unequal = (result != rounded) & ~(rc[0] & gc[0])
    s["unequal"] = float(unequal.sum())
    if numbers.is_float(dtype):
        s["zero_sign"] = float((unequal & rc[2] & gc[2]).sum())
        s["inf_result"] += float((unequal & rc[1] & gc[1]).sum())
    good = ~(rc[0] | rc[1] | gc[0] | gc[1])
    s["compared"] = float(good.sum())
    if not good.any():
        return t
    if not good.all():
        result, rounded, inputs = result[good], rounded[good], tuple(i[good] for i in inputs)
        golden = Golden(golden.hi[good], golden.lo[good], golden.bound[good])
    places = None if good.all() else np.flatnonzero(good)
    steps = np.abs(numbers.ordinals(dtype, result) - numbers.ordinals(dtype, rounded))
    error = (numbers.values(dtype, result) - golden.hi) - golden.lo
    size = np.abs(error)
    reference = np.abs(golden.hi)
    quantum = numbers.quantum(dtype, golden.hi).astype(np.int32)
    signed = np.ldexp(error, -quantum)
    ulp = np.abs(signed)
    relative = size / (reference + 1e-7)
    s["exact_hits"], s["wrong_by_one"] = float((steps == 0).sum()), float((steps == 1).sum())
    s["ulp"], s["ulp_signed"], s["signed"] = float(ulp.sum()), float(signed.sum()), float(error.sum())
    s["sq"], s["rel"] = float(np.square(size).sum()), float(relative.sum())
    t.tops |= {"steps": float(steps.max()), "ulp": float(ulp.max()), "abs": float(size.max()), "rel": float(relative.max())}
    more, top = acceptance.count(dtype, reference, size, relative, ulp)
    s |= more
    t.tops |= top
    t.ulp_hist = np.bincount(_ulp_bin(ulp), minlength=ULP_BINS + 1)
    t.step_hist = np.bincount(np.minimum(steps, STEP_BINS - 1), minlength=STEP_BINS)
    _curve(t, input_dtype, inputs[-1], ulp, signed, size, reference)
    x = numbers.values(input_dtype, inputs[-1])
    lost = (numbers.ordinals(dtype, result) == 0) & (numbers.ordinals(dtype, rounded) != 0)
    t.onset = [*_nearest(x[size > 0.01 * reference]), *_nearest(x[lost])]
    _worst(t, ulp, steps, result, rounded, golden, inputs, places, start)
    return t


def _curve(t: Tally, input_dtype: str, x: Bits, ulp: F64, signed: F64, size: F64, reference: F64) -> None:
    o = numbers.ordinals(input_dtype, x)
    bins = curve_bins(input_dtype)
    negative = o < 0
    if numbers.is_float(input_dtype):
        negative = np.asarray(x >> x.dtype.type(8 * x.itemsize - 1)).astype(bool)  # -0 belongs to the negative side
    at = _curve_bin(input_dtype, np.abs(o)) + np.where(negative, bins, 0)
    points = 2 * bins
    t.curve = {
        "count": np.bincount(at, minlength=points).astype(np.float64), "ulp": np.bincount(at, ulp, points).astype(np.float64),
        "signed": np.bincount(at, signed, points).astype(np.float64),
    }  # fmt: skip
    with np.errstate(all="ignore"):
        rel = np.where(size == 0, 0.0, size / reference)
    t.curve_top = {"ulp": np.zeros(points), "rel": np.zeros(points)}
    np.maximum.at(t.curve_top["ulp"], at, ulp)
    np.maximum.at(t.curve_top["rel"], at, np.minimum(rel, 1e300))


def _nearest(x: F64) -> list[float]:
    """The negative value nearest to 0, and the positive one with its sign turned; -inf: none."""
    x = x[np.isfinite(x)]
    return [float(x[x < 0].max(initial=-np.inf)), float((-x[x > 0]).max(initial=-np.inf))]


def _worst(
    t: Tally, ulp: F64, steps: NDArray[np.int64], result: Bits, rounded: Bits, golden: Golden, inputs: tuple[Bits, ...],
    places: NDArray[np.intp] | None, start: int,
) -> None:  # fmt: skip
    k = min(WORST, ulp.size)
    edge = np.partition(ulp, ulp.size - k)[ulp.size - k]
    chosen = np.flatnonzero(ulp >= edge)
    order = chosen[np.argsort(-ulp[chosen], kind="stable")][:k]
    for i in order:
        if ulp[i] == 0:
            break
        t.worst.append(
            {
                "index": start + int(i if places is None else places[i]), "ulp": float(ulp[i]), "steps": int(steps[i]),
                "inputs": [int(a[i]) for a in inputs], "result": int(result[i]), "rounded": int(rounded[i]),
                "golden": [float(golden.hi[i]), float(golden.lo[i])],
            }
        )  # fmt: skip
