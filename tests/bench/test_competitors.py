from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from bench import cells, competitors, pytorch
from bench import work as works
from bench.arena import Arena
from bench.cells import Cell
from bench.limit import STREAM_BYTES, UNIT, Limit

TINY = cells.tiny((1, 2))


def name(cell: Cell) -> str:
    return "-".join(map(str, (*cell.label.split(), cell.dtype, cell.path, cell.layout, cell.values, f"{cell.threads}T")))


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena(max(map(works.bytes_needed, TINY)))


@pytest.mark.parametrize("cell", TINY, ids=name)
def test_everyone_computes_the_cell(cell: Cell, arena: Arena):
    runs = competitors.competitors(works.make(cell, arena))
    wanted = {"emu", "limit"} if cell.threads == 1 else {"emu"}
    if pytorch.module() is not None and cell.dtype != "INT8":
        wanted.add("torch")
    if (
        cell.inputs == 2
        and cell.threads == 1
        and cell.dtype != "INT8"
        and (cell.layout, cell.values, cell.path) == ("contiguous", "normal", "launch")
    ):
        wanted.add("numpy")
    assert set(runs) == wanted
    for run in runs.values():
        run(2)


def test_an_idle_competitor_is_noticed(arena: Arena, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pytorch, "run", lambda work: lambda times: None)
    with pytest.raises(works.WrongResultError, match="torch"):
        competitors.competitors(works.make(TINY[0], arena))


def test_a_wrong_emulator_is_noticed(arena: Arena, monkeypatch: pytest.MonkeyPatch):
    def nearly(work: works.Work):
        right = real(work)

        def run(times: int) -> None:
            right(times)
            work.out.view(np.uint32)[-1] ^= 1

        return run

    real = competitors.emulator
    monkeypatch.setattr(competitors, "emulator", nearly)
    with pytest.raises(works.WrongResultError, match="emu"):
        competitors.competitors(works.make(TINY[0], arena))


def test_without_torch_its_column_is_missing(arena: Arena, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pytorch, "module", lambda: None)
    assert set(competitors.competitors(works.make(TINY[0], arena))) == {"emu", "numpy", "limit"}
    pytorch.set_threads(1)


def test_torch_puts_its_own_temporaries_on_huge_pages():
    code = "import os; from bench import pytorch; pytorch.module(); print(os.environ['THP_MEM_ALLOC_ENABLE'])"
    environment = {k: v for k, v in os.environ.items() if k != "THP_MEM_ALLOC_ENABLE"}
    root = Path(pytorch.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


def test_torch_reads_the_very_memory(arena: Arena):
    torch = pytest.importorskip("torch", reason="the extra torch is not installed")
    for dtype in ("FLOAT", "FLOAT16", "BF16"):
        arena.reset()
        array = arena.empty((4, 6), works.NUMPY[dtype])
        tensor = pytorch.as_tensor(array.T)
        assert tensor.data_ptr() == array.ctypes.data
        assert tensor.shape == (6, 4)
        tensor.fill_(1.5)
        assert (array.astype(np.float64) == 1.5).all()
        assert tensor.dtype == {"FLOAT": torch.float32, "FLOAT16": torch.float16, "BF16": torch.bfloat16}[dtype]


@pytest.mark.parametrize("nbytes", [UNIT, 5 * UNIT, STREAM_BYTES + 3 * UNIT])
@pytest.mark.parametrize("inputs", [1, 2])
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_limit_reads_and_writes_every_byte(nbytes: int, inputs: int, threads: int):
    arena = Arena(4 * (nbytes + (4 << 20)))
    rng = np.random.default_rng(3)
    a, b = (arena.empty((nbytes // 8,), np.uint64) for _ in range(2))
    a[:], b[:] = (rng.integers(0, 1 << 63, nbytes // 8, dtype=np.uint64) for _ in range(2))
    out = arena.empty((nbytes // 8 + 1,), np.uint64)
    out.fill(7)
    limit = Limit(out.ctypes.data, [x.ctypes.data for x in (a, b)[:inputs]], nbytes, threads)
    for _ in range(3):
        out[:-1].fill(0)
        limit.run(1)
        assert np.array_equal(out[:-1], a + b if inputs == 2 else a + np.uint64(1))
    limit.run(2)
    assert np.array_equal(out[:-1], a + b if inputs == 2 else a + np.uint64(1))
    assert out[-1] == 7
