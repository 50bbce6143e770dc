"""acl.util: NumPy arrays and bytes to addresses and back, and threads."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from emu.runtime import device, errors, host, pinned
from emu.status import Status

if TYPE_CHECKING:
    from numpy.typing import NDArray

_INVALID = int(Status.ACL_ERROR_INVALID_PARAM)
_JOIN_S = 5.0


def _failed(function: str, why: str) -> TypeError:
    return TypeError(f"acl.util.{function} args parse failed: {why}")


def _array(function: str, value: Any) -> Any:
    import numpy as np

    if not isinstance(value, np.ndarray):
        raise _failed(function, f"expected a numpy.ndarray, not {type(value).__name__}")
    return value


def numpy_to_ptr(array: NDArray[Any]) -> int:
    """The address of the array's first element; the caller keeps the array alive. A strided array gives its base, with a warning."""
    import warnings

    found = _array("numpy_to_ptr", array)
    if not found.flags.c_contiguous:
        warnings.warn("acl.util.numpy_to_ptr: the array is not contiguous; the address is its base", UserWarning, stacklevel=2)
    return int(found.ctypes.data)


def numpy_contiguous_to_ptr(array: NDArray[Any]) -> int:
    """As numpy_to_ptr; TypeError for an array that is not contiguous."""
    found = _array("numpy_contiguous_to_ptr", array)
    if not found.flags.c_contiguous:
        raise _failed("numpy_contiguous_to_ptr", "the array is not contiguous")
    return int(found.ctypes.data)


def bytes_to_ptr(data: bytes) -> int:
    """The address of a bytes object's buffer, valid while the object lives."""
    if not isinstance(data, bytes):
        raise _failed("bytes_to_ptr", f"expected bytes, not {type(data).__name__}")
    return ctypes.cast(ctypes.c_char_p(data), ctypes.c_void_p).value or 0


def _host_range(function: str, ptr: int, nbytes: int, *, write: bool) -> None:
    """ValueError unless the host can use [ptr, ptr + nbytes)."""
    if device.owner(ptr) is not None:
        raise ValueError(f"acl.util.{function}: {ptr:#x} is a device address: copy it to the host with acl.rt.memcpy first")
    if nbytes and not (host.writable(ptr, nbytes) if write else host.readable(ptr, nbytes)):
        raise ValueError(f"acl.util.{function}: {ptr:#x} with {nbytes} bytes is no memory of this process")


def ptr_to_numpy(ptr: int, shape: tuple[int, ...], npy_type: int) -> NDArray[Any]:
    """The host memory at ``ptr`` as an array, without a copy: writing it writes the memory.

    An array over a block of acl.rt.malloc_host keeps the block's pages, also after acl.rt.free_host; other memory must stay by itself.

    ``npy_type`` is NumPy's type number (1 int8, 5 int32, 7 int64, 11 float32, 12 float64, 23 float16). ValueError for a device address
    or one that is not mapped, TypeError for wrong arguments.
    """
    import numpy as np

    if not isinstance(ptr, int) or not isinstance(npy_type, int):
        raise _failed("ptr_to_numpy", "ptr and npy_type must be ints")
    try:
        dims = tuple(int(n) for n in shape)
        dtype = np.dtype(next(t for t in map(np.dtype, np.typecodes["All"]) if t.num == npy_type))
    except (TypeError, ValueError, StopIteration):
        raise _failed("ptr_to_numpy", f"shape {shape!r} or type number {npy_type} is none") from None
    count = 1
    for n in dims:
        count *= n
    if any(n < 0 for n in dims) or dtype.itemsize == 0 or dtype.hasobject:
        raise _failed("ptr_to_numpy", f"shape {shape!r} with type {dtype} cannot be a view of memory")
    _host_range("ptr_to_numpy", ptr, count * dtype.itemsize, write=True)
    if count == 0:
        return np.empty(dims, dtype)
    view: Any = (ctypes.c_char * (count * dtype.itemsize)).from_address(ptr)
    block = pinned.find(ptr, count * dtype.itemsize)
    if block is not None:  # the pages outlive aclrtFreeHost for as long as the array does
        pinned.use(block)
        weakref.finalize(view, pinned.done, block)
    array: NDArray[Any] = np.frombuffer(view, dtype).reshape(dims)
    return array


def ptr_to_bytes(ptr: int, size: int) -> bytes:
    """A copy of ``size`` bytes of host memory. ValueError for a device address or one that is not mapped."""
    if not isinstance(ptr, int) or not isinstance(size, int) or size < 0:
        raise _failed("ptr_to_bytes", "ptr must be an int and size an int of 0 or more")
    _host_range("ptr_to_bytes", ptr, size, write=False)
    return ctypes.string_at(ptr, size) if size else b""


_threads: dict[int, threading.Thread] = {}


def start_thread(function: Callable[[Any], Any], args: Any) -> tuple[int, int]:
    """Run function(args) in a new thread: (its number, as aclrtSubscribeReport takes it; 0)."""
    if not callable(function):
        raise _failed("start_thread", f"expected a function, not {type(function).__name__}")
    thread = threading.Thread(target=function, args=(args,), name="acl-util-thread", daemon=True)
    thread.start()
    number = thread.ident or 0
    _threads[number] = thread
    return number, 0


def stop_thread(tid: int) -> int:
    """Wait for the thread's function to return (at most five seconds: Python threads cannot be ended). 100000: no such thread."""
    if not isinstance(tid, int):
        raise _failed("stop_thread", f"expected an int, not {type(tid).__name__}")
    thread = _threads.pop(tid, None)
    if thread is None:
        return errors.fail(_INVALID, "EH0007", f"acl.util.stop_thread: {tid} is no thread of acl.util.start_thread")
    if thread is not threading.current_thread():
        thread.join(_JOIN_S)
    return 0
