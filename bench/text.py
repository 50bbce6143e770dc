"""Figures as text, the same on the terminal and on the page."""

from __future__ import annotations

from typing import Any

SPECIAL = ("contiguous", "normal", "launch")
#: The calls of the latency table.
CALLS = {
    "emu": "two phases and a synchronisation, Python face", "pipelined": "two phases, Python face, one synchronisation at the end",
    "array": "NumPy face", "numpy": "NumPy expression", "torch": "PyTorch out= call",
}  # fmt: skip


def size(n: int) -> str:
    """65536 -> 64 Ki."""
    for unit, name in ((1 << 20, "Mi"), (1 << 10, "Ki")):
        if n >= unit and n % unit == 0:
            return f"{n // unit} {name}"
    return str(n)


def number(v: float, unit: str = "") -> str:
    """Three digits that mean something."""
    return (f"{v:.0f}" if abs(v) >= 100 else f"{v:.1f}" if abs(v) >= 10 else f"{v:.2f}") + unit


def special(r: dict[str, Any]) -> list[str]:
    """What is unusual about a cell: its layout, its values, its path."""
    return [x for x in (r["layout"], r["values"], r["path"]) if x not in SPECIAL]


def name(r: dict[str, Any], head: str = "") -> str:
    """A cell, or a line of a table that is about one operator, ``head``."""
    what = [head] if head else [r["label"], r["dtype"]]
    return ", ".join([*what, size(r["elements"]), f"{r['threads']}T", *([] if head else special(r))])


def line(r: dict[str, Any]) -> str:
    """A record in one line: G elements per second of everyone, GB/s of the emulator, ratios."""
    speed = "  ".join(f"{who} {r['elements'] / s['median'] / 1e9:6.3f}" for who, s in r["seconds"].items())
    ratio = "  ".join(f"{x['median']:5.2f} x {who}" for who, x in r["ratio"].items())
    head = f"{r['label']:30s} {r['dtype']:8s} {size(r['elements']):>6s} {r['threads']}T {' '.join(special(r)):15s}"
    return f"{head} | G/s {speed} | {r['bytes'] / r['seconds']['emu']['median'] / 1e9:5.1f} GB/s | {ratio}"
