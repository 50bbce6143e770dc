"""Two traces of one program: the hooks report to both, and both are written while it runs."""

from __future__ import annotations

import emu
from emu.runtime import hooks
from emu.timeline import reader
from emu.timeline.events import HARDWARE
from emu.timeline.recorder import CHUNK
from emu.timeline.writer import NOTE


def test_two_traces_are_both_written_while_the_program_runs(card, tmp_path):
    c = card(schedule="eager")
    s, x, y = c.stream(), c.tensor(64), c.tensor(32)
    with emu.trace(tmp_path / "a.json") as a, emu.trace(tmp_path / "b.json") as b:
        for k in range(3000):
            c.launch("aclnnInplaceExp", s, (x, y)[k % 2])
            assert max(len(a._pending), len(b._pending)) < CHUNK + 1024 * NOTE, k
        assert hooks.active.due == min(a.due, b.due) > 0
        a.due = b.due = 0  # half a second is over
        c.launch("aclnnInplaceExp", s, x)
        assert not a._pending
        assert not b._pending
        assert min(a.due, b.due) > 0
    traces = [reader.load(tmp_path / name) for name in ("a.json", "b.json")]
    for trace in traces:
        assert reader.problems(trace) == []
        read = [task["args"]["read bytes"] for task in trace.slices(HARDWARE)]
        assert read == [256, 128] * 1500 + [256]
    assert traces[0].slices(HARDWARE)[0]["name"] == "aclnnInplaceExp"
