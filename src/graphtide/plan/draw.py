"""Draws a plan as SVG: the answer on top, inputs at the bottom, each node a box."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING

from graphtide.plan.physical import Physical, children, nodes

if TYPE_CHECKING:
    from collections.abc import Callable

WIDEST = 44
"""Characters of a line of text in a box."""

CHARACTER, LINE, MARGIN, GAP = 7.2, 17, 10, 40
FONT = "font-family='ui-monospace, monospace' font-size='12'"
STYLE = "<style>rect{fill:#f6f8fa;stroke:#57606a}text{fill:#1f2328}path{stroke:#57606a}</style>"


@dataclass(slots=True)
class Box:
    """A node's text, and where it stands."""

    lines: list[str]
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        """Wide enough for the longest line."""
        return max(map(len, self.lines)) * CHARACTER + 2 * MARGIN

    @property
    def height(self) -> float:
        """High enough for all lines."""
        return len(self.lines) * LINE + MARGIN


def draw(root: Physical, title: str, said: Callable[[Physical], list[str]]) -> str:
    """A plan as an SVG picture; `said` gives the lines to write into a node's box."""
    boxes = {node: Box(_lines(*said(node))) for node in nodes(root)}
    levels = _levels(root)
    _place(root, boxes, levels)
    top = Box(_lines(title), boxes[root].x, MARGIN)
    right = max(box.x + box.width / 2 for box in (*boxes.values(), top)) + MARGIN
    left = min(0.0, top.x - top.width / 2 - MARGIN)
    bottom = max(box.y + box.height for box in boxes.values()) + MARGIN
    parts = [_line(boxes[c], boxes[n]) for n in boxes for c in children(n)]
    parts += [_line(boxes[root], top), *map(_drawn, boxes.values()), _drawn(top)]
    size = f"viewBox='{left:.0f} 0 {right - left:.0f} {bottom:.0f}' width='{right - left:.0f}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{STYLE}{''.join(parts)}</svg>"


def _lines(*texts: str) -> list[str]:
    return [line for text in texts for line in wrap(text, WIDEST)]


def _levels(root: Physical) -> dict[Physical, int]:
    """How far below the answer each node stands: below everything that reads it."""
    levels = {root: 1}
    for node in reversed(nodes(root)):
        for child in children(node):
            levels[child] = max(levels.get(child, 0), levels[node] + 1)
    return levels


def _place(root: Physical, boxes: dict[Physical, Box], levels: dict[Physical, int]) -> None:
    """Leaves side by side, every other node over the middle of its inputs, levels apart."""
    heights = [float(LINE + MARGIN)] * (max(levels.values()) + 1)
    for node, box in boxes.items():
        heights[levels[node]] = max(heights[levels[node]], box.height)
    taken = [float(MARGIN)] * len(heights)
    for node in nodes(root):
        box, level = boxes[node], levels[node]
        inputs = [boxes[child].x for child in children(node)]
        wanted = sum(inputs) / len(inputs) - box.width / 2 if inputs else max(taken)
        start = max(taken[level], wanted)
        box.x = start + box.width / 2
        box.y = MARGIN + sum(height + GAP for height in heights[:level])
        taken[level] = start + box.width + MARGIN


def _line(lower: Box, upper: Box) -> str:
    bottom = upper.y + upper.height
    return f"<path d='M{lower.x:.1f} {lower.y:.1f}L{upper.x:.1f} {bottom:.1f}' fill='none'/>"


def _drawn(box: Box) -> str:
    left, width, height = box.x - box.width / 2, box.width, box.height
    frame = f"x='{left:.1f}' y='{box.y:.1f}' width='{width:.1f}' height='{height:.1f}' rx='4'"
    x = f"x='{left + MARGIN:.1f}'"
    texts = "".join(
        f"<text {x} y='{box.y + i * LINE:.1f}' {FONT}>{escape(line)}</text>"
        for i, line in enumerate(box.lines, start=1)
    )
    return f"<rect {frame}/>{texts}"
