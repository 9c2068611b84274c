"""Horizontal bars as an SVG that is readable on light and on dark pages; written by hand, no library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape

Kind = Literal["ours", "peer", "limit"]

WIDTH, LABELS, VALUES = 800, 290, 90
TOP, ROW, BAR, BOTTOM = 58, 28, 18, 38

STYLE = """
text { font: 13px system-ui, -apple-system, 'Segoe UI', Helvetica, Arial, sans-serif; fill: #1f2328; }
.title { font-size: 16px; font-weight: 600; }
.note { font-size: 12px; fill: #59636e; }
.ours { fill: #0b6e4f; }
.peer { fill: #8c959f; }
.limit { fill: none; stroke: #8250df; stroke-width: 1.5; }
.mark { stroke: #8250df; stroke-width: 1; stroke-dasharray: 4 4; }
.own { font-weight: 600; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .note { fill: #9198a1; }
  .ours { fill: #3fb68b; }
  .peer { fill: #6e7681; }
  .limit { stroke: #ab7df8; }
  .mark { stroke: #ab7df8; }
}
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """One quantity: ours, a peer's, or the limit that a line marks through all of them."""

    label: str
    value: float
    kind: Kind = "peer"


def draw(title: str, note: str, bars: Sequence[Bar], digits: int = 0) -> str:
    """The document. The scale is linear and starts at zero: a bar twice as long is twice as much."""
    most = max((bar.value for bar in bars), default=0) or 1
    scale = (WIDTH - LABELS - VALUES) / most
    height = TOP + ROW * len(bars) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{_attribute(title)}">',
        f"<title>{escape(title)}</title>",
        f"<style>{STYLE}</style>",
        f'<text class="title" x="12" y="26">{escape(title)}</text>',
        f'<text class="note" x="12" y="{height - 14}">{escape(note)}</text>',
    ]
    for number, bar in enumerate(bars):
        parts += _bar(bar, TOP + ROW * number, scale, digits)
    for bar in bars:
        if bar.kind == "limit":
            at = LABELS + bar.value * scale
            end = TOP + ROW * len(bars)
            parts.append(f'<line class="mark" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP - 8}" y2="{end}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def _bar(bar: Bar, top: float, scale: float, digits: int) -> list[str]:
    # What is too small to be seen is still there.
    width = max(1.0, bar.value * scale)
    middle = top + BAR / 2 + 4.5
    weight = ' class="own"' if bar.kind == "ours" else ""
    return [
        f'<text{weight} x="{LABELS - 10}" y="{middle}" text-anchor="end">{escape(bar.label)}</text>',
        f'<rect class="{bar.kind}" x="{LABELS}" y="{top}" width="{width:.1f}" height="{BAR}" rx="2">'
        f"<title>{escape(bar.label)}: {bar.value:,.{digits}f}</title></rect>",
        f'<text{weight} x="{LABELS + width + 7:.1f}" y="{middle}">{bar.value:,.{digits}f}</text>',
    ]


def _attribute(text: str) -> str:
    return escape(text, {'"': "&quot;"})
