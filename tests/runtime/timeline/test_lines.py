"""Lines made at once are the lines made one by one, and both are what JSON says of the numbers."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.timeline.lines import FEW, Maker, Slot, Template

SLOTS = (Slot(0, 12, True), Slot(1, 4, True), Slot(2, 8), Slot(3, 12), Slot(2, 12))


def template(name: str = "100% µ") -> Template:
    pieces: list[str | Slot] = [f'{{"name":"{name}"']
    for k, slot in enumerate(SLOTS):
        pieces += [f',"{k}":', slot]
    return Template([*pieces, "}"])


def numbers(digits: int) -> st.SearchStrategy[int]:
    """Of every length up to ``digits``, the largest included."""
    return st.integers(0, digits).flatmap(lambda d: st.integers(0, 10**d - 1))


rows = st.lists(st.tuples(numbers(12), numbers(7), numbers(8), numbers(12)), min_size=FEW, max_size=40)


@given(rows)
def test_at_once_and_one_by_one(got):
    values = np.array(got, np.int64).T.copy()
    made = template()
    assert made.fits(values)
    text = bytes(Maker().render([made], None, values, 2))
    assert text == b"".join(made.one(list(row)) for row in got)
    for line, (a, b, c, d) in zip(json.loads("[" + text.decode()[1:] + "]"), got, strict=True):
        assert line == {"name": "100% µ", "0": a / 1000, "1": b / 1000, "2": c, "3": d, "4": c}


@pytest.mark.parametrize("row", [(0, 0, 10**8, 0), (0, 10**7, 0, 0), (10**15, 0, 0, 10**12), (0, 0, 0, -5)])
def test_a_number_without_room_widens_its_line(row):
    got = [(5, 5, 5, 5)] * (2 * FEW) + [row]
    values = np.array(got, np.int64).T.copy()
    made = template()
    assert not made.fits(values)
    lines = json.loads("[" + bytes(Maker().render([made], None, values, 2)).decode()[1:] + "]")
    assert [lines[-1][key] for key in "0123"] == [row[0] / 1000, row[1] / 1000, row[2], row[3]]
    assert lines[0] == {"name": "100% µ", "0": 0.005, "1": 0.005, "2": 5, "3": 5, "4": 5}


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_kinds_keep_their_order(codes):
    kinds = [template("a"), template("bb"), Template(['{"name":"c"}'])]
    values = np.arange(4 * len(codes), dtype=np.int64).reshape(4, -1)
    lines = json.loads("[" + bytes(Maker().render(kinds, np.array(codes), values, 2)).decode()[1:] + "]")
    assert [line["name"] for line in lines] == [("a", "bb", "c")[code] for code in codes]
    assert [line["3"] for line in lines if "3" in line] == [int(values[3, k]) for k, code in enumerate(codes) if code < 2]
