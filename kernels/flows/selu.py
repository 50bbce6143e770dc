"""aclnnSeluBackward: gradient of SELU from the operator's *result* y."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..bits import inline
from ..formats import reader, writer
from ..variant import Variant

F = np.float32
#: lambda and lambda·alpha of SELU, to FLOAT.
S = F(1.0507009873554804934193349852946)
SA = F(1.7580993408473768599402175208123)


class BackwardKey(NamedTuple):
    steps: str
    dtype: str
    saturate: bool


def backward_key(v: Variant) -> BackwardKey:
    steps = "le" if v.arch == "dav_3510" else "lt"
    return BackwardKey(steps, v.dtype, v.saturate and v.dtype != "FLOAT")


def backward_tile(key: BackwardKey) -> Any:
    read, write = reader(key.dtype), writer(key.dtype, key.saturate)
    if key.steps == "lt":

        @inline
        def step(g, y):  # type: ignore[no-untyped-def]
            b = g * (y + SA)
            c = g * S
            negative = y < F(0.0)
            # Two selects and an addition: the addition turns -0.0 into +0.0.
            return (F(0.0) if negative else c) + (b if negative else F(0.0))

    else:

        @inline
        def step(g, y):  # type: ignore[no-untyped-def]
            c = g * S
            b = g * (y + SA)
            return b if y <= F(0.0) else c

    @inline
    def tile(out, gs, ys, n):  # type: ignore[no-untyped-def]
        for i in range(n):
            write(out, i, step(read(gs, i), read(ys, i)))

    return tile
