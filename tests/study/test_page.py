"""Plots and the report: every kind draws, the page needs no network, and the bytes repeat."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from emu.study import Study, plots, run
from emu.study.errors import StudyError

pytest.importorskip("matplotlib", reason="the extra study brings matplotlib")


@pytest.mark.parametrize("kind", plots.KINDS)
def test_plots_repeat(small: Study, kind: str) -> None:
    first = plots.render(plots.draw(small, kind), "svg")
    assert first == plots.render(plots.draw(small, kind), "svg")
    assert b"<svg" in first
    assert plots.render(plots.draw(small, kind), "png")[:4] == b"\x89PNG"


@pytest.mark.parametrize("spec", ["uniform:1,2", "uniform:-2,-1", "0"])
def test_one_sided_inputs(spec: str, tmp_path: Path) -> None:
    study = run("selu", dtypes=("FLOAT16",), inputs=spec, n=100)
    for kind in plots.KINDS:
        study.plot(tmp_path / f"{kind}.svg", kind)
        assert (tmp_path / f"{kind}.svg").stat().st_size > 1000


def test_curve_keeps_the_peak(small: Study) -> None:
    cell = small.cells[0]
    x, y = plots.curve(cell, "ulp")
    assert cell.tally is not None
    assert y.max() == cell.tally.tops["ulp"]
    assert (x[1:] >= x[:-1]).all()


def test_unknown_plot_and_format(small: Study, tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="did you mean histogram"):
        small.plot(kind="histogramm")
    with pytest.raises(StudyError, match="plot format"):
        small.plot(tmp_path / "a.bmp")
    assert not (tmp_path / "a.bmp").exists()


def texts(study: Study, kind: str = "error") -> list[str]:
    """What a plot says."""
    from matplotlib.text import Text

    return [str(t.get_text()) for t in study.plot(kind=kind).findobj(Text)]


def test_a_cut_axis_and_an_empty_panel_are_said() -> None:
    far = run("log_sigmoid_backward", dtypes="FLOAT", inputs="uniform:88,89", grad="1", n=64, socs="Ascend950PR_9599")
    said = texts(far)
    assert "errors beyond 1e+06 are drawn at 1e+06: the largest is 4.17e+06" in said
    assert "no finite results of inputs within ±20" in said
    assert "no finite results of inputs above 0" not in said
    near = texts(run("selu", dtypes="FLOAT", inputs="uniform:1,2", n=64))
    assert not [t for t in near if "beyond" in t or "±20" in t]


@pytest.mark.parametrize("kind", plots.KINDS)
def test_nothing_to_draw_is_said(kind: str) -> None:
    assert any("no finite results" in t for t in texts(run("exp", dtypes="FLOAT", inputs="nan", n=8), kind))


def test_curves_are_told_apart() -> None:
    import matplotlib.pyplot

    figure, axis = matplotlib.pyplot.subplots()
    for i in range(60):
        plots._line(axis, np.arange(2.0), np.arange(2.0), i)
    looks = {(line.get_color(), str(line._dash_pattern), line.get_marker()) for line in axis.lines}  # type: ignore[attr-defined]
    plots._line(axis, np.ones(1), np.ones(1), 0)
    assert axis.lines[-1].get_marker() == "o", "a lone point"
    matplotlib.pyplot.close(figure)
    assert len(looks) == 60


def test_small_integers_have_points_of_their_own() -> None:
    (cell,) = run("selu", dtypes="INT32", inputs="uniform:-100,100", n=4096).cells
    x, _ = plots.curve(cell, "ulp")
    assert set(range(-15, 16)) <= set(x.tolist())
    assert x.min() < -90
    assert x.max() > 90


def test_the_users_style_changes_nothing(small: Study) -> None:
    import matplotlib

    plain = plots.render(plots.draw(small, "error"), "svg")
    with matplotlib.rc_context({"font.size": 30, "lines.linewidth": 9, "savefig.dpi": 30}):
        assert plots.render(plots.draw(small, "error"), "svg") == plain
        assert matplotlib.rcParams["font.size"] == 30


class Closed(HTMLParser):
    """Collects what a browser would load, and whether tags nest."""

    void = frozenset({"meta", "br", "hr", "img", "input", "link", "wbr"})

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.void:
            self.open.append(tag)
        for name, value in attrs:
            if name in ("src", "href", "xlink:href") and value and not value.startswith("#"):
                self.loads.append(value)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_is_self_contained(small: Study) -> None:
    page = small.html()
    parser = Closed()
    parser.feed(page)
    assert parser.open == []
    assert parser.loads == []
    assert "<script" not in page
    assert page.count("<svg") == len(plots.KINDS)
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert "width=device-width" in page
    assert page == small.html()
