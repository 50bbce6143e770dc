"""Lines made at once are the lines made one by one, and both are what JSON says of the numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from emu.kernel_cache import build
from emu.timeline.lines import MANY, Maker, Slot, Template

SLOTS = (Slot(0, 12, True), Slot(1, 4, True), Slot(2, 8), Slot(3, 12), Slot(2, 12))


def template(name: str = "100% µ") -> Template:
    pieces: list[str | Slot] = [f'{{"name":"{name}"']
    for k, slot in enumerate(SLOTS):
        pieces += [f',"{k}":', slot]
    return Template([*pieces, "}"])


def numbers(digits: int) -> st.SearchStrategy[int]:
    """Of every length up to ``digits``, the largest included."""
    return st.integers(0, digits).flatmap(lambda d: st.integers(0, 10**d - 1))


def by_kernel(templates: list[Template], codes: list[int], values: Any) -> bytes:
    maker = Maker()
    maker._kernel = build().lines()
    return bytes(maker.render(templates, np.array(codes, np.int64), values))


def by_python(templates: list[Template], codes: list[int], values: Any) -> bytes:
    return bytes(Maker().render(templates, np.array(codes, np.int64), values))


def parsed(text: bytes) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = json.loads("[" + text.decode()[1:] + "]")
    return made


rows = st.lists(st.tuples(numbers(12), numbers(7), numbers(8), numbers(12)), min_size=1, max_size=40)


@given(rows)
def test_at_once_and_one_by_one(got):
    values = np.array(got, np.int64).T.copy()
    made = template()
    text = by_kernel([made], [0] * len(got), values)
    assert text == by_python([made], [0] * len(got), values)
    assert len(text) == len(made.blank) * len(got)
    for line, (a, b, c, d) in zip(parsed(text), got, strict=True):
        assert line == {"name": "100% µ", "0": a / 1000, "1": b / 1000, "2": c, "3": d, "4": c}


@pytest.mark.parametrize("row", [(0, 0, 10**8, 0), (0, 10**7, 0, 0), (10**15, 0, 0, 10**12), (0, 0, 0, -5)])
@pytest.mark.parametrize("at", [0, 7, 19])
def test_a_number_without_room_widens_its_line(row, at):
    got = [(5, 5, 5, 5)] * 20
    got[at] = row
    values = np.array(got, np.int64).T.copy()
    text = by_kernel([template()], [0] * 20, values)
    assert text == by_python([template()], [0] * 20, values)
    for k, line in enumerate(parsed(text)):
        a, b, c, d = got[k]
        assert line == {"name": "100% µ", "0": a / 1000, "1": b / 1000, "2": c, "3": d, "4": c}
    if row[3] >= 0:
        assert len(text) > 20 * len(template().blank)


@given(st.lists(st.integers(0, 2), min_size=1, max_size=60))
def test_kinds_keep_their_order(codes):
    kinds = [template("a"), template("bb"), Template(['{"name":"c"}'])]
    values = np.arange(4 * len(codes), dtype=np.int64).reshape(4, -1)
    text = by_kernel(kinds, codes, values)
    assert text == by_python(kinds, codes, values)
    made = parsed(text)
    assert [line["name"] for line in made] == [("a", "bb", "c")[code] for code in codes]
    assert [line["3"] for line in made if "3" in line] == [int(values[3, k]) for k, code in enumerate(codes) if code < 2]


def test_without_a_compiler(monkeypatch):
    def broken() -> None:
        raise RuntimeError("NUMBA_DISABLE_JIT is set")

    monkeypatch.setattr(build(), "lines", broken)
    text = Maker().render([template()], np.zeros(MANY, np.int64), np.ones((4, MANY), np.int64))
    assert len(parsed(bytes(text))) == MANY


def test_the_kernel_is_loaded_when_there_is_much_to_write():
    asked: list[int] = []
    maker = Maker()
    for count in (MANY - 1, MANY, 3):
        maker.render([template()], np.zeros(count, np.int64), np.ones((4, count), np.int64))
        asked.append(maker._kernel is not None)
    assert asked == [False, True, True]
