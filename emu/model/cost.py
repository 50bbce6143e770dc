"""What one launch or copy costs: floor + max(bytes over bandwidth, operations over the vector rate).

What a launch reads and writes follows from its step of the plan (operands, data types, sizes), its operations from the flow
(:mod:`emu_kernels.counting`); no table of operators stands here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from emu.model.rates import Rates, rates
from emu.soc import SocProfile
from emu.types import ITEMSIZE, DataType

if TYPE_CHECKING:
    from emu.plan import Step

#: Bytes of a block of the unified buffer: the least that a kernel takes of a column (ini key ubblock_size).
UB_BLOCK = 32
#: Elements that are worth a core of their own; only the block dim in a timeline depends on it [assumed].
CORE_ELEMENTS = 64


class Traffic(NamedTuple):
    """Bytes that a launch moves, the bytes of memory that it touches, and its vector operations on FLOAT lanes."""

    read: int
    written: int
    footprint: int
    operations: float


class Cost(NamedTuple):
    """The terms of one launch. Times in simulated ns; ``ns`` is their sum, rounded up.

    ``level`` is where the bytes come from: "L2", "HBM", or "L2+HBM" when the footprint exceeds L2. ``binds`` names the largest
    term: "floor", the level, or "vector".
    """

    ns: int
    floor_ns: float
    memory_ns: float
    vector_ns: float
    traffic: Traffic
    l2_share: float
    level: str
    binds: str
    block_dim: int


def price(traffic: Traffic, elements: int, r: Rates) -> Cost:
    """The cost of known traffic. A footprint beyond L2 moves at L2's rate as far as L2 reaches, the rest at HBM's."""
    footprint = max(traffic.footprint, 1)
    share = min(1.0, r.soc.l2_bytes / footprint)
    moved = traffic.read + traffic.written
    memory = moved * (share / r.l2 + (1 - share) / r.hbm)
    vector = traffic.operations / r.vector
    level = "L2" if share == 1.0 else "L2+HBM"
    binds = level if memory >= vector else "vector"
    if r.floor_ns >= max(memory, vector):
        binds = "floor"
    total = -int(-(r.floor_ns + max(memory, vector)) // 1)
    block_dim = min(r.cores, -(-elements // CORE_ELEMENTS)) or 1
    return Cost(total, r.floor_ns, memory, vector, traffic, share, level, binds, block_dim)


def traffic_of(step: Step, soc: SocProfile) -> Traffic:
    """What one step of a plan moves and computes. CountError for a flow whose operations cannot be counted.

    A flow over rows reads its inputs once if a row with its inputs and its result fits in the unified buffer (of a column: 32 bytes
    of every row), else once for each pass [assumed: the tiling of real kernels is not public].
    """
    ref = step.kernel
    elements = step.total * step.unit
    if ref.kind == "copy":
        moved = elements * ref.key[0]
        return Traffic(moved, moved, 2 * moved, 0)
    if ref.kind == "cast":
        source, target = (ITEMSIZE[DataType[name]] for name in ref.key[:2])
        return Traffic(elements * source, elements * target, elements * (source + target), elements)
    from emu_kernels.counting import work
    from emu_kernels.variant import Variant

    flow, arch, dtype, numerics, last = ref.key
    done = work(ref.kind, flow, Variant(arch, dtype, False, numerics), last)
    item = ITEMSIZE[DataType[dtype]]
    wide = 8 if dtype == "DOUBLE" else 4
    inputs = len(step.operands) - 1
    passes = done.passes
    if passes > 1:
        width = 1 if last else UB_BLOCK // item
        if step.unit * width * wide * (inputs + 1) <= soc.ub_bytes:
            passes = 1
    size = elements * item
    operations = elements * done.operations * (wide // 4)
    return Traffic(size * inputs * passes, size, size * len(set(step.operands)), operations)


def step_cost(step: Step, soc: SocProfile) -> Cost:
    """The simulated cost of one launch on a product. ValueError names a rate that the profile lacks."""
    return price(traffic_of(step, soc), step.total * step.unit, rates(soc))


def copy_ns(nbytes: int, direction: str, r: Rates) -> int:
    """Simulated ns of a copy or fill of ``nbytes``; ``direction`` is "device" (one device), "fill", "peer" or "link" (host).

    The floor is that of a launch [assumed].
    """
    if direction in ("device", "fill"):
        moved = nbytes if direction == "fill" else 2 * nbytes
        return price(Traffic(moved - nbytes, nbytes, moved, 0), 1, r).ns
    return -int(-(r.floor_ns + nbytes / (r.peer if direction == "peer" else r.link)) // 1)
