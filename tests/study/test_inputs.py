"""Inputs: the prescribed mixtures, the user's files, case files, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import ml_dtypes
import numpy as np
import pytest

from emu.study import distributions, files, inputs, numbers, run
from emu.study.errors import StudyError


def draw(spec: str, dtype: str = "FLOAT", n: int = 100_000) -> np.ndarray:
    return numbers.values(dtype, distributions.sampler(spec, dtype)(np.random.default_rng(1), n))


def test_l0_is_half_uniform_half_normal() -> None:
    x = draw("l0")
    assert np.abs(x[:50_000]).max() <= 5
    assert abs(x[:50_000].mean()) < 0.1
    # Five normals, each with a mean in [-100, 100] and a standard deviation in [1, 25].
    tails = x[50_000:].reshape(5, -1)
    assert (np.abs(tails.mean(1)) < 101).all()
    assert ((tails.std(1) > 0.9) & (tails.std(1) < 25.5)).all()


def test_l1_has_its_four_kinds() -> None:
    x = draw("l1")
    assert np.abs(x[:10_000]).max() <= 0.001
    assert 4.9 < np.abs(x[10_000:40_000]).max() <= 5
    outliers = np.abs(x[80_000:])
    assert 5 < (outliers > 3000).sum() < 60


@pytest.mark.parametrize("dtype", ["FLOAT16", "BF16", "FLOAT", "INT8", "INT32"])
def test_bits_and_binades_cover_the_dtype(dtype: str) -> None:
    x = draw("binade", dtype)
    assert np.isfinite(x).all()
    assert (x[x != 0] < 0).mean() == pytest.approx(0.5, abs=0.1)
    _, exponent = np.frexp(x[x != 0])
    assert len(set(exponent.tolist())) >= {"FLOAT16": 40, "BF16": 250, "FLOAT": 250, "INT8": 7, "INT32": 31}[dtype]
    if numbers.is_float(dtype):
        assert np.isnan(draw("bits", dtype)).any()


def test_a_uniform_range_wider_than_float64() -> None:
    x = draw("uniform:-1e308,1e308", "DOUBLE")
    assert np.isfinite(x).all()
    assert np.abs(x).max() == pytest.approx(1e308, rel=1e-3)
    assert np.quantile(x / 1e308, [0.25, 0.5, 0.75]) == pytest.approx([-0.5, 0.0, 0.5], abs=0.01)
    assert np.isinf(draw("uniform:-1e308,1e308")).all()


def test_a_uniform_range_is_drawn_as_ever() -> None:
    """Seeds keep their values: a range with a width is NumPy's own."""
    expected = np.random.default_rng(1).uniform(-3, 1e307, 1000)
    assert (draw("uniform:-3,1e307", "DOUBLE", 1000) == expected).all()


def test_blocks_do_not_depend_on_each_other() -> None:
    source = inputs.make("l1", "FLOAT", ("grad", "self"), grad=None, n=200_000, seed=3, row=None)
    last = source.block(source.blocks - 1)
    assert [a.size for a in last] == [200_000 - source.start(source.blocks - 1)] * 2
    assert np.array_equal(source.block(2)[1], source.block(2)[1])
    assert not np.array_equal(source.block(0)[0], source.block(1)[0])


@pytest.mark.parametrize("op", ["selu_backward", "softmax_backward", "selu", "softmax"])
def test_specials_meet_each_other(op: str) -> None:
    length = {"row_length": 5} if "softmax" in op else {}
    row = run(op, dtypes=("FLOAT16",), inputs="specials", **length).rows()[0]
    count = distributions.special_values("FLOAT16").size
    assert row["n"] >= count * (count if op.endswith("d") and op.startswith("selu") else 1)
    assert row["repeat_differs"] == 0


def test_exhaustive_rows_of_values_appear_once() -> None:
    source = inputs.make("exhaustive", "BF16", ("self",), grad=None, n=1, seed=0, row=None)
    assert np.array_equal(np.concatenate([source.block(i)[0] for i in range(source.blocks)]), np.arange(65536, dtype=np.uint16))


def test_files_of_every_kind(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    g, y = rng.standard_normal((2, 70_001)).astype(np.float32)
    np.save(tmp_path / "g.npy", g)
    np.save(tmp_path / "y.npy", y)
    np.savez(tmp_path / "both.npz", grad=g, result=y)
    np.save(tmp_path / "gb.npy", g.astype(ml_dtypes.bfloat16))
    np.save(tmp_path / "yb.npy", y.astype(ml_dtypes.bfloat16).view(np.uint16))
    pair = run("selu_backward", dtypes=("BF16",), inputs=f"{tmp_path}/g.npy,{tmp_path}/y.npy").rows()[0]
    archive = run("selu_backward", dtypes=("BF16",), inputs=f"{tmp_path}/both.npz").rows()[0]
    patterns = run("selu_backward", dtypes=("BF16",), inputs=f"{tmp_path}/gb.npy,{tmp_path}/yb.npy").rows()[0]
    for row in (archive, patterns):
        # As text: NaN, where there is no such input, equals itself then.
        assert str(row | {"inputs": ""}) == str(pair | {"inputs": ""})
    assert pair["n"] == 70_001


def test_a_saved_result_is_compared(tmp_path: Path) -> None:
    import emu

    x = np.linspace(-9, 9, 4097, dtype=np.float16)
    out = emu.ops.selu(x)
    out[5] = np.nextafter(out[5], np.float16(9))
    np.save(tmp_path / "x.npy", x)
    np.save(tmp_path / "npu_out.npy", out)
    row = run("selu", dtypes=("FLOAT16",), inputs=f"{tmp_path}/x.npy", against=f"{tmp_path}/npu_out.npy").rows()[0]
    assert (row["exact_hits"], row["wrong_by_one"]) == (4096, 1)
    np.save(tmp_path / "short.npy", out[:7])
    with pytest.raises(StudyError, match="7 results, but the inputs have 4097"):
        run("selu", dtypes=("FLOAT16",), inputs=f"{tmp_path}/x.npy", against=f"{tmp_path}/short.npy")
    with pytest.raises(StudyError, match="narrower"):
        run("selu", dtypes=("FLOAT",), inputs=f"{tmp_path}/x.npy", against=f"{tmp_path}/npu_out.npy")


def test_case_files(tmp_path: Path) -> None:
    (tmp_path / "ttk.csv").write_text(
        "testcase_name,op_name,input_shapes,input_dtypes,input_data_ranges\n"
        'a,SeluBackward,"((4,8),(4,8))","(\'float16\',\'float16\')","((-1,1),(-1.7,3))"\n'
        'b,SeluBackward,"(16,)",float16,"(0,2)"\n'
        'c,SeluBackward,"((3,),(3,))",float32,\n'
    )
    (tmp_path / "atk.json").write_text(
        '[{"name": "a", "inputs": [{"name": "g", "dtype": "fp16", "shape": [4, 8], "range_values": [-1, 1]},'
        ' {"name": "y", "dtype": "fp16", "shape": [4, 8], "range_values": [2, 3]}, {"type": "attr", "value": 1}]}]'
    )
    ttk = run("selu_backward", dtypes=("FLOAT16",), inputs=str(tmp_path / "ttk.csv")).rows()[0]
    assert ttk["n"] == 48
    atk = run("selu_backward", dtypes=("FLOAT16",), inputs=str(tmp_path / "atk.json"))
    assert atk.rows()[0]["n"] == 32
    values = [float(i["decimal"]) for w in atk.cells[0].traces for i in w["inputs"] if i["name"] == "result"]
    assert values
    assert all(2 <= v <= 3 for v in values)
    rows = run("softmax", dtypes=("FLOAT16",), inputs=str(tmp_path / "ttk.csv")).rows()[0]
    assert rows["n"] == 48


@pytest.mark.parametrize(
    ("name", "content", "text"),
    [
        ("a.csv", b"shape,kind\n1,2\n", "needed: input_shapes"),
        ("a.csv", b"input_shapes,input_dtypes\n((4,),float16\n", "no Python literal"),
        ("a.csv", b'input_shapes,input_dtypes\n"((4,),(5,))",float16\n', "one shape"),
        ("a.csv", b'input_shapes,input_dtypes\n"(4,)",float12\n', "unknown dtype"),
        ("a.csv", b'input_shapes,input_dtypes,input_data_ranges\n"(4,)",float16,"(2,1)"\n', "is empty"),
        ("a.csv", b'input_shapes,input_dtypes\n"(4,)",float32\n', "no case in FLOAT16"),
        ("a.csv", b'input_shapes,input_dtypes,input_data_ranges\n"5","float16",""\n', "line 2: column input_shapes needs a list, not '5'"),
        ("a.csv", b'input_shapes,input_dtypes,input_data_ranges\n"(4,)","5",""\n', "line 2: column input_dtypes needs a list, not '5'"),
        (
            "a.csv",
            b'input_shapes,input_dtypes,input_data_ranges\n"(4,)","float16","5"\n',
            "line 2: column input_data_ranges needs a list, not '5'",
        ),
        (
            "a.csv",
            b'input_shapes,input_dtypes,input_data_ranges\n"(4,)","float16","()"\n',
            "line 2 column input_data_ranges: a range is two numbers",
        ),
        (
            "a.csv",
            b'input_shapes,input_dtypes,input_data_ranges\n"(4,)","float16","((0,1),5)"\n',
            "line 2 column input_data_ranges: a range is two numbers, not 5",
        ),
        (
            "a.csv",
            b'input_shapes,input_dtypes,input_data_ranges\n"((4,),5)","float16",""\n',
            "line 2 column input_shapes: a shape is a list",
        ),
        (
            "a.csv",
            b'input_shapes,input_dtypes,input_data_ranges\n"((4,),)","float16",""\n',
            "line 2 column input_shapes: 1 entries for 2 tensors",
        ),
        ("a.csv", b'input_shapes,input_dtypes,input_data_ranges\n"(4,)","(5,5)",""\n', "line 2 column input_dtypes: unknown dtype 5"),
        ("a.csv", b'input_shapes,input_dtypes,input_data_ranges\n"{[]:1}","float16",""\n', "no Python literal"),
        ("a.json", b"{", "cannot be read"),
        ("a.json", b'{"tests": []}', "list of cases"),
        ("a.json", b'[{"inputs": []}]', "0 tensors, the operator reads 2"),
        ("a.npz", b"PK", "not a readable .npz"),
        ("a.npy,b.npy", b"no", "not a readable .npy"),
        ("a.npy", b"no", "reads 2 tensors"),
    ],
)
def test_broken_files_name_the_fix(tmp_path: Path, name: str, content: bytes, text: str) -> None:
    for part in name.split(","):
        (tmp_path / part).write_bytes(content)
    spec = ",".join(str(tmp_path / part) for part in name.split(","))
    with pytest.raises(StudyError, match=text):
        run("selu_backward", dtypes=("FLOAT16",), inputs=spec)


@pytest.mark.parametrize("order", ["C", "F"])
def test_npz_is_read_in_its_place(tmp_path: Path, order: Literal["C", "F"]) -> None:
    rng = np.random.default_rng(0)
    grad, result = (np.asarray(a, order=order) for a in rng.standard_normal((2, 5, 7)).astype(np.float16))
    for name, save in (("stored", np.savez), ("packed", np.savez_compressed)):
        save(tmp_path / f"{name}.npz", result=result, grad=grad)
        found = files.load_inputs(f"{tmp_path}/{name}.npz", ("grad", "result"))
        assert [isinstance(a, np.memmap) for a in found] == [True] * 2
        assert np.array_equal(found[0], grad)
        assert np.array_equal(found[1], result)
        source = inputs.from_arrays(found, "FLOAT16", ("grad", "result"), True, name)
        assert all(np.array_equal(b, a.view(np.uint16)) for b, a in zip(source.block(0), (grad, result), strict=True))


def test_patterns_of_another_dtype_are_refused_before_anything_runs(tmp_path: Path) -> None:
    np.save(tmp_path / "p.npy", np.zeros(3, np.uint16))
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    for asked in ({"inputs": f"{tmp_path}/p.npy"}, {"inputs": f"{tmp_path}/x.npy", "against": f"{tmp_path}/p.npy"}):
        with pytest.raises(StudyError, match="holds 16-bit patterns, but the study is in FLOAT:"):
            run("selu", dtypes=("FLOAT16", "FLOAT"), out=tmp_path / "out", **asked)
        assert not (tmp_path / "out").exists()


def test_npz_members_that_cannot_be_mapped(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", self=np.ones((0, 3)))
    with pytest.raises(StudyError, match="holds no element"):
        run("selu", dtypes=("FLOAT16",), inputs=str(tmp_path / "a.npz"))
    np.savez(tmp_path / "b.npz", self=np.array([{}], object))
    with pytest.raises(StudyError, match="not a readable"):
        run("selu", dtypes=("FLOAT16",), inputs=str(tmp_path / "b.npz"))


def test_either_byte_order_is_read(tmp_path: Path) -> None:
    x = np.linspace(-3, 3, 41).astype(np.float16)
    for name, array in (("little", x), ("big", x.astype(">f2")), ("bits", x.view(np.uint16)), ("swapped", x.view(np.uint16).astype(">u2"))):
        np.save(tmp_path / f"{name}.npy", array)
        source = inputs.make(f"{tmp_path}/{name}.npy", "FLOAT16", ("self",), grad=None, n=1, seed=0, row=None)
        assert np.array_equal(source.block(0)[0], x.view(np.uint16)), name


@pytest.mark.parametrize("kind", [complex, "M8[s]", [("a", "f2")]])
def test_arrays_that_are_no_numbers(tmp_path: Path, kind: Any) -> None:
    np.save(tmp_path / "x.npy", np.ones(3, kind))
    with pytest.raises(StudyError, match="give an array of floats or integers"):
        run("selu", dtypes=("FLOAT16",), inputs=f"{tmp_path}/x.npy")


def test_a_masked_array_leaves_no_file_to_read(tmp_path: Path) -> None:
    with pytest.raises(NotImplementedError):
        np.save(tmp_path / "x.npy", np.ma.masked_greater(np.ones(3), 0.5))
    with pytest.raises(StudyError, match="a masked one has no file format"):
        run("selu", dtypes=("FLOAT16",), inputs=f"{tmp_path}/x.npy")


def test_an_archive_that_finds_no_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    np.savez_compressed(tmp_path / "a.npz", self=np.ones(3))
    monkeypatch.setattr(files.shutil, "copyfileobj", full)
    with pytest.raises(StudyError, match=r"No space left.*numpy.savez.*TMPDIR"):
        run("selu", dtypes=("FLOAT16",), inputs=str(tmp_path / "a.npz"))


def test_npz_without_the_names(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", gradient=np.ones(3))
    with pytest.raises(StudyError, match="holds gradient, but the operator reads grad, result"):
        run("selu_backward", dtypes=("FLOAT16",), inputs=str(tmp_path / "a.npz"))
    with pytest.raises(StudyError, match="reads grad, x"):
        run("selu_backward", dtypes=("FLOAT16",), inputs=str(tmp_path / "a.npz"), against="true")
