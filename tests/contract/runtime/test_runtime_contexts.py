"""Contexts, system parameters, device settings and figures."""

from __future__ import annotations

import pytest

from emu.runtime import handles
from emu.runtime.stream import Stream
from emu.soc import profile


def test_contexts_are_per_thread(npu, in_thread):
    npu.open(0)
    primary, _ = npu.rt.get_context()
    explicit, ret = npu.rt.create_context(1)
    assert ret == 0
    assert npu.rt.get_context() == (explicit, 0)
    assert in_thread(npu.rt.get_context) == (0, 107002)
    assert in_thread(lambda: (npu.rt.set_context(primary), npu.rt.get_device())) == (0, (0, 0))
    assert in_thread(lambda: (npu.rt.set_device(0), npu.rt.get_context())) == (0, (primary, 0)), "threads share the primary context"
    assert npu.rt.get_device() == (1, 0)
    assert npu.rt.set_device(0) == 0
    assert npu.rt.get_context() == (primary, 0), "set_device clears an explicit one"
    assert npu.rt.get_primary_ctx_state(0, 0) == (1, 0)
    assert npu.rt.get_primary_ctx_state(1, 0) == (0, 0), "an explicit context is not the primary one"
    assert npu.rt.destroy_context(explicit) == 0
    assert npu.rt.destroy_context(explicit) == 107002


def test_a_context_that_another_thread_ended(npu, in_thread):
    s = npu.open()
    assert in_thread(lambda: npu.rt.reset_device(0)) == 0
    assert npu.rt.malloc(8, 0) == (0, 107002)
    assert "destroyed" in npu.message()
    assert npu.rt.synchronize_stream(s) == 107002
    npu.open()
    assert npu.rt.synchronize_stream(s) == 107017


def test_system_parameters_have_two_scopes(npu):
    npu.open()
    assert npu.rt.ctx_get_sys_param_opt(0) == (0, 107021)
    assert npu.rt.get_sys_param_opt(0) == (0, 0)
    assert npu.rt.ctx_set_sys_param_opt(0, 1) == 0
    assert npu.rt.ctx_get_sys_param_opt(0) == (1, 0)
    assert npu.rt.get_sys_param_opt(0) == (0, 0)
    assert npu.rt.set_sys_param_opt(3, 1) == 0
    assert npu.rt.ctx_get_sys_param_opt(3)[1] == 100000, "option 3 is the process's only"
    assert npu.rt.set_sys_param_opt(3, 0) == 0
    npu.rt.create_context(0)
    assert npu.rt.ctx_get_sys_param_opt(0) == (0, 107021), "each context has its own"


@pytest.mark.parametrize(
    ("soc", "mode", "code"),
    [("Ascend910B1", 0, 0), ("Ascend910B1", 1, 0), ("Ascend950PR_9599", 0, 207000), ("Ascend310P3", 1, 207000), ("Ascend910A", 1, 207000)],
)
def test_overflow_mode_of_the_device(npu, soc, mode, code):
    npu.configure(soc=soc)
    before = npu.open()
    default = 0 if profile(soc).saturates else 1
    assert npu.rt.get_device_sat_mode() == (default, 0)
    assert npu.rt.set_device_sat_mode(mode) == code
    now = default if code else mode
    assert npu.rt.get_device_sat_mode() == (now, 0)
    old, new = handles.lookup(before, Stream), handles.lookup(npu.stream(), Stream)
    assert old is not None
    assert new is not None
    assert (old.saturate, new.saturate) == (default == 0, now == 0), "it acts on streams made afterwards"


def test_operator_time_limits(npu):
    npu.open()
    assert npu.rt.get_op_execute_timeout() == (1_091_000, 0)
    assert npu.rt.set_op_execute_time_out(3) == 0
    assert npu.rt.get_op_execute_timeout() == (3000, 0)
    assert npu.rt.set_op_execute_time_out_with_ms(77) == 0
    assert npu.rt.get_op_execute_timeout() == (77, 0)
    assert npu.rt.set_op_execute_time_out_v2(5_000_000) == (5_000_000, 0)
    assert npu.rt.get_op_execute_timeout() == (5000, 0)
    assert npu.rt.set_op_execute_time_out(0) == 0


def test_core_limits_and_peers(npu):
    npu.open()
    assert npu.rt.get_device_res_limit(0, 1) == (48, 0)
    assert npu.rt.set_device_res_limit(0, 1, 10) == 0
    assert npu.rt.get_device_res_limit(0, 1) == (10, 0)
    assert npu.rt.set_device_res_limit(0, 1, 49) == npu.rt.set_device_res_limit(0, 0, 0) == 107000
    assert npu.rt.get_device_res_limit(0, 2) == (0, 100000)
    assert npu.rt.reset_device_res_limit(0) == 0
    assert npu.rt.get_device_res_limit(0, 1) == (48, 0)
    assert npu.rt.device_can_access_peer(0, 1) == (1, 0)
    assert npu.rt.device_can_access_peer(0, 0)[1] == 107000
    assert npu.rt.device_disable_peer_access(1) == 107000
    assert [npu.rt.device_enable_peer_access(1, 0), npu.rt.device_disable_peer_access(1)] == [0, 0]
    assert npu.rt.device_enable_peer_access(1, 1) == npu.rt.device_enable_peer_access(0, 0) == 107000


def test_device_figures(npu):
    assert npu.rt.get_soc_name() == "Ascend910B1"
    assert npu.rt.get_run_mode() == (1, 0)
    wanted = {101: 24, 102: 24, 201: 48, 204: 196608, 301: 64 << 30, 302: 192 << 20, 402: 1, 601: 2201}
    assert {attr: npu.rt.get_device_info(1, attr)[0] for attr in wanted} == wanted
    assert npu.rt.get_device_info(0, 202) == (0, 207000), "no public figure"
    assert [npu.acl.get_device_capability(0, n) for n in range(3)] == [(24, 0), (48, 0), (192 << 20, 0)]
    assert npu.acl.get_device_capability(0, 3)[1] == npu.acl.get_device_capability(9, 0)[1] == 100000
