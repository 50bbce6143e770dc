"""Face 2: NumPy in, NumPy out, exceptions instead of codes; one function for each declared operator, through the same two phases.

``emu.ops.selu_backward(grad, result)``, ``emu.ops.softmax_backward(grad, output, dim)`` and so on; ``dir(emu.ops)``
lists them.

The arrays of one call are its device memory: nothing is copied that the contract does not copy. No device has to be
open, and an open one is not touched.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from inspect import Parameter, Signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from emu import config
from emu.arguments import integer
from emu.executor import Fault, Launch, prepare, submit
from emu.objects import MAX_DIMS, Tensor
from emu.opdef.catalogue import OPERATORS, operator
from emu.opdef.spec import Operator, Param, Role
from emu.plan import Refused, bind
from emu.soc import profile
from emu.status import AclError
from emu.types import DataType, Format, dtype_name

_INVALID = 161002
_ND = int(Format.ND)

_NUMPY_OWN: dict[DataType, np.dtype[Any]] = {
    DataType.FLOAT: np.dtype(np.float32), DataType.FLOAT16: np.dtype(np.float16), DataType.DOUBLE: np.dtype(np.float64),
    DataType.INT8: np.dtype(np.int8),
    DataType.INT16: np.dtype(np.int16), DataType.INT32: np.dtype(np.int32), DataType.INT64: np.dtype(np.int64),
    DataType.UINT8: np.dtype(np.uint8), DataType.UINT32: np.dtype(np.uint32), DataType.UINT64: np.dtype(np.uint64),
    DataType.BOOL: np.dtype(np.bool_), DataType.COMPLEX64: np.dtype(np.complex64),
    DataType.COMPLEX128: np.dtype(np.complex128),
}  # fmt: skip
#: BF16's is added when an array of it comes.
_CODES = {t: int(code) for code, t in _NUMPY_OWN.items()}


@cache
def numpy_types() -> dict[DataType, np.dtype[Any]]:
    """The NumPy type of each data type. BF16's is ml_dtypes', whose import may take longer than Numba's: only who needs it asks."""
    import ml_dtypes

    return {**_NUMPY_OWN, DataType.BF16: np.dtype(ml_dtypes.bfloat16)}


def data_type(array: NDArray[Any], name: str, *, written: bool = False) -> int:
    """The aclDataType of an array.

    A bare uint16 array is refused as an input: it may be BF16, FLOAT16 bits or numbers.
    """
    code = _CODES.get(array.dtype)
    if code is not None:
        return code
    if array.dtype.name == "bfloat16" and array.dtype == numpy_types()[DataType.BF16]:
        _CODES[array.dtype] = int(DataType.BF16)
        return int(DataType.BF16)
    if array.dtype == np.uint16:
        if written:
            return int(DataType.UINT16)
        raise AclError(
            _INVALID,
            f"{name} is a uint16 array, which may stand for BF16 or FLOAT16 bits or for numbers: say which with "
            f"{name}.view(ml_dtypes.bfloat16) or {name}.view(numpy.float16)",
        )
    native = array.dtype.newbyteorder("=")
    if native in _CODES:
        advice = f"its bytes are swapped: give {name}.astype({name}.dtype.newbyteorder('='))"
    elif array.dtype == np.dtype("V2"):
        advice = f"if it is BF16, as numpy.load gives it, give {name}.view(ml_dtypes.bfloat16)"
    else:
        advice = "known: " + ", ".join(t.name for t in (*numpy_types().values(), *([np.dtype(np.uint16)] if written else [])))
    raise AclError(_INVALID, f"{name} has dtype {array.dtype}, which has no aclDataType here; {advice}")


class _Span:
    """The bytes of one array."""

    __slots__ = ("end", "name", "start")

    def __init__(self, name: str, start: int, end: int) -> None:
        self.name = name
        self.start = start
        self.end = end


class ArraySpace:
    """The arrays of one call as an address space: addresses are the host's own."""

    delta = 0

    def __init__(self) -> None:
        self.spans: list[_Span] = []

    def add(self, name: str, array: NDArray[Any]) -> None:
        low, high = np.lib.array_utils.byte_bounds(array) if hasattr(np.lib, "array_utils") else np.byte_bounds(array)  # type: ignore[attr-defined]
        self.spans.append(_Span(name, int(low), int(high)))

    def add_tensor(self, name: str, tensor: Tensor) -> None:
        """The array that :func:`descriptor` made ``tensor`` of."""
        self.spans.append(_Span(name, tensor.data, tensor.data + tensor.storage[0] * tensor.itemsize))

    def find(self, address: int, nbytes: int) -> object | None:
        for span in self.spans:
            if span.start <= address and address + nbytes <= span.end:
                return span
        return None

    def nearest(self, address: int) -> str:
        return "the arrays of this call are " + ", ".join(f"{s.name} [{s.start:#x}, {s.end:#x})" for s in self.spans)


def as_array(value: Any, name: str) -> NDArray[Any]:
    """A NumPy array as it is; a NumPy number becomes one; a torch tensor and a masked array get a message with the conversion."""
    if type(value) is np.ndarray:
        return value
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            raise TypeError(f"{name} is a masked array, and an aclTensor has no mask; give an array: {name}.filled(value)")
        return value
    if type(value).__module__.split(".")[0] == "torch":
        raise TypeError(
            f"{name} is a torch tensor; give an array: {name}.detach().cpu().numpy(), and for bfloat16 "
            f"{name}.detach().cpu().view(torch.int16).numpy().view(ml_dtypes.bfloat16)"
        )
    if isinstance(value, np.generic):
        return np.asarray(value)
    raise TypeError(f"{name} must be a NumPy array, not {type(value).__name__}")


def descriptor(array: NDArray[Any], name: str, *, written: bool = False) -> Tensor:
    """The aclTensor that an array stands for: its own strides, so that a strided array is used as it is."""
    code = data_type(array, name, written=written)
    flags = array.flags
    if flags.c_contiguous and flags.aligned and array.ndim <= MAX_DIMS:
        return Tensor(array.shape, code, None, 0, _ND, (array.size,), array.__array_interface__["data"][0])
    item = array.itemsize
    if array.ndim > MAX_DIMS:
        raise AclError(_INVALID, f"{name} has {array.ndim} dimensions; an aclTensor holds at most {MAX_DIMS}")
    dims = array.shape
    if array.size and any(s % item for s in array.strides):
        raise AclError(_INVALID, f"{name} has byte strides {array.strides} that are no multiples of its element size {item}: copy it first")
    if not flags.aligned:
        raise AclError(_INVALID, f"{name} is not aligned to its element size {item}: copy it first")
    strides = tuple(s // item for s in array.strides)
    base = array.__array_interface__["data"][0]
    low = sum((d - 1) * s for d, s in zip(dims, strides, strict=True) if s < 0 and d > 0)
    high = sum((d - 1) * s for d, s in zip(dims, strides, strict=True) if s > 0 and d > 0)
    storage = (high - low + 1,) if array.size else (0,)
    return Tensor(dims, code, strides, -low, _ND, storage, base + low * item)


def run(op: Operator, values: list[Any], soc: str | None, numerics: str | None, out: NDArray[Any] | None) -> NDArray[Any]:
    """Both phases of an operator on arrays.

    Raises :class:`emu.AclError` with the code that the functions would return.
    """
    now = config.current()
    soc_name = now.soc if soc is None else _known_soc(soc)
    mode = now.numerics if numerics is None else _known_numerics(numerics)
    bound = bind(op.name, soc_name)
    space = ArraySpace()
    arrays: dict[str, NDArray[Any]] = {}
    args: list[Any] = []
    given = iter(values)
    for kind, name, python in _places(op):
        if kind == _ATTRIBUTE:
            args.append(integer(next(given), python))
        elif kind == _INPUT:
            arrays[name] = array = as_array(next(given), python)
            tensor = descriptor(array, python)
            space.add_tensor(name, tensor)
            args.append(tensor)
        else:
            args.append(None)
    result = _result_array(op, arrays, out)
    written = descriptor(result, "out", written=True)
    space.add_tensor("out", written)
    args = [written if a is None else a for a in args]
    made = prepare(bound, args, mode, now.strict_products)
    if isinstance(made, Refused):
        raise AclError(made.code, made.text)
    workspace = 0
    if made.plan.workspace:
        buffer = np.empty(made.plan.workspace + 64, np.uint8)
        workspace = -(-buffer.__array_interface__["data"][0] // 64) * 64
        space.add("workspace", buffer)
    submit(made, workspace, space, profile(soc_name).saturates, _now)
    return result


def _now(task: Launch | Fault) -> None:
    """The queue of a call that waits for its result."""
    task.run()


_INPUT, _ATTRIBUTE, _OUTPUT = range(3)


@cache
def _places(op: Operator) -> tuple[tuple[int, str, str], ...]:
    """What each parameter takes, its name and its Python name."""
    kinds = {Role.IN: _INPUT, Role.INOUT: _INPUT, Role.ATTR: _ATTRIBUTE}
    return tuple((kinds.get(p.role, _OUTPUT), p.name, p.python) for p in op.params)


def _result_array(op: Operator, arrays: dict[str, NDArray[Any]], out: NDArray[Any] | None) -> NDArray[Any]:
    """The array that is written: the given ``out``, the in-out argument itself, or a new one shaped as the first
    input."""
    if op.output.role is Role.INOUT:
        result = arrays[op.output.name]
    elif out is not None:
        result = out if type(out) is np.ndarray else _writable(out)
    else:
        like = arrays[op.flow.dtype_of] if op.flow.dtype_of in arrays else arrays[op.flow.inputs[0]]
        return np.empty(like.shape, like.dtype)
    if not result.flags.writeable:
        name = op.output.python if op.output.role is Role.INOUT else "out"
        raise AclError(_INVALID, f"{name} is read-only, and the call writes to it")
    return result


def _writable(out: Any) -> NDArray[Any]:
    """``out`` of another class than ndarray itself: a number would be written to a copy."""
    if isinstance(out, np.generic):
        raise TypeError(f"out must be a NumPy array, not {type(out).__name__}")
    return as_array(out, "out")


def _known_soc(soc: str) -> str:
    if not isinstance(soc, str):
        raise TypeError(f"soc must be a str, not {type(soc).__name__}")
    return profile(soc).name


def _known_numerics(numerics: str) -> str:
    if numerics not in ("device", "document"):
        raise ValueError(f"numerics must be 'device' or 'document', not {numerics!r}")
    return numerics


@cache
def function(op: Operator) -> Callable[..., NDArray[Any]]:
    """The Python function of an operator: ``selu_backward(grad, result, *, soc=None, numerics=None, out=None)``."""
    inputs = [p for p in op.params if p.role in (Role.IN, Role.INOUT, Role.ATTR)]
    inplace = op.output.role is Role.INOUT
    positional = [Parameter(p.python, Parameter.POSITIONAL_OR_KEYWORD) for p in inputs]
    options = ["soc", "numerics"] + ([] if inplace else ["out"])
    free = frozenset(options)
    count = len(positional)
    signature = Signature([*positional, *(Parameter(n, Parameter.KEYWORD_ONLY, default=None) for n in options)])

    def call(*args: Any, **named: Any) -> NDArray[Any]:
        if len(args) == count and free.issuperset(named):  # inspect takes its time
            return run(op, list(args), named.get("soc"), named.get("numerics"), named.get("out"))
        given = signature.bind(*args, **named).arguments
        values = [given[p.python] for p in inputs]
        return run(op, values, given.get("soc"), given.get("numerics"), given.get("out"))

    call.__name__ = call.__qualname__ = op.python_name
    call.__signature__ = signature  # type: ignore[attr-defined]
    call.__doc__ = _doc(op, inputs, inplace)
    return call


def _doc(op: Operator, inputs: list[Param], inplace: bool) -> str:
    tensors = ", ".join(p.python for p in inputs if p.is_tensor)
    dtypes = ", ".join(dtype_name(DataType[t]) for t in op.dtypes)
    where = (
        "The array is overwritten and returned."
        if inplace
        else "``out``, if given, is written and returned; otherwise a new array of the input's shape and dtype."
    )
    return (
        f"{op.summary}\n\n{tensors}: arrays of {dtypes} (BF16: ml_dtypes.bfloat16), any strides. {where}\n"
        "``soc`` and ``numerics`` default to the present Config. Raises emu.AclError with the code of the two-phase call."
    )


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    try:
        found = function(operator(name))
    except LookupError as error:
        raise AttributeError(f"emu.ops: {error.args[0]}") from None
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(op.python_name for op in OPERATORS)
