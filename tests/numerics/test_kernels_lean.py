"""Helpers are compiled as parts of their kernel alone, and nobody else's compiling is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

#: Prints which libraries Numba optimised, and what a kernel computed.
PROGRAM = """
    import numpy as np
    from numba.core import codegen
    from emu_kernels import build, lean
    from emu_kernels.call import call
    from emu_kernels.variant import Variant

    optimised = []
    inner = codegen.CPUCodeLibrary._optimize_final_module
    def outer(self):
        optimised.append(self.name)
        inner(self)
    codegen.CPUCodeLibrary._optimize_final_module = outer

    {before}
    build.set_cache_dir(None)
    x = np.linspace(-3, 3, 1000, dtype=np.float32)
    out = np.empty_like(x)
    kernel = build.elementwise("log_sigmoid_backward", Variant("dav_2201", "FLOAT", False))
    call(kernel, (out, x, x), (), 0, x.size)
    {after}
    print(out.tobytes().hex())
    print(*optimised)
"""


def run(before: str = "", after: str = "") -> tuple[str, list[str]]:
    source = textwrap.dedent(PROGRAM).format(before=before, after=after)
    env = {**os.environ, "PYTHONWARNINGS": "error"}
    done = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr
    result, names = done.stdout.splitlines()
    return result, names.split()


def test_each_kernel_is_optimised_once():
    result, names = run()
    ours = [name for name in names if "sigmoid" in name or "tile" in name]
    assert ours == ["log_sigmoid_backward_z_FLOAT_inf_sub"], "Numba's parts are not as kernels/lean.py expects them: kernels compile slowly"
    plain, all_names = run(before="lean._kinds = lambda: None")
    assert plain == result
    assert len(all_names) > len(names) + 5


@pytest.mark.parametrize("name", ["_optimize_final_module", "_finalize_final_module"])
def test_a_numba_without_what_is_needed_compiles_as_ever(name):
    missing = f"lean.hasattr = lambda thing, name: name != {name!r} and hasattr(thing, name)"
    _, names = run(before=missing)
    assert len(names) > 10


def test_others_compile_as_ever():
    check = (
        "import numba; from numba.core.registry import cpu_target; cg = cpu_target.target_context.codegen(); "
        "assert '_library_class' not in vars(cg) and 'set_env' not in vars(cg); "
        "f = numba.njit(lambda a, b: max(min(a, b), a % b)); assert f(7, 3) == 3; "
        "\ntry: f(7, 0)\nexcept ZeroDivisionError: pass\nelse: raise AssertionError"
    )
    run(after=check)
