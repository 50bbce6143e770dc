"""From checked arguments to launches: contiguous copies → kernel → cast → view copy, with the intermediates laid out in the workspace.

A plan holds no addresses. An operand is a number: ``k ≥ 0`` is the tensor at place k of phase 1's arguments, ``~b``
(negative) is byte b of the workspace. Phase 2 puts addresses in their place.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from emu.objects import Tensor, row_major
from emu.opdef.spec import Binding, BoundCheck, Operator
from emu.soc import profile
from emu.strided import Operand, Tiles, byte_strides, make_tiles
from emu.types import ITEMSIZE, DataType, dt, dtype_name
from emu.workspace import Layout

if TYPE_CHECKING:
    from emu_kernels.variant import Kernel

    from emu.executor import Form
    from emu.model import Cost

#: What Cast can write; anything else is 561103 in phase 1 [assumed: cast_targets].
CAST_TARGETS = frozenset(
    int(t)
    for t in (
        DataType.DOUBLE, DataType.COMPLEX64, DataType.COMPLEX128, DataType.FLOAT, DataType.FLOAT16, DataType.BF16,
        DataType.INT8, DataType.INT16, DataType.INT32, DataType.INT64, DataType.UINT8, DataType.UINT16, DataType.UINT32,
        DataType.UINT64, DataType.BOOL,
    )
)  # fmt: skip


class KernelRef:
    """A kernel by name; compiled or taken from the cache when a stream's overflow mode is known."""

    __slots__ = ("_found", "key", "kind", "name")

    def __init__(self, kind: str, key: tuple[Any, ...]) -> None:
        self.kind = kind
        self.key = key
        self.name = ".".join(map(str, key))
        self._found: list[Kernel | None] = [None, None]

    def get(self, saturate: bool) -> Kernel:
        return self._found[saturate] or self._load(saturate)

    def _load(self, saturate: bool) -> Kernel:
        from emu_kernels.variant import Variant

        from emu.kernel_cache import build

        b = build()
        found: Kernel
        if self.kind == "copy":
            found = b.strided_copy(self.key[0])
        elif self.kind == "tiles":
            found = b.tiles()
        elif self.kind == "lines":
            found = b.lines()
        elif self.kind == "cast":
            source, target, arch = self.key
            found = b.cast(source, target, Variant(arch, target, saturate))
        else:
            flow, arch, dtype, numerics, last = self.key
            v = Variant(arch, dtype, saturate, numerics)
            found = b.rows(flow, v, last) if self.kind == "rows" else b.elementwise(flow, v)
        self._found[saturate] = found
        return found


@cache
def kernel_ref(kind: str, *key: Any) -> KernelRef:
    """The one KernelRef of a kind and key."""
    return KernelRef(kind, key)


class Step(NamedTuple):
    """One launch, named as a profiler names it.

    ``operands`` then ``sizes`` are the kernel's arguments; it works on ``total`` units of ``unit`` elements each.
    """

    name: str
    kernel: KernelRef
    operands: tuple[int, ...]
    sizes: tuple[int, ...]
    total: int
    unit: int
    #: Never split: the order of the elements decides what a self-overlapping result holds.
    whole: bool = False


class Plan(NamedTuple):
    """The launches of a call, the workspace that they need, and the places of the tensors whose memory they touch.

    ``costs`` is empty until the plan runs on a device: then it has one cost for each step (:mod:`emu.runtime.clock`). ``forms``: what the
    launches of each step have in common, by overflow mode, once they were needed. ``tiles``: how the host runs the kernel without the
    copies of strided operands, where it can.
    """

    steps: tuple[Step, ...]
    workspace: int
    touched: tuple[int, ...]
    costs: list[Cost]
    forms: dict[bool, list[Form]]
    tiles: Tiles | None = None


#: Plans that one operator on one product keeps for calls that come again.
PLAIN_PLANS = 4096
EMPTY_PLAN = Plan((), 0, (), [], {})


class Bound:
    """An operator on one product: its declaration turned into positions, once."""

    def __init__(self, op: Operator, soc_name: str) -> None:
        soc = profile(soc_name)
        self.op = op
        self.soc = soc
        binding = Binding(op, soc)
        self.checks: tuple[BoundCheck, ...] = tuple(c for check in op.checks if (c := check(binding)) is not None)
        self.tensors = tuple((i, p) for i, p in enumerate(op.params) if p.is_tensor)
        self.places = tuple(i for i, _ in self.tensors)
        self.empty = tuple(binding.place(name) for name in op.empty)
        flow = op.flow
        self.inputs = tuple(binding.place(name) for name in flow.inputs)
        self.output = binding.place(flow.output)
        self.dtype_of = binding.place(flow.dtype_of)
        self.dim = None if flow.dim is None else binding.place(flow.dim)
        self.cast_first = None if flow.cast_first is None else binding.place(flow.cast_first)
        self.touched = tuple(dict.fromkeys((self.output, *self.inputs)))
        self.tiling = op.tiling_bytes.get(soc.family)
        self.refused = op.refused.get(soc.family)
        self.names = tuple(p.name for p in op.params)
        #: What a step of a plan costs on this product, in simulated time.
        self.costs: dict[Step, Cost] = {}
        #: Plans of calls without copies and casts, which depend on nothing but data type, numerics, shape and dim.
        self.plain: dict[tuple[int, str, tuple[int, ...], int], Plan] = {}

    def refusal(self) -> str:
        """What a user reads when the operator's document does not list the product."""
        return (
            f"{self.op.name} has no kernel for {self.soc.name}: its operator document lists {self.soc.product} as not supported. "
            f"What is known of real cards: {self.refused}. To run it here all the same: "
            "emu.configure(strict_products=False) or EMU_STRICT_PRODUCTS=0."
        )


@cache
def bind(op_name: str, soc_name: str) -> Bound:
    """The one Bound of an operator and a product."""
    from emu.opdef.catalogue import operator

    return Bound(operator(op_name), soc_name)


class Refused(NamedTuple):
    """A call that phase 1 refuses while it plans."""

    code: int
    text: str


def make(bound: Bound, args: Sequence[Any], numerics: str, strict: bool) -> Plan | Refused:
    """The plan of a checked, non-empty call."""
    out: Tensor = args[bound.output]
    plain = out.contiguous
    for i in bound.inputs:
        tensor: Tensor = args[i]
        if not tensor.contiguous:
            plain = False
            if not tensor.view_fits_storage():
                return _bad_view(bound, i, tensor)
    if strict and bound.refused is not None:
        return Refused(561103, bound.refusal())
    dtype = args[bound.dtype_of].dtype
    if not plain or out.dtype != dtype or bound.cast_first is not None:
        return _general(bound, args, numerics, dtype)
    key = (dtype, numerics, out.dims, 0 if bound.dim is None else args[bound.dim])
    found = bound.plain.get(key)
    if found is None:
        made = _general(bound, args, numerics, dtype)
        if isinstance(made, Refused):
            return made
        if len(bound.plain) >= PLAIN_PLANS:
            bound.plain.clear()
        found = bound.plain[key] = made
    return found


def _bad_view(bound: Bound, place: int, tensor: Tensor) -> Refused:
    name = bound.names[place]
    return Refused(
        bound.op.contiguous_code,
        f"Tensor {name}: its view (shape {tensor.shape_text()}, strides {list(tensor.strides)}, offset {tensor.offset}) reaches elements "
        f"{tensor.low} to {tensor.high}, outside the {tensor.storage_elements()} elements of its storage shape {list(tensor.storage)}.",
    )


def _main(bound: Bound, args: Sequence[Any], numerics: str, dtype: int, operands: tuple[int, ...]) -> Step:
    """The operator's own kernel."""
    flow = bound.op.flow
    tensor: Tensor = args[bound.inputs[0]]
    arch, name = bound.soc.arch, dtype_name(dtype)
    if bound.dim is None:
        ref = kernel_ref("elementwise", flow.name, arch, name, numerics, False)
        return Step(bound.op.name, ref, operands, (), tensor.numel, 1)
    outer, r, inner = fold(tensor.dims, args[bound.dim])
    last = inner == 1
    ref = kernel_ref("rows", flow.name, arch, name, numerics, last)
    return Step(bound.op.name, ref, operands, (outer, r, inner), outer * inner, r)


def fold(dims: tuple[int, ...], dim: int) -> tuple[int, int, int]:
    """Shape → (outer, r, inner) around ``dim``; a scalar is (1, 1, 1)."""
    if not dims:
        return 1, 1, 1
    if dim < 0:
        dim += len(dims)
    return prod(dims[:dim]), dims[dim], prod(dims[dim + 1 :])


def _general(bound: Bound, args: Sequence[Any], numerics: str, dtype: int) -> Plan | Refused:
    out: Tensor = args[bound.output]
    layout = Layout()
    pending: list[tuple[str, KernelRef, list[tuple[str, int]], tuple[int, ...], int, int]] = []

    def temp(numel: int, itemsize: int, first: int, last: int) -> tuple[str, int]:
        return "ws", layout.add(numel * itemsize, first, last)

    noncontiguous = [i for i in dict.fromkeys(bound.inputs) if not args[i].contiguous]
    first_cast = bound.cast_first is not None and args[bound.cast_first].dtype != dtype
    main_at = len(noncontiguous) + first_cast
    where: dict[int, tuple[str, int]] = {}
    for at, i in enumerate(noncontiguous):
        tensor: Tensor = args[i]
        reader = main_at - 1 if first_cast and i == bound.cast_first else main_at
        where[i] = temp(tensor.numel, tensor.itemsize, at, reader)
        pending.append(("Contiguous", _copy(tensor), [where[i], ("arg", i)], _copy_sizes(tensor, gather=True), tensor.numel, 1))
    if first_cast:
        assert bound.cast_first is not None
        tensor = args[bound.cast_first]
        cast = temp(tensor.numel, ITEMSIZE[dtype], main_at - 1, main_at)
        ref = kernel_ref("cast", dtype_name(tensor.dtype), dtype_name(dtype), bound.soc.arch)
        pending.append(("Cast", ref, [cast, where.get(bound.cast_first, ("arg", bound.cast_first))], (), tensor.numel, 1))
        where[bound.cast_first] = cast
    last_cast = out.dtype != dtype
    if last_cast and (out.dtype not in CAST_TARGETS or (out.dtype == DataType.BF16 and not bound.soc.bf16)):
        return Refused(
            561103,
            f"Cast from {dt(dtype)} to {dt(out.dtype)} is not possible on {bound.soc.name}: give {bound.op.output.name} another data type.",
        )
    target: tuple[str, int] = ("arg", bound.output)
    produced = target
    if last_cast or not out.contiguous:
        produced = temp(out.numel, ITEMSIZE[dtype], main_at, main_at + 1)
    if bound.tiling is not None:
        layout.add(bound.tiling, main_at, main_at)
    main = _main(bound, args, numerics, dtype, ())
    operands = [produced, *(where.get(i, ("arg", i)) for i in bound.inputs)]
    pending.append((main.name, main.kernel, operands, main.sizes, main.total, main.unit))
    at = main_at + 1
    if last_cast:
        result = target if out.contiguous else temp(out.numel, out.itemsize, at, at + 1)
        ref = kernel_ref("cast", dtype_name(dtype), dtype_name(out.dtype), bound.soc.arch)
        pending.append(("Cast", ref, [result, produced], (), out.numel, 1))
        produced = result
    if not out.contiguous:
        pending.append(("ViewCopy", _copy(out), [target, produced], _copy_sizes(out, gather=False), out.numel, 1))
    offsets, total = layout.place()
    if total >= 1 << 64:
        return Refused(561000, f"{bound.op.name} would need a workspace of {total} bytes, more than a uint64_t holds.")
    steps = tuple(
        Step(name, ref, tuple(k if kind == "arg" else ~offsets[k] for kind, k in ops), sizes, count, unit)
        for name, ref, ops, sizes, count, unit in pending
    )
    if not out.contiguous and out.overlaps_itself():
        steps = (*steps[:-1], steps[-1]._replace(whole=True))
    return Plan(steps, total, bound.touched, [], {}, _tiles(bound, args, steps, main_at, dtype, noncontiguous))


def _tiles(bound: Bound, args: Sequence[Any], steps: tuple[Step, ...], at: int, dtype: int, copied: list[int]) -> Tiles | None:
    """The kernel, step ``at``, on strided tensors themselves; ``copied`` are the places that the first steps gather."""
    out: Tensor = args[bound.output]
    scattered = not out.contiguous and at == len(steps) - 2
    if not copied and not scattered:
        return None
    main = steps[at]
    if main.kernel.kind == "rows" and not main.kernel.key[-1]:
        return None
    result = Operand(main.operands[0])
    if scattered and not steps[-1].whole:
        result = Operand(main.operands[0], (bound.output, byte_strides(out)), at + 1)
    operands = [result]
    for i, place in zip(bound.inputs, main.operands[1:], strict=True):
        tensor: Tensor = args[i]
        if tensor.dims != out.dims:
            return None
        if i in copied and tensor.dtype == dtype:
            operands.append(Operand(place, (i, byte_strides(tensor)), copied.index(i)))
        else:
            operands.append(Operand(place))
    return make_tiles(out.dims, main.unit, ITEMSIZE[dtype], operands, at)


def _copy(tensor: Tensor) -> KernelRef:
    return kernel_ref("copy", tensor.itemsize)


def _copy_sizes(tensor: Tensor, *, gather: bool) -> tuple[int, ...]:
    """rank, shape, then byte strides of destination and source: dense ↔ the tensor's view."""
    item = tensor.itemsize
    view = tuple(s * item for s in tensor.strides)
    dense = tuple(s * item for s in row_major(tensor.dims))
    destination, source = (dense, view) if gather else (view, dense)
    return (len(tensor.dims), *tensor.dims, *destination, *source)
