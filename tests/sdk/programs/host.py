"""A Python program that uses the C libraries through ctypes, as a test: host.py LIBRARIES [MODULE-BEFORE] [MODULE-AFTER]."""

import ctypes
import importlib
import struct
import sys
import threading


def main(lib64: str, before: str, after: str) -> None:
    if before:
        importlib.import_module(before)
    acl = ctypes.CDLL(f"{lib64}/libascendcl.so")
    nn = ctypes.CDLL(f"{lib64}/libnnopbase.so")
    op = ctypes.CDLL(f"{lib64}/libopapi.so")
    acl.aclGetRecentErrMsg.restype = ctypes.c_char_p
    nn.aclCreateTensor.restype = ctypes.c_void_p
    code = acl.aclInit(None)
    if code:
        print("aclInit", code, acl.aclGetRecentErrMsg().decode())
        raise SystemExit(3)
    if after:
        importlib.import_module(after)
    u64, i64, ptr = ctypes.c_uint64, ctypes.c_int64, ctypes.c_void_p

    def work(value: float) -> None:
        assert acl.aclrtSetDevice(0) == 0
        stream, data = ptr(), ptr()
        assert acl.aclrtCreateStream(ctypes.byref(stream)) == 0
        assert acl.aclrtMalloc(ctypes.byref(data), ctypes.c_size_t(16), 0) == 0
        host = (ctypes.c_float * 4)(*[value] * 4)
        size16 = ctypes.c_size_t(16)
        assert acl.aclrtMemcpy(data, size16, host, size16, 1) == 0
        shape = (i64 * 1)(4)
        tensor = ptr(nn.aclCreateTensor(shape, u64(1), 0, None, i64(0), 2, shape, u64(1), data))
        for _ in range(50):
            size, executor = u64(), ptr()
            first = op.aclnnSeluBackwardGetWorkspaceSize(tensor, tensor, tensor, ctypes.byref(size), ctypes.byref(executor))
            assert first == 0
            assert op.aclnnSeluBackward(None, size, executor, stream) == 0
            assert acl.aclrtSynchronizeStream(stream) == 0
            assert acl.aclrtMemcpy(host, size16, data, size16, 2) == 0
            value = struct.unpack("f", struct.pack("f", value * struct.unpack("f", struct.pack("f", 1.0507009873554804934))[0]))[0]
            assert list(host) == [value] * 4, (list(host), value)

    work(1.0)
    threads = [threading.Thread(target=work, args=(float(n + 2),)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    # PyDLL keeps the GIL while C runs.
    count = ctypes.c_uint32()
    assert ctypes.PyDLL(f"{lib64}/libascendcl.so").aclrtGetDeviceCount(ctypes.byref(count)) == 0
    assert acl.aclrtSetDevice(77) == 107001
    assert b"77" in acl.aclGetRecentErrMsg()
    assert "__main__" in sys.modules
    assert not hasattr(sys.modules["__main__"], "start")
    print("host: right")


if __name__ == "__main__":
    main(*[*sys.argv[1:], "", ""][:3])
