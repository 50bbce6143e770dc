"""A study as one HTML page: no script, no network, tables that scroll on a phone, plots as inline SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from emu import __version__
from emu.study import acceptance, plots, shapes
from emu.study.measure import DEFINITIONS

if TYPE_CHECKING:
    from emu.study.result import Cell, Study

_STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { font: 16px/1.5 system-ui, sans-serif; margin: 0 auto; padding: 1rem; max-width: 72rem; color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; line-height: 1.2; margin: .5rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.25rem; margin: 2rem 0 .5rem; border-bottom: 2px solid #0072b2; padding-bottom: .2rem; }
h3 { font-size: 1.05rem; margin: 1.5rem 0 .3rem; }
.scroll { overflow-x: auto; margin: .5rem 0; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .3rem .6rem; border-bottom: 1px solid #ddd; vertical-align: top; white-space: nowrap; }
td.wide { white-space: normal; min-width: 16rem; }
th { background: #f2f5f8; white-space: normal; }
td.n { text-align: right; }
.pass::before { content: "\\2713  "; color: #006d4f; } .fail { font-weight: 600; } .fail::before { content: "\\2717  "; color: #b34700; }
.note { color: #555; font-size: .9rem; }
figure { margin: 1rem 0; }
figure svg { width: 100%; min-width: 40rem; height: auto; display: block; }
figcaption { font-size: .9rem; color: #444; }
details { margin: .4rem 0; } summary { cursor: pointer; padding: .3rem 0; } code { font-size: .85em; overflow-wrap: anywhere; }
dt { font-weight: 600; } dd { margin: 0 0 .4rem 1rem; }
@media print { details { display: block; } body { font-size: 11pt; } }
"""

_CAPTIONS = {
    "error": "Largest error against the input: linear above, both signs on logarithmic axes below. Less than 1/64 ulp is drawn at 1/64, "
    "and a line above the plot says where errors are cut.",
    "relative": "Largest relative error against the input, on the same axes.",
    "histogram": "How often each size of error occurs.",
    "comparison": "Data types and products side by side.",
}


def table(header: list[str], rows: list[list[Any]], wide: tuple[int, ...] = ()) -> str:
    """An HTML table in a box that scrolls; numbers to the right; columns in `wide` may wrap."""
    head = "".join(f"<th scope=col>{escape(h).replace('_', '_<wbr>')}</th>" for h in header)
    body = []
    for row in rows:
        cells = []
        for i, value in enumerate(row):
            kind = " class=wide" if i in wide else " class=n" if isinstance(value, int | float) else ""
            text = f"{value:.4g}" if isinstance(value, float) else str(value)
            mark = {"pass": " class=pass", "FAIL": " class=fail"}.get(text, kind)
            cells.append(f"<td{mark}>{escape(text)}</td>")
        body.append(f"<tr>{''.join(cells)}</tr>")
    return f"<div class=scroll tabindex=0><table><thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"


def _svg(study: Study, kind: str) -> str:
    text = plots.render(plots.draw(study, kind), "svg").decode()
    inline = text[text.index("<svg") :]
    # Ids are per document: each figure gets its own.
    inline = inline.replace('id="', f'id="{kind}-').replace("url(#", f"url(#{kind}-").replace('href="#', f'href="#{kind}-')
    text = escape(_CAPTIONS[kind])
    return f'<figure role=img aria-label="{text}"><div class=scroll tabindex=0>{inline}</div><figcaption>{text}</figcaption></figure>'


def _worst(cell: Cell) -> str:
    lines = []
    for w in cell.traces:
        steps = "".join(
            f"<tr><td>{escape(s['step'])}</td><td>{escape(s['decimal'])}</td><td><code>{escape(s['hex'])}</code></td><td>{escape(s['format'])}</td></tr>"
            for s in w["steps_of_computation"]
        )
        ins = ", ".join(f"{i['name']} = {i['decimal']} ({i['hex']})" for i in w["inputs"])
        rounded = f"rounded {w['rounded']} ({w['rounded_hex']})"
        head = f"{w['ulp']:.6g} ulp at {ins}: result {w['result']} ({w['result_hex']}), golden {w['golden']}, {rounded}"
        body = (
            f"<div class=scroll><table><tbody>{steps}</tbody></table></div>"
            if steps
            else "<p class=note>No steps: the operator has no scalar reference.</p>"
        )
        lines.append(f"<details><summary><code>{escape(head)}</code></summary>{body}</details>")
    return "".join(lines) or "<p>Every compared element is exact.</p>"


def _shapes(cell: Cell) -> str:
    if not cell.shapes:
        return ""
    rows = []
    for s in cell.shapes:
        differ = "" if s["differ"] is None else s["differ"]
        rows.append([" × ".join(map(str, s["shape"])), s["what"], s["verdict"], differ, s["code"], s["workspace"], s["why"]])
    header = ["shape", "what", "verdict", "results that differ", "code of the first phase", "workspace, bytes", "note"]
    return f"<h4>Special shapes</h4><p class=note>{escape(shapes.DEFINITION)}</p>{table(header, rows)}"


def _cell(cell: Cell) -> str:
    title = f"<h3>{escape(cell.label)}</h3>"
    if cell.tally is None:
        return f"{title}<p class=note>{escape(cell.note)}</p>"
    note = f"<p class=note>Refused by default: {escape(cell.note)}.</p>" if cell.note else ""
    rules = [
        [r["rule"], r["verdict"], r["level"], r["measured"], r["threshold"], r["why"] or r["definition"]]
        for r in acceptance.as_rows(cell.verdicts())
    ]
    parts = ""
    if cell.tally.parts:
        parts = "<h4>Where the error enters</h4>" + table(
            ["part", "mean |ulp|", "mean ulp, signed", "largest |ulp|", "what it is"],
            [[p["part"], p["mean_ulp"], p["bias_ulp"], p["max_ulp"], p["definition"]] for p in cell.ablation()], (4,),
        )  # fmt: skip
    numbers = table(["metric", "value"], [[k, v] for k, v in cell.tally.metrics().items()])
    return (
        f"{title}{note}{table(['rule', 'verdict', 'level', 'measured', 'threshold', 'definition'], rules, (5,))}{parts}"
        f"{_shapes(cell)}<h4>Worst inputs</h4>{_worst(cell)}<details><summary>All metrics</summary>{numbers}</details>"
    )


def page(study: Study) -> str:
    """The page. Raises StudyError if matplotlib is missing."""
    q = study.question
    text = study.table()
    asked = [[k, ", ".join(v) if isinstance(v, tuple | list) else "" if v is None else str(v)] for k, v in q.items()]
    defined = "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in DEFINITIONS.items())
    return (
        "<!doctype html><html lang=en><head><meta charset=utf-8><meta name=viewport content='width=device-width, initial-scale=1'>"
        f"<title>{escape(plots.title(study))}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(plots.title(study))}</h1>{table(text[0], [list(r) for r in text[1:]])}"
        + "".join(_svg(study, kind) for kind in plots.KINDS)
        + "<h2>Cell by cell</h2>" + "".join(_cell(c) for c in study.cells)
        + f"<h2>Definitions</h2><dl>{defined}</dl><h2>The question</h2>{table(['field', 'value'], list(asked), (1,))}"
        + f"<p class=note>aclnn-emu {escape(__version__)}. A CPU emulation, not a measurement of a card.</p></body></html>\n"
    )  # fmt: skip
