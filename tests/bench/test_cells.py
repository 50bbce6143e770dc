from __future__ import annotations

from itertools import groupby

import pytest

from bench.cells import FLOATS, KI, MI, Cell, full, quick, thread_counts, tiny


def test_full_has_every_operator_type_size_and_thread_count():
    cells = set(full((1, 2)))
    for n in (64 * KI, MI, 16 * MI, 64 * MI):
        for dtype in FLOATS:
            for t in (1, 2):
                here = [c for c in cells if (c.elements, c.dtype, c.threads, c.layout, c.values) == (n, dtype, t, "contiguous", "normal")]
                kinds = {(c.operator, c.place) for c in here if c.path == "launch"}
                assert kinds >= {
                    ("SeluBackward", ""),
                    ("LogSigmoidBackward", ""),
                    *(("SoftmaxBackward", place) for place in ("last", "first", "middle")),
                }


def test_full_has_the_special_cells():
    cells = full((1, 2))
    assert {c.layout for c in cells if c.elements == 16 * MI} == {"contiguous", "transposed", "transposed both", "padded"}
    assert {c.dtype for c in cells if c.values == "bits"} == set(FLOATS)
    assert {c.elements for c in cells if c.inputs == 1} == {64 * KI, 16 * MI}
    assert any(c.dtype == "INT8" for c in cells)
    native = [c for c in cells if c.path == "native"]
    assert {c.elements for c in native} == {64 * KI}
    assert {c.threads for c in native} == {1}


def test_quick_is_a_part_of_full():
    assert set(quick((1, 2))) < set(full((1, 2)))


@pytest.mark.parametrize("cells", [full((1, 2)), quick((1, 2)), tiny((1, 2)), full((1,))])
def test_no_cell_comes_twice_and_sharers_of_tensors_are_neighbours(cells: list[Cell]):
    assert len(set(cells)) == len(cells)
    groups = [key for key, _ in groupby(cells, key=lambda c: c.data)]
    # The native 64 Ki cell stands between those of the launch path and shares their tensors.
    assert len(set(groups)) == len(groups)


def test_bytes_are_the_necessary_traffic():
    assert Cell("SeluBackward", "FLOAT", (100,), None, 1).bytes == 3 * 400
    assert Cell("SoftmaxBackward", "BF16", (10, 10), 0, 1).bytes == 3 * 200
    assert Cell("LogSigmoid", "FLOAT16", (100,), None, 2).bytes == 2 * 200


@pytest.mark.parametrize(("shape", "dim", "place"), [((4, 8), 1, "last"), ((4, 8), 0, "first"), ((4, 8, 2), 1, "middle"), ((8,), None, "")])
def test_place_of_the_reduced_dim(shape: tuple[int, ...], dim: int | None, place: str):
    assert Cell("SoftmaxBackward", "FLOAT", shape, dim, 1).place == place


def test_threads_never_exceed_what_there_is():
    assert thread_counts(1) == (1,)
    assert thread_counts(2) == thread_counts(64) == (1, 2)
