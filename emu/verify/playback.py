"""A kernel's own source, run in Python on one case: every step with its operands and its result.

The files of the kernels are executed a second time. Their functions are plain Python, so numbers that carry bits (`values`) go through
the same statements that the compiler sees. What speaks to the compiler is replaced: memory by arrays (`memory`), bit casts, a fused
multiply-add, and the vectors written out by hand (lines of 64 items), of which the plain form runs.
Vectors by the compiler, tables and tiling are not seen either; so the last step is compared with what the machine code gave.
"""

from __future__ import annotations

import builtins
import threading
from collections.abc import Callable, Sequence
from functools import cache
from importlib.util import find_spec, resolve_name
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from emu_kernels.reference.arith import Step
from emu_kernels.variant import Variant

from emu.verify import memory, values, vectors
from emu.verify.memory import Pointer, Table
from emu.verify.values import NUMPY, Tape, Value, convert, fma, record, recording, text

KERNELS = "emu_kernels"
#: Longest row whose kernel is run: each element costs a millisecond.
MOST = 2048
_lock = threading.Lock()


class PlaybackError(Exception):
    """This case or this source cannot be run so; the text says why."""


def _same(x: Any) -> Any:
    return x


def _cast(kind: str) -> Callable[[Any], Value]:
    return lambda x: convert(kind, x)


def _bit_cast(target: str) -> Callable[[Any], Value]:
    def apply(x: Any) -> Value:
        bits = x.bits if isinstance(x, Value) else int(np.asarray(x).view(f"u{np.asarray(x).itemsize}"))
        unsigned = f"u{target[1:]}"
        if target == unsigned:
            return Value(target, values.cut(target, bits))
        raw = np.array(values.cut(unsigned, bits), NUMPY[unsigned])
        return Value(target, raw.view(NUMPY[target])[()])

    return apply


def _magnitude(constant: Any) -> Value:
    x = values.lift(constant, Value("f32", np.float32(0)))
    out = Value(x.kind, abs(x.x))
    if recording():
        record(f"|{text(x)}|", out)
    return out


def _fma(kind: str) -> Callable[..., Value]:
    def apply(a: Any, b: Any, c: Any) -> Value:
        out = fma(kind, a, b, c)
        if recording():
            shown = [text(v) for v in (a, b, c)]
            record(f"{shown[0]} * {shown[1]} + {shown[2]}, fused", out)
        return out

    return apply


def _half_to_float(constant: Any) -> Value:
    h = values.lift(constant, Value("u16", 0))
    out = Value("f32", np.float32(np.uint16(h.bits).view(np.float16)))
    if recording():
        record(f"FLOAT16 {text(h)} to FLOAT", out)
    return out


def _float_to_half(constant: Any) -> Value:
    x = values.lift(constant, Value("f32", np.float32(0)))
    out = Value("u16", int(np.float32(x.x).astype(np.float16).view(np.uint16)))
    if recording():
        record(f"FLOAT {text(x)} to FLOAT16", out, "FLOAT16")
    return out


def _constant(value: float, kind: str = "f64") -> Callable[[], Value]:
    return lambda: convert(kind, value)


def _refuse(*args: Any) -> Any:
    raise PlaybackError("the kernel uses vectors written out by hand that have no plain form here")


def _nothing(*args: Any) -> None:
    """A hint to the CPU or the compiler."""


def _copy_tile(dst: Pointer, src: Pointer, nbytes: int, stream: Any) -> None:
    dst.memory[dst.at : dst.at + nbytes] = src.memory[src.at : src.at + nbytes]


def _unchanged(name: str, body: Any) -> Any:
    return body


_BITS: dict[str, Any] = {
    "bits_of_f32": _bit_cast("u32"), "f32_of_bits": _bit_cast("f32"), "bits_of_f64": _bit_cast("u64"), "f64_of_bits": _bit_cast("f64"),
    "f32_of_half_hw": _half_to_float, "half_of_f32_hw": _float_to_half, "fma32": _fma("f32"), "fma64": _fma("f64"),
    "fabs32": _magnitude, "fabs64": _magnitude, "pointer": _same, "address": lambda p: 0, "offset": lambda p, n: p.moved(n),
    "load": {k: memory.load(k) for k in NUMPY}, "store": {k: memory.store(k) for k in NUMPY}, "scratch": memory.scratch,
    "constant": _constant, "intrinsic": _same,
}  # fmt: skip
_STAND_INS: dict[str, dict[str, Any]] = {
    "machine": {
        "converts_half": lambda: True, "no_inline": _nothing, "prefetch": _nothing, "store_fence": _nothing, "float_mode_enter": _nothing,
        "float_mode_leave": _nothing, "cgutils": None,
    },
    "vectors": {"add64": memory.add64, "fill64": memory.fill64, "sum_pairs": memory.sum_pairs, "copy_line": _refuse,
                "stream_line": _refuse},
    "loops": {"TILE_BYTES": 512, "STREAM_BYTES": 1 << 62, "body_of": _unchanged, "guarded": _same, "copy_tile": _copy_tile},
}  # fmt: skip
#: Their functions are one step each; those of the flows and of the rows show what they do inside.
_HELPERS = ("elementary", "formats", "double")
_PLAYED = (*_HELPERS, "reduce", "row_parts", "row_sums", "rows", "columns", "exp_lanes")


def _stand_in(package: str, name: str, whole: bool) -> Any:
    """Module `name` of the kernels for a file that imports it; `whole`: its functions are single steps."""
    if name == "bits":
        return SimpleNamespace(**_BITS, inline=memory.step if whole else _same)
    if name == "lanes":
        return vectors.lanes(_module(package, "formats"))
    if name in _STAND_INS:
        return SimpleNamespace(**_STAND_INS[name])
    return _module(package, name) if name in _PLAYED else None


@cache
def _module(package: str, name: str) -> Any:
    """One file of the kernels once more, over the stand-ins."""
    full = f"{package}.{name}"
    spec = find_spec(full)
    if spec is None or spec.origin is None:
        raise PlaybackError(f"no source of {full}")

    def importing(wanted: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level:
            target = resolve_name("." * level + wanted, full.rpartition(".")[0]).removeprefix(package).lstrip(".")
            if not target:
                return SimpleNamespace(**{part: _stand_in(package, part, name in _HELPERS) for part in fromlist})
            found = _stand_in(package, target, name in _HELPERS)
            if found is not None:
                return found
        return builtins.__import__(wanted, globals, locals, fromlist, level)

    module = ModuleType(f"{full} (playback)")
    module.__dict__.update(__package__=full.rpartition(".")[0], __builtins__={**vars(builtins), "__import__": importing})
    with open(spec.origin, encoding="utf-8") as file:
        exec(compile(file.read(), spec.origin, "exec"), module.__dict__)
    if name == "exp_lanes":  # which leave every exp open here, for the plain form
        module.__dict__["exp_lanes"] = lambda *args: 1
    # Constants are made by now; from here on a NumPy type is a conversion.
    kinds = {NUMPY[k].type: _cast(k) for k in NUMPY}
    for key, value in list(vars(module).items()):
        if isinstance(value, type) and value in kinds:
            setattr(module, key, kinds[value])
        elif isinstance(value, dict) and any(isinstance(v, type) and v in kinds for v in value.values()):
            setattr(module, key, {k: kinds.get(v, v) for k, v in value.items()})
    names = {t.__name__: c for t, c in kinds.items()}
    module.__dict__["np"] = SimpleNamespace(**names, inf=np.inf, nan=np.nan)
    return module


def _run(body: Callable[[], None]) -> list[Step]:
    tape = Tape()
    with _lock, np.errstate(all="ignore"):
        values.current.append(tape)
        try:
            body()
        except PlaybackError:
            raise
        except Exception as error:
            raise PlaybackError(f"{type(error).__name__}: {error}") from error
        finally:
            values.current.pop()
    return tape.steps


def _quietly(make: Callable[[], Any]) -> Any:
    """Prepare something without writing steps."""
    values.current[-1].quiet += 1
    try:
        return make()
    finally:
        values.current[-1].quiet -= 1


def _tensor(name: str, dtype: str, patterns: Sequence[int], alone: int | None = None) -> Pointer:
    size = {"FLOAT": 4, "INT32": 4, "DOUBLE": 8, "INT8": 1}.get(dtype, 2)
    array = np.array([p % (1 << (8 * size)) for p in patterns], f"u{size}")
    return Pointer(array.view(np.uint8), name=name, dtype=dtype, alone=alone)


def elementwise(package: str, family: str, flow: str, v: Variant, inputs: Sequence[int]) -> list[Step]:
    """Steps of an elementwise kernel on one element, its result last. Raises PlaybackError."""

    def body() -> None:
        plan = getattr(_module(package, f"flows.{family}"), flow)(v)
        tensors = [_tensor(f"in{k}", d, [bits]) for k, (d, bits) in enumerate(zip(plan.inputs, inputs, strict=True))]
        tile = _quietly(plan.host or plan.tile)
        tile(_tensor("out", plan.output, [0]), *tensors, _table(plan), 1, *([False] if plan.direct else []))

    return _run(body)


def _table(plan: Any) -> Any:
    if plan.table is None:
        return None
    _, filled = plan.table()
    tile = _quietly(filled.tile)

    def entry(pattern: int) -> Value:
        out = Pointer(np.zeros(4, np.uint8), name="table entry", dtype="FLOAT")
        tile(out, _tensor("pattern", filled.inputs[0], [pattern]), None, 1)
        return Value("f32", out.items("f32", 0)[0])

    return Table(entry)


def rows(package: str, family: str, flow: str, v: Variant, last: bool, inputs: Sequence[Sequence[int]], index: int) -> list[Step]:
    """Steps of a kernel over rows on one row: those of element `index`, and the additions of the sum. Raises PlaybackError."""
    r = len(inputs[0])
    if r > MOST:
        raise PlaybackError(f"a row of more than {MOST} elements takes too long in Python")

    def body() -> None:
        plan = getattr(_module(package, f"flows.{family}"), flow)(v, last)
        tensors = [_tensor(f"in{k}[{index}]", plan.dtype, row, index) for k, row in enumerate(inputs)]
        out = _tensor(f"out[{index}]", plan.dtype, [0] * r, index)
        shown = plan._replace(scalars=lambda: _watched(plan, index), vectors=None, exponent=None)
        module = _module(package, "rows" if last else "columns")
        kernel = _quietly(lambda: (module.along_last if last else module.along_other)("playback", shown))
        values.current[-1].sums = True
        kernel([out, *tensors, 1, r, 1, 0], 0, 1)
        values.current[-1].sums = False
        size = out.memory.size // r
        kind = "f64" if size == 8 else "f32" if size == 4 else "u16"
        memory.load(kind)(out, index)

    steps = _run(body)
    # A row is read once for each pass.
    return [s for i, s in enumerate(steps) if not (s.name.startswith("in") and s in steps[:i])]


def _watched(plan: Any, index: int) -> Any:
    """The four functions of a row plan. Their steps are written if they are of the whole row or of element `index`."""
    prepare, term, finish, last_step = plan.scalars()

    def shown(function: Callable[..., Any], what: str, whole: bool) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            tape = values.current[-1]
            hidden = not whole and memory.latest[0] != index
            tape.quiet += hidden
            tape.sums = False
            try:
                if what:
                    record(f"{what} of the row", args[0])
                return function(*args)
            finally:
                tape.quiet -= hidden
                tape.sums = True

        return run

    return shown(prepare, "maximum", True), shown(term, "", False), shown(finish, "sum", True), shown(last_step, "", False)
