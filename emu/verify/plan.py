"""Which units a level consists of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from emu_kernels.variant import ARCHS, Variant

from emu.verify.catalog import EXHAUSTIVE, OPS, Op, variants
from emu.verify.units import Unit

LEVELS = ("quick", "default", "exhaustive")
ROWS_PER_UNIT = 256  # second inputs of a unit of pairs: 2^24 cases, a second or so
RANDOM_PER_UNIT = 1 << 22

_RANDOM = {"quick": 1 << 20, "default": 1 << 22, "exhaustive": 1 << 26}
_BLOCKS = {"quick": 1 << 19, "default": 1 << 20, "exhaustive": 1 << 26}
# Both sides of every length where the order of a sum changes: one register's lanes (64) and two (128) everywhere; on dav_3510 the limits of
# halving (8, 16; in columns 123, 165) and 256, up to which blocks of 128 columns add the same pairs as halving.
_QUICK_LENGTHS = (1, 3, 8, 9, 16, 17, 64, 65, 128, 129, 165, 166, 256, 257, 1025)
_LENGTHS = (*(1, 2, 3, 8, 9, 15, 16, 17, 63, 64, 65), *range(123, 130), *(165, 166, 256, 257, 1000, 1023, 1024, 1025, 4097))
# ... and the limit of folding there, by dtype; and one of several blocks.
_FOLDING = {"FLOAT": (10512, 10513), "FLOAT16": (16384, 16385), "BF16": (16384, 16385)}
_LONG = (10512, 10513, 16384, 16385, 40000)


def plan(
    level: str = "default",
    ops: Sequence[str] = (),
    dtypes: Sequence[str] = (),
    archs: Sequence[str] = (),
) -> list[Unit]:
    """List the units of a level for the operators, dtypes and architectures named; an empty selection means all.

    Names are those of `catalog`, in any case. Raises LookupError for an unknown one, with the known ones.
    """
    chosen_ops = [op for op in OPS if op.name in select(ops, [op.name for op in OPS], "operator")]
    chosen_archs = select(archs, ARCHS, "architecture")
    chosen_dtypes = select(dtypes, sorted({d for op in OPS for d in op.dtypes}), "dtype")
    if level not in LEVELS:
        raise LookupError(f"unknown level {level!r}; known: {', '.join(LEVELS)}")
    lists = [
        _rows(op, v, level) if op.rows else _elementwise(op, v, level)
        for op in chosen_ops
        for v in variants(op, chosen_archs, chosen_dtypes)
    ]
    # One unit of each variant, then the second of each, and so on: two workers do not compile the same kernel at once.
    return [unit for turn in zip_longest(*lists) for unit in turn if unit is not None]


def select(wanted: Sequence[str], known: Sequence[str], what: str) -> tuple[str, ...]:
    """The names of `known` that are wanted, in any case; all if none is named. LookupError for an unknown one."""
    by_lower = {name.lower(): name for name in known}
    for name in wanted:
        if name.lower() not in by_lower:
            raise LookupError(f"unknown {what} {name!r}; known: {', '.join(known)}")
    return tuple(by_lower[name.lower()] for name in wanted) if wanted else tuple(known)


def _elementwise(op: Op, v: Variant, level: str) -> list[Unit]:
    units = [Unit(op.flow, v, "directed")]
    if op.inputs == 1 and v.dtype in ("FLOAT16", "BF16", "INT8"):
        return units  # directed is every pattern already
    every_pair = (op.flow, v.dtype, v.arch) in EXHAUSTIVE and not v.saturate and v.numerics == "device"
    if level == "exhaustive" and every_pair:
        return units + [Unit(op.flow, v, "pairs", low, low + ROWS_PER_UNIT) for low in range(0, 1 << 16, ROWS_PER_UNIT)]
    return units + _repeated(op, v, "random", _RANDOM[level])


def _rows(op: Op, v: Variant, level: str) -> list[Unit]:
    if v.dtype == "DOUBLE":
        # Only the scalar form of the reference judges DOUBLE.
        return [Unit(op.flow, v, "length", r) for r in (1, 9, 65, *((166, 1025) if level != "quick" else ()))]
    lengths = _QUICK_LENGTHS if level == "quick" else (*_LENGTHS, *_LONG)
    if level == "quick" and v.arch == "dav_3510":
        lengths = (*lengths, *_FOLDING[v.dtype])
    units = [Unit(op.flow, v, "length", r) for r in lengths]
    return units + _repeated(op, v, "block", _BLOCKS[level])


def _repeated(op: Op, v: Variant, kind: str, total: int) -> list[Unit]:
    """Units of random cases with seeds of their own."""
    starts = range(0, total, RANDOM_PER_UNIT)
    return [Unit(op.flow, v, kind, 1000 + k, min(RANDOM_PER_UNIT, total - s)) for k, s in enumerate(starts)]
