"""The report in a real browser, on a desk and on a phone: it draws, loads nothing, and is no wider than the window."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape, unescape
from pathlib import Path
from typing import Any

import pytest

from emu.study import Study, plots

pytest.importorskip("matplotlib", reason="the extra study brings matplotlib")
BROWSER = next(filter(None, map(shutil.which, ("google-chrome", "chromium", "chromium-browser"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the PATH: chromium, chromium-browser or google-chrome")

WIDTHS = (1280, 390)
# A window of Chromium is at least 500 pixels wide; a frame has any width, and lays out its page as a window of that width does.
FRAME = '<iframe style="border:0;width:{width}px;height:800px" srcdoc="{page}"></iframe>'
LOOK = """<script>
addEventListener("load", () => {
  const seen = [...document.querySelectorAll("iframe")].map(frame => {
    const root = frame.contentDocument.documentElement;
    const boxes = [...root.querySelectorAll("svg")].map(e => e.getBoundingClientRect());
    return {
      window: frame.contentWindow.innerWidth, page: root.scrollWidth, height: root.scrollHeight,
      figures: boxes.map(b => [b.width, b.height]), cells: root.querySelectorAll("td").length,
      font: parseFloat(frame.contentWindow.getComputedStyle(root.querySelector("p")).fontSize),
      loads: frame.contentWindow.performance.getEntriesByType("resource").map(e => e.name),
    };
  });
  document.body.innerHTML = "<pre></pre>";
  document.querySelector("pre").textContent = JSON.stringify(seen);
});
</script>"""


def look(page: str, directory: Path) -> list[dict[str, Any]]:
    """What the browser measures of a page at each width."""
    file = directory / "frames.html"
    frames = "".join(FRAME.format(width=w, page=escape(page)) for w in WIDTHS)
    file.write_text(f"<!doctype html><meta charset=utf-8><body>{frames}{LOOK}</body>")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions"]
    # No name resolves: nothing can come from a network.
    options += ["--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={directory / 'profile'}", "--window-size=1400,900"]
    ran = subprocess.run([str(BROWSER), *options, "--dump-dom", file.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    found = re.search(r"<pre>(.*?)</pre>", ran.stdout, re.S)
    assert found is not None, ran.stdout[:2000] + ran.stderr[-2000:]
    seen: list[dict[str, Any]] = json.loads(unescape(found[1]))
    return seen


def test_the_report_on_a_desk_and_on_a_phone(small: Study, tmp_path: Path) -> None:
    seen = look(small.html(), tmp_path)
    assert [s["window"] for s in seen] == list(WIDTHS)
    for s in seen:
        assert s["page"] <= s["window"], "the page scrolls sideways"
        assert s["loads"] == []
        assert len(s["figures"]) == len(plots.KINDS)
        assert all(width > 300 and height > 200 for width, height in s["figures"])
        assert s["cells"] > 50
        assert s["height"] > 2000
        assert s["font"] >= 14


def test_the_browser_sees_a_page_that_is_too_wide_or_loads(tmp_path: Path) -> None:
    """The measurements above can fail."""
    page = "<!doctype html><body><p>text</p><div style='width:600px'>wide</div><img src='http://example.invalid/a.png'></body>"
    desk, phone = look(page, tmp_path)
    assert desk["page"] == 1280
    assert phone["page"] > 390
    assert desk["loads"] == phone["loads"] == ["http://example.invalid/a.png"]
