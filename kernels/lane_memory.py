"""Arrays of a float dtype while the code of a kernel is generated, taken by vectors and widened to FLOAT, which is exact."""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped]

from .lane_values import FLOATS, HALVES, I32, INTS, LANES, Lanes

_I16, _I64 = ir.IntType(16), ir.IntType(64)
_SHORTS = ir.VectorType(_I16, LANES)
_PAIR = ir.VectorType(_I16, 2 * LANES)
#: Which of 16 elements a pair of vectors holds. Of BF16 it is the order in which AVX2 widens and narrows in one instruction each.
ORDER = {
    "FLOAT16": (tuple(range(LANES)), tuple(range(LANES, 2 * LANES))),
    "BF16": ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
}


def shuffled(builder: Any, a: Any, b: Any, order: list[int]) -> Any:
    """Elements of a and b, which are numbered on, in this order."""
    return builder.shuffle_vector(a, b, ir.Constant(ir.VectorType(I32, len(order)), order))


def in_order(builder: Any, dtype: str, low: Any, high: Any) -> tuple[Any, Any]:
    """What `Memory.pair` gives, or was computed from it, as elements 0 to 7 and 8 to 15."""
    places = [k for half in ORDER[dtype] for k in half]
    first, second = ([places.index(k) for k in half] for half in ORDER["FLOAT16"])
    return shuffled(builder, low, high, first), shuffled(builder, low, high, second)


class Memory:
    """An array at an address, by eight elements or, of 16 bits, by sixteen: a pair of vectors."""

    def __init__(self, builder: Any, address: Any, dtype: str = "FLOAT") -> None:
        self.builder, self.dtype, self.address = builder, dtype, address
        self.vector = {"FLOAT": FLOATS, "BF16": _SHORTS, "FLOAT16": HALVES}[dtype]

    def _at(self, index: Any, kind: Any) -> Any:
        return self.builder.gep(self.builder.bitcast(self.address, kind.as_pointer()), [index], source_etype=kind)

    def _store(self, value: Any, index: Any, stream: bool) -> None:
        size = 4 if self.dtype == "FLOAT" else 2
        stored = self.builder.store(value, self._at(index, value.type), align=size * (value.type.count if stream else 1))
        if stream:
            stored.set_metadata("nontemporal", self.builder.module.add_metadata([ir.Constant(I32, 1)]))

    def __getitem__(self, index: Any) -> Lanes:
        b = self.builder
        value = b.load(self._at(index, self.vector), align=4 if self.dtype == "FLOAT" else 2, typ=self.vector)
        if self.dtype == "FLOAT16":
            value = b.fpext(value, FLOATS)
        elif self.dtype == "BF16":
            value = b.bitcast(b.shl(b.zext(value, INTS), ir.Constant(INTS, [16] * LANES)), FLOATS)
        return Lanes(b, value)

    def put(self, index: Any, lanes: Lanes, stream: bool = False, plus_zero: bool = False) -> None:
        """Rounded once; BF16 as formats.bf16_of_wide. With `stream` past the caches: the address is a multiple of the vector's size."""
        value = lanes.value
        if self.dtype == "FLOAT16":
            value = self._halves(lanes)
            value = self._without_minus_zero(value) if plus_zero else value
        elif self.dtype == "BF16":
            value = self.builder.trunc(self._rounded(lanes), _SHORTS)
        self._store(value, index, stream)

    def pair(self, index: Any) -> tuple[Lanes, Lanes]:
        """Sixteen elements of 16 bits in the dtype's order."""
        b = self.builder
        if self.dtype == "FLOAT16":
            at = b.shl(index, ir.Constant(index.type, 1))
            return self[at], self[b.add(at, ir.Constant(index.type, 1))]
        value, zeros = b.load(self._at(index, _PAIR), align=2, typ=_PAIR), ir.Constant(_PAIR, None)
        low, high = (shuffled(b, zeros, value, [at for k in half for at in (0, 2 * LANES + k)]) for half in ORDER["BF16"])
        return Lanes(b, b.bitcast(low, FLOATS)), Lanes(b, b.bitcast(high, FLOATS))

    def put_pair(self, index: Any, low: Lanes, high: Lanes, stream: bool = False, plus_zero: bool = False) -> None:
        """As `put`, of what is in the order of `pair`."""
        b = self.builder
        if self.dtype == "FLOAT16":
            value = shuffled(b, self._halves(low), self._halves(high), list(range(2 * LANES)))
            value = self._without_minus_zero(value) if plus_zero else value
        else:
            first, second = (b.bitcast(self._rounded(lanes), _PAIR) for lanes in (low, high))
            places = [k for half in ORDER["BF16"] for k in half]
            value = shuffled(b, first, second, [2 * places.index(k) for k in range(2 * LANES)])
        self._store(value, index, stream)

    def _halves(self, lanes: Lanes) -> Any:
        return self.builder.bitcast(self.builder.fptrunc(lanes.value, HALVES), _SHORTS)

    def _without_minus_zero(self, halves: Any) -> Any:
        b, kind = self.builder, halves.type
        minus = b.icmp_signed("==", halves, ir.Constant(kind, [-0x8000] * kind.count))
        return b.select(minus, ir.Constant(kind, None), halves)

    def _rounded(self, lanes: Lanes) -> Any:
        """BF16 as 32-bit integers."""
        b, bits, sixteen = self.builder, lanes.bits(), ir.Constant(INTS, [16] * LANES)
        odd = b.and_(b.lshr(bits, sixteen), ir.Constant(INTS, [1] * LANES))
        return b.lshr(b.add(b.add(bits, ir.Constant(INTS, [0x7FFF] * LANES)), odd), sixteen)


class Table:
    """FLOAT of a table of 65,536, by 16-bit patterns of a dtype at an address.

    One load for four patterns and one of the table for each: AVX2's gather is slower on the CPUs that we know.
    """

    def __init__(self, builder: Any, table: Any, patterns: Any, dtype: str) -> None:
        self.builder, self.table, self.order = builder, builder.bitcast(table, ir.FloatType().as_pointer()), ORDER[dtype]
        self.patterns = builder.bitcast(patterns, _I64.as_pointer())

    def _found(self, first: Any, places: tuple[int, ...]) -> Lanes:
        """By these patterns from the word `first` on."""
        b = self.builder
        value = ir.Constant(FLOATS, ir.Undefined)
        words: dict[int, Any] = {}
        for lane, place in enumerate(places):
            word = place // 4
            if word not in words:
                at = b.add(first, ir.Constant(first.type, word))
                words[word] = b.load(b.gep(self.patterns, [at], source_etype=_I64), align=2, typ=_I64)
            pattern = b.and_(b.lshr(words[word], ir.Constant(_I64, 16 * (place % 4))), ir.Constant(_I64, 0xFFFF))
            found = b.load(b.gep(self.table, [pattern], source_etype=ir.FloatType()), align=4, typ=ir.FloatType())
            value = b.insert_element(value, found, ir.Constant(I32, lane))
        return Lanes(b, value)

    def __getitem__(self, index: Any) -> Lanes:
        return self._found(self.builder.shl(index, ir.Constant(index.type, 1)), tuple(range(LANES)))

    def pair(self, index: Any) -> tuple[Lanes, Lanes]:
        """As :meth:`Memory.pair`."""
        first = self.builder.shl(index, ir.Constant(index.type, 2))
        low, high = (self._found(first, places) for places in self.order)
        return low, high
