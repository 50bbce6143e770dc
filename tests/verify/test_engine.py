"""Plans, resuming, process pools, dask.distributed, reports and the command."""

from __future__ import annotations

import contextlib
import itertools
import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from emu_kernels.variant import Variant
from numpy.typing import NDArray
from typer.testing import CliRunner

from emu.cli import verify as command
from emu.verify import catalog, differences, engine, judge, provider, report
from emu.verify.plan import plan
from emu.verify.units import Example, Unit, run

V = Variant("dav_2201", "BF16", False)
SMALL = [Unit("selu_backward", V, "pairs", low, low + 2) for low in (0, 0x8000, 0xBF80, 0xFFFE)]


class Counting:
    """Right results; counts calls and fails at one of them."""

    def __init__(self, fail_at: int = 0, offset: int = 0) -> None:
        self.calls, self.fail_at, self.offset = 0, fail_at, offset

    def elementwise(self, flow: str, v: Variant, *inputs: NDArray[Any]) -> NDArray[Any]:
        self.calls += 1
        if self.calls == self.fail_at:
            raise KeyboardInterrupt
        return judge.expected(flow, v, *inputs) + np.uint16(self.offset)

    def rows(self, flow: str, v: Variant, last: bool, *inputs: NDArray[Any]) -> NDArray[Any]:
        return judge.expected_rows(flow, v, last, *inputs) + inputs[0].dtype.type(self.offset)


def test_exhaustive_plan_is_every_pair_once() -> None:
    for flow, dtype, arch in catalog.EXHAUSTIVE:
        units = plan("exhaustive", [catalog.BY_FLOW[flow].name], [dtype], [arch])
        pairs = sorted((u.low, u.high) for u in units if u.kind == "pairs")
        assert pairs[0][0] == 0
        assert pairs[-1][1] == 1 << 16
        assert all(a[1] == b[0] for a, b in itertools.pairwise(pairs))
        assert sum(u.weight for u in units if u.kind == "pairs") == 1 << 32


def test_exhaustive_plan_has_2_to_26_random_cases_of_everything_else() -> None:
    units = plan("exhaustive", ["SeluBackward", "LogSigmoidBackward"])
    cases: dict[tuple[str, Variant], int] = {}
    for u in units:
        if u.kind == "random":
            cases[u.flow, u.v] = cases.get((u.flow, u.v), 0) + u.high
    assert set(cases.values()) == {1 << 26}
    covered = {(u.flow, u.v) for u in units if u.kind == "pairs"} | set(cases)
    assert covered == {(op.flow, v) for op in catalog.OPS[:2] for v in catalog.variants(op)}


def test_selection() -> None:
    units = plan("quick", ["selubackward"], ["bf16"], ["DAV_3510"])
    assert {(u.flow, u.v.dtype, u.v.arch) for u in units} == {("selu_backward", "BF16", "dav_3510")}
    assert plan("quick", [], ["BF16"], ["dav_1001"]) == []
    for wrong in ({"ops": ["Mish"]}, {"dtypes": ["HALF"]}, {"archs": ["dav_9"]}, {"level": "slow"}):
        with pytest.raises(LookupError, match="known"):
            plan(**wrong)  # type: ignore[arg-type]
    keys = [u.key for u in plan("exhaustive")]
    assert len(keys) == len(set(keys))


def test_variants_are_those_of_the_products() -> None:
    bf16 = {v.arch for v in catalog.variants(catalog.OPS[0]) if v.dtype == "BF16"}
    assert bf16 == {"dav_2201", "dav_3510"}
    modes = {(v.arch, v.saturate) for v in catalog.variants(catalog.OPS[0])}
    assert modes == {(a, True) for a in catalog.ARCHS if a != "dav_3510"} | {("dav_2201", False), ("dav_3510", False)}


def test_a_stopped_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    first = Counting(fail_at=5)
    with pytest.raises(KeyboardInterrupt):
        engine.execute(SMALL, first, jobs=1, state=engine.State(path))
    with path.open("a") as file:
        file.write('{"key": "half a li')
    second, seen = Counting(), list[str]()
    state = engine.State(path)
    outcomes = engine.execute(SMALL, second, jobs=1, state=state, finished=lambda u, o: seen.append(u.key))
    assert second.calls == 4  # two of the four units were done
    assert [o.key for o in outcomes] == [u.key for u in SMALL]
    assert sorted(seen) == sorted(u.key for u in SMALL)
    assert engine.State(path).done == {o.key: o for o in outcomes}


def test_a_new_run_keeps_what_it_does_not_repeat(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    engine.execute(SMALL, Counting(), jobs=1, state=engine.State(path))
    fresh = [SMALL[1].key]
    assert set(engine.State(path, fresh).done) == {u.key for u in SMALL} - set(fresh)


def test_examples_survive_the_state_file(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    units = [SMALL[0], Unit("softmax_backward", V, "length", 3)]
    outcomes = engine.execute(units, Counting(offset=1), jobs=1, state=engine.State(path))
    assert all(o.examples for o in outcomes)
    assert engine.State(path).done == {o.key: o for o in outcomes}


def test_state_of_other_sources_is_dropped(tmp_path: Path) -> None:
    path = tmp_path / "state.jsonl"
    engine.execute(SMALL[:1], Counting(), jobs=1, state=engine.State(path))
    path.write_text(path.read_text().replace(engine.stamp(), "0" * 16))
    assert engine.State(path).done == {}


def test_processes_and_this_process_agree() -> None:
    kernels = provider.NativeKernels()
    here = engine.execute(SMALL, kernels, jobs=1)
    there = engine.execute(SMALL, kernels, jobs=2)
    assert [o._replace(seconds=0) for o in here] == [o._replace(seconds=0) for o in there]
    assert sum(o.cases for o in here) == 4 << 17
    assert sum(o.mismatches for o in here) == 0


@pytest.mark.filterwarnings("default")
def test_dask_scheduler() -> None:
    distributed = pytest.importorskip("distributed", reason="the extra named dask is not installed")
    with distributed.LocalCluster(n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None) as cluster:
        outcomes = engine.execute(SMALL, provider.NativeKernels(), scheduler=cluster.scheduler_address)
    assert [o.key for o in outcomes] == [u.key for u in SMALL]
    assert sum(o.cases for o in outcomes) == 4 << 17
    assert sum(o.mismatches for o in outcomes) == 0


def test_missing_dask_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(engine, "import_module", missing)
    with pytest.raises(ImportError, match=r"aclnn-emu\[dask\]"):
        engine.execute(SMALL, Counting(), scheduler="tcp://127.0.0.1:1")


def test_explanation_of_a_row() -> None:
    unit = Unit("softmax_backward", V, "length", 3)
    wrong = Counting(offset=1)
    outcome = run(unit, wrong)
    assert outcome.mismatches > 0
    row = report.totals([unit], [outcome])[0]
    found = report.explain(row, outcome.examples[0], wrong)
    names = [name for name, _ in found["reference_steps"]]
    k = found["index"]
    assert names == [
        f"g[{k}]",
        f"y[{k}]",
        f"p[{k}] = y * g",
        *(n for n in names if n.startswith("sum: ")),
        "s = sum(p)",
        f"d[{k}] = g - s",
        f"out[{k}] = y * d",
        f"out[{k}] = RINT to BF16",
    ]
    assert [len(a) for a in found["row"]] == [3, 3]
    text = "\n".join(report.explanation_lines(row, found))
    assert "s = sum(p)" in text


def test_a_kernel_is_observed_from_outside() -> None:
    kernels = provider.NativeKernels()
    steps = list(kernels.observe("selu_backward", V, Example((0x4000, 0xBF80), 0, 0)))
    assert [s.name for s in steps] == ["FLOAT kernel, g = 1", "FLOAT kernel"]
    assert [report.readable("FLOAT", s.bits) for s in steps] == [
        "0x3f4212cc (0.7580993175506592)",
        "0x3fc212cc (1.5161986351013184)",
    ]
    [row_step] = kernels.observe("softmax_backward", V, Example(([0x3F80, 0x4000], [0x3F80, 0x3F80]), 0, 0, True, 1))
    assert report.readable("FLOAT", row_step.bits) == "0xbf800000 (-1.0)"


IN_FLOAT = [("FLOAT kernel, g = 1", "0x3f867d5f (1.0507010221481323)"), ("FLOAT kernel", "0x40067d5f (2.1014020442962646)")]


@pytest.mark.parametrize(
    ("dtype", "arch", "inputs", "result", "expected"),
    [
        # y + SA in FLOAT16: -1 + 1.7578125; then times 2.
        ("FLOAT16", "dav_2201", (0x4000, 0xBC00), 0x3E10, [("FLOAT16 kernel, g = 1", "0x3a10 (0.7578125)")]),
        ("INT8", "dav_2201", (2, 0xFF), 1, [("FLOAT16 kernel, g = 1", "0x3a10 (0.7578125)"), ("FLOAT16 kernel", "0x3e10 (1.515625)")]),
        ("INT32", "dav_2201", (2, 1), 2, IN_FLOAT),
        ("INT8", "dav_3510", (2, 1), 2, IN_FLOAT),
    ],
)  # fmt: skip
def test_what_is_observed_in_every_compute_format(
    dtype: str, arch: str, inputs: tuple[int, int], result: int, expected: list[tuple[str, str]]
) -> None:
    v = V._replace(dtype=dtype, arch=arch)
    signed = tuple(a - 256 if dtype == "INT8" and a > 127 else a for a in inputs)
    steps = list(provider.NativeKernels().observe("selu_backward", v, Example(signed, result, 0)))
    assert [(s.name, report.readable(s.format, s.bits)) for s in steps] == expected


def arguments(tmp_path: Path, *more: str) -> list[str]:
    return ["--quick", "--op", "SeluBackward", "--dtype", "BF16", "--arch", "dav_3510", "-j", "1", "--state", str(tmp_path / "s"), *more]


@pytest.fixture
def cli() -> Any:
    import typer

    app = typer.Typer()
    app.command()(command.command)
    return app


def test_command_passes_and_fails_by_exit_code(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    good = CliRunner().invoke(cli, arguments(tmp_path, "--json"))
    assert good.exit_code == 0, good.output
    result = json.loads(good.stdout)
    assert result["mismatches"] == 0
    assert result["wall_seconds"] > 0
    assert all(r["wall_seconds"] > 0 for r in result["results"])
    assert result["cases"] > 1 << 18
    assert {r["numerics"] for r in result["results"]} == {"device", "document"}
    monkeypatch.setattr(provider, "NativeKernels", lambda: Counting(offset=1))
    bad = CliRunner().invoke(cli, arguments(tmp_path))
    assert bad.exit_code == 1
    assert "reference, step by step" in bad.stdout
    assert "out = (y <= 0) ? b : c" in bad.stdout
    assert "\n  kernel\n" in bad.stdout  # this provider has no steps to show


def test_command_resumes(tmp_path: Path, cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert CliRunner().invoke(cli, arguments(tmp_path)).exit_code == 0
    idle = Counting()
    monkeypatch.setattr(provider, "NativeKernels", lambda: idle)
    assert CliRunner().invoke(cli, arguments(tmp_path, "--resume")).exit_code == 0
    assert idle.calls == 0


@pytest.mark.parametrize("wrong", [["--quick", "--exhaustive"], ["--op", "Mish"], ["--dtype", "BF16", "--arch", "dav_1001"]])
def test_wrong_usage(cli: Any, wrong: list[str]) -> None:
    result = CliRunner().invoke(cli, wrong)
    assert result.exit_code != 0
    assert getattr(result.exception, "code", None) == 2


def test_differences_count_what_they_say() -> None:
    """On reference kernels: 950 differs from A2 in SeluBackward BF16 with g = 1 at y = ±0 only."""
    lines = differences.measure(("BF16",), Counting(), 1 << 12)
    first = next(x for x in lines if x.operator == "SeluBackward")
    assert first.inputs == "every finite value, g = 1"
    assert first.cases == 2 * 0x7F80
    assert first.counts["dav_3510"] == 2
    assert first.counts["dav_1001"] is None
    assert first.counts["document"] is not None
    assert first.counts["document"] > 10000


def refused(cli: Any, *args: str) -> str:
    """What the command says when it refuses: as one line, with exit code 2."""
    from emu.cli._errors import CommandError

    error = CliRunner().invoke(cli, list(args)).exception
    assert isinstance(error, CommandError)
    assert error.code == 2
    assert "\n" not in str(error)
    return str(error)


def test_a_file_of_someone_else_is_not_overwritten(tmp_path: Path, cli: Any) -> None:
    for content in (b"my notes\n", b'{"key": 1}\n', b"[]\n", b"\xff\xfe\x00"):
        (tmp_path / "s").write_bytes(content)
        for more in ([], ["--resume"]):
            assert "is not a state file" in refused(cli, *arguments(tmp_path, *more))
        assert (tmp_path / "s").read_bytes() == content


def test_a_state_file_that_cannot_be_written(tmp_path: Path, cli: Any) -> None:
    (tmp_path / "file").write_text("")
    args = arguments(tmp_path)
    args[args.index("--state") + 1] = str(tmp_path / "file" / "s")
    assert "cannot keep finished work" in refused(cli, *args)
    args[args.index("--state") + 1] = str(tmp_path)
    assert "cannot keep finished work" in refused(cli, *args)


def test_a_scheduler_that_is_not_there(tmp_path: Path, cli: Any) -> None:
    pytest.importorskip("distributed", reason="the extra named dask is not installed")
    assert "cannot reach a scheduler" in refused(cli, *arguments(tmp_path, "--scheduler", "nonsense://nowhere"))


@pytest.mark.parametrize(
    "option", [["--jobs", "2"], ["--state", "x"], ["--resume"], ["--scheduler", "tcp://h:1"], ["--quick"], ["--exhaustive"]]
)
def test_differences_refuse_what_they_do_not_use(cli: Any, option: list[str]) -> None:
    assert f"takes no {option[0]}" in refused(cli, "--differences", *option)


@pytest.mark.parametrize("option", [["--op", "Mish"], ["--dtype", "INT8"], ["--arch", "dav_9"]])
def test_differences_know_their_names(cli: Any, option: list[str]) -> None:
    assert "known: " in refused(cli, "--differences", *option)


def test_differences_of_a_selection(cli: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(differences, "NativeKernels", Counting)
    monkeypatch.setattr(differences, "CASES", 1024)
    args = ["--differences", "--op", "selu", "--dtype", "bf16", "--arch", "dav_3510", "--json"]
    [line] = json.loads(CliRunner().invoke(cli, args).stdout)
    assert (line["operator"], line["dtype"]) == ("Selu", "BF16")
    assert list(line["counts"]) == ["dav_3510", "document", "torch"]


class Interrupting(Counting):
    """A kernel whose compiler swallows the exception of a Ctrl-C, as a callback from C does."""

    def elementwise(self, flow: str, v: Variant, *inputs: NDArray[Any]) -> NDArray[Any]:
        if not self.calls:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        return super().elementwise(flow, v, *inputs)


def test_an_interrupt_that_the_compiler_swallows_is_not_lost(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    state = engine.State(tmp_path / "s")
    with pytest.raises(KeyboardInterrupt):
        engine.execute(SMALL, Interrupting(), jobs=1, state=state)
    assert list(state.done) == [SMALL[0].key]
    assert "stopping after this unit" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is before


def test_a_second_interrupt_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[int] = []
    monkeypatch.setattr(engine.os, "_exit", ended.append)
    with engine.Interrupts() as interrupts:
        signal.raise_signal(signal.SIGINT)
        assert interrupts.asked
        assert ended == []
        signal.raise_signal(signal.SIGINT)
    assert ended == [130]
