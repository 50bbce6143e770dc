"""emu run: an unchanged pyACL script on the emulator."""

from __future__ import annotations

import sys

import pytest

SOC = "import acl\nprint(acl.get_soc_name())\n"


def test_import_acl_is_the_emulator(emu_process, tmp_path):
    (tmp_path / "script.py").write_text(SOC)
    assert emu_process("run", "script.py").out == "Ascend910B1\n"
    assert emu_process("run", "--soc", "Ascend310P3", "script.py").out == "Ascend310P3\n"


CHILDREN = """
import multiprocessing, subprocess, sys
import acl


def child(queue):
    import acl
    import acl.rt
    queue.put((acl.__name__, acl.get_soc_name(), acl.rt.__name__))


if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    process = context.Process(target=child, args=(queue,))
    process.start()
    print(queue.get(timeout=120))
    process.join()
    code = "import acl.rt, acl; print(acl.__name__, acl.get_soc_name())"
    print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip())
"""


def test_processes_that_a_script_starts_find_acl(emu_process, tmp_path):
    (tmp_path / "script.py").write_text(CHILDREN)
    ran = emu_process("run", "--soc", "Ascend310P3", "script.py")
    assert (ran.out, ran.err) == ("('emu.acl', 'Ascend310P3', 'emu.acl.rt')\nemu.acl Ascend310P3\n", "")


def test_processes_that_a_program_starts_find_acl(emu_process, tmp_path):
    program = tmp_path / "program"
    program.write_text(f"#!/bin/sh\nexec '{sys.executable}' -c 'import acl; print(acl.__name__)'\n")
    program.chmod(0o755)
    assert emu_process("run", "./program").out == "emu.acl\n"


def test_arguments_belong_to_the_script(emu_process, tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "helper.py").write_text("NAME = 'helper'\n")
    (tmp_path / "sub" / "script.py").write_text("import sys, helper\nprint(__name__, sys.argv, helper.NAME)\n")
    ran = emu_process("run", "sub/script.py", "--soc", "x", "-1", "--help")
    assert ran.out == "__main__ ['sub/script.py', '--soc', 'x', '-1', '--help'] helper\n"


def test_options_reach_the_scripts_children(emu_process, tmp_path):
    (tmp_path / "script.py").write_text(
        "import os\nprint({k: v for k, v in sorted(os.environ.items()) if k in ('EMU_SOC', 'EMU_DEVICES')})\n"
    )
    assert (
        emu_process("run", "--devices", "2", "--soc", "Ascend910B3", "script.py").out == "{'EMU_DEVICES': '2', 'EMU_SOC': 'Ascend910B3'}\n"
    )


@pytest.mark.parametrize(("line", "code"), [("sys.exit(7)", 7), ("sys.exit()", 0), ("sys.exit('why')", 1), ("pass", 0), ("1 / 0", 1)])
def test_exit_code_is_the_scripts(emu_process, tmp_path, line, code):
    (tmp_path / "script.py").write_text(f"import sys\n{line}\n")
    assert emu_process("run", "script.py").code == code


def test_traceback_is_the_scripts_alone(emu_process, tmp_path):
    (tmp_path / "script.py").write_text("def f():\n    1 / 0\nf()\n")
    ran = emu_process("run", "script.py")
    assert ran.code == 1
    assert ran.err.startswith('Traceback (most recent call last):\n  File "script.py", line 3, in <module>\n')
    assert "runpy" not in ran.err


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["nope.py"], 1, "no such file"),
        (["."], 1, "is a directory"),
        ([], 2, "PROGRAM"),
        (["--soc", "Ascend910B9", "script.py"], 2, "did you mean"),
        (["--schedule", "lazzy", "script.py"], 2, "did you mean 'lazy'"),
    ],
)
def test_failures(emu, args, code, says):
    ran = emu("run", *args)
    assert ran.code == code
    assert says in ran.err
