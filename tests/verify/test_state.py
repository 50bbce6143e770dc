"""The file of finished work: what it keeps, what it leaves out, and that nothing in it is lost or taken for another's."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from emu_kernels.variant import Variant

from emu.verify import engine
from emu.verify.state import State, StateError, stamp
from emu.verify.units import Unit

V = Variant("dav_2201", "BF16", False)


def test_a_stopped_run_goes_on(tmp_path: Path, counting: Any, small: list[Unit]) -> None:
    path = tmp_path / "state.jsonl"
    with pytest.raises(KeyboardInterrupt):
        engine.execute(small, counting(fail_at=5), jobs=1, state=State(path))
    with path.open("a") as file:
        file.write('{"key": "half a li')
    second, seen = counting(), list[str]()
    state = State(path)
    assert state.damaged == 1
    outcomes = engine.execute(small, second, jobs=1, state=state, finished=lambda u, o: seen.append(u.key))
    assert second.calls == 4  # two of the four units were done
    assert [o.key for o in outcomes] == [u.key for u in small]
    assert sorted(seen) == sorted(u.key for u in small)
    assert State(path).done == {o.key: o for o in outcomes}


def test_a_new_run_keeps_what_it_does_not_repeat(tmp_path: Path, counting: Any, small: list[Unit]) -> None:
    path = tmp_path / "state.jsonl"
    engine.execute(small, counting(), jobs=1, state=State(path))
    fresh = [small[1].key]
    assert set(State(path, fresh).done) == {u.key for u in small} - set(fresh)


def test_examples_survive(tmp_path: Path, counting: Any, small: list[Unit]) -> None:
    path = tmp_path / "state.jsonl"
    units = [small[0], Unit("softmax_backward", V, "length", 3)]
    outcomes = engine.execute(units, counting(offset=1), jobs=1, state=State(path))
    assert all(o.examples for o in outcomes)
    again = State(path)
    assert again.done == {o.key: o for o in outcomes}
    assert again.damaged == 0


def test_another_stamp_is_not_resumed_and_a_new_run_starts_anew(tmp_path: Path, counting: Any, small: list[Unit]) -> None:
    path = tmp_path / "state.jsonl"
    engine.execute(small[:1], counting(), jobs=1, state=State(path))
    path.write_text(path.read_text().replace(stamp(), "0" * 16))
    before = path.read_bytes()
    with pytest.raises(StateError, match="stamp 0000000000000000, here"):
        State(path)
    assert path.read_bytes() == before
    assert State(path, [small[0].key]).done == {}
    assert State(path).done == {}


def test_the_stamp_knows_the_target_of_the_compiler() -> None:
    code = "from emu.verify.state import stamp; print(stamp())"
    environment = {**os.environ, "NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
    generic = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True, timeout=60)
    assert len(generic.stdout.strip()) == len(stamp())
    assert generic.stdout.strip() != stamp()


KEY = "selu_backward/dav_2201/BF16/infnan/device/pairs/0/2"
ROW = "softmax_backward/dav_2201/BF16/infnan/device/length/3/0"
GOOD = {"key": KEY, "cases": 9, "mismatches": 1, "seconds": 0.5, "examples": [[[1, 2], 3, 4, None, 0]]}
GOOD_ROW = {**GOOD, "key": ROW, "examples": [[[[1, 2, 3], [4, 5, 6]], 3, 4, True, 2]]}
BAD: list[Any] = [
    *({**GOOD, "cases": x} for x in ("9", None, -1, 9.0, True, 0)),
    *({**GOOD, "seconds": x} for x in ("1", None, -1, float("nan"), float("inf"), [])),
    *({**GOOD, "mismatches": x} for x in (0, "1", 10)),
    *({**GOOD, "key": x} for x in ([KEY], None, "", "mish/dav_2201/BF16/infnan/device/pairs/0/2", KEY.replace("BF16", "BF17"), KEY[:-4])),
    *({**GOOD, "examples": [x]} for x in ([], [[1, 2]], [[1], 3, 4, None, 0], [[1, 1 << 16], 3, 4, None, 0], [[1, 2], -1, 4, None, 0], 7)),
    *({**GOOD, "examples": [x]} for x in ([[1, "2"], 3, 4, None, 0], [[1, 2], 3, 4, True, 0], [[1, 2], 3, 4, None, 1])),
    {**GOOD, "examples": GOOD_ROW["examples"]},
    *({**GOOD_ROW, "examples": [[x, 3, 4, True, k]]} for x, k in (([[1, 2], [4]], 0), ([[], []], 0), ([[1], [2]], 1), ([[1], 2], 0))),
    *({**GOOD, "examples": x} for x in (None, 3, "ab", {"a": 1})),
    {**GOOD, "more": 1},
    {},
    [],
    3,
]  # fmt: skip


def test_a_line_that_is_no_outcome_is_left_out_and_only_that_one(tmp_path: Path) -> None:
    path = tmp_path / "s"
    bad = [*map(json.dumps, BAD), "[" * 100_000, "", '{"key": "half a li', '{"a": "\udcff"}']
    lines = [json.dumps({"stamp": stamp()}), json.dumps(GOOD), *bad, json.dumps(GOOD_ROW)]
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape"))
    state = State(path)
    assert set(state.done) == {KEY, ROW}
    assert state.damaged == len(bad)
    assert State(path).done == state.done


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path: Path, counting: Any, small: list[Unit]) -> None:
    path = tmp_path / "s"
    engine.execute(small, counting(), jobs=1, state=State(path))
    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        with pytest.raises(StateError, match=r"cannot keep finished work .* --state"):
            State(path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "file").touch()
    State(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert json.loads((tmp_path / "file").read_text()) == {"stamp": stamp()}


def test_what_is_no_regular_file_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", tmp_path, Path("/dev/zero"), Path("/dev/full")):
        with pytest.raises(StateError, match="not a regular file"):
            State(path)


def test_without_a_file_the_state_is_in_memory(counting: Any, small: list[Unit]) -> None:
    state = State(None)
    engine.execute(small[:1], counting(), jobs=1, state=state)
    assert list(state.done) == [small[0].key]
