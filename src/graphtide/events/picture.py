"""Draws an automaton as SVG: the start on top, positions below in order of the steps to them."""

from __future__ import annotations

from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from graphtide.plan.draw import CHARACTER, FONT, GAP, LINE, MARGIN, STYLE, WIDEST, Box

if TYPE_CHECKING:
    from collections.abc import Sequence

Edge = tuple[int, int, str]
"""From, to, what is written beside it."""


def picture(nodes: Sequence[list[str]], edges: Sequence[Edge]) -> str:
    """A graph as SVG; node 0 is the start, each node has lines of text.

    >>> picture([["start"], ["after A"]], [(0, 1, "A")]).count("<rect")
    2
    """
    boxes = [Box([part for line in lines for part in wrap(line, WIDEST)]) for lines in nodes]
    _place(boxes, _levels(len(nodes), edges))
    drawn = [_arrow(boxes[a], boxes[b], text, side=b <= a) for a, b, text in edges]
    drawn += [_drawn(box) for box in boxes]
    longest = max((len(text) for _, _, text in edges), default=0) * CHARACTER
    width = max(box.x + box.width for box in boxes) + longest + 4 * MARGIN
    height = max(box.y + box.height for box in boxes) + MARGIN
    size = f"viewBox='0 0 {width:.0f} {height:.0f}' width='{width:.0f}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{STYLE}{''.join(drawn)}</svg>"


def _levels(count: int, edges: Sequence[Edge]) -> list[int]:
    """The least number of steps from the start."""
    levels, now, depth = {0: 0}, [0], 0
    while now:
        depth += 1
        now = list(dict.fromkeys(b for a, b, _ in edges if a in now and b not in levels))
        levels.update(dict.fromkeys(now, depth))
    return [levels.get(i, depth) for i in range(count)]


def _place(boxes: list[Box], levels: list[int]) -> None:
    """Levels below each other, the boxes of one side by side; x and y are the upper left corner."""
    y = float(MARGIN)
    for level in range(max(levels) + 1):
        row = [box for box, its in zip(boxes, levels, strict=True) if its == level]
        x = float(MARGIN)
        for box in row:
            box.x, box.y = x, y
            x += box.width + GAP
        y += max((box.height for box in row), default=0) + GAP


def _arrow(source: Box, target: Box, text: str, *, side: bool) -> str:
    """Down from box to box; one that goes back, or round, bows to the right."""
    x1, y1 = source.x + source.width / 2, source.y + source.height
    x2, y2 = target.x + target.width / 2, target.y
    if not side:
        middle = f"x='{(x1 + x2) / 2 + 4:.1f}' y='{(y1 + y2) / 2:.1f}'"
        return f"<path d='M{x1:.1f} {y1:.1f}L{x2:.1f} {y2:.1f}' fill='none'/>{_text(middle, text)}"
    x1, x2 = source.x + source.width, target.x + target.width
    y1, y2 = source.y + source.height * 0.7, target.y + target.height * 0.3
    out = max(x1, x2) + GAP
    way = f"M{x1:.1f} {y1:.1f}C{out:.1f} {y1:.1f} {out:.1f} {y2:.1f} {x2:.1f} {y2:.1f}"
    place = f"x='{out - GAP / 2:.1f}' y='{(y1 + y2) / 2:.1f}'"
    return f"<path d='{way}' fill='none'/>{_text(place, text)}"


def _text(place: str, text: str) -> str:
    return f"<text {place} {FONT}>{escape(text)}</text>"


def _drawn(box: Box) -> str:
    frame = f"width='{box.width:.1f}' height='{box.height:.1f}' rx='4'"
    texts = "".join(
        _text(f"x='{box.x + MARGIN:.1f}' y='{box.y + i * LINE:.1f}'", line)
        for i, line in enumerate(box.lines, start=1)
    )
    return f"<rect x='{box.x:.1f}' y='{box.y:.1f}' {frame}/>{texts}"
