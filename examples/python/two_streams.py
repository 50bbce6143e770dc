"""Two streams with events: overlapped, and serialised by one misplaced wait.

A batch is copied to the device and then goes through two operators. Stream "load" copies, stream "work" computes; an
event tells "work" that a batch has arrived. In the second version the wait that protects a buffer names the wrong batch:
every copy waits for the work on the batch just before it, and nothing overlaps any more. The results are the same; the
simulated time is not.

    python two_streams.py            prints both times
    python two_streams.py DIRECTORY  also writes overlapped.json and serialised.json there (open them in Perfetto, or: emu trace-plot)
"""

import sys
from pathlib import Path

import numpy as np

import emu
from emu import acl, aclnn
from emu.types import DataType, Format, MemcpyKind, MemMallocPolicy

ELEMENTS = 1 << 20
BATCHES = 4
BYTES = 4 * ELEMENTS


def check(code):
    if code != 0:
        raise RuntimeError(f"code {code}: {acl.get_recent_err_msg() or aclnn.aclGetRecentErrMsg()}")


def made(answer):
    value, code = answer
    check(code)
    return value


def launch(operator, stream, *tensors):
    """Both phases; these operators on contiguous tensors need no workspace."""
    size, executor, code = getattr(aclnn, operator + "GetWorkspaceSize")(*tensors)
    check(code)
    assert size == 0
    check(getattr(aclnn, operator)(0, size, executor, stream))


def pipeline(misplaced_wait):
    """Run all batches; (simulated ms, the last result)."""
    check(acl.rt.set_device(0))
    load, work = made(acl.rt.create_stream()), made(acl.rt.create_stream())
    inputs = [made(acl.rt.malloc(BYTES, MemMallocPolicy.HUGE_FIRST)) for _ in range(2)]
    result = made(acl.rt.malloc(BYTES, MemMallocPolicy.HUGE_FIRST))
    source = made(acl.rt.malloc_host(BYTES))
    batch = np.linspace(-4, 4, ELEMENTS, dtype=np.float32)
    check(acl.rt.memcpy(source, BYTES, batch.ctypes.data, BYTES, MemcpyKind.HOST_TO_HOST))
    shape = (ELEMENTS,)
    tensors = [aclnn.aclCreateTensor(shape, DataType.FLOAT, None, 0, Format.ND, shape, p) for p in (*inputs, result)]
    arrived = [made(acl.rt.create_event()) for _ in range(BATCHES)]
    finished = [made(acl.rt.create_event()) for _ in range(BATCHES)]
    begin, end = made(acl.rt.create_event()), made(acl.rt.create_event())

    check(acl.rt.record_event(begin, load))
    for k in range(BATCHES):
        # The buffer of this batch was used two batches ago: that work must be over.
        if misplaced_wait and k >= 1:
            check(acl.rt.stream_wait_event(load, finished[k - 1]))  # one batch too late
        elif k >= 2:
            check(acl.rt.stream_wait_event(load, finished[k - 2]))
        check(acl.rt.memcpy_async(inputs[k % 2], BYTES, source, BYTES, MemcpyKind.HOST_TO_DEVICE, load))
        check(acl.rt.record_event(arrived[k], load))
        check(acl.rt.stream_wait_event(work, arrived[k]))
        for _ in range(18):
            launch("aclnnGelu", work, tensors[k % 2], tensors[2])
        launch("aclnnSigmoid", work, tensors[2], tensors[2])
        check(acl.rt.record_event(finished[k], work))
    check(acl.rt.record_event(end, work))
    check(acl.rt.synchronize_stream(work))

    ms = made(acl.rt.event_elapsed_time(begin, end))
    out = np.empty(ELEMENTS, np.float32)
    check(acl.rt.memcpy(out.ctypes.data, BYTES, result, BYTES, MemcpyKind.DEVICE_TO_HOST))
    for tensor in tensors:
        check(aclnn.aclDestroyTensor(tensor))
    check(acl.rt.free_host(source))
    check(acl.rt.reset_device(0))
    return ms, out


def main():
    directory = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
    emu.configure(clock="simulated")
    results = {}
    for name, misplaced in (("overlapped", False), ("serialised", True)):
        if directory is None:
            results[name] = pipeline(misplaced)
        else:
            with emu.trace(directory / f"{name}.json"):
                results[name] = pipeline(misplaced)
        print(f"{name}: {results[name][0]:.3f} ms simulated")
    same = results["overlapped"][1].tobytes() == results["serialised"][1].tobytes()
    print(f"same results: {same}")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
