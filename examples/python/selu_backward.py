"""The operator document's example of aclnnSeluBackward: the two-phase contract, step by step."""

import numpy as np

from emu import acl, aclnn
from emu.types import DataType, Format, MemcpyKind, MemMallocPolicy


def check(ret: int, what: str) -> None:
    if ret != 0:
        raise SystemExit(f"{what} failed: {ret}. {acl.get_recent_err_msg()}")


def on_device(array: np.ndarray) -> tuple[int, int]:
    """Device memory with the array's data, and the aclTensor that describes it."""
    address, ret = acl.rt.malloc(array.nbytes, MemMallocPolicy.HUGE_FIRST)
    check(ret, "acl.rt.malloc")
    ret = acl.rt.memcpy(address, array.nbytes, acl.util.numpy_to_ptr(array), array.nbytes, MemcpyKind.HOST_TO_DEVICE)
    check(ret, "acl.rt.memcpy")
    return address, aclnn.aclCreateTensor(array.shape, DataType.FLOAT, None, 0, Format.ND, array.shape, address)


def main() -> None:
    check(acl.init(), "acl.init")
    check(acl.rt.set_device(0), "acl.rt.set_device")
    stream, ret = acl.rt.create_stream()
    check(ret, "acl.rt.create_stream")

    out = np.zeros((4, 2), np.float32)
    grad_address, grad_output = on_device(np.ones((4, 2), np.float32))
    result_address, result = on_device(np.arange(8, dtype=np.float32).reshape(4, 2))
    out_address, grad_input = on_device(out)

    size, executor, ret = aclnn.aclnnSeluBackwardGetWorkspaceSize(grad_output, result, grad_input)
    check(ret, "aclnnSeluBackwardGetWorkspaceSize")
    workspace = 0
    if size > 0:
        workspace, ret = acl.rt.malloc(size, MemMallocPolicy.HUGE_FIRST)
        check(ret, "acl.rt.malloc")
    check(aclnn.aclnnSeluBackward(workspace, size, executor, stream), "aclnnSeluBackward")
    check(acl.rt.synchronize_stream(stream), "acl.rt.synchronize_stream")

    ret = acl.rt.memcpy(acl.util.numpy_to_ptr(out), out.nbytes, out_address, out.nbytes, MemcpyKind.DEVICE_TO_HOST)
    check(ret, "acl.rt.memcpy")
    for i, value in enumerate(out.reshape(-1)):
        print(f"result[{i}] is: {value:f}")

    for tensor in (grad_output, result, grad_input):
        aclnn.aclDestroyTensor(tensor)
    for address in (grad_address, result_address, out_address, *([workspace] if workspace else [])):
        acl.rt.free(address)
    acl.rt.destroy_stream(stream)
    acl.rt.reset_device(0)
    acl.finalize()


if __name__ == "__main__":
    main()
