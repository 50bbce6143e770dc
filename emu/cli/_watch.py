"""`emu info --watch`: memory, streams, allocations and queue depths of a running process."""

from __future__ import annotations

import json
import sys
import time
from typing import Any

from emu.cli._common import print_table
from emu.cli._errors import CommandError

_MB = 1 << 20


def follow(pid: int | None, interval: float, count: int | None, as_json: bool) -> None:
    """Print a snapshot every ``interval`` seconds, ``count`` times or until the process ends."""
    from emu.runtime import watch

    target = _choose(pid, watch.running())
    looks = 0
    while count is None or looks < count:
        if looks:
            time.sleep(interval)
        found = watch.ask(target)
        if found is None:
            if looks == 0:
                raise CommandError(f"process {target} cannot be watched: it has ended, or was started without EMU_WATCH=1")
            print(f"process {target} has ended")
            return
        if as_json:
            print(json.dumps(found), flush=True)
        else:
            if sys.stdout.isatty():
                print("\033[H\033[J", end="")
            show(found)
            sys.stdout.flush()
        looks += 1


def _choose(pid: int | None, running: list[int]) -> int:
    if pid is not None:
        return pid
    if not running:
        raise CommandError("no process can be watched: start one with EMU_WATCH=1 in its environment")
    if len(running) > 1:
        raise CommandError(f"several processes can be watched: choose one with --pid: {', '.join(map(str, running))}")
    return running[0]


def show(found: dict[str, Any]) -> None:
    """One snapshot as tables."""
    print(f"EMULATED by aclnn-emu: no NPU is read.   Process {found['pid']}: {' '.join(found['argv'])}")
    if not found["devices"]:
        print("No device is in use.")
    for d in found["devices"]:
        largest = ", ".join(f"{size / _MB:.1f}" for size in d["largest"])
        fault = f", FAULT {d['fault']}" if d["fault"] else ""
        print(
            f"Device {d['device']} {d['name']}: HBM {d['hbm_used'] / _MB:.1f} of {d['hbm_total'] / _MB:.0f} MB in {d['allocations']} "
            f"blocks{f' (largest: {largest} MB)' if largest else ''}, {d['events']} events{fault}"
        )
        rows = [(str(s["stream"]), str(s["queued"]), s["head"] or "-", f"{s['simulated_us']:.3f}") for s in d["streams"]]
        print_table(("stream", "queued", "next", "clock, µs (simulated)"), rows)
