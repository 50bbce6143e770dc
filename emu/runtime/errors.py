"""Return codes leave through here: the last error of the thread and the messages for aclGetRecentErrMsg.

Every failing public function returns ``errors.fail(code, message_id, text)``. The message ids are CANN's: EH00xx for the
outer (acl) layer, EE10xx for the runtime layer, EZ1001 / EZ9903 / EZ9999 for aclnn by the first digit of the code. The layout is
``[PID: n] date-time NAME(ID): text`` for aclnn and ``ID: [PID: n] date-time text`` for the runtime.

ASCEND_LOG_PRINT_TO_STDOUT=1 (before: ASCEND_SLOG_PRINT_TO_STDOUT) prints each message as it is recorded, as CANN prints its log, unless
ASCEND_GLOBAL_LOG_LEVEL is 4 (none).
"""

from __future__ import annotations

import contextlib
import os
import threading
from collections import deque
from datetime import datetime

#: Messages kept for a thread that never asks for them.
PENDING_LIMIT = 64

_ACLNN_NAMES = {
    "1": "AclNN_Parameter_Error(EZ1001)",
    "3": "AclNN_Runtime_Error(EZ9903)",
    "5": "AclNN_Inner_Error(EZ9999)",
}


class _State(threading.local):
    """What one thread has not asked for yet."""

    def __init__(self) -> None:
        self.last = 0
        self.pending: deque[str] = deque(maxlen=PENDING_LIMIT)


_state = _State()
_process_pending: deque[str] = deque(maxlen=PENDING_LIMIT)
_process_mode = False


def set_process_mode(on: bool) -> None:
    """aclInit's ``err_msg_mode``: "1" shares one queue of messages between all threads, "0" (default) does not."""
    global _process_mode
    _process_mode = on


def _queue() -> deque[str]:
    return _process_pending if _process_mode else _state.pending


def _now() -> str:
    now = datetime.now()
    return f"{now:%Y-%m-%d-%H:%M:%S}.{now.microsecond // 1000:03d}.{now.microsecond % 1000:03d}"


_printed = (
    "1" in (os.environ.get("ASCEND_LOG_PRINT_TO_STDOUT"), os.environ.get("ASCEND_SLOG_PRINT_TO_STDOUT"))
    and os.environ.get("ASCEND_GLOBAL_LOG_LEVEL") != "4"
)


def _record(line: str) -> None:
    _queue().append(line)
    if _printed:
        # To the descriptor: a C program's stdout is not this interpreter's.
        with contextlib.suppress(OSError):
            os.write(1, f"[ERROR] {line}\n".encode(errors="replace"))


def fail(code: int, message_id: str, text: str) -> int:
    """Record a failure of an acl or aclrt function in this thread and return ``code``."""
    _state.last = code
    _record(f"{message_id}: [PID: {os.getpid()}] {_now()} {text}")
    return code


def fail_aclnn(code: int, text: str) -> int:
    """Record a failure of an aclnn function in this thread and return ``code``; the id follows from its first digit."""
    _state.last = code
    name = _ACLNN_NAMES.get(str(code)[:1], "AclNN_Inner_Error(EZ9999)")
    _record(f"[PID: {os.getpid()}] {_now()} {name}: {text}")
    return code


def recent_message() -> str | None:
    """Take this thread's pending messages, newest first; None when there are none."""
    queue = _queue()
    if not queue:
        return None
    text = "\n".join(reversed(queue))
    queue.clear()
    return text


def peek_last() -> int:
    """The code of this thread's last failure, 0 when none since the last :func:`take_last`."""
    return _state.last


def take_last() -> int:
    """As :func:`peek_last`, and forget it."""
    code, _state.last = _state.last, 0
    return code
