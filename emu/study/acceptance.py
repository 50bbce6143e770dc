"""The acceptance rules used for Ascend operators: thresholds, what a block of results adds to them, and the verdicts.

g is the golden value, a the result under test. The thresholds are public: CANN's operator precision standards
(ecosystem and commercial), opbase's experimental standard, the samples, torch_npu's inductor check.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from emu.study.dd import F64


class Limits(NamedTuple):
    """Thresholds of one dtype. `half` is the rule of one or ten thousandths: (rtol, share of failures allowed)."""

    single: float
    small: float
    small_error: float
    mixed: tuple[float, float, float]
    half: tuple[float, float]
    torch: tuple[float, float]


LIMITS = {
    "FLOAT16": Limits(2.0**-10, 2.0**-11, 2.0**-16, (2.0**-9, 2.0**-9, 1e-1), (1e-3, 1e-3), (1e-3, 1e-5)),
    "BF16": Limits(2.0**-7, 2.0**-8, 2.0**-16, (2.0**-6, 2.0**-6, 1.0), (4e-3, 4e-3), (1.6e-2, 1e-5)),
    "FLOAT": Limits(2.0**-13, 2.0**-14, 2.0**-30, (2.0**-10, 2.0**-16, 1e-2), (1e-4, 1e-4), (1.3e-6, 1e-5)),
}
CAP_ULP = 32.0
#: level -> largest ratio of MARE, MERE and RMSE to the other device's.
DUAL = {"L0": (10.0, 2.0, 2.0), "L1": (5.0, 1.5, 1.5), "L2": (2.0, 1.2, 1.2)}
SMALL_RATIO = 2.0

_ECOSYSTEM = "CANN operator precision standard (ecosystem)"
_COMMERCIAL = "CANN operator precision standard (commercial)"


class Verdict(NamedTuple):
    """One rule: `passed` is None where the rule could not be judged; `why` then tells what is missing."""

    rule: str
    level: str
    measured: str
    threshold: str
    passed: bool | None
    definition: str
    source: str
    why: str = ""


def count(dtype: str, size: F64, error: F64, relative: F64, ulp: F64) -> tuple[dict[str, float], dict[str, float]]:
    """What one block adds, to sum up and to take the maximum of: for |g|, |a-g|, |a-g|/(|g|+1e-7) and ulp of the finite
    pairs."""
    limits = LIMITS.get(dtype)
    if limits is None:
        return {}, {}
    rtol, atol, cap = limits.mixed
    off = error > atol + rtol * size
    far = off & (error > cap) & (ulp > CAP_ULP)
    small = size < limits.small
    normal = ~small
    sums = {
        "mixed_off": float(off.sum()), "mixed_far": float(far.sum()),
        "half_off": float((error > limits.half[0] * size).sum()),
        "torch_off": float((error > limits.torch[1] + limits.torch[0] * size).sum()),
        "small": float(small.sum()), "small_off": float((small & (error > limits.small_error)).sum()),
        "normal": float(normal.sum()), "normal_rel": float(relative[normal].sum()), "normal_sq": float(np.square(error[normal]).sum()),
    }  # fmt: skip
    top = {"normal_mare": float(relative[normal].max())} if normal.any() else {}
    return sums, top


def verdicts(dtype: str, sums: dict[str, float], tops: dict[str, float], peer: tuple[dict[str, float], dict[str, float]] | None,
             ) -> list[Verdict]:  # fmt: skip
    """Every rule of the dtype. Results whose NaN or inf stand elsewhere than the golden's fail under each."""
    n = sums["compared"]
    misplaced = int(sums["nan_result"] + sums["nan_golden"] + sums["inf_result"] + sums["inf_golden"])
    bits = Verdict(
        "bit equal", "-", f"{int(sums['unequal'])} differ", "0", sums["unequal"] == 0,
        "Patterns equal to the golden value rounded once (any NaN equals any NaN): the rule of integer and data-movement operators",
        _COMMERCIAL,
    )  # fmt: skip
    repeat = Verdict(
        "determinism", "-", f"{int(sums['repeat_differs'])} differ", "0", sums["repeat_differs"] == 0,
        "Bit equal when the same inputs are computed again, cut into blocks elsewhere", _COMMERCIAL,
    )  # fmt: skip
    limits = LIMITS.get(dtype)
    if limits is None:
        return [bits, repeat]
    if n == 0:
        return [bits, repeat, Verdict("all rules of values", "-", "", "", None, "", "", "no pair of finite values to compare")]
    mere, mare = sums["rel"] / n, tops["rel"]
    found = [
        Verdict("MERE", "single benchmark", f"{mere:.3e}", f"< {limits.single:.3e}", mere < limits.single,
                "mean of |a-g| / (|g| + 1e-7)", _ECOSYSTEM),
        Verdict("MARE", "single benchmark", f"{mare:.3e}", f"< {10 * limits.single:.3e}", mare < 10 * limits.single,
                "maximum of |a-g| / (|g| + 1e-7)", _ECOSYSTEM),
        *_dual(limits, sums, tops, peer),
        _mixed(limits, sums),
        Verdict("one thousandth twice" if dtype != "FLOAT" else "one ten-thousandth twice", "-", f"{sums['half_off'] / n:.3e} are off",
                f"<= {limits.half[1]:g}", sums["half_off"] <= limits.half[1] * n,
                f"share of elements with |a-g| > {limits.half[0]:g} * |g|", "samples and forums; BF16: AscendOpTest"),
        Verdict("torch.testing defaults", "-", f"{int(sums['torch_off'])} elements off", "0", sums["torch_off"] == 0,
                f"elements with |a-g| > {limits.torch[1]:g} + {limits.torch[0]:g} * |g|", "torch_npu inductor check"),
    ]  # fmt: skip
    if misplaced:
        text = f"{misplaced} NaN or inf in other places than the golden value's"
        found = [v if v.passed is None else v._replace(passed=False, why=f"{text}; the values {_alone(v)}") for v in found]
    return [*found, bits, repeat]


def _alone(v: Verdict) -> str:
    return "alone pass" if v.passed else "fail as well"


def _mixed(limits: Limits, sums: dict[str, float]) -> Verdict:
    rtol, atol, cap = limits.mixed
    share = 1 - sums["mixed_off"] / sums["compared"]
    return Verdict(
        "mixed tolerance", "-", f"{share:.6f} within, {int(sums['mixed_far'])} beyond the cap", ">= 0.99 within, 0 beyond",
        sums["mixed_off"] <= 0.01 * sums["compared"] and sums["mixed_far"] == 0,
        f"|a-g| <= {atol:g} + {rtol:g} * |g| for 99 % of the elements; of the rest none may exceed both {cap:g} and {CAP_ULP:g} ulp",
        "opbase experimental standard; ops-test-kit",
    )  # fmt: skip


def _ratio(a: float, b: float) -> float:
    return 1.0 if a == b else float("inf") if b == 0 else a / b


def _dual(limits: Limits, sums: dict[str, float], tops: dict[str, float], peer: tuple[dict[str, float], dict[str, float]] | None,
          ) -> list[Verdict]:  # fmt: skip
    text = "error(a) / error(other device), both against the golden value, over elements with |g| >= "
    if peer is None or sums["normal"] == 0 or peer[0]["normal"] == 0:
        why = (
            "needs another device: --peer torch, --peer FILE or --peer soc:NAME"
            if peer is None
            else "no element with |g| above the threshold"
        )
        return [
            Verdict(f"{name} ratio", level, "", f"<= {limit:g}", None, f"{text}{limits.small:g}", _COMMERCIAL, why)
            for level, row in DUAL.items()
            for name, limit in zip(("MARE", "MERE", "RMSE"), row, strict=True)
        ] + [Verdict("small values", "-", "", f"<= {SMALL_RATIO:g}", None, _small_text(limits), _COMMERCIAL, why)]
    p, q = peer
    ratios = (
        _ratio(tops["normal_mare"], q["normal_mare"]),
        _ratio(sums["normal_rel"] / sums["normal"], p["normal_rel"] / p["normal"]),
        _ratio((sums["normal_sq"] / sums["normal"]) ** 0.5, (p["normal_sq"] / p["normal"]) ** 0.5),
    )
    found = [
        Verdict(f"{name} ratio", level, f"{ratio:.4g}", f"<= {limit:g}", ratio <= limit, f"{text}{limits.small:g}", _COMMERCIAL)
        for level, row in DUAL.items()
        for name, ratio, limit in zip(("MARE", "MERE", "RMSE"), ratios, row, strict=True)
    ]
    ours, theirs = sums["small_off"], p["small_off"]
    ratio = _ratio(ours, theirs)
    found.append(
        Verdict(
            "small values",
            "-",
            f"{int(ours)} : {int(theirs)}",
            f"<= {SMALL_RATIO:g}",
            ratio <= SMALL_RATIO,
            _small_text(limits),
            _COMMERCIAL,
        )
    )
    return found


def _small_text(limits: Limits) -> str:
    return f"count of elements with |g| < {limits.small:g} and |a-g| > {limits.small_error:g}, over the other device's count"


def as_rows(found: list[Verdict]) -> list[dict[str, Any]]:
    return [{**v._asdict(), "verdict": {True: "pass", False: "FAIL", None: "not judged"}[v.passed]} for v in found]
