"""acl.rt: the runtime functions under pyACL's names (aclrtMalloc is acl.rt.malloc).

Handles, addresses and enumerators are ints; what C returns through pointers comes first, the code last.
"""

from __future__ import annotations

from collections.abc import Callable as _Callable

from emu.acl._entry import unsupported as _unsupported
from emu.acl.rt._callback import *  # noqa: F403
from emu.acl.rt._context import *  # noqa: F403
from emu.acl.rt._copy import *  # noqa: F403
from emu.acl.rt._device import *  # noqa: F403
from emu.acl.rt._event import *  # noqa: F403
from emu.acl.rt._limits import *  # noqa: F403
from emu.acl.rt._memory import *  # noqa: F403
from emu.acl.rt._stream import *  # noqa: F403

#: Known, and not emulated: Python name -> C name. Each returns 207000 with a message that names it.
NOT_EMULATED = {
    "get_device_utilization_rate": "aclrtGetDeviceUtilizationRate",
    "memcpy_batch": "aclrtMemcpyBatch",
    "memcpy_batch_v2": "aclrtMemcpyBatchV2",
    "memcpy_batch_async": "aclrtMemcpyBatchAsync",
    "memcpy_batch_async_v2": "aclrtMemcpyBatchAsyncV2",
    "reserve_mem_address": "aclrtReserveMemAddress",
    "release_mem_address": "aclrtReleaseMemAddress",
    "malloc_physical": "aclrtMallocPhysical",
    "free_physical": "aclrtFreePhysical",
    "map_mem": "aclrtMapMem",
    "unmap_mem": "aclrtUnmapMem",
    "mem_get_allocation_granularity": "aclrtMemGetAllocationGranularity",
    "mem_pool_create": "aclrtMemPoolCreate",
    "mem_pool_destroy": "aclrtMemPoolDestroy",
    "mem_pool_set_attr": "aclrtMemPoolSetAttr",
    "mem_pool_get_attr": "aclrtMemPoolGetAttr",
    "mem_pool_malloc_async": "aclrtMemPoolMallocAsync",
    "mem_pool_free_async": "aclrtMemPoolFreeAsync",
    "mem_pool_trim_to": "aclrtMemPoolTrimTo",
}
_UNSUPPORTED = 207000


def __getattr__(name: str) -> _Callable[..., int]:
    if name in NOT_EMULATED:
        return _unsupported(NOT_EMULATED[name], _UNSUPPORTED)
    raise AttributeError(f"module 'acl.rt' has no attribute {name!r}")
