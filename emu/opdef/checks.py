"""The checks that a declaration may name. Each is bound once to an operator and a product and then looks at the arguments alone.

A failing check gives 161002 with CANN's wording. Where real cards check nothing, no check is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from emu.opdef.spec import EMPTY, Binding, BoundCheck, Check
from emu.types import DataType, dt


def same_dtype(a: str, b: str) -> Check:
    """Both tensors have one data type."""

    def bind(to: Binding) -> BoundCheck:
        i, j = to.place(a), to.place(b)

        def check(args: Sequence[Any]) -> str | None:
            x, y = args[i].dtype, args[j].dtype
            if x == y:
                return None
            return f"Expected both tensors to have same dtype, but found {a} {dt(x)} and {b} {dt(y)}."

        return check

    return bind


def dtype_supported(*names: str) -> Check:
    """Each tensor's data type is one that the operator has on this product."""

    def bind(to: Binding) -> BoundCheck:
        known = to.op.dtypes_on(to.soc)
        codes = frozenset(int(DataType[name]) for name in known)
        listed = ",".join(dt(DataType[name]) for name in known)
        where = [(name, to.place(name)) for name in names]

        def check(args: Sequence[Any]) -> str | None:
            for name, i in where:
                if args[i].dtype not in codes:
                    return (
                        f"Tensor {name} not implemented for {dt(args[i].dtype)}, should be in dtype support list "
                        f"[{listed}]. The product is {to.soc.name}."
                    )
            return None

        return check

    return bind


def no_bf16_without_support(name: str) -> Check:
    """BF16 is refused by name on a product that lacks it, before the other data types are looked at."""

    def bind(to: Binding) -> BoundCheck | None:
        if to.soc.bf16:
            return None
        i = to.place(name)

        def check(args: Sequence[Any]) -> str | None:
            if args[i].dtype == DataType.BF16:
                return f"Tensor {name} not implemented for DT_BFLOAT16 on {to.soc.name}: this product has no BF16."
            return None

        return check

    return bind


def same_shape(a: str, b: str) -> Check:
    """Both tensors have one view shape."""

    def bind(to: Binding) -> BoundCheck:
        i, j = to.place(a), to.place(b)

        def check(args: Sequence[Any]) -> str | None:
            x, y = args[i], args[j]
            if x.dims == y.dims:
                return None
            return f"Expected tensor for {b} to have same size as tensor for {a}, but {y.shape_text()} does not equal {x.shape_text()}."

        return check

    return bind


def dim_in_range(dim: str, name: str) -> Check:
    """−n ≤ dim < n, n being the tensor's rank, 1 for a scalar."""

    def bind(to: Binding) -> BoundCheck:
        i, j = to.place(dim), to.place(name)

        def check(args: Sequence[Any]) -> str | None:
            n = len(args[j].dims) or 1
            if -n <= args[i] < n:
                return None
            return f"provided {dim} {args[i]} not in the range of input size {n}."

        return check

    return bind


def max_rank(*names: str, limit: int = 8) -> Check:
    """At most ``limit`` dimensions."""

    def bind(to: Binding) -> BoundCheck:
        where = [(name, to.place(name)) for name in names]

        def check(args: Sequence[Any]) -> str | None:
            for name, i in where:
                if len(args[i].dims) > limit:
                    return f"The {name} tensor cannot be larger than {limit} dimensions."
            return None

        return check

    return bind


def castable(source: str, target: str) -> Check:
    """The value of ``source`` may be cast to ``target``'s data type: a floating one."""
    floating = frozenset(int(t) for t in (DataType.FLOAT, DataType.FLOAT16, DataType.BF16, DataType.DOUBLE))

    def bind(to: Binding) -> BoundCheck:
        i, j = to.place(source), to.place(target)

        def check(args: Sequence[Any]) -> str | None:
            if args[j].dtype in floating and (to.soc.bf16 or args[j].dtype != DataType.BF16):
                return None
            return f"Tensor {source} of {dt(args[i].dtype)} cannot be cast to {target} of {dt(args[j].dtype)}."

        return check

    return bind


def empty_skips_rest(*names: str, but: str = "") -> Check:
    """One of the tensors empty: success at once, whatever the remaining checks would say. Not on the family ``but``."""

    def bind(to: Binding) -> BoundCheck | None:
        if to.soc.family == but:
            return None
        where = [to.place(name) for name in names]

        def check(args: Sequence[Any]) -> str | None:
            for i in where:
                if args[i].numel == 0:
                    return EMPTY
            return None

        return check

    return bind
