"""aclOpExecutor: what phase 1 hands over and phase 2 enqueues.

Phase 1 (:func:`prepare`) runs every check in the declared order and makes a plan; phase 2 (:func:`submit`) puts
addresses into the plan and pushes the launches on a stream. Nothing here computes and nothing here blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from ctypes import Array as CArray
from ctypes import c_int64
from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from emu.objects import Tensor
from emu.opdef.spec import EMPTY
from emu.plan import EMPTY_PLAN, Bound, KernelRef, Plan, Refused, Step, kernel_ref, make
from emu.runtime import cores
from emu.status import AclError, AclnnStatus
from emu.types import ITEMSIZE, DataType

if TYPE_CHECKING:
    from emu_kernels.variant import Kernel

    from emu.model import Cost

NULLPTR = int(AclnnStatus.ACLNN_ERR_PARAM_NULLPTR)
INVALID = int(AclnnStatus.ACLNN_ERR_PARAM_INVALID)
#: A launch of fewer elements than this is not worth splitting between host threads.
SPLIT_ELEMENTS = 1 << 16
#: Bytes of output in a block of a large launch: from so many on the kernels' stores bypass the caches.
BLOCK_BYTES = 2 << 20
#: Kernels address memory by signed 64-bit numbers.
ADDRESS_LIMIT = 1 << 63


class AddressSpace(Protocol):
    """The memory that launches may touch: a device's, or the arrays of one call of :mod:`emu.ops`."""

    #: Added to a device address it gives the address that the host reads and writes.
    delta: int

    def find(self, address: int, nbytes: int) -> object | None:
        """The one live block that holds all of these bytes."""

    def nearest(self, address: int) -> str:
        """Where the address lies, in words, for a message."""


class Executor:
    """An operator's plan with the descriptors that it was made from."""

    __slots__ = ("addresses", "args", "bound", "plan", "repeatable", "runs")

    def __init__(self, bound: Bound, args: Sequence[Any], plan: Plan) -> None:
        self.bound = bound
        self.args = args
        self.plan = plan
        self.repeatable = False
        self.runs = 0
        #: Storage addresses that aclSetTensorAddr and its sisters gave, by the tensor's identity.
        self.addresses: dict[int, int] | None = None


def prepare(bound: Bound, args: Sequence[Any], numerics: str, strict: bool) -> Executor | Refused:
    """Phase 1 after the handles are resolved: ``args`` are Tensor objects (None for a null pointer) and attributes, in order.

    Returns an Executor, or what is wrong: nulls (161001) in the order of the parameters, then the declared checks
    (161002), then what only the emulator can meet (a negative dimension), the empty shortcut, views outside their
    storage, refused products and impossible casts.
    """
    for i in bound.places:
        if args[i] is None:
            return Refused(NULLPTR, f"Expected a proper Tensor but got null for argument {bound.names[i]}.")
    for check in bound.checks:
        problem = check(args)
        if problem is not None:
            if problem is EMPTY:
                return Executor(bound, args, EMPTY_PLAN)
            return Refused(INVALID, problem)
    for i in bound.places:
        if args[i].negative:
            return Refused(INVALID, f"Tensor {bound.names[i]} has a negative dimension: {args[i].shape_text()}.")
    for i in bound.empty:
        if args[i].numel == 0:
            return Executor(bound, args, EMPTY_PLAN)
    plan = make(bound, args, numerics, strict)
    if isinstance(plan, Refused):
        return plan
    return Executor(bound, args, plan)


class Fault:
    """A launch that does nothing but raise the device exception that a real card would raise, in stream order."""

    __slots__ = ("code", "issued_ns", "name", "number", "text", "work")
    issued_ns: int
    number: int
    cost = None

    def __init__(self, name: str, code: int, text: str) -> None:
        self.name = name
        self.code = code
        self.text = text
        self.work = 1

    def run(self) -> None:
        raise AclError(self.code, self.text)


class Form:
    """What all launches of one step of a plan have in common: everything but the addresses."""

    __slots__ = ("address", "array", "block", "border", "fixed", "grain", "name", "operands", "total", "work")

    def __init__(self, step: Step, kernel: Kernel, fixed: Sequence[int] = ()) -> None:
        self.name = step.name
        self.address = kernel.address
        self.operands = step.operands
        self.fixed = fixed
        self.array = _array_type(len(step.operands) + len(fixed))
        self.total = step.total
        self.work = step.total * step.unit
        self.grain = kernel.grain if step.unit == 1 else max(1, SPLIT_ELEMENTS // step.unit)
        #: Units of a block, 0 = one block for each thread, and what its borders are multiples of: see :func:`emu.runtime.cores.run`.
        self.block = 0
        self.border = cores.BLOCK


class Launch:
    """One kernel on the device: a native function, raw addresses, a range. ``work`` is a rough number of elements, ``cost`` its price in
    simulated time (None outside a device)."""

    __slots__ = ("args", "cost", "cost_ns", "form", "issued_ns", "name", "number", "work")
    issued_ns: int
    number: int

    def __init__(self, form: Form, args: CArray[c_int64]) -> None:
        self.form = form
        self.args = args
        self.name = form.name
        self.work = form.work
        self.cost: Cost | None = None
        self.cost_ns = 0

    def run(self) -> None:
        form = self.form
        cores.run(form.address, self.args, form.total, form.grain, form.block, form.border)


class Folded(Launch):
    """A launch whose work another one does: the copy of an operand that is used where it is (:mod:`emu.strided`)."""

    __slots__ = ()

    def run(self) -> None:
        pass


@cache
def _array_type(n: int) -> type[CArray[c_int64]]:
    return c_int64 * n


def resolve_operands(ex: Executor, space: AddressSpace, workspace: int) -> dict[int, int] | str:
    """The host address of each operand's first element by its place, or what is wrong.

    Looks at every byte that the launches can reach: each operand and the workspace must lie in one live block.
    """
    find = space.find
    delta = space.delta
    args = ex.args
    moved = ex.addresses
    where: dict[int, int] = {}
    for i in ex.plan.touched:
        tensor: Tensor = args[i]
        data = tensor.data if moved is None else moved.get(id(tensor), tensor.data)
        start = data + tensor.begin
        if find(start, tensor.nbytes) is None or start % tensor.itemsize:
            return _operand_fault(ex, i, start, tensor.nbytes, space)
        where[i] = data + tensor.shift + delta
    size = ex.plan.workspace
    if size and (find(workspace, size) is None or workspace % 8):
        return (
            f"{ex.bound.op.name}: the workspace, {size} bytes at {workspace:#x}, is not in one live allocation of the current device; "
            f"{space.nearest(workspace)}."
        )
    return where


def _operand_fault(ex: Executor, place: int, start: int, nbytes: int, space: AddressSpace) -> str:
    tensor: Tensor = ex.args[place]
    name = ex.bound.names[place]
    where = f"{ex.bound.op.name}: tensor {name} (shape {tensor.shape_text()}, strides {list(tensor.strides)}, offset {tensor.offset}) "
    if space.find(start, nbytes) is not None:
        return where + f"starts at {start:#x}, which is no multiple of its element size {tensor.itemsize}."
    return where + f"reaches {nbytes} bytes at {start:#x}, not in one live allocation of the current device; {space.nearest(start)}."


def _form(step: Step, saturate: bool) -> Form:
    kernel = step.kernel.get(saturate)
    form = Form(step, kernel, (*step.sizes, *kernel.aux))
    if step.unit == 1 and step.kernel.kind == "rows":  # the kernel's own grain counts rows, whatever their length
        form.grain = SPLIT_ELEMENTS
    if step.whole:
        form.grain = step.total
    elif step.total > form.grain:
        form.block, form.border = _blocks(step.kernel, step.unit)
    return form


def _launch(form: Form, where: dict[int, int], workspace: int, kind: type[Launch] = Launch) -> Launch:
    """A launch with addresses in place of operands; ``workspace`` is a host address here."""
    return kind(form, form.array(*[where[k] if k >= 0 else workspace + ~k for k in form.operands], *form.fixed))


@cache
def _blocks(kernel: KernelRef, unit: int) -> tuple[int, int]:
    """A launch's ``block`` and ``border``. Columns and copies have one block for each thread: they like long lines."""
    if kernel.kind == "elementwise":
        return BLOCK_BYTES // ITEMSIZE[DataType[kernel.key[2]]], cores.BLOCK
    if kernel.kind == "cast":
        return BLOCK_BYTES // ITEMSIZE[DataType[kernel.key[1]]], cores.BLOCK
    if kernel.kind == "rows" and kernel.key[-1]:
        return -(-BLOCK_BYTES // (ITEMSIZE[DataType[kernel.key[2]]] * unit)), 1
    return 0, cores.BLOCK


def launches(plan: Plan, where: dict[int, int], workspace: int, saturate: bool) -> list[Launch]:
    """One launch for each step of the plan, in order. The kernel works on strided operands themselves where that gives the same."""
    forms = plan.forms.get(saturate)
    if forms is None:
        forms = plan.forms[saturate] = [_form(step, saturate) for step in plan.steps]
    tiles = plan.tiles
    at = None if tiles is None else tiles.addresses(where, workspace)
    if tiles is None or at is None or not tiles.same_result(at):
        return [_launch(form, where, workspace) for form in forms]
    made = []
    for number, form in enumerate(forms):
        if number == tiles.main:
            step = plan.steps[number]
            kernel, copy = kernel_ref("tiles").get(False), kernel_ref("copy", tiles.itemsize).get(False)
            values = tiles.arguments(step.kernel.get(saturate), copy, step.sizes, at, workspace)
            made.append(Launch(Form(step, kernel), _array_type(len(values))(*values)))
        else:
            made.append(_launch(form, where, workspace, Folded if number in tiles.folded else Launch))
    return made


def workspace_problem(ex: Executor, workspace: int, size: int) -> Refused | None:
    """Phase 2's look at the workspace argument."""
    if size > 0 and workspace == 0:
        return Refused(
            NULLPTR, f"{ex.bound.op.name}: workspace is null but workspaceSize is {size}. The executor is spent: call phase 1 again."
        )
    needed = ex.plan.workspace
    if size < needed:
        return Refused(
            INVALID,
            f"{ex.bound.op.name}: workspaceSize is {size}, phase 1 said {needed}. A real card does not notice and its kernels would write "
            "past the end, corrupting device memory. The executor is spent: call phase 1 again and allocate what it says.",
        )
    return None


def submit(
    ex: Executor,
    workspace: int,
    space: AddressSpace,
    saturate: bool,
    enqueue: Callable[[Launch | Fault], object],
) -> Launch | Fault | None:
    """Phase 2's end: enqueue the launches, or the fault that the device would raise (no memory changes then). Returns the last of them."""
    ex.runs += 1
    if not ex.plan.steps:
        return None
    where = resolve_operands(ex, space, workspace)
    if isinstance(where, str):
        fault = Fault(ex.bound.op.name, ex.bound.soc.fault_code, where)
        enqueue(fault)
        return fault
    made = launches(ex.plan, where, workspace + space.delta, saturate)
    for task, cost in zip(made, ex.plan.costs, strict=False):  # no costs outside a device
        task.cost = cost
        task.cost_ns = cost.ns
    for task in made:
        enqueue(task)
    return made[-1]
