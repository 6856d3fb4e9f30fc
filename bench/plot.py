"""A bar chart as SVG: some lines, which need no library."""

from collections.abc import Mapping
from html import escape
from pathlib import Path

_COLOURS = ("#8a8a8a", "#c8553d", "#6b8fb3", "#7fa37a", "#b59a5b", "#8d77a8")
_ROW, _LABEL, _WIDTH = 16, 170, 460


def bars(name: str, title: str, figures: Mapping[str, Mapping[str, float]]) -> None:
    """Write `NAME.svg` beside this file: a group of bars for each kind, one bar for each side."""
    sides = list(dict.fromkeys(side for of in figures.values() for side in of))
    most = max(value for of in figures.values() for value in of.values())
    marks, y = [], 34
    for kind, of in figures.items():
        marks.append(f'<text x="8" y="{y + 11}" font-weight="bold">{escape(kind)}</text>')
        y += _ROW
        for side, value in of.items():
            width, colour = value / most * _WIDTH, _COLOURS[sides.index(side) % len(_COLOURS)]
            marks += [
                f'<text x="16" y="{y + 11}">{escape(side)}</text>',
                f'<rect x="{_LABEL}" y="{y + 1}" width="{width:.1f}" height="{_ROW - 3}" fill="{colour}"/>',
                f'<text x="{_LABEL + width + 6:.1f}" y="{y + 11}">{value:.0f}</text>',
            ]
            y += _ROW
        y += 8
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_LABEL + _WIDTH + 60}" height="{y}"'
        ' font-family="sans-serif" font-size="12"><rect width="100%" height="100%" fill="#fff"/>'
        f'<text x="8" y="20" font-size="14">{escape(title)}</text>{"".join(marks)}</svg>\n'
    )
    Path(__file__).with_name(f"{name}.svg").write_text(svg, encoding="utf-8")
