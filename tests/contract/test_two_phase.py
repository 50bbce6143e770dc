"""Phase 2: workspace, executors, faults; on the simulated card through the C-named functions."""

from __future__ import annotations

import inspect
import threading
from typing import Any

import numpy as np
import pytest

from emu import aclnn

from .phase1 import A2, A910, A950, INVALID, NULL, P310

INNER, RUNTIME = 561000, 361001


def say() -> str:
    return aclnn.aclGetRecentErrMsg() or ""


G = np.ones((4, 2), np.float32)
Y = np.arange(8, dtype=np.float32).reshape(4, 2)


def selu_call(npu: Any) -> tuple[int, int, int, int]:
    """(executor, address of gradInput, size, gradInput) after phase 1 of the document's example."""
    out = npu.put(np.full((4, 2), 7, np.float32))
    t = npu.tensor((4, 2), np.float32, out)
    size, ex, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(npu.array(G), npu.array(Y), t)
    assert ret == 0
    return ex, out, size, t


@pytest.mark.parametrize(
    ("soc", "first"), [(A2, "1.050701"), (P310, "1.050701"), (A910, "1.050701"), (A950, "1.758099"), ("Ascend310B1", "1.050701")]
)
def test_selu_document_example(npu_on: Any, soc: str, first: str) -> None:
    npu = npu_on(soc)
    out = npu.put(np.zeros((4, 2), np.float32))
    npu.run("aclnnSeluBackward", npu.array(G), npu.array(Y), npu.tensor((4, 2), np.float32, out))
    assert [f"{v:.6f}" for v in npu.get(out, 8, np.float32)] == [first] + ["1.050701"] * 7


@pytest.mark.parametrize("soc", [A2, P310, A910, A950])
def test_log_sigmoid_document_example(npu_on: Any, soc: str) -> None:
    npu = npu_on(soc)
    out = npu.put(np.zeros((2, 2), np.float32))
    x = np.array([[1, 2], [3, 4]], np.float32)
    g, t = npu.array(np.ones((2, 2), np.float32)), npu.array(x)
    npu.run("aclnnLogSigmoidBackward", g, t, t, npu.tensor((2, 2), np.float32, out))
    assert [f"{v:.6f}" for v in npu.get(out, 4, np.float32)] == ["0.268941", "0.119203", "0.047426", "0.017986"]


@pytest.mark.parametrize("soc", [A2, P310, A910, A950])
def test_softmax_document_example(npu_on: Any, soc: str) -> None:
    npu = npu_on(soc)
    out = npu.put(np.zeros((4, 2), np.float32))
    y = np.array([1, 1, 1, 2, 2, 2, 3, 3], np.float32).reshape(4, 2)
    npu.run("aclnnSoftmaxBackward", npu.array(Y), npu.array(y), 0, npu.tensor((4, 2), np.float32, out))
    assert npu.get(out, 8, np.float32).tolist() == [-28, -37, -26, -70, -48, -66, -66, -93]


# -- executors and workspaces ------------------------------------------------------------------------------------------------


def test_phase_2_only_enqueues(npu_on: Any) -> None:
    npu = npu_on(A2, schedule="lazy")
    ex, out, size, _ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == 0
    assert (npu.get(out, 8, np.float32) == 7).all(), "a copy does not wait for other streams' work"
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert npu.get(out, 8, np.float32)[1] == np.float32(1.0507010)


def test_an_executor_serves_once(npu: Any) -> None:
    ex, _, size, _ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == 0
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == INNER
    assert "serves one run" in say()
    assert aclnn.aclDestroyAclOpExecutor(ex) == INNER
    assert aclnn.aclnnSeluBackward(0, 0, 0, npu.stream) == NULL
    assert aclnn.aclnnSeluBackward(0, 0, 12345, npu.stream) == INNER
    ex, *_ = selu_call(npu)
    assert aclnn.aclDestroyAclOpExecutor(ex) == 0
    assert aclnn.aclnnSeluBackward(0, 0, ex, npu.stream) == INNER
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0


def test_null_workspace_with_a_size_spends_the_executor(npu: Any) -> None:
    ex, out, *_ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(0, 64, ex, npu.stream) == NULL
    assert aclnn.aclnnSeluBackward(0, 0, ex, npu.stream) == INNER
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert (npu.get(out, 8, np.float32) == 7).all()


@pytest.mark.parametrize("give", [0, 511])
def test_a_small_workspace_is_refused_and_spends_the_executor(npu_on: Any, give: int) -> None:
    npu = npu_on(A950)
    ex, out, size, _ = selu_call(npu)
    assert size == 512
    ws = npu.malloc(512) if give else 0
    assert aclnn.aclnnSeluBackward(ws, give, ex, npu.stream) == INVALID
    text = say()
    assert "real card" in text
    assert "corrupt" in text
    assert aclnn.aclnnSeluBackward(npu.malloc(512), 512, ex, npu.stream) == INNER
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert (npu.get(out, 8, np.float32) == 7).all()


def test_a_larger_workspace_is_accepted(npu_on: Any) -> None:
    npu = npu_on(A950)
    ex, out, size, _ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(npu.malloc(size), 10 * size, ex, npu.stream) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert npu.get(out, 8, np.float32)[1] == np.float32(1.0507010)


def test_a_repeatable_executor_runs_again_with_other_addresses(npu: Any) -> None:
    ex, out, size, t = selu_call(npu)
    assert aclnn.aclSetAclOpExecutorRepeatable(ex) == 0
    for _ in range(3):
        npu.write(out, np.zeros(8, np.float32))
        assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == 0
        assert npu.acl.rt.synchronize_stream(npu.stream) == 0
        assert npu.get(out, 8, np.float32)[0] == np.float32(1.0507010)
    other = npu.put(np.zeros(8, np.float32))
    npu.write(out, np.zeros(8, np.float32))
    assert aclnn.aclSetOutputTensorAddr(ex, 0, t, other) == 0
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert (npu.get(out, 8, np.float32) == 0).all()
    assert npu.get(other, 8, np.float32)[7] == np.float32(1.0507010)
    stranger = npu.array(G)
    assert aclnn.aclSetTensorAddr(ex, 0, stranger, other) == INVALID
    assert aclnn.aclDestroyAclOpExecutor(ex) == 0
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == INNER


def test_descriptors_may_go_before_the_synchronisation_and_phase_2_may_run_elsewhere(npu: Any) -> None:
    ex, out, size, _ = selu_call(npu)
    codes: list[int] = []

    def other() -> None:
        codes.append(npu.acl.rt.set_device(0))
        codes.append(aclnn.aclnnSeluBackward(0, size, ex, npu.stream))

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert codes == [0, 0]
    while npu.tensors:
        assert aclnn.aclDestroyTensor(npu.tensors.pop()) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
    assert npu.get(out, 8, np.float32)[0] == np.float32(1.0507010)


def test_streams_that_cannot_take_a_launch(npu: Any) -> None:
    ex, _, size, _ = selu_call(npu)
    codes: list[Any] = []

    def without_context() -> None:
        codes.append(aclnn.aclnnSeluBackward(0, size, ex, npu.stream))
        codes.append(say())

    thread = threading.Thread(target=without_context)
    thread.start()
    thread.join()
    assert codes[0] == RUNTIME
    assert "107002" in codes[1]
    assert "EZ9903" in codes[1]

    ex, *_ = selu_call(npu)
    context, ret = npu.acl.rt.create_context(0)
    assert ret == 0
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == RUNTIME
    assert "107003" in say()
    assert npu.acl.rt.destroy_context(context) == 0
    assert npu.acl.rt.set_device(0) == 0

    ex, *_ = selu_call(npu)
    gone, _ = npu.acl.rt.create_stream()
    assert npu.acl.rt.destroy_stream(gone) == 0
    assert aclnn.aclnnSeluBackward(0, size, ex, gone) == RUNTIME
    assert "107017" in say()

    ex, out, *_ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(0, size, ex, 0) == 0, "null is the default stream"
    assert npu.acl.rt.synchronize_stream(0) == 0
    assert npu.get(out, 8, np.float32)[0] == np.float32(1.0507010)


# -- operands ----------------------------------------------------------------------------------------------------------------


def bad_operands(npu: Any) -> dict[str, Any]:
    host = np.ones(8, np.float32)
    good, freed = npu.put(G), npu.put(G)
    operands = {
        "address 0": npu.tensor((4, 2), np.float32, 0),
        "host address": npu.tensor((4, 2), np.float32, host.__array_interface__["data"][0]),
        "freed block": npu.tensor((4, 2), np.float32, freed),
        "offset past the end": npu.tensor((4, 2), np.float32, good, offset=1000),
        "strides past the end": npu.tensor((4, 2), np.float32, good, strides=(100, 1), storage=(1000,)),
        "shape past the end": npu.tensor((4, 2), np.float32, npu.malloc(8)),
        "before the start": npu.tensor((4, 2), np.float32, good - 16),
        "misaligned": npu.tensor((4, 2), np.float32, npu.malloc(64) + 2),
        "highest address": npu.tensor((4, 2), np.float32, 2**64 - 4),
    }
    npu.free(freed)  # last: the next allocation would take its place
    return operands


CASES = (
    "address 0", "host address", "freed block", "offset past the end", "strides past the end", "shape past the end", "before the start",
    "misaligned", "highest address",
)  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("place", [0, 1, 2])
def test_a_bad_operand_is_a_device_exception_at_the_next_synchronisation(npu: Any, case: str, place: int) -> None:
    out = npu.put(np.full(8, 7, np.float32))
    args = [npu.array(G), npu.array(Y), npu.tensor((4, 2), np.float32, out)]
    args[place] = bad_operands(npu)[case]
    size, ex, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(*args)
    assert ret == 0, "phase 1 does not look at addresses"
    ws = npu.malloc(size) if size else 0
    assert aclnn.aclnnSeluBackward(ws, size, ex, npu.stream) == 0, "0 means submitted"
    say()
    assert npu.acl.rt.synchronize_stream(npu.stream) == 507035
    text = say()
    assert ("gradOutput", "result", "gradInput")[place] in text
    assert "0x" in text
    assert npu.acl.rt.synchronize_stream(npu.stream) == 507035, "sticky"
    assert npu.acl.rt.synchronize_device() == 507035
    assert (npu.get(out, 8, np.float32) == 7).all(), "no memory changes"
    assert npu.acl.rt.reset_device_force(0) == 0
    assert npu.acl.rt.set_device(0) == 0
    npu.stream, _ = npu.acl.rt.create_stream()
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0, "reset clears it"


def test_the_fault_code_without_vector_cores(npu_on: Any) -> None:
    npu = npu_on(A910)
    t = npu.tensor((2,), np.float32, 0)
    size, ex, _ = aclnn.aclnnSeluBackwardGetWorkspaceSize(t, t, t)
    assert aclnn.aclnnSeluBackward(0, size, ex, npu.stream) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 507015


def test_a_workspace_that_is_no_device_memory(npu_on: Any) -> None:
    npu = npu_on(A950)
    ex, out, size, _ = selu_call(npu)
    assert aclnn.aclnnSeluBackward(0x1000, size, ex, npu.stream) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 507035
    assert "workspace" in say()
    assert (npu.get(out, 8, np.float32) == 7).all()


def test_empty_tensors_launch_nothing_whatever_their_addresses(npu: Any) -> None:
    for shape in ((0,), (2, 0, 3)):
        t = npu.tensor(shape, np.float32, 3)
        size, ex, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(t, t, t)
        assert (size, ret) == (0, 0)
        assert ex > 0
        assert aclnn.aclnnSeluBackward(0, 0, ex, npu.stream) == 0
        assert npu.acl.rt.synchronize_stream(npu.stream) == 0


def test_buffer_s_address_is_never_looked_at(npu: Any) -> None:
    x = npu.array(G)
    out = npu.put(np.zeros(8, np.float32))
    npu.run("aclnnLogSigmoidBackward", x, x, npu.tensor((4, 2), np.float32, 1), npu.tensor((4, 2), np.float32, out))
    assert npu.get(out, 1, np.float32)[0] == pytest.approx(0.268941, abs=1e-6)


def test_in_place(npu: Any) -> None:
    rng = np.random.default_rng(3)
    g, y = (rng.standard_normal(1000).astype(np.float32) for _ in range(2))
    tg, ty, out = npu.array(g), npu.array(y), npu.put(np.zeros(1000, np.float32))
    npu.run("aclnnSeluBackward", tg, ty, npu.tensor((1000,), np.float32, out))
    expected = npu.get(out, 1000, np.float32)
    for over in (0, 1):
        args = [npu.array(g), npu.array(y)]
        target = args[over]
        npu.run("aclnnSeluBackward", *args, target)
        address, _ = aclnn.aclGetRawTensorAddr(target)
        assert npu.get(address, 1000, np.float32).tobytes() == expected.tobytes()


def test_wild_arguments_to_every_operator_function(npu: Any) -> None:
    """Wrong types, null, dead and mixed-up handles, addresses, negative and huge numbers in every place: an exception or a code."""
    from emu import opapi

    live, dead = npu.array(G), npu.tensor((4, 2), np.float32, 0)
    assert aclnn.aclDestroyTensor(dead) == 0
    npu.tensors.remove(dead)
    values: list[Any] = [None, 0, -1, 1, dead, npu.stream, npu.blocks[0], 2**63 - 1, 2**64, 1.5, "x", b"y", object(), [], live]
    for name, function in opapi.FUNCTIONS.items():
        count = len(inspect.signature(function).parameters)
        for at in range(count):
            for value in values:
                args: list[Any] = [live] * count
                args[at] = value
                try:
                    result = function(*args)
                except (TypeError, OverflowError):
                    continue
                code = result[-1] if isinstance(result, tuple) else result
                assert code in (0, NULL, INVALID, INNER, RUNTIME, 561103), (name, args)
                if isinstance(result, tuple) and result[1]:
                    assert aclnn.aclDestroyAclOpExecutor(result[1]) == 0
    assert npu.acl.rt.synchronize_stream(npu.stream) == 0
