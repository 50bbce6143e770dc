"""Plans, reports, counted differences, and Ctrl-C while units run in this process."""

from __future__ import annotations

import contextlib
import itertools
import signal
from pathlib import Path
from typing import Any

import pytest
from emu_kernels.variant import Variant
from numpy.typing import NDArray

from emu.verify import catalog, differences, engine, provider, report
from emu.verify.plan import plan
from emu.verify.state import State
from emu.verify.units import Example, Unit, run

V = Variant("dav_2201", "BF16", False)


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


def test_explanation_of_a_row(counting: Any) -> None:
    unit = Unit("softmax_backward", V, "length", 3)
    wrong = counting(offset=1)
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


def test_differences_count_what_they_say(counting: Any) -> None:
    """On reference kernels: 950 differs from A2 in SeluBackward BF16 with g = 1 at y = ±0 only."""
    lines = differences.measure(("BF16",), counting(), 1 << 12)
    first = next(x for x in lines if x.operator == "SeluBackward")
    assert first.inputs == "every finite value, g = 1"
    assert first.cases == 2 * 0x7F80
    assert first.counts["dav_3510"] == 2
    assert first.counts["dav_1001"] is None
    assert first.counts["document"] is not None
    assert first.counts["document"] > 10000


def test_an_interrupt_that_the_compiler_swallows_is_not_lost(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], counting: Any, small: list[Unit]
) -> None:
    class Interrupting(counting):  # type: ignore[misc]
        """A kernel whose compiler swallows the exception of a Ctrl-C, as a callback from C does."""

        def elementwise(self, flow: str, v: Variant, *inputs: NDArray[Any]) -> NDArray[Any]:
            if not self.calls:
                with contextlib.suppress(KeyboardInterrupt):
                    signal.raise_signal(signal.SIGINT)
            result: NDArray[Any] = super().elementwise(flow, v, *inputs)
            return result

    before = signal.getsignal(signal.SIGINT)
    state = State(tmp_path / "s")
    with pytest.raises(KeyboardInterrupt):
        engine.execute(small, Interrupting(), jobs=1, state=state)
    assert list(state.done) == [small[0].key]
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
