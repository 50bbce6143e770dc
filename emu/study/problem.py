"""One cell of a study: an operator in one dtype on one product, and how its kernels are called on a block."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from emu_kernels.assumptions import chosen
from emu_kernels.reference.formats import FORMATS, INTEGERS, saturates
from emu_kernels.variant import Variant

from emu.opdef.catalogue import OPERATORS, operator
from emu.opdef.spec import Operator
from emu.plan import bind
from emu.soc import profile
from emu.study import numbers
from emu.study.dd import F64
from emu.study.errors import LacksError, StudyError, unknown
from emu.study.exact import FORWARD_OF, ROWS, Golden
from emu.study.numbers import Bits
from emu.verify.catalog import BY_FLOW
from emu.verify.provider import NativeKernels, Provider

#: One product for each architecture, in the order of the README's table.
PRODUCTS = {
    "dav_2201": "Ascend910B1", "dav_3510": "Ascend950PR_9599", "dav_2002": "Ascend310P3", "dav_1001": "Ascend910A",
    "dav_3002": "Ascend310B1",
}  # fmt: skip


def find_operator(name: str) -> Operator:
    """An operator by its C name, with or without ``aclnn``, or its Python name. In-place twins are the same study."""
    if not isinstance(name, str):
        raise StudyError(f"an operator is named by a str, not {name!r}")
    try:
        return operator(f"aclnn{name}" if any(op.name == f"aclnn{name}" for op in OPERATORS) else name)
    except LookupError as error:
        raise StudyError(str(error.args[0])) from None


def find_soc(name: str) -> str:
    try:
        return profile(name).name
    except ValueError as error:
        raise StudyError(str(error)) from None


def parse_assume(items: tuple[str, ...] | list[str]) -> tuple[tuple[str, str], ...]:
    """NAME=VALUE texts as Variant.assume. Raises StudyError for unknown names and values."""
    pairs = {}
    for item in items:
        name, sign, value = item.partition("=")
        if not sign:
            raise StudyError(f"--assume {item!r}: write NAME=VALUE; emu ops --assumptions lists the names")
        try:
            chosen(((name, value),), name)
        except LookupError as error:
            raise StudyError(str(error.args[0])) from None
        pairs[name] = value
    return tuple(sorted(pairs.items()))


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What is computed: operator, dtype, product, numerics ("device" or "document"), changed assumptions; `last`: an
    operator of rows reduces the last dimension (else one before it, whose order of sums differs)."""

    op: Operator
    dtype: str
    soc: str
    numerics: str = "device"
    assume: tuple[tuple[str, str], ...] = ()
    last: bool = True

    @property
    def flow(self) -> str:
        return self.op.flow.name

    @property
    def arch(self) -> str:
        return profile(self.soc).arch

    @property
    def variant(self) -> Variant:
        return Variant(self.arch, self.dtype, profile(self.soc).saturates, self.numerics, self.assume)

    @property
    def rows(self) -> bool:
        return self.flow in ROWS

    @property
    def names(self) -> tuple[str, ...]:
        """The Python names of the tensors that the operator reads."""
        by_c = {p.name: p.python for p in self.op.params}
        return tuple(by_c[n] for n in self.op.flow.inputs)

    @property
    def places(self) -> dict[str, int | None]:
        """Lower-case name of a tensor, in C or in Python -> its place among those that the operator reads; None: not read."""
        read = self.op.flow.inputs
        place = {p: read.index(p.name) if p.name in read else None for p in self.op.params if p.is_tensor}
        return {name.lower(): i for p, i in place.items() for name in (p.name, p.python)}

    @property
    def sees_result(self) -> bool:
        """Whether the last input is the forward result, not the input."""
        return self.flow in FORWARD_OF

    @property
    def closed(self) -> bool:
        """Which side SELU's derivative at 0 is taken from: as the architecture does."""
        return self.arch == "dav_3510"

    @property
    def truncates(self) -> bool:
        """Float to integer conversions truncate."""
        return self.arch != "dav_3510"

    @property
    def saturating(self) -> bool:
        fmt = FORMATS.get(self.dtype)
        return fmt is not None and saturates(fmt, self.arch, profile(self.soc).saturates)

    def check_studied(self) -> None:
        """Raises StudyError for a dtype that cannot be studied, though it may be compared with."""
        if self.dtype == "DOUBLE":
            rest = " or ".join(d for d in self.op.dtypes if d != "DOUBLE")
            raise StudyError(
                f"a study needs golden values much finer than the dtype, which DOUBLE has not: choose --dtype {rest}; "
                "DOUBLE serves as what to compare with: --against float64, or --against dtype:DOUBLE where the operator has it"
            )

    def check_document(self) -> None:
        """Raises LacksError if the operator has no variant of its document's formula."""
        if self.flow not in BY_FLOW or not BY_FLOW[self.flow].document:
            having = ", ".join(sorted(flow for flow, op in BY_FLOW.items() if op.document))
            raise LacksError(f"{self.op.python_name} has no document variant; the operators with one: {having}")

    def refusal(self) -> str:
        """Why the product refuses the operator in strict mode, or an empty text."""
        bound = bind(self.op.name, self.soc)
        return "" if bound.refused is None else f"not in the operator's document; cards: {bound.refused}"

    def unsupported(self) -> str:
        """Why there is no such kernel, or an empty text."""
        known = self.op.dtypes_on(profile(self.soc))
        if self.dtype not in self.op.dtypes:
            raise unknown(f"dtype of {self.op.python_name}", self.dtype, self.op.dtypes)
        return "" if self.dtype in known else f"{self.soc} has no {self.dtype}; it has {', '.join(known)}"

    def with_dtype(self, dtype: str) -> Problem:
        return replace(self, dtype=dtype)

    def run(self, provider: Provider, inputs: tuple[Bits, ...]) -> Bits:
        """The kernel's result on one block of patterns, in the block's shape."""
        v = self.variant
        if not self.rows:
            return provider.elementwise(self.flow, v, *inputs)
        rows, r = inputs[0].shape
        if self.last:
            return provider.rows(self.flow, v, True, *(a.reshape(rows, r, 1) for a in inputs)).reshape(rows, r)
        columns = [np.ascontiguousarray(a.T)[None] for a in inputs]
        return np.ascontiguousarray(provider.rows(self.flow, v, False, *columns)[0].T)

    def store(self, golden: Golden, rounded: Bits) -> tuple[Golden, Bits]:
        """The golden value as the product can store it: under saturation overflow is the largest finite value;
        integers are clamped. So the overflow mode is no error. NaN stays NaN: see `nan_stored`."""
        if numbers.is_float(self.dtype):
            if not self.saturating:
                return golden, rounded
            fmt = FORMATS[self.dtype]
            inf = (rounded & rounded.dtype.type(fmt.sign - 1)) == fmt.inf
            rounded = np.where(inf, rounded - 1, rounded).astype(rounded.dtype)
            top = float(numbers.values(self.dtype, np.array([fmt.max], rounded.dtype))[0])
            low, high = -top, top
        else:
            low, high = (float(v) for v in INTEGERS[self.dtype])
        hi: F64 = np.clip(golden.hi, low, high)
        if not numbers.is_float(self.dtype):
            hi = np.nan_to_num(hi, nan=0.0)
        same = hi == golden.hi
        return Golden(hi, np.where(same, golden.lo, 0.0), np.where(same, golden.bound, 0.0)), rounded

    def nan_stored(self, result: Bits, rounded: Bits) -> Bits:
        """The result with NaN put back where saturation had to write a NaN as +0."""
        if not self.saturating:
            return result
        fmt = FORMATS[self.dtype]
        nan = (rounded & rounded.dtype.type(fmt.sign - 1)) > fmt.inf
        return np.where(nan & (result == 0), rounded, result).astype(result.dtype)


def native() -> Provider:
    """The emulator's own kernels."""
    return NativeKernels()
