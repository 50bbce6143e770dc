"""aclnnLogSigmoid and aclnnLogSigmoidBackward. The backward's buffer is never read."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..bits import bits_of_f32, fabs32, inline, load, scratch, store
from ..catalog import flushes
from ..elementary import EXP_TILE, Elementary, flush_positive
from ..formats import reader, writer
from ..variant import Variant
from . import Kind, Plan

F = np.float32
U32 = np.uint32


def _factor(steps: str, flush: bool) -> Any:
    """The jitable f(x) that g is multiplied with, as (argument, finish): f(x) = finish(exp(argument(x)), x)."""
    math = Elementary(flush)
    exp, log, div = math.exp, math.log, math.div

    @inline
    def minus_magnitude(x):  # type: ignore[no-untyped-def]
        return -fabs32(x)

    @inline
    def itself(x):  # type: ignore[no-untyped-def]
        return x

    @inline
    def negative(x):  # type: ignore[no-untyped-def]
        # For x < 0: the sign alone saves a comparison, and at x = -0 either choice gives 1/2.
        return bits_of_f32(x) >= U32(0x80000000)

    if steps == "z":  # dav_2201, dav_3002

        @inline
        def finish(e, x):  # type: ignore[no-untyped-def]
            z = div(e, e + F(1.0))
            return F(1.0) - z if negative(x) else z

    elif steps == "select":  # dav_3510

        @inline
        def finish(e, x):  # type: ignore[no-untyped-def]
            # Neither operand is subnormal: e is flushed already (if this architecture does), e + 1 is at least 1.
            z = (F(1.0) if negative(x) else e) / (e + F(1.0))
            return flush_positive(z) if flush else z

    elif steps == "log":  # dav_1001, dav_2002

        @inline
        def finish(e, x):  # type: ignore[no-untyped-def]
            return exp(-log(e + F(1.0)))

    else:  # the formula of the operator's document

        @inline
        def finish(e, x):  # type: ignore[no-untyped-def]
            return div(F(1.0), F(1.0) + e)

    return (minus_magnitude if steps in ("z", "select") else itself), finish


def _factors(steps: str, dtype: str, flush: bool, last: Any) -> Any:
    """tile(out, gs, xs, table, n) that gives last(f(x), i) to `out`; exp has loops of its own, as exp_tile explains."""
    argument, finish = _factor(steps, flush)
    exp_tile, read, get, put = Elementary(flush).exp_tile, reader(dtype), load["f32"], store["f32"]
    memory = scratch(4 * EXP_TILE)

    @inline
    def tile(out, gs, xs, n):  # type: ignore[no-untyped-def]
        e = memory()
        for i in range(n):
            put(e, i, argument(read(xs, i)))
        exp_tile(e, n)
        for i in range(n):
            put(out, i, last(finish(get(e, i), read(xs, i)), gs, i))

    return tile


def _lanes(name: str, steps: str, flush: bool, plain: Any) -> Any:
    """The tile of `Plan.direct`: what is left over at the end is done by the tile `plain`."""
    # Imported here: only a compiler can use them, and the flow is also read without one.
    from ..exp_lanes import factor_times
    from ..lanes import direct
    from ..loops import body_of
    from ..machine import no_inline

    exp_tile, get, put = Elementary(flush).exp_tile, load["f32"], store["f32"]

    def again(e, xs, n):  # type: ignore[no-untyped-def]
        no_inline()  # it would take the registers of the fast loops
        for i in range(n):
            put(e, i, -fabs32(get(xs, i)))
        exp_tile(e, n)

    return direct(name, factor_times(steps, body_of(name + "_again", again), EXP_TILE), plain)


def log_sigmoid_backward(v: Variant) -> Plan:
    """(gradOutput g, self x) -> f(x) * g in FLOAT, one rounding to FLOAT16 or BF16 at the end.

    dav_2201, 3002: e = exp(-|x|), z = e/(e+1), f = x < 0 ? 1-z : z.   dav_3510: f = (x < 0 ? 1 : e)/(e+1).
    dav_1001, 2002: f = exp(-log(exp(x)+1)), which is 0 for x > 88.73.  Document: f = 1/(1+exp(x)).
    NaN x gives NaN; x = +inf gives 0*g.
    """
    flush = flushes(v)
    if v.numerics == "document":
        steps, flush = "document", False  # document_flush: a formula without a card keeps subnormals
    elif v.arch == "dav_3510":
        steps = "select"
    else:
        steps = "log" if v.arch in ("dav_1001", "dav_2002") else "z"
    saturate = v.saturate and v.dtype != "FLOAT"
    rule = "ftz" if flush else "sub"
    key = (steps, v.dtype, "sat" if saturate else "inf", rule)

    if v.dtype == "FLOAT":

        def make() -> Any:
            get = load["f32"]

            @inline
            def times_g(f, gs, i):  # type: ignore[no-untyped-def]
                return f * get(gs, i)

            factors = _factors(steps, "FLOAT", flush, times_g)

            @inline
            def tile(out, gs, xs, table, n):  # type: ignore[no-untyped-def]
                factors(out, gs, xs, n)

            return tile

        def host() -> Any:
            return _lanes("_".join(("log_sigmoid", steps, rule)), steps, flush, make())

        by_lanes = steps in ("z", "select")
        return Plan(key, ("FLOAT", "FLOAT"), "FLOAT", make, host=host if by_lanes else None, direct=by_lanes)

    def table() -> tuple[str, Plan]:
        def fill() -> Any:
            @inline
            def alone(f, gs, i):  # type: ignore[no-untyped-def]
                return f

            factors = _factors(steps, v.dtype, flush, alone)

            @inline
            def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
                factors(out, out, xs, n)

            return tile

        return "log_sigmoid_factor", Plan((steps, v.dtype, rule), (v.dtype,), "FLOAT", fill)

    def make_by_table() -> Any:
        read, write = reader(v.dtype), writer(v.dtype, saturate)
        pattern, look = load["u16"], load["f32"]

        # A 16-bit x has 65,536 values: looking f(x) up is faster than computing it.
        @inline
        def tile(out, gs, xs, table, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                write(out, i, look(table, np.int64(pattern(xs, i))) * read(gs, i))

        return tile

    def host_by_table() -> Any:
        from ..lanes import direct, mapped

        name = "_".join(("log_sigmoid", *(part for part in key if part)))
        product = mapped(name, Kind(v.dtype, saturate, table=True), lambda k, g, f: f * g, ())

        @inline
        def fast(out, gs, xs, table, n, stream):  # type: ignore[no-untyped-def]
            product(out, gs, xs, table, F(0.0), n, stream)

        return direct(name, fast, make_by_table(), 2)

    return Plan(key, (v.dtype, v.dtype), v.dtype, make_by_table, table, host_by_table, direct=True)


def log_sigmoid(v: Variant) -> Plan:
    """x <= 0 ? x - log1p(exp(x)) : -log1p(exp(-x)) in FLOAT; +inf gives -0, -inf gives -inf, NaN gives NaN."""
    flush = flushes(v)
    saturate = v.saturate and v.dtype != "FLOAT"

    def make() -> Any:
        math = Elementary(flush)
        exp, log1p = math.exp, math.log1p
        read, write = reader(v.dtype), writer(v.dtype, saturate)

        # exp(-|x|) is exp(x) in the first branch and exp(-x) in the second. A NaN takes the second and stays.
        @inline
        def tile(out, xs, table, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                x = read(xs, i)
                t = log1p(exp(-fabs32(x)))
                write(out, i, x - t if x <= F(0.0) else -t)

        return tile

    key = (v.dtype, "sat" if saturate else "inf", "ftz" if flush else "sub")
    return Plan(key, (v.dtype,), v.dtype, make)
