"""Random legal programs: two host threads with a stream each, from a seeded generator; every value is checked against a host model.

A failing seed replays: the same seed makes the same calls in each thread.
"""

from __future__ import annotations

import random
import threading
from typing import Any

import numpy as np
import pytest

from emu import acl, aclnn
from emu.types import Format, MemcpyKind

CALLS = 10_000
N = 48
H2D, D2H, D2D = MemcpyKind.HOST_TO_DEVICE, MemcpyKind.DEVICE_TO_HOST, MemcpyKind.DEVICE_TO_DEVICE
S, SA = np.float32(1.0507009873554805), np.float32(1.7580993408473769)


def selu(g: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """SeluBackward in FLOAT on A2, one operation after another."""
    zero = np.float32(0)
    with np.errstate(all="ignore"):
        return np.where(y < 0, zero, g * S) + np.where(y < 0, g * (y + SA), zero)


class Program:
    """One thread's blocks with what they must hold, and its stream."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.values = np.random.default_rng(seed)
        assert acl.rt.set_device(0) == 0
        self.stream = self.ok(acl.rt.create_stream())
        self.event = self.ok(acl.rt.create_event())
        self.blocks: list[tuple[int, np.ndarray[Any, Any]]] = []
        self.calls = 0
        for _ in range(4):
            self.allocate()

    @staticmethod
    def ok(result: tuple[int, int]) -> int:
        assert result[1] == 0, acl.get_recent_err_msg()
        return result[0]

    def allocate(self) -> None:
        ptr = self.ok(acl.rt.malloc(4 * N, 0))
        host = self.values.standard_normal(N).astype(np.float32)
        assert acl.rt.memcpy(ptr, 4 * N, host.__array_interface__["data"][0], 4 * N, H2D) == 0
        self.blocks.append((ptr, host))
        self.calls += 2

    def pick(self) -> int:
        return self.random.randrange(len(self.blocks))

    def upload(self) -> None:
        """A pageable asynchronous copy: the runtime waits for the stream and copies."""
        i = self.pick()
        host = self.values.standard_normal(N).astype(np.float32)
        assert acl.rt.memcpy_async(self.blocks[i][0], 4 * N, host.__array_interface__["data"][0], 4 * N, H2D, self.stream) == 0
        self.blocks[i] = (self.blocks[i][0], host)
        self.calls += 1

    def copy(self) -> None:
        i, j = self.pick(), self.pick()
        assert acl.rt.memcpy_async(self.blocks[i][0], 4 * N, self.blocks[j][0], 4 * N, D2D, self.stream) == 0
        self.blocks[i] = (self.blocks[i][0], self.blocks[j][1].copy())
        self.calls += 1

    def clear(self) -> None:
        i = self.pick()
        assert acl.rt.memset_async(self.blocks[i][0], 4 * N, 0, 4 * N, self.stream) == 0
        self.blocks[i] = (self.blocks[i][0], np.zeros(N, np.float32))
        self.calls += 1

    def launch(self) -> None:
        i, j, k = self.pick(), self.pick(), self.pick()
        tensors = [aclnn.aclCreateTensor((N,), 0, None, 0, Format.ND, (N,), self.blocks[b][0]) for b in (i, j, k)]
        size, executor, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(*tensors)
        assert (size, ret) == (0, 0)
        assert aclnn.aclnnSeluBackward(0, 0, executor, self.stream) == 0
        for t in tensors:
            assert aclnn.aclDestroyTensor(t) == 0
        self.blocks[k] = (self.blocks[k][0], selu(self.blocks[i][1], self.blocks[j][1]))
        self.calls += 8

    def record(self) -> None:
        assert acl.rt.record_event(self.event, self.stream) == 0
        assert acl.rt.stream_wait_event(self.stream, self.event) == 0
        if self.random.random() < 0.3:
            assert acl.rt.synchronize_event(self.event) == 0
            self.calls += 1
        self.calls += 2

    def turn_over(self) -> None:
        """Free a block when nothing can use it any more, and take another."""
        self.synchronise()
        ptr, _ = self.blocks.pop(self.pick())
        assert acl.rt.free(ptr) == 0
        self.allocate()
        self.calls += 1

    def synchronise(self) -> None:
        assert acl.rt.synchronize_stream(self.stream) == 0
        self.calls += 1

    def check(self) -> None:
        self.synchronise()
        i = self.pick()
        got = np.empty(N, np.float32)
        assert acl.rt.memcpy(got.__array_interface__["data"][0], 4 * N, self.blocks[i][0], 4 * N, D2H) == 0
        assert got.tobytes() == self.blocks[i][1].tobytes()
        self.calls += 1

    def run(self) -> None:
        moves = [self.upload, self.copy, self.clear, self.launch, self.record, self.turn_over, self.synchronise, self.check]
        weights = [2, 3, 1, 6, 2, 1, 1, 3]
        while self.calls < CALLS:
            self.random.choices(moves, weights)[0]()
        self.check()
        assert acl.rt.destroy_event(self.event) == 0
        assert acl.rt.destroy_stream(self.stream) == 0
        for ptr, _ in self.blocks:
            assert acl.rt.free(ptr) == 0
        assert acl.rt.reset_device(0) == 0


@pytest.mark.parametrize("schedule", ["async", "eager", "lazy", "shuffle:3"])
@pytest.mark.usefixtures("restore_config")
def test_two_threads_with_a_stream_each(schedule: str) -> None:
    import emu

    emu.configure(schedule=schedule)
    wrong: list[BaseException] = []

    def host(seed: int) -> None:
        try:
            Program(seed).run()
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=host, args=(seed,), daemon=True) for seed in (11, 12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(120)
        assert not t.is_alive(), "deadlock"
    if wrong:
        acl.rt.reset_device_force(0)
        raise wrong[0]
