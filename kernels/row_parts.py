"""What the templates over rows and columns need of a flow."""

from __future__ import annotations

from typing import Any

from .bits import inline, offset, scratch
from .flows import RowPlan
from .formats import FORMATS, reader, writer
from .loops import body_of
from .machine import no_inline
from .reduce import Orders


class Parts:
    """What the templates need of a flow."""

    def __init__(self, name: str, plan: RowPlan) -> None:
        self.size = FORMATS[plan.dtype].size
        self.orders = orders = Orders("f64" if plan.dtype == "DOUBLE" else "f32")
        self.read = read = reader(plan.dtype)
        self.write = write = writer(plan.dtype, plan.saturate)
        prepare, term, finish, last_step = plan.scalars()
        self.prepare, self.finish, self.term = prepare, finish, term
        zero, put = orders.zero, orders.put
        if plan.inputs == 2:
            read_b = read
        else:

            @inline
            def read_b(p, i):  # type: ignore[no-untyped-def]
                return zero

        self.read_b = read_b

        @inline
        def larger(x, m):  # type: ignore[no-untyped-def]
            # A NaN stays the maximum, wherever it stands: x > m is false for a NaN m.
            return x if (x > m) | (x != x) else m

        self.larger = larger

        self.heavy = plan_heavy = plan.heavy

        # A flow with an exp keeps these loops as functions, so that its polynomial is compiled once for each.
        def terms(x, a, b, m, n):  # type: ignore[no-untyped-def]
            if plan_heavy:
                no_inline()
            for k in range(n):
                put(x, k, term(read(a, k), read_b(b, k), m))

        def results(tile, a, b, m, s, n):  # type: ignore[no-untyped-def]
            if plan_heavy:
                no_inline()
            for k in range(n):
                write(tile, k, last_step(read(a, k), read_b(b, k), m, s))

        #: Of an exp that the result needs too: kept(tile, x, s, n) gives results from the exps that the sum has left in x.
        self.keeps, self.kept = False, inline(lambda tile, x, s, n: None)
        if plan.exponent is not None:
            terms, results = self._by_exps(name, plan, plan.exponent(), results)
        self.terms: Any = body_of(name + "_terms", terms) if plan.heavy else inline(terms)
        self.results: Any = body_of(name + "_results", results) if plan.heavy else inline(results)
        self.last_step = last_step

    def _by_exps(self, name: str, plan: RowPlan, exponent: tuple[Any, Any, Any], results: Any) -> tuple[Any, Any]:
        """terms and results with the exp in tiles of its own."""
        from .elementary import EXP_TILE
        from .exp_lanes import exps  # only a compiler can use them, and this file is also run without one

        argument, share, exp_tile = exponent
        read, write, size, get, put = self.read, self.write, self.size, self.orders.get, self.orders.put
        exp, differences, powers = exps(name, exp_tile, EXP_TILE), scratch(4 * EXP_TILE), scratch(4 * EXP_TILE)

        @inline
        def exps_of(e, a, m, n):  # type: ignore[no-untyped-def]
            d = differences()
            for i in range(n):
                put(d, i, argument(read(a, i), m))
            exp(e, d, n)

        def terms(x, a, b, m, n):  # type: ignore[no-untyped-def]
            no_inline()
            for k in range(0, n, EXP_TILE):
                exps_of(offset(x, 4 * k), offset(a, k * size), m, min(EXP_TILE, n - k))

        def shares(tile, a, b, m, s, n):  # type: ignore[no-untyped-def]
            no_inline()
            e = powers()
            for k in range(0, n, EXP_TILE):
                w, to = min(EXP_TILE, n - k), offset(tile, k * size)
                exps_of(e, offset(a, k * size), m, w)
                for i in range(w):
                    write(to, i, share(get(e, i), s))

        if share is None:
            return terms, results

        def kept(tile, x, s, n):  # type: ignore[no-untyped-def]
            for i in range(n):
                write(tile, i, share(get(x, i), s))

        self.keeps, self.kept = plan.order == "lanes64", inline(kept)
        return terms, shares
