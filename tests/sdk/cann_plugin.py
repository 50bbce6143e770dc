"""A pytest plugin for the contract tests on the back end "cann": what cannot be said in C is skipped, with the reason."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from emu.status import AclError

_FORK = "in the child of a fork the C libraries refuse every call, where the emulator's Python face tells its objects apart"

#: The beginning of a test's name below tests/contract → why it is not run on C libraries.
SKIPS = {
    "test_objects.py::test_any_int_that_is_no_handle_is_161002": "no pointer holds these numbers",
    "runtime/test_runtime_wild.py": "calls with numbers that are no addresses: in C they are addresses, and the process ends",
    "runtime/test_runtime_callbacks.py::test_a_host_function_that_raises_is_a_fault": "no Python exception passes through a C function",
    "runtime/test_runtime_process.py::test_files_that_cannot_be_read": "a name with a NUL inside is no C string",
    "runtime/test_runtime_process.py::test_a_forked_child_gets_errors_and_the_parent_goes_on": _FORK,
    "runtime/test_runtime_process.py::test_a_fork_before_the_first_device_is_harmless": _FORK,
}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    from emu import acl, aclnn

    # The switch did happen: the faces' functions are not the emulator's own.
    assert acl.rt.malloc.__wrapped__ is not acl.rt.malloc
    assert aclnn.aclnnSeluBackward is not aclnn.FUNCTIONS["aclnnSeluBackward"]
    for item in items:
        name = item.nodeid.partition("tests/contract/")[2]
        for start, reason in SKIPS.items():
            if name.startswith(start):
                item.add_marker(pytest.mark.skip(reason=f"backend cann: {reason}"))


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call() -> Iterator[None]:
    """A function without a public C signature, or one that fills a structure of unknown layout, ends its test with that reason."""
    try:
        return (yield)
    except AclError as error:
        if str(error).startswith("backend cann: "):
            pytest.skip(str(error))
        raise
