"""EMU_WATCH=1: the process answers `emu info --watch` in another terminal with what its devices hold and queue.

One sleeping thread listens on a Unix socket without a file (an abstract address that ends with the process) and answers processes of the
same user. Reading is done without the runtime's locks: a snapshot may be a moment out of step with itself, and holds nothing up.
"""

from __future__ import annotations

import json
import os
import socket
import struct
import sys
import time
from pathlib import Path
from typing import Any

from emu.runtime import device
from emu.runtime.threads import RuntimeThread

#: How many of the largest blocks a snapshot lists.
LARGEST = 5
_PREFIX = "aclnn-emu-watch"


def _address(pid: int) -> str:
    return f"\0{_PREFIX}-{os.getuid()}-{pid}"


def serve() -> None:
    """Listen until the process ends. Nothing happens where the address is taken or sockets are refused."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        listener.bind(_address(os.getpid()))
        listener.listen()
    except OSError as error:
        listener.close()
        os.write(2, f"emu: EMU_WATCH: cannot be watched: {error}\n".encode())
        return
    RuntimeThread(lambda: _serve(listener), "emu-watch").start()


def _serve(listener: socket.socket) -> None:
    while True:
        connection, _ = listener.accept()
        with connection:
            credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
            if struct.unpack("3i", credentials)[1] != os.getuid():
                continue
            try:
                connection.sendall(json.dumps(snapshot()).encode())
            except OSError:  # the watcher has gone
                continue


def snapshot() -> dict[str, Any]:
    """What the devices hold and queue now. Sizes in bytes, times in µs of simulated time."""
    devices = []
    for found in device.all_devices():
        if not found.contexts:
            continue
        memory = found.memory
        blocks = sorted((block.size for block in memory.blocks()), reverse=True)
        streams = [_stream(stream) for context in list(found.contexts) for stream in context.all_streams()]
        devices.append(
            {
                "device": found.index,
                "name": found.profile.name,
                "hbm_used": memory.used,
                "hbm_total": memory.total,
                "allocations": len(blocks),
                "largest": blocks[:LARGEST],
                "events": found.event_count,
                "fault": next((context.fault for context in list(found.contexts) if context.fault), 0),
                "streams": streams,
            }
        )
    return {"emulated": True, "pid": os.getpid(), "argv": sys.argv, "wall_time": time.time(), "clock": "simulated", "devices": devices}


def _stream(stream: Any) -> dict[str, Any]:
    queue = stream.queue
    try:
        head = queue[0].name if queue else ""
    except IndexError:  # it has just run
        head = ""
    since = stream.context.device.boot_sim_ns
    return {"stream": stream.id, "queued": len(queue), "head": head, "simulated_us": max(stream.sim_ns - since, 0) / 1000}


def running() -> list[int]:
    """The processes of this user that can be watched."""
    found = []
    for line in Path("/proc/net/unix").read_text().splitlines():
        name = line.rpartition("@")[2]
        prefix = f"{_PREFIX}-{os.getuid()}-"
        if name.startswith(prefix) and name.removeprefix(prefix).isdigit():
            found.append(int(name.removeprefix(prefix)))
    return sorted(set(found))


def ask(pid: int) -> dict[str, Any] | None:
    """The snapshot of another process; None when it has ended or cannot be watched."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(10)
        try:
            connection.connect(_address(pid))
            with connection.makefile("rb") as stream:
                text = stream.read()
        except OSError:
            return None
    answer: dict[str, Any] | None = json.loads(text) if text else None
    return answer
