"""Traces of programs on the card: the format, both clocks, the same bytes under every schedule, bounded memory."""

from __future__ import annotations

import re
import threading
import tracemalloc

import numpy as np
import pytest

import emu
from emu import aclnn
from emu.runtime import hooks
from emu.timeline import reader
from emu.timeline.events import CANN, HARDWARE
from emu.timeline.recorder import CHUNK
from emu.timeline.summary import summarise
from emu.types import DataType, Format, MemcpyKind

N = 1 << 14
_WALL = re.compile(r'"wall_[a-z_]*": *-?[0-9]+')


def program(c):
    """Two streams with events, copies, a fill, an operator of three launches and one that writes in place."""
    s, t = c.stream(), c.stream()
    host, ret = c.rt.malloc_host(4 * N)
    assert ret == 0
    p, q = c.malloc(4 * N), c.malloc(4 * N)
    x, y = c.tensor(N, p), c.tensor(N, q)
    e, f = c.event(), c.event()
    c.write(p, np.ones(N, np.float32))
    assert c.rt.record_event(e, s) == 0
    assert c.rt.memcpy_async(p, 4 * N, host, 4 * N, MemcpyKind.HOST_TO_DEVICE, s) == 0
    for _ in range(3):
        c.launch("aclnnExp", s, x, y)
    assert c.rt.record_event(f, s) == 0
    assert c.rt.stream_wait_event(t, f) == 0
    transposed = aclnn.aclCreateTensor((N // 64, 64), DataType.FLOAT, (1, N // 64), 0, Format.ND, (N,), q)
    out = aclnn.aclCreateTensor((N // 64, 64), DataType.FLOAT, (64, 1), 0, Format.ND, (N,), p)
    size, executor, ret = aclnn.aclnnSoftmaxGetWorkspaceSize(transposed, 1, out)
    assert ret == 0
    assert size > 0
    workspace = c.malloc(size)
    assert aclnn.aclnnSoftmax(workspace, size, executor, t) == 0
    assert c.rt.memset_async(q, 4 * N, 0, 4 * N, t) == 0
    assert c.rt.synchronize_stream(t) == 0
    c.launch("aclnnInplaceSigmoid", s, y)
    assert c.rt.synchronize_device() == 0
    assert c.rt.free_host(host) == 0
    for tensor in (transposed, out):
        assert aclnn.aclDestroyTensor(tensor) == 0


@pytest.fixture
def traced(card, tmp_path):
    """``traced(schedule="lazy", …)`` runs the program on a new card and loads its trace."""

    def run(body=program, **changes):
        emu.configure()
        c = card(**changes)
        path = tmp_path / "out.json"
        with emu.trace(path):
            body(c)
        assert hooks.active is None
        return reader.load(path)

    return run


def names(trace, pid):
    return [e["name"] for e in trace.slices(pid)]


@pytest.mark.parametrize("clock", ["simulated", "wall"])
@pytest.mark.parametrize("host", ["none", "cpp"])
def test_the_format(traced, clock, host):
    trace = traced(clock=clock, host=host)
    assert reader.problems(trace) == []
    assert trace.complete
    assert (trace.clock, trace.about["emulated"], trace.about["soc"], trace.about["host"]) == (clock, True, "Ascend910B1", host)
    assert f"EMULATED Ascend910B1: ts and dur are {clock} time" in trace.about["note"]
    layers = {e["pid"]: e["args"]["name"] for e in trace.events if e["name"] == "process_name"}
    assert layers == {CANN: "CANN", HARDWARE: "Ascend Hardware"}
    labels = {e["args"]["labels"] for e in trace.events if e["name"] == "process_labels"}
    assert labels == {f"EMULATED Ascend910B1, {clock} time"}
    assert sorted(names(trace, HARDWARE)) == sorted(
        [
            "event record",
            "memcpy",
            *["aclnnExp"] * 3,
            "event record",
            "event wait",
            "Contiguous",
            "aclnnSoftmax",
            "memset",
            "aclnnInplaceSigmoid",
        ]
    )
    assert names(trace, CANN) == [
        "aclrtMemcpy", "aclrtRecordEvent", "aclrtMemcpyAsync", *["aclnnExp"] * 3, "aclrtRecordEvent", "aclrtStreamWaitEvent",
        "aclnnSoftmax", "aclrtMemsetAsync", "aclrtSynchronizeStream", "aclnnInplaceSigmoid", "aclrtSynchronizeDevice",
    ]  # fmt: skip


def test_every_task_carries_its_numbers(traced):
    trace = traced(host="cpp")
    kernels = [e for e in trace.slices(HARDWARE) if e["cat"] == "kernel"]
    for e in kernels:
        args = e["args"]
        assert args["Task Type"] == "AI_VECTOR_CORE"
        assert args["Stream Id"] == e["tid"]
        assert 1 <= args["Block Dim"] <= 48
        assert args["read bytes"] > 0
        assert args["written bytes"] > 0
        assert args["binds"] in ("floor", "L2", "L2+HBM", "vector")
        assert args["wall_dur_ns"] > 0
    copies = {e["name"]: e["args"] for e in trace.slices(HARDWARE) if e["cat"] == "copy"}
    assert (copies["memcpy"]["Task Type"], copies["memcpy"]["bytes"]) == ("MEMCPY_ASYNC", 4 * N)
    assert (copies["memset"]["Task Type"], copies["memset"]["bytes"]) == ("MEMSET_ASYNC", 4 * N)
    ids = [e["args"]["connection_id"] for e in trace.slices(HARDWARE)]
    assert sorted(ids) == list(range(1, len(ids) + 1))
    for stream in {e["tid"] for e in trace.slices(HARDWARE)}:
        tasks = [e["args"]["Task Id"] for e in trace.slices(HARDWARE, stream)]
        assert tasks == list(range(1, len(tasks) + 1))
    arrows = {e["id"] for e in trace.events if e["ph"] == "s"}
    assert arrows == {e["args"]["connection_id"] for e in trace.slices(HARDWARE) if e["cat"] != "sync"}
    wait = next(e for e in trace.slices(HARDWARE) if e["name"] == "event wait")
    record = [e for e in trace.slices(HARDWARE) if e["name"] == "event record"][1]
    assert wait["args"]["waited_for_stream"] == record["tid"] != wait["tid"]
    assert wait["ts"] + wait["dur"] == pytest.approx(record["ts"])


def test_the_arrow_starts_in_the_call_that_queued_the_task(traced):
    trace = traced(host="cpp")
    task = next(e for e in trace.slices(HARDWARE) if e["name"] == "aclnnInplaceSigmoid")
    start = next(e for e in trace.events if e["ph"] == "s" and e["id"] == task["args"]["connection_id"])
    call = next(e for e in trace.slices(CANN) if e["name"] == "aclnnInplaceSigmoid")
    assert call["ts"] <= start["ts"] < call["ts"] + call["dur"]
    assert call["dur"] == pytest.approx(37.0)
    assert task["ts"] >= call["ts"] + call["dur"] - 0.0005, "the device starts when the host has issued"


@pytest.mark.parametrize("host", ["none", "python"])
def test_the_same_bytes_under_every_schedule(card, tmp_path, host):
    texts = set()
    for schedule in ("async", "eager", "lazy", "shuffle:3", "async"):
        c = card(schedule=schedule, host=host, threads=2 if schedule == "lazy" else 1)
        with emu.trace(tmp_path / "out.json"):
            program(c)
        texts.add(_WALL.sub("", (tmp_path / "out.json").read_text()))
        c.close()
        emu.configure(devices=7)
        emu.configure(devices=8)  # a new machine: stream numbers begin again
    assert len(texts) == 1


def test_many_launches_alike_on_two_streams_from_two_threads(card, tmp_path):
    texts = set()
    for schedule in ("async", "lazy"):
        c = card(schedule=schedule, host="cpp")
        s, t = c.stream(), c.stream()
        tensors = [c.tensor(n) for n in (64, 1 << 14)]
        ctx, _ = c.rt.get_context()

        def launch(c=c, s=s, t=t, tensors=tensors):
            for k in range(300):
                c.launch("aclnnInplaceExp" if k % 3 else "aclnnInplaceSigmoid", (s, t)[k % 2], tensors[k % 5 == 0])

        def work(c=c, ctx=ctx, launch=launch):
            assert c.rt.set_context(ctx) == 0
            launch()

        with emu.trace(tmp_path / "out.json"):
            launch()
            assert c.rt.synchronize_device() == 0  # templates are made when it is written
            launch()
            other = threading.Thread(target=work)
            other.start()
            other.join()
            launch()
            assert c.rt.synchronize_device() == 0
        trace = reader.load(tmp_path / "out.json")
        assert reader.problems(trace) == []
        kernels = [e for e in trace.slices(HARDWARE) if e["cat"] == "kernel"]
        assert len(kernels) == 1200
        durations = [{e["dur"] for e in kernels if (e["args"]["read bytes"] == 256) is small} for small in (True, False)]
        assert durations[0] != durations[1]
        assert sorted(e["args"]["connection_id"] for e in trace.slices(HARDWARE)) == list(range(1, 1201))
        assert {len([e for e in kernels if e["tid"] == stream]) for stream in {e["tid"] for e in kernels}} == {600}
        texts.add(_WALL.sub("", (tmp_path / "out.json").read_text()))
        c.close()
        emu.configure(devices=7)
        emu.configure(devices=8)
    assert len(texts) == 1


def test_memory_is_counted(traced):
    def body(c):
        p = c.malloc(1 << 20)
        q = c.malloc(1 << 20)
        assert c.rt.free(p) == 0
        assert c.rt.free(q) == 0

    trace = traced(body)
    used = [e["args"]["bytes"] for e in trace.events if e["ph"] == "C"]
    assert len(used) == 4
    assert used[1] == 2 * used[0] == 2 * used[2] > 2 << 20
    assert used[3] == 0


def test_threads_have_rows_of_their_own(traced):
    def body(c):
        ctx, _ = c.rt.get_context()

        def work():
            assert c.rt.set_context(ctx) == 0
            s = c.stream()
            c.launch("aclnnInplaceExp", s, c.tensor(64))
            assert c.rt.synchronize_stream(s) == 0

        s = c.stream()
        c.launch("aclnnInplaceExp", s, c.tensor(64))
        assert c.rt.synchronize_stream(s) == 0
        other = threading.Thread(target=work)
        other.start()
        other.join()

    trace = traced(body)
    assert reader.problems(trace) == []
    assert trace.host_rows() == [1, 2]
    assert [e["tid"] for e in trace.slices(CANN)] == [1, 1, 2, 2]


def test_dropped_and_unfinished_tasks_are_left_out(card, tmp_path, capfd):
    c = card(schedule="lazy")
    s, t, x = c.stream(), c.stream(), c.tensor(64)
    c.launch("aclnnInplaceExp", t, x)
    with emu.trace(tmp_path / "out.json"):
        c.launch("aclnnInplaceExp", s, x)
        assert c.rt.stream_abort(s) == 0
        c.launch("aclnnInplaceSigmoid", t, x)
        assert c.rt.synchronize_stream(t) == 0
        c.launch("aclnnInplaceExp", t, x)
    trace = reader.load(tmp_path / "out.json")
    assert reader.problems(trace) == []
    assert names(trace, HARDWARE) == ["aclnnInplaceSigmoid"], "not the one before the trace, nor the aborted one, nor the one still queued"
    assert names(trace, CANN) == ["aclnnInplaceExp", "aclnnInplaceSigmoid", "aclrtSynchronizeStream", "aclnnInplaceExp"]
    assert capfd.readouterr().err.endswith(": 1 task was still queued at its end and left out; synchronise before\n")
    assert c.rt.synchronize_stream(t) == 0


def test_a_fault_is_a_task_without_time(card, tmp_path):
    c = card()
    s, p = c.stream(), c.malloc(256)
    x = c.tensor(64, p)
    size, executor, ret = aclnn.aclnnInplaceExpGetWorkspaceSize(x)
    assert (size, ret) == (0, 0)
    assert c.rt.free(p) == 0
    with emu.trace(tmp_path / "out.json"):
        assert aclnn.aclnnInplaceExp(0, size, executor, s) == 0
        assert c.rt.synchronize_stream(s) == 507035
    trace = reader.load(tmp_path / "out.json")
    assert reader.problems(trace) == []
    (task,) = trace.slices(HARDWARE)
    assert (task["name"], task["dur"], task["args"]["failed"]) == ("aclnnInplaceExp", 0, True)
    assert summarise(trace).operators == [], "it did not run"


def test_memory_stays_bounded_while_the_file_grows(card, tmp_path):
    c = card(schedule="eager")
    s, x = c.stream(), c.tensor(64)
    path = tmp_path / "out.json"
    c.launch("aclnnInplaceExp", s, x)  # loads the kernel, and what loads kernels
    sizes, peaks = [], []
    with emu.trace(path):
        for _ in range(3):
            tracemalloc.start()
            for _ in range(4500):
                c.launch("aclnnInplaceExp", s, x)
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            sizes.append(path.stat().st_size)
    assert sizes[0] > 250_000, "it is written while the program runs"
    # A block and a chunk may wait at the end: 5120 of 13500 launches, and none of the first 4500.
    assert sizes[2] > 1.8 * sizes[0]
    assert max(peaks) < 4 << 20
    assert peaks[2] < 1.5 * peaks[0], "what was written is not kept"


@pytest.mark.parametrize("what", ["copies", "allocations"])
def test_calls_without_tasks_are_written_too(card, tmp_path, what):
    c = card()
    host, ret = c.rt.malloc_host(64)
    assert ret == 0
    p = c.malloc(64)
    with emu.trace(tmp_path / "out.json") as recorder:
        for k in range(2 * CHUNK):
            if what == "copies":
                assert c.rt.memcpy(p, 64, host, 64, MemcpyKind.HOST_TO_DEVICE) == 0
            else:
                q, ret = c.rt.malloc(64, 0)
                assert (ret, c.rt.free(q)) == (0, 0)
            assert len(recorder._pending) < CHUNK, k
    trace = reader.load(tmp_path / "out.json")
    assert reader.problems(trace) == []
    if what == "copies":
        assert names(trace, CANN) == ["aclrtMemcpy"] * (2 * CHUNK)
        assert names(trace, HARDWARE) == [], "a blocking copy is the host's alone"
    else:
        assert sum(e["ph"] == "C" for e in trace.events) == 4 * CHUNK
    assert c.rt.free_host(host) == 0


def test_perfetto_reads_it(traced, tmp_path):
    perfetto = pytest.importorskip("perfetto.trace_processor", reason="needs the package perfetto")
    trace = traced()
    try:
        processor = perfetto.TraceProcessor(trace=str(tmp_path / "out.json"))
    except Exception as error:  # whatever its download or its process raises
        pytest.skip(f"perfetto's trace_processor does not start: {type(error).__name__}: {error}")
    with processor:
        found = sorted(row.name for row in processor.query("select name from slice"))
    assert found == sorted(e["name"] for e in trace.events if e["ph"] == "X")


def test_two_traces_at_once(card, tmp_path):
    c = card()
    s, x = c.stream(), c.tensor(64)
    with emu.trace(tmp_path / "a.json", clock="simulated"), emu.trace(tmp_path / "b.json", clock="wall"):
        c.launch("aclnnInplaceExp", s, x)
        assert c.rt.synchronize_stream(s) == 0
    a, b = (reader.load(tmp_path / name) for name in ("a.json", "b.json"))
    assert (a.clock, b.clock) == ("simulated", "wall")
    assert names(a, HARDWARE) == names(b, HARDWARE) == ["aclnnInplaceExp"]
    assert a.slices(HARDWARE)[0]["dur"] * 1000 == b.slices(HARDWARE)[0]["args"]["sim_dur_ns"]


def test_a_bad_clock_and_a_bad_path(tmp_path):
    with pytest.raises(ValueError, match="clock must be simulated or wall, not 'cpu'"), emu.trace(tmp_path / "x.json", clock="cpu"):
        pass
    with pytest.raises(FileNotFoundError), emu.trace(tmp_path / "nowhere" / "x.json"):
        pass
    assert hooks.active is None
