"""Plots and the report: every kind draws, the page needs no network, and the bytes repeat."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

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
