"""Lazy imports, the cache on disk, and what happens when it cannot be written."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import emu_kernels
import pytest
from emu_kernels import build, catalog
from emu_kernels.variant import ARCHS, Variant

PACKAGE = Path(emu_kernels.__file__).parent


def python(source: str, *, path: Path | None = None, **env: str) -> str:
    """Run a program with the package (or the copy of it under `path`) and give what it prints."""
    full = {**os.environ, "PYTHONPATH": str(path) if path else "", "PYTHONWARNINGS": "error", **env}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], capture_output=True, text=True, env=full, timeout=550)
    assert done.returncode == 0, done.stderr
    return done.stdout


# One kernel of every template and carrier.
PROGRAM = """
    import json, sys
    from emu_kernels import build
    from emu_kernels.variant import Variant
    build.set_cache_dir(sys.argv[1] if len(sys.argv) > 1 else {cache!r})
    f = lambda dtype, arch="dav_2201": Variant(arch, dtype, False)
    build.elementwise("selu_backward", f("FLOAT"))
    build.elementwise("selu_backward", f("FLOAT16"))
    build.elementwise("log_sigmoid_backward", f("BF16"))
    build.rows("softmax_backward", f("FLOAT"), True)
    build.rows("softmax_backward", f("FLOAT", "dav_3510"), False)
    build.rows("softmax", f("FLOAT"), True)
    build.strided_copy(16)
    build.cast("FLOAT", "BF16", f(""))
    print(json.dumps([build.stats(), build.cache_state()]))
"""


def copy_of_package(tmp_path: Path) -> Path:
    root = tmp_path / "copy"
    shutil.copytree(PACKAGE, root / "emu_kernels", ignore=shutil.ignore_patterns("__pycache__"))
    return root


def test_importing_the_package_and_its_catalogue_loads_no_numba() -> None:
    out = python(
        """
        import sys
        import emu_kernels, emu_kernels.build, emu_kernels.variant
        emu_kernels.build.flows()
        print(sorted(m for m in ("numba", "llvmlite", "numpy") if m in sys.modules))
        """
    )
    assert out.strip() == "[]"


def test_a_second_process_hits_the_cache_and_an_edit_of_any_helper_misses_it(tmp_path: Path) -> None:
    root, cache = copy_of_package(tmp_path), tmp_path / "cache"
    program = PROGRAM.format(cache=str(cache))
    first, state = json.loads(python(program, path=root))
    assert state == [str(cache), None]
    assert len(first) == 9  # eight kernels and the one that fills the table
    assert set(first.values()) == {"compiled"}
    second, _ = json.loads(python(program, path=root))
    assert second == dict.fromkeys(first, "cache")

    helper = root / "emu_kernels" / "elementary.py"
    helper.write_text(helper.read_text() + "\n# edited\n")
    few = f"""
        import json
        from emu_kernels import build
        from emu_kernels.variant import Variant
        build.set_cache_dir({str(cache)!r})
        build.elementwise("selu_backward", Variant("dav_2201", "FLOAT", False))
        print(json.dumps(build.stats()))
    """
    assert set(json.loads(python(few, path=root)).values()) == {"compiled"}
    assert set(json.loads(python(few, path=root)).values()) == {"cache"}


@pytest.mark.parametrize("name", ["bits.py", "flows/selu.py", "formats.py", "reduce.py"])
def test_every_source_file_counts_in_the_stamp(tmp_path: Path, name: str) -> None:
    package = copy_of_package(tmp_path) / "emu_kernels"
    before = build.source_stamp(package)
    assert before == build.source_stamp(package)
    (package / name).write_text((package / name).read_text() + "\n")
    assert build.source_stamp(package) != before


def test_a_damaged_cache_file_is_compiled_again(tmp_path: Path) -> None:
    program = f"""
        from emu_kernels import build
        build.set_cache_dir({str(tmp_path)!r})
        build.strided_copy(1)
        print(build.stats()["strided_copy_1"])
    """
    assert python(program).strip() == "compiled"
    (file,) = list(tmp_path.rglob("strided_copy_1.*"))
    whole = file.read_bytes()
    one_bit = bytearray(whole)
    one_bit[len(whole) // 2] ^= 1
    for damage in (b"", b"not a pickle", whole[:-100], bytes(one_bit)):
        file.write_bytes(damage)
        assert python(program).strip() == "compiled"
        assert python(program).strip() == "cache"


def test_a_disabled_compiler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numba.config.DISABLE_JIT", 1)
    with pytest.raises(RuntimeError, match="NUMBA_DISABLE_JIT is set"):
        build._compile("none", lambda args, start, stop: None)


@pytest.mark.parametrize("kind", ["file in the way", "no such place"])
def test_an_unwritable_cache_compiles_in_memory_and_says_why(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "taken"
    path.write_text("")
    where = str(path) if kind == "file in the way" else "/proc/no/such/place"
    program = f"""
        import json
        from emu_kernels import build
        build.set_cache_dir({where!r})
        build.strided_copy(2)
        build.strided_copy(4)
        print(json.dumps([build.stats(), build.cache_state()]))
    """
    stats, (path_used, error) = json.loads(python(program))
    assert set(stats.values()) == {"compiled"}
    assert path_used == where
    assert error


def test_old_stamps_are_pruned_and_foreign_directories_kept(tmp_path: Path) -> None:
    for i in range(8):
        old = tmp_path / f"{i:020x}"
        old.mkdir()
        os.utime(old, (i + 1, i + 1))
    (tmp_path / "mine").mkdir()
    python(
        f"""
        from emu_kernels import build
        build.set_cache_dir({str(tmp_path)!r})
        build.strided_copy(1)
        """
    )
    names = sorted(d.name for d in tmp_path.iterdir())
    assert "mine" in names
    assert [n for n in names if n.startswith("0" * 19)] == [f"{i:020x}" for i in (5, 6, 7)]
    assert len(names) == 5


def test_numba_configuration_is_left_alone(tmp_path: Path) -> None:
    out = python(
        f"""
        import numba
        before = {{k: v for k, v in vars(numba.config).items() if k.isupper()}}
        from emu_kernels import build
        build.set_cache_dir({str(tmp_path)!r})
        build.strided_copy(8)
        after = {{k: v for k, v in vars(numba.config).items() if k.isupper()}}
        print(before == after)
        """
    )
    assert out.strip() == "True"


def test_threads_that_ask_together_get_one_kernel() -> None:
    v, got = Variant("dav_3002", "INT32", True), []
    threads = [threading.Thread(target=lambda: got.append(build.elementwise("selu_backward", v))) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(got) == 8
    assert len({id(k) for k in got}) == 1


def test_variants_of_equal_arithmetic_share_a_kernel() -> None:
    make = build.elementwise
    a = make("selu_backward", Variant("dav_1001", "FLOAT", True))
    assert a is make("selu_backward", Variant("dav_2201", "FLOAT", False))
    assert a is not make("selu_backward", Variant("dav_3510", "FLOAT", False))


@pytest.mark.parametrize(
    "ask",
    [
        lambda: build.elementwise("nothing", Variant("dav_2201", "FLOAT", False)),
        lambda: build.elementwise("softmax", Variant("dav_2201", "FLOAT", False)),
        lambda: build.elementwise("selu", Variant("dav_9999", "FLOAT", False)),
        lambda: build.elementwise("selu", Variant("dav_1001", "BF16", True)),
        lambda: build.elementwise("selu", Variant("dav_2201", "FLOAT", False, "other")),
        lambda: build.elementwise("selu", Variant("dav_2201", "FLOAT", False, "device", (("nothing", "x"),))),
        lambda: build.rows("softmax_backward", Variant("dav_2201", "DOUBLE", False), True),
        lambda: build.cast("COMPLEX64", "FLOAT", Variant("dav_2201", "", False)),
        lambda: build.cast("FLOAT", "STRING", Variant("dav_2201", "", False)),
        lambda: build.strided_copy(3),
    ],
)
def test_what_does_not_exist_is_a_lookup_error_with_the_known_ones(ask) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(LookupError, match="known: "):
        ask()


def test_bf16_is_known_only_where_the_architecture_has_it() -> None:
    for arch in ARCHS:
        for flow in catalog.FLOWS.values():
            assert ("BF16" in flow.dtypes_on(arch)) == ("BF16" in flow.dtypes and arch in ("dav_2201", "dav_3510"))
