"""Diagrams of directed graphs: Mermaid text, and SVG with a layered layout."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from math import inf
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

Direction = Literal["down", "up"]
"""The direction in which most edges point."""

_MERMAID_DIRECTIONS = {"down": "TB", "up": "BT"}


class Mermaid:
    """A Mermaid flowchart, written statement by statement; `str()` gives the text.

    >>> chart = Mermaid("down")
    >>> chart.node("a", ["x < 1"])
    >>> chart.edge("a", "a", 'say "yes"')
    >>> print(chart)
    flowchart TB
      a["x &lt; 1"]
      a -->|"say &quot;yes&quot;"| a
    """

    def __init__(self, direction: Direction) -> None:
        self._lines = [f"flowchart {_MERMAID_DIRECTIONS[direction]}"]

    def node(self, name: str, lines: Sequence[str], *, rounded: bool = False) -> None:
        """Add a node with lines of text."""
        opening, closing = ("([", "])") if rounded else ("[", "]")
        label = "<br/>".join(map(_mermaid_text, lines))
        self._lines.append(f'  {name}{opening}"{label}"{closing}')

    def edge(self, source: str, target: str, label: str = "") -> None:
        """Add an edge."""
        arrow = f'-->|"{_mermaid_text(label)}"|' if label else "-->"
        self._lines.append(f"  {source} {arrow} {target}")

    def __str__(self) -> str:
        return "\n".join(self._lines)


def _mermaid_text(label: str) -> str:
    """Mermaid reads labels as HTML; it does not know the entity that `escape` has for `'`."""
    return escape(label, quote=False).replace('"', "&quot;")


# --- trees as text ---

_DEEPEST = 60
"""Levels that are drawn below each other; what is deeper is drawn afterwards, from the margin."""


def draw_tree(
    root: T, show: Callable[[T], tuple[Sequence[str], Sequence[T]]], first: str = "└─ "
) -> list[str]:
    r"""The lines of a tree; `show` gives the lines of a node and its inputs, parents first.

    >>> print("\n".join(draw_tree("ab", lambda text: ([text], text if len(text) > 1 else ""))))
    └─ ab
       ├─ a
       └─ b
    """
    lines: list[str] = []
    later = [root]
    for number, top in enumerate(later):
        if number:
            lines.append(f"… {number}")
        rest = [(top, "", first if not number else "└─ ")]
        while rest:
            node, prefix, branch = rest.pop()
            if len(prefix) + len(branch) > 3 * _DEEPEST:
                lines.append(f"{prefix}{branch}… {len(later)}")
                later.append(node)
                continue
            shown, inputs = show(node)
            below = prefix + {"": "", "├─ ": "│  ", "└─ ": "   "}[branch]
            beside = below + ("│  " if inputs else "   ")
            lines += [f"{prefix}{branch}{shown[0]}", *(f"{beside}{line}" for line in shown[1:])]
            branches = ["├─ "] * (len(inputs) - 1) + ["└─ "] * bool(inputs)
            rest += [(n, below, b) for n, b in zip(inputs, branches, strict=True)][::-1]
    return lines


# --- SVG ---

_LONGEST_LINE = 44
"""Characters in a line of a box."""

_CHARACTER, _LINE, _MARGIN, _GAP = 7.2, 17, 10, 40
_FONT = "font-family='ui-monospace, monospace' font-size='12'"
_HEAD = (
    "<style>rect{fill:#f6f8fa;stroke:#57606a}text{fill:#1f2328}path{stroke:#57606a}</style>"
    "<defs><marker id='arrow' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' markerHeight='8'"
    " orient='auto'><path d='M0 1L8 4L0 7z' fill='#57606a'/></marker></defs>"
)


class DiagramNode(NamedTuple):
    """A box with lines of text, on a level; level 0 is at the top."""

    lines: Sequence[str]
    level: int


class DiagramEdge(NamedTuple):
    """An arrow between two nodes, given by index."""

    source: int
    target: int
    label: str = ""


@dataclass(slots=True)
class _Box:
    """The text and position of a node; `x` is its centre, `y` its top."""

    lines: list[str]
    level: int
    x: float = 0.0
    y: float = 0.0

    @property
    def width(self) -> float:
        return max(map(len, self.lines)) * _CHARACTER + 2 * _MARGIN

    @property
    def height(self) -> float:
        return len(self.lines) * _LINE + _MARGIN

    @property
    def left(self) -> float:
        return self.x - self.width / 2

    @property
    def right(self) -> float:
        return self.x + self.width / 2

    @property
    def bottom(self) -> float:
        return self.y + self.height


def draw_svg(
    nodes: Sequence[DiagramNode], edges: Sequence[DiagramEdge], direction: Direction
) -> str:
    """Draw a graph as SVG.

    Nodes are placed in the given order: each one is centred at the nodes of other levels that are
    connected to it and already placed. Edges against the direction bow to the right.

    >>> nodes = [DiagramNode(["start"], 0), DiagramNode(["after A"], 1)]
    >>> draw_svg(nodes, [DiagramEdge(0, 1, "A")], "down").count("<rect")
    2
    """
    boxes = [
        _Box([part for line in n.lines for part in wrap(line, _LONGEST_LINE)], n.level)
        for n in nodes
    ]
    labels = max((len(edge.label) for edge in edges), default=0) * _CHARACTER
    _place(boxes, edges, labels)
    left = min(box.left for box in boxes) - _MARGIN
    right = max(box.right for box in boxes) + (labels + 3 * _MARGIN if labels else 0) + _MARGIN
    bottom = max(box.bottom for box in boxes) + _MARGIN
    parts = [_arrow(boxes[e.source], boxes[e.target], e.label, direction) for e in edges]
    parts += map(_drawn, boxes)
    size = f"viewBox='{left:.0f} 0 {right - left:.0f} {bottom:.0f}' width='{right - left:.0f}'"
    return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{_HEAD}{''.join(parts)}</svg>"


def _place(boxes: list[_Box], edges: Sequence[DiagramEdge], labels: float) -> None:
    """Set the positions of boxes; `labels` is the width of the longest label."""
    # A label stands at the middle of its edge: twice its width keeps those of siblings apart.
    gap = max(_MARGIN, 2 * labels)
    neighbours: list[set[int]] = [set() for _ in boxes]
    for edge in edges:
        if boxes[edge.source].level != boxes[edge.target].level:
            neighbours[edge.source].add(edge.target)
            neighbours[edge.target].add(edge.source)
    heights = [0.0] * (max(box.level for box in boxes) + 1)
    for box in boxes:
        heights[box.level] = max(heights[box.level], box.height)
    taken = [-inf] * len(heights)
    for index, box in enumerate(boxes):
        placed = [boxes[other].x for other in neighbours[index] if other < index]
        wanted = sum(placed) / len(placed) - box.width / 2 if placed else max(0.0, *taken)
        start = max(taken[box.level], wanted)
        box.x = start + box.width / 2
        box.y = _MARGIN + sum(height + _GAP for height in heights[: box.level])
        taken[box.level] = start + box.width + gap


def _arrow(source: _Box, target: _Box, label: str, direction: Direction) -> str:
    """A straight line along the direction; otherwise a curve to the right of the boxes."""
    down = direction == "down"
    if (source.level < target.level) if down else (source.level > target.level):
        y1, y2 = (source.bottom, target.y) if down else (source.y, target.bottom)
        way = f"M{source.x:.1f} {y1:.1f}L{target.x:.1f} {y2:.1f}"
        x, y = (source.x + target.x) / 2 + 4, (y1 + y2) / 2
    else:
        y1, y2 = source.y + source.height * 0.7, target.y + target.height * 0.3
        out = max(source.right, target.right) + _GAP
        way = f"M{source.right:.1f} {y1:.1f}C{out:.1f} {y1:.1f} {out:.1f} {y2:.1f}"
        way += f" {target.right:.1f} {y2:.1f}"
        x, y = out - _GAP / 2, (y1 + y2) / 2
    text = _svg_text(x, y, label) if label else ""
    return f"<path d='{way}' fill='none' marker-end='url(#arrow)'/>{text}"


def _drawn(box: _Box) -> str:
    size = f"width='{box.width:.1f}' height='{box.height:.1f}' rx='4'"
    texts = "".join(
        _svg_text(box.left + _MARGIN, box.y + i * _LINE, line)
        for i, line in enumerate(box.lines, start=1)
    )
    return f"<rect x='{box.left:.1f}' y='{box.y:.1f}' {size}/>{texts}"


def _svg_text(x: float, y: float, text: str) -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {_FONT}>{escape(text)}</text>"
