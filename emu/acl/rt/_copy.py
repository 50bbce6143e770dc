"""acl.rt: copies and fills. The check orders are the runtime's own."""

from __future__ import annotations

from emu.acl._entry import entry, names
from emu.acl.rt._common import bad_argument, bad_value, find_stream, need_context, null
from emu.runtime import copies
from emu.runtime.stream import Stream
from emu.types import MemcpyKind

_KINDS_2D = (1, 2, 3, 4)


def _nulls(function: str, dst: int, src: int) -> int:
    if not dst:
        return null(function, "dst")
    return 0 if src else null(function, "src")


def _check(function: str, dst: int, destMax: int, src: int, count: int, kind: int) -> int:
    """Checks 2 to 6, for a count above 0."""
    if not dst or not src:
        return _nulls(function, dst, src)
    if not 0 <= kind <= MemcpyKind.HOST_TO_BUF_TO_DEVICE:
        return bad_value(function, "kind", kind, "must be 0 to 5")
    if destMax == 0:
        return bad_argument(function, "destMax", destMax, "must not be 0")
    if count > destMax:
        return bad_argument(function, "count", count, f"is larger than destMax {destMax}")
    return 0


@entry("aclrtMemcpy(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind)")
def memcpy(dst: int, destMax: int, src: int, count: int, kind: int) -> int:
    """Copy at once; does not wait for streams. The direction comes from the addresses, not from ``kind``.

    In this order: count 0 → 0; null → 100000; kind not 0 to 5 → 100000; destMax 0 or count > destMax → 107000; dst == src → 0;
    no context → 107002; not mapped, or in no live device block → 107000.
    """
    if count == 0:
        return 0
    code = _check("aclrtMemcpy", dst, destMax, src, count, kind)
    if code or dst == src:
        return code
    ctx = need_context("aclrtMemcpy")
    return ctx if isinstance(ctx, int) else copies.copy("aclrtMemcpy", dst, src, count)


@entry("aclrtMemcpyAsync(void* dst, size_t destMax, const void* src, size_t count, aclrtMemcpyKind kind, aclrtStream stream)")
def memcpy_async(dst: int, destMax: int, src: int, count: int, kind: int, stream: int) -> int:
    """Queue a copy. Pageable host memory makes the call wait for the stream and copy at once; pinned memory must live until then.

    Checks as memcpy up to count > destMax; then 107002; 107000 for a bad address; host to host → 207000; dst == src → 0; 107003, 107017.
    """
    if count == 0:
        return 0
    name = "aclrtMemcpyAsync"
    code = _check(name, dst, destMax, src, count, kind)
    if code:
        return code
    ctx = need_context(name)
    if isinstance(ctx, int):
        return ctx
    both = copies.ends_async(name, dst, src, count)
    if isinstance(both, int):
        return both
    if dst == src:
        return 0
    target = find_stream(name, stream)
    return target if isinstance(target, int) else copies.copy_async(name, both, count, target)


def _check_2d(function: str, dst: int, dpitch: int, src: int, spitch: int, width: int, kind: int) -> int:
    if not dst or not src:
        return _nulls(function, dst, src)
    if width > dpitch or width > spitch:
        return bad_value(function, "width", width, f"is larger than a pitch (dpitch {dpitch}, spitch {spitch})")
    if kind not in _KINDS_2D:
        return bad_value(function, "kind", kind, "must be 1 to 4")
    return 0


@entry("aclrtMemcpy2d(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind)")
def memcpy_2d(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int) -> int:
    """Copy ``height`` rows of ``width`` bytes at once. Null → 100000; width over a pitch → 100000; kind not 1 to 4 → 100000;
    width or height 0 → 0; then as memcpy."""
    name = "aclrtMemcpy2d"
    code = _check_2d(name, dst, dpitch, src, spitch, width, kind)
    if code or not width or not height:
        return code
    ctx = need_context(name)
    return ctx if isinstance(ctx, int) else copies.copy(name, dst, src, width, (dpitch, spitch, height))


@entry(
    "aclrtMemcpy2dAsync(void* dst, size_t dpitch, const void* src, size_t spitch, size_t width, size_t height, aclrtMemcpyKind kind, "
    "aclrtStream stream)"
)
def memcpy_2d_async(dst: int, dpitch: int, src: int, spitch: int, width: int, height: int, kind: int, stream: int) -> int:
    """Queue it; codes of memcpy_2d and memcpy_async."""
    name = "aclrtMemcpy2dAsync"
    code = _check_2d(name, dst, dpitch, src, spitch, width, kind)
    if code or not width or not height:
        return code
    ctx = need_context(name)
    if isinstance(ctx, int):
        return ctx
    rows = (dpitch, spitch, height)
    both = copies.ends_async(name, dst, src, width, rows)
    if isinstance(both, int):
        return both
    target = find_stream(name, stream)
    return target if isinstance(target, int) else copies.copy_async(name, both, width, target, rows)


def _check_fill(function: str, devPtr: int, maxCount: int, count: int) -> int:
    if not devPtr:
        return null(function, "devPtr")
    return bad_argument(function, "count", count, f"is larger than maxCount {maxCount}") if count > maxCount else 0


@entry("aclrtMemset(void* devPtr, size_t maxCount, int32_t value, size_t count)")
def memset(devPtr: int, maxCount: int, value: int, count: int) -> int:
    """Fill with the low byte of ``value`` at once. count 0 → 0; null → 100000; count > maxCount → 107000; 107002; bad address → 107000."""
    if count == 0:
        return 0
    code = _check_fill("aclrtMemset", devPtr, maxCount, count)
    if code:
        return code
    ctx = need_context("aclrtMemset")
    return ctx if isinstance(ctx, int) else copies.fill("aclrtMemset", devPtr, bytes([value & 0xFF]), count)


def _fill_async(function: str, devPtr: int, pattern: bytes, count: int, stream: int) -> int:
    target = find_stream(function, stream)
    if not isinstance(target, Stream):
        return target
    return copies.fill_async(function, devPtr, pattern, count, target)


@entry("aclrtMemsetAsync(void* devPtr, size_t maxCount, int32_t value, size_t count, aclrtStream stream)")
def memset_async(devPtr: int, maxCount: int, value: int, count: int, stream: int) -> int:
    """Queue a memset; codes of memset, and 107003, 107017."""
    if count == 0:
        return 0
    code = _check_fill("aclrtMemsetAsync", devPtr, maxCount, count)
    return code or _fill_async("aclrtMemsetAsync", devPtr, bytes([value & 0xFF]), count, stream)


def _check_words(function: str, devPtr: int, memSize: int, numWords: int) -> int:
    if not devPtr:
        return null(function, "devPtr")
    if numWords * 4 > memSize:
        return bad_argument(function, "N", numWords, f"times 4 is larger than memSize {memSize}")
    if devPtr % 4:
        return bad_argument(function, "devPtr", hex(devPtr), "must be a multiple of 4")
    return 0


@entry("aclrtMemsetD32(void* devPtr, size_t memSize, uint32_t value, size_t N)")
def memset_d32(devPtr: int, memSize: int, value: int, N: int) -> int:
    """Fill with ``N`` 32-bit words at once. N 0 → 0; null → 100000; 4 * N > memSize or unaligned → 107000; 107002; bad address → 107000."""
    if N == 0:
        return 0
    code = _check_words("aclrtMemsetD32", devPtr, memSize, N)
    if code:
        return code
    ctx = need_context("aclrtMemsetD32")
    return ctx if isinstance(ctx, int) else copies.fill("aclrtMemsetD32", devPtr, value.to_bytes(4, "little"), N)


@entry("aclrtMemsetD32Async(void* devPtr, size_t memSize, uint32_t value, size_t N, aclrtStream stream)")
def memset_d32_async(devPtr: int, memSize: int, value: int, N: int, stream: int) -> int:
    """Queue it; codes of memset_d32, and 107003, 107017."""
    if N == 0:
        return 0
    code = _check_words("aclrtMemsetD32Async", devPtr, memSize, N)
    return code or _fill_async("aclrtMemsetD32Async", devPtr, value.to_bytes(4, "little"), N, stream)


__all__ = [*names(__name__)]
