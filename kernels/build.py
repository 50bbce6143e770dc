"""Kernels by name: the only place that calls Numba's compiler.

A kernel is compiled when it is first asked for and kept for the life of the process. Its machine code is cached on disk
(see `cache`). Variants of equal arithmetic share one kernel: what a flow's plan gives as key names it.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from . import cache, catalog, lean
from .catalog import FLOWS, Flow
from .variant import Kernel, UnknownKernelError, Variant

if TYPE_CHECKING:
    from collections.abc import Callable

    from .flows import Plan

#: fastmath stays off: every operation rounds once. error_model="numpy": x/0 is inf or NaN, not an exception.
#: _nrt: kernels own no Python memory.
OPTIONS = {"nopython": True, "error_model": "numpy", "boundscheck": False, "_nrt": False, "fastmath": False}

#: Fewest elements of an elementwise block, and fewest elements of a block of rows or columns together.
GRAIN = 32768

_lock = threading.RLock()
_kernels: dict[tuple[Any, ...], Kernel] = {}
_named: dict[str, Kernel] = {}
_stats: dict[str, str] = {}

set_cache_dir = cache.set_cache_dir
cache_state = cache.cache_state
source_stamp = cache.source_stamp


def stats() -> dict[str, str]:
    """Kernel name -> "compiled" or "cache", for the kernels of this process."""
    with _lock:
        return dict(_stats)


def flows() -> dict[str, Flow]:
    """Flow name -> what it takes. Loads no kernel."""
    return dict(FLOWS)


def _compile(name: str, pyfunc: Callable[..., Any]) -> tuple[int, Any]:
    """Address of the machine code of `pyfunc` and the object that owns it."""
    from numba import config, types
    from numba.core.ccallback import CFunc

    if config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise RuntimeError("NUMBA_DISABLE_JIT is set, so no kernel can be compiled: unset it")
    pyfunc.__name__ = pyfunc.__qualname__ = name
    pointer: Any = types.CPointer
    signature: Any = ((pointer(types.int64), types.int64, types.int64), types.void)
    function: Any = CFunc(pyfunc, signature, locals={}, options=dict(OPTIONS))
    function._cache = cache.Disk(name)
    with lean.whole(name):
        function.compile()
    _stats[name] = "cache" if function.cache_hits else "compiled"
    return function.address, function


def _once(lookup: tuple[Any, ...], make: Callable[[], Kernel]) -> Kernel:
    kernel = _kernels.get(lookup)
    if kernel is None:
        with _lock:
            kernel = _kernels.get(lookup)
            if kernel is None:
                kernel = _kernels[lookup] = make()
    return kernel


def _by_name(name: str, make: Callable[[], tuple[Any, int]], aux: Callable[[], tuple[tuple[int, ...], Any]]) -> Kernel:
    kernel = _named.get(name)
    if kernel is None:
        pyfunc, grain = make()
        address, function = _compile(name, pyfunc)
        addresses, owner = aux()
        kernel = _named[name] = Kernel(name, address, addresses, grain, (function, owner))
    return kernel


def _kernel_name(flow: str, key: tuple[Any, ...]) -> str:
    return "_".join([flow, *(part for part in key if part)])


def _from_plan(flow: str, plan: Plan) -> Kernel:
    def make() -> tuple[Any, int]:
        from . import loops
        from .machine import converts_half

        name = _kernel_name(flow, plan.key)
        direct = plan.direct and (plan.output != "FLOAT16" or converts_half())
        tile = (plan.host if plan.host and direct == plan.direct else plan.tile)()
        return loops.elementwise(name, tile, plan.inputs, plan.output, plan.table is not None, direct), GRAIN

    def aux() -> tuple[tuple[int, ...], Any]:
        if plan.table is None:
            return (0,), None
        table = _table(*plan.table())
        return (table.ctypes.data, 0), table

    return _by_name(_kernel_name(flow, plan.key), make, aux)


_tables: dict[str, Any] = {}


def _table(flow: str, plan: Plan) -> Any:
    """65,536 FLOAT: the plan's result for every 16-bit pattern."""
    import numpy as np

    from .call import call

    kernel = _from_plan(flow, plan)
    if kernel.name not in _tables:
        table = np.empty(65536, np.float32)
        call(kernel, (table, np.arange(65536, dtype=np.uint16)), (), 0, 65536)
        _tables[kernel.name] = table
    return _tables[kernel.name]


def elementwise(flow: str, v: Variant) -> Kernel:
    """out[i] = flow(in0[i][, in1[i]]); args = [out, in0[, in1], *aux], the range is elements.

    `out` may be one of the inputs. Raises UnknownKernelError (a LookupError) that lists what is known.
    """

    def make() -> Kernel:
        entry = catalog.find("elementwise", flow, v)
        return _from_plan(flow, getattr(_family(entry), flow)(v))

    return _once(("elementwise", flow, v), make)


def rows(flow: str, v: Variant, last: bool) -> Kernel:
    """Reductions over the middle of contiguous (outer, r, inner) tensors; args = [out, in0[, in1], outer, r, inner, *aux].

    last=True: inner is 1 and the range is rows of outer. last=False: the range is columns of outer*inner.
    `out` may be one of the inputs. Raises UnknownKernelError (a LookupError) that lists what is known.
    """

    def make() -> Kernel:
        entry = catalog.find("rows", flow, v)
        plan = getattr(_family(entry), flow)(v, last)
        name = _kernel_name(flow, plan.key)

        def pyfunc() -> tuple[Any, int]:
            from . import columns
            from . import rows as rows_

            if last:
                return rows_.along_last(name, plan), 1
            return columns.along_other(name, plan), columns.COLUMNS

        return _by_name(name, pyfunc, lambda: ((0,), None))

    return _once(("rows", flow, v, last), make)


def cast(src: str, dst: str, v: Variant) -> Kernel:
    """Conversion of a contiguous array; args = [out, in], the range is elements. v.dtype does not matter.

    Raises UnknownKernelError (a LookupError) for a pair that does not exist.
    """

    def make() -> Kernel:
        from . import casts

        key = casts.cast_key(src, dst, v)
        name = _kernel_name("cast", key)
        return _by_name(name, lambda: (casts.cast(name, *key), GRAIN), lambda: ((), None))

    return _once(("cast", src, dst, v._replace(dtype="")), make)


def strided_copy(itemsize: int) -> Kernel:
    """Copy between two strided arrays of one shape.

    args = [dst, src, rank, *dims, *dst_strides, *src_strides], strides in bytes, zero and negative ones allowed; the
    range is logical elements in row-major order. itemsize: 1, 2, 4, 8 or 16 bytes, else UnknownKernelError.
    """

    def make() -> Kernel:
        from . import views

        if itemsize not in views.ITEM_SIZES:
            raise UnknownKernelError(f"no copy of {itemsize}-byte items; known: {views.ITEM_SIZES}")
        name = f"strided_copy_{itemsize}"
        return _by_name(name, lambda: (views.strided_copy(name, itemsize), GRAIN), lambda: ((), None))

    return _once(("strided_copy", itemsize), make)


def tiles() -> Kernel:
    """Another kernel run on strided operands, in tiles; args as in `tiles.tiles`, the range is the other kernel's."""

    def make() -> Kernel:
        from . import tiles as tiles_

        return _by_name("tiles", lambda: (tiles_.tiles("tiles"), GRAIN), lambda: ((), None))

    return _once(("tiles",), make)


def lines() -> Kernel:
    """Lines of fixed text with numbers; args = [out, texts, templates, slots, codes, values, done, stride], the range is lines.

    Line i has the template codes[i]. templates, slots: tables of `text.TEMPLATE` and `text.SLOT` words. values: row r at r * stride. Stops
    before the first line with a number that has no room: done = (that line or stop, bytes written).
    """

    def make() -> Kernel:
        from . import text

        return _by_name("lines", lambda: (text.lines("lines"), GRAIN), lambda: ((), None))

    return _once(("lines",), make)


def _family(entry: Flow) -> Any:
    from importlib import import_module

    return import_module(f".flows.{entry.family}", __package__)


__all__ = [
    "cache_state",
    "cast",
    "elementwise",
    "flows",
    "lines",
    "rows",
    "set_cache_dir",
    "source_stamp",
    "stats",
    "strided_copy",
    "tiles",
]
