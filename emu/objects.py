"""aclTensor, aclScalar, arrays and lists: descriptors on the host, never device memory.

The rules are CANN's: aclCreateTensor checks next to nothing (no dtype, format, sign, bounds or alignment check),
lists own their elements, and destroying a descriptor never touches the device buffer. What a descriptor means is
decided when an operator uses it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from math import prod
from typing import Any

from emu.types import ITEMSIZE, DataType

#: CANN keeps at most this many dimensions and silently drops the rest.
MAX_DIMS = 25
#: Formats that CANN treats as contiguous whatever the strides say.
PRIVATE_FORMATS = frozenset({3, 4, 12, 29, 32, 33, 50, 51, 52, 53, 54})


def row_major(dims: Sequence[int]) -> tuple[int, ...]:
    """Element strides of a contiguous tensor of this shape; a dimension of 0 counts as 1, so that strides stay
    positive."""
    strides = [1] * len(dims)
    for i in range(len(dims) - 2, -1, -1):
        strides[i] = strides[i + 1] * max(dims[i + 1], 1)
    return tuple(strides)


class Tensor:
    """aclTensor: shape, strides and offset in elements; ``data`` is the storage's device base address.

    ``numel`` and ``contiguous`` follow CANN: strides of dimensions of size 1 do not matter, 0 or 1 elements and
    private formats are contiguous, and the offset may be anything. ``low`` and ``high`` are the first and last
    element that the view reaches, counted from ``data``; ``begin`` is the byte at which ``low`` begins, ``nbytes`` the extent
    of all, ``shift`` the byte of the first element in row-major order. They mean nothing when ``numel`` is 0. ``negative``
    tells of a negative dimension, which no operator takes.
    """

    __slots__ = (
        "begin", "contiguous", "data", "dims", "dtype", "format", "high", "itemsize",
        "low", "nbytes", "negative", "numel", "offset", "shift", "storage", "strides",
    )  # fmt: skip

    def __init__(
        self,
        dims: tuple[int, ...],
        dtype: int,
        strides: tuple[int, ...] | None,
        offset: int,
        fmt: int,
        storage: tuple[int, ...],
        data: int,
    ) -> None:
        if len(dims) > MAX_DIMS:
            dims = dims[:MAX_DIMS]
        dense = row_major(dims)
        if strides is None or strides == dense:
            strides = dense
            plain = True
        else:
            strides = strides[:MAX_DIMS]
            plain = False
        numel = prod(dims)
        self.dims = dims
        self.dtype = dtype
        self.strides = strides
        self.offset = offset
        self.format = fmt
        self.storage = storage[:MAX_DIMS]
        self.data = data
        self.numel = numel
        self.itemsize = ITEMSIZE.get(dtype, 0)
        self.negative = bool(dims) and min(dims) < 0
        if plain or numel <= 1 or fmt in PRIVATE_FORMATS:
            self.contiguous = True
            self.low = offset
            self.high = offset + numel - 1
        else:
            self.contiguous = all(d == 1 or s == t for d, s, t in zip(dims, strides, dense, strict=True))
            reach = [(d - 1) * s for d, s in zip(dims, strides, strict=True)]
            self.low = offset + sum(r for r in reach if r < 0)
            self.high = offset + sum(r for r in reach if r > 0)
        itemsize = self.itemsize
        self.begin = self.low * itemsize
        self.nbytes = (self.high - self.low + 1) * itemsize
        self.shift = offset * itemsize

    #: aclInitTensor: every field gets a value.
    set = __init__

    def overlaps_itself(self) -> bool:
        """True when two elements of the view may be one in memory (a stride of 0, say); false alarms are possible."""
        reach = 0
        for stride, dim in sorted((abs(s), d) for s, d in zip(self.strides, self.dims, strict=True) if d > 1):
            if stride <= reach:
                return True
            reach += (dim - 1) * stride
        return False

    def storage_elements(self) -> int:
        """Elements that the storage shape declares."""
        return prod(self.storage)

    def view_fits_storage(self) -> bool:
        """CANN's Validate() for a tensor that is not contiguous: the view stays inside the declared storage."""
        return self.numel == 0 or (self.low >= 0 and self.high < self.storage_elements())

    def address(self) -> int:
        """Device address of the first element of the view in row-major order."""
        return self.data + self.shift

    def shape_text(self) -> str:
        return "[" + ",".join(map(str, self.dims)) + "]"


_SCALAR_CODES = {
    DataType.FLOAT: "f", DataType.FLOAT16: "e", DataType.INT8: "b", DataType.INT32: "i", DataType.UINT8: "B",
    DataType.INT16: "h", DataType.UINT16: "H", DataType.UINT32: "I", DataType.INT64: "q", DataType.UINT64: "Q",
    DataType.DOUBLE: "d", DataType.BOOL: "?",
}  # fmt: skip


class Scalar:
    """aclScalar: a host value (its bytes in the data type) and the data type."""

    __slots__ = ("dtype", "raw")

    def __init__(self, raw: bytes, dtype: int) -> None:
        self.raw = raw
        self.dtype = dtype

    @classmethod
    def of(cls, value: Any, dtype: int) -> Scalar | None:
        """A number as ``dtype``; None for a data type that aclCreateScalar refuses.

        Raises OverflowError for a number that the type cannot hold and TypeError for what is no number of that kind.
        """
        if hasattr(value, "item"):  # a NumPy scalar
            value = value.item()
        if not isinstance(value, (int, float, complex)):
            raise TypeError(f"value must be a number, not {type(value).__name__}")
        if dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
            number = complex(value)
            return cls(struct.pack("<ff" if dtype == DataType.COMPLEX64 else "<dd", number.real, number.imag), dtype)
        if dtype == DataType.BF16:
            return cls(_bf16_bytes(_real(value)), dtype)
        code = _SCALAR_CODES.get(dtype)  # type: ignore[call-overload]
        if code is None:
            return None
        number_in: float = bool(value) if code == "?" else _real(value)
        if code in "fed":
            return cls(_pack_float(code, number_in), dtype)
        try:
            return cls(struct.pack("<" + code, number_in), dtype)
        except struct.error as error:
            if isinstance(value, int):
                raise OverflowError(f"{value} does not fit {DataType(dtype).name}") from error
            raise TypeError(f"an int is needed for {DataType(dtype).name}, not {type(value).__name__}") from error

    def value(self) -> complex:
        """The number that the bytes stand for."""
        if self.dtype in (DataType.COMPLEX64, DataType.COMPLEX128):
            return complex(*struct.unpack("<ff" if self.dtype == DataType.COMPLEX64 else "<dd", self.raw))
        if self.dtype == DataType.BF16:
            return float(struct.unpack("<f", b"\0\0" + self.raw)[0])
        result: complex = struct.unpack("<" + _SCALAR_CODES[DataType(self.dtype)], self.raw)[0]
        return result

    @classmethod
    def size_of(cls, dtype: int) -> int:
        """Bytes that aclCreateScalar reads for a data type, 0 for one that it refuses."""
        if dtype in (DataType.COMPLEX64, DataType.COMPLEX128, DataType.BF16) or dtype in _SCALAR_CODES:
            return ITEMSIZE[dtype]
        return 0


def _real(value: complex) -> float:
    if isinstance(value, complex):
        raise TypeError("a real number is needed, not a complex one")
    return value


def _double(value: float) -> float:
    """A real number as a double; an int too large for one is infinite."""
    try:
        return float(value)
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def _pack_float(code: str, value: float) -> bytes:
    """FLOAT, FLOAT16 or DOUBLE bytes, rounded once to nearest even; overflow is infinity as in a C cast, where struct would
    raise."""
    try:
        return struct.pack("<" + code, _double(value))
    except OverflowError:
        return struct.pack("<" + code, float("inf") if value > 0 else float("-inf"))


def _bf16_bytes(value: float) -> bytes:
    """BF16 bytes by round-to-odd to FLOAT and then to nearest even, so that a double is rounded once in effect."""
    value = _double(value)
    if value != value:
        return struct.pack("<H", 0x7FC0)
    bits = struct.unpack("<Q", struct.pack("<d", value))[0]
    sign, exponent, fraction = bits >> 63, (bits >> 52) & 0x7FF, bits & ((1 << 52) - 1)
    if exponent == 0x7FF:
        return struct.pack("<H", sign << 15 | 0x7F80)
    scale = exponent - 1023
    if scale < -134:
        return struct.pack("<H", sign << 15)
    significand = fraction | (1 << 52 if exponent else 0)
    drop = 45 + max(0, -126 - scale)
    kept, rest, half = significand >> drop, significand & ((1 << drop) - 1), 1 << (drop - 1)
    kept += rest > half or (rest == half and kept & 1)
    magnitude = kept if scale < -126 else ((scale + 127) << 7) + kept - 128
    return struct.pack("<H", sign << 15 | min(magnitude, 0x7F80))


class Array:
    """aclIntArray, aclFloatArray or aclBoolArray: a copied list of host values."""

    __slots__ = ("values",)
    kind = "array"

    def __init__(self, values: tuple[float, ...]) -> None:
        self.values = values


class IntArray(Array):
    __slots__ = ()
    kind = "aclIntArray"


class FloatArray(Array):
    __slots__ = ()
    kind = "aclFloatArray"


class BoolArray(Array):
    __slots__ = ()
    kind = "aclBoolArray"


class TensorList:
    """aclTensorList: owns the handles of its elements (0 for a null element)."""

    __slots__ = ("handles",)

    def __init__(self, handles: tuple[int, ...]) -> None:
        self.handles = handles


class ScalarList:
    """aclScalarList: owns the handles of its elements (0 for a null element)."""

    __slots__ = ("handles",)

    def __init__(self, handles: tuple[int, ...]) -> None:
        self.handles = handles
