"""Draws docs/selu_gradient.svg from the emulator's own results: python docs/make_picture.py"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import emu

PICTURE = Path(__file__).with_name("selu_gradient.svg")
#: Forward results at which the gradient is computed: 64ths, so that 0 is one of them.
RESULTS = np.arange(-64, 65, dtype=np.float32) / 64
CURVES = (
    ("Ascend910B1, result &lt; 0", "Ascend910B1", "device", "#1f5fbf", "wide"),
    ("Ascend950PR_9599, result &lt;= 0", "Ascend950PR_9599", "device", "#d1481f", "thin"),
    ("the document's formula", "Ascend910B1", "document", "#6b7280", "dashed"),
)
WIDTH, HEIGHT = 820, 360
LEFT, RIGHT, TOP, BOTTOM = 60, 16, 44, 44
LOW, HIGH = 0.6, 1.9


def gradient(soc: str, numerics: str) -> NDArray[np.float32]:
    """SeluBackward of gradOutput 1 at RESULTS."""
    emu.configure(strict_products=False)
    out: NDArray[np.float32] = emu.ops.selu_backward(np.ones_like(RESULTS), RESULTS, soc=soc, numerics=numerics)
    return out


def _x(result: float) -> float:
    return LEFT + (result + 1) / 2 * (WIDTH - LEFT - RIGHT)


def _y(value: float) -> float:
    return TOP + (HIGH - value) / (HIGH - LOW) * (HEIGHT - TOP - BOTTOM)


def _path(values: NDArray[np.float32]) -> str:
    """Two runs of points: below zero and above; what happens at zero is drawn as a point of its own."""
    runs = (values[:64], RESULTS[:64]), (values[65:], RESULTS[65:])
    return " ".join("M" + " L".join(f"{_x(float(r)):.1f},{_y(float(v)):.1f}" for v, r in zip(*run, strict=True)) for run in runs)


def draw() -> str:
    """The picture as SVG text."""
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        f'<text x="{LEFT}" y="24" font-size="15">aclnnSeluBackward, FLOAT, gradOutput = 1: three answers at result = 0</text>',
    ]
    for tick in (0.8, 1.0, 1.2, 1.4, 1.6, 1.8):
        parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(tick):.1f}" y2="{_y(tick):.1f}" stroke="#e5e7eb"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{_y(tick) + 4:.1f}" text-anchor="end">{tick:.1f}</text>')
    for tick in (-1.0, -0.5, 0.0, 0.5, 1.0):
        parts.append(f'<text x="{_x(tick):.1f}" y="{HEIGHT - BOTTOM + 20}" text-anchor="middle">{tick:g}</text>')
    parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2:.1f}" y="{HEIGHT - 6}" text-anchor="middle">result, the forward output</text>')
    for i, (label, soc, numerics, colour, style) in enumerate(CURVES):
        values = gradient(soc, numerics)
        at_zero = float(values[64])
        dash = ' stroke-dasharray="5 4"' if style == "dashed" else ""
        width = {"wide": 5, "thin": 2, "dashed": 2}[style]
        parts.append(f'<path d="{_path(values)}" fill="none" stroke="{colour}" stroke-width="{width}"{dash}/>')
        parts.append(f'<circle cx="{_x(0):.1f}" cy="{_y(at_zero):.1f}" r="5" fill="{colour}"/>')
        line = TOP + 24 + 22 * i
        parts.append(f'<line x1="460" x2="488" y1="{line - 4}" y2="{line - 4}" stroke="{colour}" stroke-width="{width}"{dash}/>')
        parts.append(f'<text x="496" y="{line}">{label}: {at_zero:f}</text>')
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(draw())
