"""An unchanged pyACL program: `emu run examples/python/pyacl_copy.py`. It knows nothing of the emulator."""

import acl

HOST_TO_DEVICE, DEVICE_TO_HOST = 1, 2


def check(ret: int, what: str) -> None:
    if ret != 0:
        raise SystemExit(f"{what} failed: {ret}. {acl.get_recent_err_msg()}")


check(acl.init(), "acl.init")
check(acl.rt.set_device(0), "acl.rt.set_device")
stream, ret = acl.rt.create_stream()
check(ret, "acl.rt.create_stream")

data = b"a message by way of the device"
address, ret = acl.rt.malloc(len(data), 0)
check(ret, "acl.rt.malloc")
check(acl.rt.memcpy(address, len(data), acl.util.bytes_to_ptr(data), len(data), HOST_TO_DEVICE), "acl.rt.memcpy")

host, ret = acl.rt.malloc_host(len(data))
check(ret, "acl.rt.malloc_host")
check(acl.rt.memcpy_async(host, len(data), address, len(data), DEVICE_TO_HOST, stream), "acl.rt.memcpy_async")
check(acl.rt.synchronize_stream(stream), "acl.rt.synchronize_stream")
print(acl.util.ptr_to_bytes(host, len(data)).decode())

check(acl.rt.free_host(host), "acl.rt.free_host")
check(acl.rt.free(address), "acl.rt.free")
check(acl.rt.destroy_stream(stream), "acl.rt.destroy_stream")
check(acl.rt.reset_device(0), "acl.rt.reset_device")
check(acl.finalize(), "acl.finalize")
