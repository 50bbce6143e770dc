"""emu call: files in, a file out, and every way in which that fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from emu import ops
from emu.cli import _npy
from emu.opdef.catalogue import OPERATORS
from emu.types import DataType

BF16 = ml_dtypes.bfloat16
A950 = "Ascend950PR_9599"


@pytest.fixture
def files(tmp_path):
    """g.npy (ones) and y.npy (-4 … 3), FLOAT, shape (4, 2)."""
    g, y = np.ones((4, 2), np.float32), np.arange(-4, 4, dtype=np.float32).reshape(4, 2)
    np.save(tmp_path / "g.npy", g)
    np.save(tmp_path / "y.npy", y)
    return g, y


def test_output_is_what_the_python_function_gives(emu, files, tmp_path):
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy")
    assert (ran.code, ran.err) == (0, "")
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.float32
    np.testing.assert_array_equal(out, ops.selu_backward(*files))
    assert ran.out == "aclnnSeluBackward on Ascend910B1, numerics device: out.npy, shape (4, 2), FLOAT\n"


def test_options_before_and_between_the_files(emu, files, tmp_path):
    assert emu("call", "aclnnSoftmaxBackward", "--dim", "-1", "g.npy", "-o", "out.npy", "y.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), ops.softmax_backward(*files, -1))


def test_attribute_is_required_and_a_whole_number(emu, files):
    ran = emu("call", "softmax_backward", "g.npy", "y.npy", "-o", "out.npy")
    assert ran.code == 2
    assert "--dim" in ran.err
    ran = emu("call", "softmax_backward", "g.npy", "y.npy", "-o", "out.npy", "--dim", "first")
    assert ran.code == 2
    assert "--dim" in ran.err
    ran = emu("call", "softmax_backward", "g.npy", "y.npy", "-o", "out.npy", "--dim", "99999999999999999999")
    assert ran.code == 2
    assert ran.err.startswith("emu: aclnnSoftmaxBackward: dim is 99999999999999999999, outside")
    assert ran.err.count("\n") == 1


def test_soc_numerics_and_json(emu, files, tmp_path):
    given = ("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--json")
    ran = emu(*given, "--soc", A950, "--no-strict-products")
    assert json.loads(ran.out) == {
        "operator": "aclnnSeluBackward", "soc": A950, "numerics": "device", "output": "out.npy", "shape": [4, 2], "dtype": "FLOAT"
    }  # fmt: skip
    assert np.load(tmp_path / "out.npy")[2, 0] == np.float32(1.7580993408473768)
    ran = emu(*given, "--soc", "Ascend910B1", "--numerics", "document")
    assert json.loads(ran.out)["numerics"] == "document"
    assert np.load(tmp_path / "out.npy")[2, 0] == 1


def test_refused_product_names_the_switch(emu, files, tmp_path):
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--soc", A950)
    assert ran.code == 1
    assert "561103" in ran.err
    assert "--no-strict-products" in ran.err
    assert not (tmp_path / "out.npy").exists()


def test_bf16_as_numpy_writes_it(emu, files, tmp_path):
    g, y = (a.astype(BF16) for a in files)
    np.save(tmp_path / "g.npy", g)
    np.save(tmp_path / "y.npy", y)
    assert emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy").code == 0
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.dtype("V2")
    np.testing.assert_array_equal(out.view(BF16), ops.selu_backward(g, y))
    assert emu("call", "selu_backward", "out.npy", "y.npy", "-o", "again.npy", "--dtype", "bf16").code == 0


@pytest.mark.parametrize(("option", "dtype"), [("bf16", BF16), ("bfloat16", BF16), ("float16", np.float16), ("FP16", np.float16)])
def test_bits_as_uint16(emu, files, tmp_path, option, dtype):
    g, y = (a.astype(dtype) for a in files)
    np.save(tmp_path / "g.npy", g.view(np.uint16))
    np.save(tmp_path / "y.npy", y.view(np.uint16))
    assert emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--dtype", option).code == 0
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.uint16
    np.testing.assert_array_equal(out.view(dtype), ops.selu_backward(g, y))


def test_uint16_without_a_word_is_refused(emu, tmp_path):
    np.save(tmp_path / "g.npy", np.zeros(3, np.uint16))
    ran = emu("call", "selu_backward", "g.npy", "g.npy", "-o", "out.npy")
    assert ran.code == 2
    assert "--dtype bf16" in ran.err
    assert sorted(os.listdir(tmp_path)) == ["g.npy"]


def test_dtype_converts_nothing(emu, files):
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--dtype", "bf16")
    assert ran.code == 2
    assert "g.npy holds FLOAT, not BF16" in ran.err


def test_unknown_dtype_names_the_nearest(emu, files):
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--dtype", "bf17")
    assert ran.code == 2
    assert "did you mean bf16" in ran.err


def test_output_of_another_data_type(emu, files, tmp_path):
    assert emu("call", "softmax_backward", "g.npy", "y.npy", "-o", "out.npy", "--dim", "0", "--out-dtype", "double").code == 0
    out = np.load(tmp_path / "out.npy")
    assert out.dtype == np.float64
    np.testing.assert_array_equal(out, ops.softmax_backward(*files, 0))
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "other.npy", "--out-dtype", "double")
    assert ran.code == 1
    assert "161002" in ran.err


def test_double_files_get_the_conversion(emu, tmp_path):
    np.save(tmp_path / "g.npy", np.ones(3))
    ran = emu("call", "selu_backward", "g.npy", "g.npy", "-o", "out.npy")
    assert ran.code == 1
    assert "astype(numpy.float32)" in ran.err


@pytest.mark.parametrize(
    "array",
    [
        np.float32(3.5).reshape(()),
        np.zeros((0, 3), np.float32),
        np.asfortranarray(np.arange(12, dtype=np.float32).reshape(3, 4)),
        np.arange(6, dtype=">f4").reshape(2, 3),
        np.arange(5, dtype=np.int8),
        np.arange(5, dtype=np.int32),
        np.arange(5, dtype=np.float16),
    ],
    ids=["scalar", "empty", "fortran", "big-endian", "int8", "int32", "float16"],
)
def test_shapes_orders_and_types_of_files(emu, tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    assert emu("call", "selu_backward", "x.npy", "x.npy", "-o", "out.npy").code == 0
    native = array.astype(array.dtype.newbyteorder("="))
    out = np.load(tmp_path / "out.npy")
    assert (out.shape, out.dtype) == (native.shape, native.dtype)
    np.testing.assert_array_equal(out, ops.selu_backward(native, native))


def test_inplace_operator_leaves_the_input_file(emu, files, tmp_path):
    before = (tmp_path / "y.npy").read_bytes()
    assert emu("call", "inplace_selu", "y.npy", "-o", "out.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), ops.selu(files[1]))
    assert (tmp_path / "y.npy").read_bytes() == before


def test_output_may_be_an_input_and_keeps_its_mode(emu, files, tmp_path):
    (tmp_path / "g.npy").chmod(0o640)
    assert emu("call", "selu_backward", "g.npy", "y.npy", "-o", "g.npy").code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "g.npy"), ops.selu_backward(*files))
    assert (tmp_path / "g.npy").stat().st_mode & 0o777 == 0o640


def test_output_behind_a_link_and_into_a_device(emu, files, tmp_path):
    (tmp_path / "real.npy").write_bytes(b"old")
    (tmp_path / "link.npy").symlink_to(tmp_path / "real.npy")
    assert emu("call", "selu_backward", "g.npy", "y.npy", "-o", "link.npy").code == 0
    assert (tmp_path / "link.npy").is_symlink()
    np.testing.assert_array_equal(np.load(tmp_path / "real.npy"), ops.selu_backward(*files))
    assert emu("call", "selu_backward", "g.npy", "y.npy", "-o", "/dev/null").code == 0
    assert not Path("/dev/null").is_file()


def _archive(path):
    with path.open("wb") as file:
        np.savez(file, a=np.zeros(3))


BROKEN = {
    "missing": (lambda p: None, "no such file"),
    "directory": (lambda p: p.mkdir(), "is a directory"),
    "empty": (lambda p: p.write_bytes(b""), "no complete .npy file"),
    "text": (lambda p: p.write_text("1 2 3\n"), "is no .npy file"),
    "archive": (_archive, ".npz archive"),
    "objects": (lambda p: np.save(p, np.array([{}, None]), allow_pickle=True), "dtype object is not supported"),
    "records": (lambda p: np.save(p, np.zeros(2, [("a", "f4")])), "no array of numbers"),
    "strings": (lambda p: np.save(p, np.array(["a"])), "no array of numbers"),
    "void": (lambda p: np.save(p, np.zeros(2, "V3")), "no aclDataType"),
    "longdouble": (lambda p: np.save(p, np.zeros(2, np.longdouble)), "no aclDataType"),
}


@pytest.mark.parametrize("kind", sorted(BROKEN))
def test_broken_input_is_named_and_nothing_is_written(emu, files, tmp_path, kind):
    make, says = BROKEN[kind]
    make(tmp_path / "bad.npy")
    before = sorted(os.listdir(tmp_path))
    ran = emu("call", "selu_backward", "g.npy", "bad.npy", "-o", "out.npy")
    assert ran.code == 1
    assert says in ran.err
    assert "bad.npy" in ran.err
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("keep", [3, 6, 9, 60, 127, 130])
def test_truncated_input(emu, files, tmp_path, keep):
    (tmp_path / "bad.npy").write_bytes((tmp_path / "g.npy").read_bytes()[:keep])
    ran = emu("call", "selu_backward", "bad.npy", "y.npy", "-o", "out.npy")
    assert ran.code == 1
    assert "bad.npy" in ran.err
    assert not (tmp_path / "out.npy").exists()


def test_shapes_that_do_not_fit(emu, files, tmp_path):
    np.save(tmp_path / "bad.npy", np.zeros(3, np.float32))
    ran = emu("call", "selu_backward", "g.npy", "bad.npy", "-o", "out.npy")
    assert ran.code == 1
    assert "161002" in ran.err
    assert not (tmp_path / "out.npy").exists()


@pytest.mark.parametrize(("target", "says"), [("nowhere/out.npy", "there is no directory"), (".", "is a directory")])
def test_output_that_cannot_be(emu, files, target, says):
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", target)
    assert ran.code == 1
    assert says in ran.err


def test_a_write_that_fails_leaves_the_old_file(emu, files, tmp_path, monkeypatch):
    (tmp_path / "out.npy").write_bytes(b"old")

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_npy, "_save", full)
    ran = emu("call", "selu_backward", "g.npy", "y.npy", "-o", "out.npy")
    assert ran.code == 1
    assert "No space left on device; nothing was written" in ran.err
    assert (tmp_path / "out.npy").read_bytes() == b"old"
    assert sorted(os.listdir(tmp_path)) == ["g.npy", "out.npy", "y.npy"]


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["selu_bakward", "g.npy", "y.npy", "-o", "out.npy"], "did you mean selu_backward"),
        (["selu_backward", "g.npy", "y.npy"], "--output"),
        (["selu_backward", "g.npy", "-o", "out.npy"], "<input result.npy>"),
        (["selu_backward", "g.npy", "y.npy", "y.npy", "-o", "out.npy"], "y.npy"),
        (["selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--soc", "Ascend910B9"], "did you mean"),
        (["selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--numerics", "devise"], "did you mean 'device'"),
        (["selu_backward", "g.npy", "y.npy", "-o", "out.npy", "--dim", "0"], "--dim"),
    ],
)
def test_wrong_usage(emu, files, args, says):
    ran = emu("call", *args)
    assert ran.code == 2
    assert says in ran.err


@pytest.mark.parametrize("op", OPERATORS, ids=lambda op: op.python_name)
def test_help_names_the_files_and_the_attributes(emu_process, op):
    ran = emu_process("call", op.python_name, "--help", COLUMNS="200", TERM="dumb")
    assert ran.code == 0
    for p in op.params:
        if p.role.value in ("in", "inout"):
            assert f"<input {p.python}.npy>" in ran.out
        if p.role.value == "attr":
            assert f"--{p.python}" in ran.out


def test_names_of_data_types():
    assert _npy.data_type("BFloat16", "--dtype") is DataType.BF16
    assert _npy.data_type("half", "--dtype") is DataType.FLOAT16
    assert _npy.data_type(None, "--dtype") is None


def test_progress_bar_on_a_terminal(tmp_path):
    import pty

    np.save(tmp_path / "x.npy", np.zeros(9 << 20, np.int8))
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "emu", "call", "selu_backward", "x.npy", "x.npy", "-o", "out.npy"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    environment.pop("NO_COLOR", None)
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=theirs, env=environment) as process:
        os.close(theirs)
        shown = b""
        try:
            while piece := os.read(ours, 65536):
                shown += piece
        except OSError:  # the other end of a terminal that closes is an error on Linux
            pass
        assert process.stdout is not None
        said = process.stdout.read()
    os.close(ours)
    assert process.returncode == 0
    assert b"reading x.npy" in shown
    assert b"aclnnSeluBackward" in said
