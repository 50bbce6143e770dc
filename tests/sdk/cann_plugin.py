"""A pytest plugin for the contract tests on the back end "cann": what cannot be said in C is skipped, with the reason."""

from __future__ import annotations

import pytest

_UNKNOWN = "uses a function whose C signature is not public, so that only the emulator's Python face has it"
_OPAQUE = "reads a structure whose layout in C is not public"
_FORK = "in the child of a fork the C libraries refuse every call, where the emulator's Python face tells its objects apart"

#: The beginning of a test's name below tests/contract → why it is not run on C libraries.
SKIPS = {
    "runtime/test_runtime_wild.py": "calls with numbers that are no addresses: in C they are addresses, and the process ends",
    "runtime/test_runtime_acl.py::test_data_buffers": _UNKNOWN,
    "runtime/test_runtime_callbacks.py::test_a_host_function_that_raises_is_a_fault": "no Python exception passes through a C function",
    "runtime/test_runtime_matrix.py::test_matrix[pointer_get_attributes": _OPAQUE,
    "runtime/test_runtime_memory.py::test_pointer_attributes": _OPAQUE,
    "runtime/test_runtime_memory.py::test_flush_and_invalidate": _UNKNOWN,
    "runtime/test_runtime_process.py::test_files_that_cannot_be_read": "a name with a NUL inside is no C string",
    "runtime/test_runtime_process.py::test_versions": _OPAQUE,
    "runtime/test_runtime_process.py::test_a_forked_child_gets_errors_and_the_parent_goes_on": _FORK,
    "runtime/test_runtime_process.py::test_a_fork_before_the_first_device_is_harmless": _FORK,
    "runtime/test_runtime_streams.py::test_flags_priority_and_number": _UNKNOWN,
    "runtime/test_runtime_streams.py::test_attributes": _UNKNOWN,
    "runtime/test_runtime_streams.py::test_operator_time_limits": _UNKNOWN,
    "runtime/test_runtime_streams.py::test_core_limits_and_peers": _UNKNOWN,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from emu import acl, aclnn

    # The switch did happen: the faces' functions are not the emulator's own.
    assert acl.rt.malloc.__wrapped__ is not acl.rt.malloc
    assert aclnn.aclnnSeluBackward is not aclnn.FUNCTIONS["aclnnSeluBackward"]
    used = set()
    for item in items:
        name = item.nodeid.partition("tests/contract/")[2]
        for start, reason in SKIPS.items():
            if name.startswith(start):
                used.add(start)
                item.add_marker(pytest.mark.skip(reason=f"backend cann: {reason}"))
    unused = set(SKIPS) - used
    assert not unused, f"no test of this name any more: {sorted(unused)}"
