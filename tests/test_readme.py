"""README's snippets run, its outputs are what they print, its table is what `emu ops` says, its picture is what the emulator computes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from emu.cli import _matrix, summaries
from emu.config import Config

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


class Snippet(NamedTuple):
    line: int
    language: str
    code: str
    output: str | None


def snippets() -> list[Snippet]:
    """The fenced blocks; a ``text`` block is the output of the one before it."""
    found: list[Snippet] = []
    for match in re.finditer(r"^```(\w+)\n(.*?)^```$", README, re.MULTILINE | re.DOTALL):
        language, code = match[1], match[2]
        if language == "text":
            found[-1] = found[-1]._replace(output=code)
        else:
            found.append(Snippet(README[: match.start()].count("\n") + 1, language, code, None))
    return found


def runnable(line: str) -> str:
    """A shell line without what the test run itself has done already: installing, and calling pytest."""
    match = re.fullmatch(r"pip install (\S+) && (.*)", line)
    if match is None:
        return line
    extra = re.fullmatch(r"'?\.(?:\[(\w+)\])?'?", match[1])
    assert extra is not None, line
    known = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    assert extra[1] is None or extra[1] in known
    return "true" if match[2] == "pytest" else match[2]


@pytest.mark.parametrize("snippet", snippets(), ids=lambda s: f"line{s.line}")
def test_snippet_runs(snippet, tmp_path):
    assert snippet.language in ("python", "sh")
    if snippet.language == "python":
        command = [sys.executable, "-c", snippet.code]
    else:
        script = "\n".join(runnable(line) for line in snippet.code.splitlines())
        command = ["bash", "-euo", "pipefail", "-c", script]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(command, cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    if snippet.output is not None:
        assert done.stdout == snippet.output


def test_there_is_a_snippet_for_each_way_in():
    languages = [s.language for s in snippets()]
    assert languages.count("python") >= 3
    assert languages.count("sh") >= 4
    assert sum(s.output is not None for s in snippets()) >= 3


def test_aclnn_example_is_short():
    example = next(s.code for s in snippets() if "GetWorkspaceSize" in s.code)
    code = [line for line in example.splitlines() if line and not line.startswith(("import", "from"))]
    assert len(code) <= 15


def test_table_is_what_emu_ops_says():
    match = re.search(r"<!-- emu ops --markdown -->\n(.*?)<!-- end -->", README, re.DOTALL)
    assert match is not None
    assert match[1] == _matrix.markdown() + "\n", "run `emu ops --markdown` and put the table into README.md"


def test_every_command_and_setting_is_named():
    for name in summaries():
        assert f"emu {name}" in README, name
    for name, field in Config.__dataclass_fields__.items():
        assert f"`{name}`" in README, name
        assert f"`{field.metadata['env']}`" in README, name


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert target.startswith("http") or (ROOT / target).exists(), target


def test_picture_is_what_the_emulator_computes():
    from emu import config

    spec = importlib.util.spec_from_file_location("make_picture", ROOT / "docs" / "make_picture.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    strict = config.current().strict_products
    try:
        drawn = module.draw()
    finally:
        config.configure(strict_products=strict)
    assert drawn == module.PICTURE.read_text(), "run python docs/make_picture.py"
