"""Reports of tasks come in any order, in any number of pieces; each is found by its number, once."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from emu.timeline.ended import ROOM, Ended


def report(number: int) -> list[int]:
    return [number, 10 * number, 10 * number + 1, 10 * number + 2]


@given(st.permutations(range(40)), st.integers(1, 40), st.sampled_from([1, 7, ROOM, 5 * ROOM]))
def test_any_order(order, piece, apart):
    ended = Ended(100)
    numbers = np.array([100 + apart * k for k in range(40)])
    for begin in range(0, 40, piece):
        ended.add([x for k in order[begin : begin + piece] for x in report(int(numbers[k]))])
        done, times = ended.of(numbers)
        assert done.tolist() == [k in order[: begin + piece] for k in range(40)]
        assert times[done].tolist() == [report(int(n))[1:] for n in numbers[done]]
    assert ended.count == 40
    assert ended.one(int(numbers[3])) == tuple(report(int(numbers[3]))[1:])
    assert ended.one(int(numbers[3])) is None
    ended.take(numbers[5:], 35)
    assert ended.count == 4
    assert np.flatnonzero(ended.of(numbers)[0]).tolist() == [0, 1, 2, 4]


def test_what_is_taken_leaves_room():
    ended = Ended(1)
    for begin in range(1, 20 * ROOM, 500):
        numbers = np.arange(begin, begin + 500)
        ended.add([x for n in numbers.tolist() for x in report(n)])
        done, times = ended.of(numbers)
        assert done.all()
        assert (times[:, 0] == 10 * numbers).all()
        ended.take(numbers, 500)
    assert len(ended._state) <= 2 * ROOM


def test_tasks_from_before_are_left_out():
    ended = Ended(50)
    ended.add(report(49) + report(50) + report(3))
    assert ended.count == 1
    assert ended.one(49) is None
    assert ended.one(50) == (500, 501, 502)


def test_tasks_beyond_the_table_are_taken_too():
    ended = Ended(1)
    ended.take(np.array([5 * ROOM]), 0)
    ended.add([x for n in (3, 5 * ROOM + 1) for x in report(n)])
    assert ended.of(np.array([3, 5 * ROOM, 5 * ROOM + 1]))[0].tolist() == [True, False, True]
