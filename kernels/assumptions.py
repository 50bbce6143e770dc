"""The choices that no public source settles, each with a name.

Everything here is assumed, not measured. An entry with several values can be changed for a run through
`Variant.assume`; one with a single value is named so that a measurement has one place to change.
This module imports nothing of the project: the emulator's lists read it without loading a kernel.
"""

from __future__ import annotations

from typing import NamedTuple


class Assumption(NamedTuple):
    """One unmeasured choice.

    `values` are the values that the reference can compute, `default` is the one in force, `flows` the flow names whose
    results depend on it (`cast` stands for the implicit conversions).
    """

    name: str
    text: str
    values: tuple[str, ...]
    default: str
    flows: tuple[str, ...]


_SOFTMAX = ("softmax_backward", "softmax", "log_softmax", "log_softmax_backward")
_EXPONENTIAL = ("exp", "sigmoid", "gelu")
_FORWARD = ("selu", "log_sigmoid", "softmax", "log_softmax", "log_softmax_backward", *_EXPONENTIAL)
_ELEMENTARY = ("log_sigmoid_backward", "selu", "log_sigmoid", "softmax", "log_softmax", "log_softmax_backward", *_EXPONENTIAL)

ASSUMPTIONS: tuple[Assumption, ...] = (
    Assumption(
        "exp_subnormal",
        "FLOAT exp, log, division and square root keep subnormals on dav_1001, dav_2002 and dav_3002",
        ("kept", "flushed"),
        "kept",
        _ELEMENTARY,
    ),
    Assumption(
        "elementary_rn",
        "exp, log and log1p are correctly rounded, ties to even; the vendor states at most 1 ulp and publishes no bits",
        ("nearest",),
        "nearest",
        _ELEMENTARY,
    ),
    Assumption(
        "div_rn",
        "division and square root are correctly rounded, ties to even",
        ("nearest",),
        "nearest",
        ("log_sigmoid_backward", "softmax", "sigmoid", "gelu"),
    ),
    Assumption(
        "cast_targets",
        "an `out` of another dtype takes the rounded result by one conversion: DOUBLE exact, complex with "
        "imaginary +0, integers clamped, BOOL 0 only for a zero; FLOAT never saturates",
        ("all",),
        "all",
        ("cast",),
    ),
    Assumption(
        "directed_overflow",
        "without saturation a narrowing conversion that overflows gives an infinity in every rounding mode",
        ("inf",),
        "inf",
        ("cast",),
    ),
    Assumption(
        "s32_f32_mode",
        "INT32 to FLOAT rounds to nearest, ties to even",
        ("rint", "trunc"),
        "rint",
        ("selu_backward", "selu"),
    ),
    Assumption(
        "tbe_row_order",
        "off dav_3510 a sum along the last dim uses 64 accumulators, element k on k mod 64, then adds neighbours",
        ("lanes64", "sequential"),
        "lanes64",
        _SOFTMAX,
    ),
    Assumption(
        "tbe_col_order",
        "off dav_3510 a sum along any other dim uses one accumulator in increasing order",
        ("sequential", "lanes64"),
        "sequential",
        _SOFTMAX,
    ),
    Assumption(
        "wide_tile",
        "on dav_3510 a sum along another dim than the last is one halving up to 165 rows of FLOAT, 123 of 16 bits; "
        "no bit depends on it, since blocks of 128 rows add the same pairs up to 256 rows",
        ("wide",),
        "wide",
        _SOFTMAX,
    ),
    Assumption(
        "forward_all_archs",
        "the forward operators compute on every architecture as on dav_2201, with that architecture's overflow mode, "
        "subnormal rule and order of sums",
        ("as_2201",),
        "as_2201",
        _FORWARD,
    ),
    Assumption(
        "selu_int8",
        "Selu INT8 off dav_2201 rounds the negative part up and keeps the low 8 bits of the truncated sum",
        ("as_2201",),
        "as_2201",
        ("selu",),
    ),
    Assumption(
        "softmax_f64",
        "Softmax and LogSoftmax in DOUBLE use the steps and the order of sums of FLOAT, with exp and log "
        "correctly rounded to DOUBLE and no subnormal flushed",
        ("as_float",),
        "as_float",
        ("softmax", "log_softmax"),
    ),
    Assumption(
        "exp_precision",
        "Exp of FLOAT16 and BF16 computes in FLOAT; the card's library also has a FLOAT16 form, and its default is not public",
        ("high",),
        "high",
        ("exp",),
    ),
    Assumption(
        "gelu_steps",
        "Gelu multiplies x*x*x*0.044715 from left to right, and its constants are those of the document rounded to FLOAT",
        ("left_to_right",),
        "left_to_right",
        ("gelu",),
    ),
    Assumption(
        "document_flush",
        "the document variants are formulas without a card: they keep subnormals on every architecture",
        ("kept",),
        "kept",
        ("log_sigmoid_backward",),
    ),
)

_BY_NAME = {a.name: a for a in ASSUMPTIONS}


def chosen(assume: tuple[tuple[str, str], ...], name: str) -> str:
    """Return the value in force for `name`: the one listed in `assume`, else the default.

    Raises LookupError for an unknown name or a value that the table does not list.
    """
    entry = _BY_NAME.get(name)
    if entry is None:
        raise LookupError(f"unknown assumption {name!r}; known: {', '.join(_BY_NAME)}")
    value = dict(assume).get(name, entry.default)
    if value not in entry.values:
        raise LookupError(f"assumption {name} cannot be {value!r}; known: {', '.join(entry.values)}")
    return value
