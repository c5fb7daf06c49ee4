"""Diagrams of directed graphs: Mermaid text, trees as text, and drawings for SVG and the page.

A `Drawing` says what there is to see. Where it is placed is decided by a layout: on the page by a
library, here by Graphviz if its `dot` is installed, else by `graphtide.layout`.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeVar

from graphtide import layout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

T = TypeVar("T")

Direction = Literal["down", "up", "right"]
"""The direction in which most edges point."""

_DIRECTIONS: Final = {"down": "TB", "up": "BT", "right": "LR"}


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
        self._lines = [f"flowchart {_DIRECTIONS[direction]}"]

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


# --- drawings ---

LONGEST_LINE: Final = 44
"""Characters in a line of a box."""

LONGEST_LABEL: Final = 26
"""Characters in a line of the label of an edge."""

Shape = Literal["box", "round", "double"]
"""A box, one with round ends, or one with a double line: a state that is complete."""


class DrawnNode(NamedTuple):
    """A box with lines of text; `hot` is one that holds or sends most of what there is."""

    lines: Sequence[str]
    shape: Shape = "box"
    hot: bool = False


class DrawnEdge(NamedTuple):
    """An arrow between two nodes, given by index."""

    source: int
    target: int
    label: str = ""


class Drawing(NamedTuple):
    """Nodes and edges, and the direction of most edges.

    >>> nodes = [DrawnNode(["start"], "round"), DrawnNode(["after A"])]
    >>> drawing = Drawing("right", nodes, [DrawnEdge(0, 1, "A")])
    >>> print(drawing.mermaid())
    flowchart LR
      n0(["start"])
      n1["after A"]
      n0 -->|"A"| n1
    >>> drawing.plain_svg().count("<rect")
    2
    """

    direction: Direction
    nodes: Sequence[DrawnNode]
    edges: Sequence[DrawnEdge]

    def mermaid(self) -> str:
        """The drawing as a Mermaid flowchart."""
        chart = Mermaid(self.direction)
        for index, node in enumerate(self.nodes):
            chart.node(f"n{index}", node.lines, rounded=node.shape != "box")
        for source, target, label in self.edges:
            chart.edge(f"n{source}", f"n{target}", label)
        return str(chart)

    def json(self) -> dict[str, Any]:
        """The drawing for the page."""
        return {
            "direction": _DIRECTIONS[self.direction],
            "nodes": [node._asdict() | {"lines": list(node.lines)} for node in self.nodes],
            "edges": [edge._asdict() for edge in self.edges],
        }

    def svg(self) -> str:
        """The drawing as SVG: by Graphviz where it is installed, else with a plain layout."""
        dot = shutil.which("dot")
        return self.plain_svg() if dot is None else self._graphviz(dot) or self.plain_svg()

    def plain_svg(self) -> str:
        """The drawing as SVG, with a plain layered layout."""
        boxes = [_wrapped(node.lines, LONGEST_LINE) for node in self.nodes]
        labels = [wrap(edge.label, LONGEST_LABEL) for edge in self.edges]
        placed = layout.place(
            [_size(lines) for lines in boxes],
            [
                layout.Link(edge.source, edge.target, *(_size(lines) if lines else (0.0, 0.0)))
                for edge, lines in zip(self.edges, labels, strict=True)
            ],
            self.direction,
        )
        parts = [f"<path class='edge' d='{layout.path_of(p)}'/>" for p in placed.paths]
        parts += [
            _svg_lines(lines, x, y)
            for lines, (x, y) in zip(labels, placed.labels, strict=True)
            if lines
        ]
        for node, lines, (x, y) in zip(self.nodes, boxes, placed.centres, strict=True):
            parts.append(_box(node, lines, x, y))
        size = f"viewBox='0 0 {placed.width:.0f} {placed.height:.0f}' width='{placed.width:.0f}'"
        return f"<svg xmlns='http://www.w3.org/2000/svg' {size}>{_HEAD}{''.join(parts)}</svg>"

    def _graphviz(self, dot: str) -> str:
        """The SVG that `dot` makes; empty if it cannot."""
        lines = [
            f"digraph {{ rankdir={_DIRECTIONS[self.direction]}; bgcolor=transparent",
            'node [shape=box style="rounded,filled" fillcolor="#f6f8fa" color="#57606a"',
            " fontname=monospace fontsize=11]",
            'edge [color="#57606a" fontname=monospace fontsize=10]',
        ]
        for index, node in enumerate(self.nodes):
            text = _dot_text(_wrapped(node.lines, LONGEST_LINE))
            rims = 2 if node.shape == "double" else 1
            warm = ' fillcolor="#fff1e5" color="#bc4c00"' if node.hot else ""
            lines.append(f"n{index} [label={text} peripheries={rims}{warm}]")
        for source, target, label in self.edges:
            lines.append(f"n{source} -> n{target} [label={_dot_text(wrap(label, LONGEST_LABEL))}]")
        try:
            made = subprocess.run(  # noqa: S603 - the program that was found, with fixed arguments
                [dot, "-Tsvg"],
                input="\n".join([*lines, "}"]),
                capture_output=True,
                text=True,
                timeout=10,
                check=True,
            ).stdout
        except (OSError, subprocess.SubprocessError):
            return ""
        return made[max(made.find("<svg"), 0) :].strip()


def _wrapped(lines: Sequence[str], width: int) -> list[str]:
    return [part for line in lines for part in wrap(line, width) or [""]]


def _dot_text(lines: Sequence[str]) -> str:
    """A text in quotes; Graphviz reads escapes in it."""
    return json.dumps("\n".join(re.sub(r"\\", r"\\\\", line) for line in lines), ensure_ascii=False)


# --- SVG ---

_CHARACTER, _LINE, _PADDING = 7.3, 16.0, 9.0
_HEAD = (
    "<style>text{font:12px ui-monospace,monospace;fill:#1f2328;text-anchor:middle}"
    "rect{fill:#f6f8fa;stroke:#57606a}.hot{fill:#fff1e5;stroke:#bc4c00}.rim{fill:none}"
    ".edge{fill:none;stroke:#57606a;marker-end:url(#arrow)}</style>"
    "<defs><marker id='arrow' viewBox='0 0 8 8' refX='8' refY='4' markerWidth='8' markerHeight='8'"
    " orient='auto'><path d='M0 1L8 4L0 7z' fill='#57606a'/></marker></defs>"
)


def _size(lines: Sequence[str]) -> tuple[float, float]:
    """The width and height of a box around lines of text."""
    width = max((len(line) for line in lines), default=0) * _CHARACTER
    return width + 2 * _PADDING, len(lines) * _LINE + 2 * _PADDING - 4


def _box(node: DrawnNode, lines: Sequence[str], x: float, y: float) -> str:
    width, height = _size(lines)
    radius = height / 2 if node.shape == "round" else 5
    found = ""
    for inset in (0, 3) if node.shape == "double" else (0,):
        style = "rim" if inset else "hot" if node.hot else "node"
        found += (
            f"<rect class='{style}' x='{x - width / 2 + inset:.1f}'"
            f" y='{y - height / 2 + inset:.1f}' width='{width - 2 * inset:.1f}'"
            f" height='{height - 2 * inset:.1f}' rx='{radius - inset:.1f}'/>"
        )
    return found + _svg_lines(lines, x, y)


def _svg_lines(lines: Sequence[str], x: float, y: float) -> str:
    top = y - (len(lines) - 1) * _LINE / 2 + 4
    return "".join(
        f"<text x='{x:.1f}' y='{top + at * _LINE:.1f}'>{escape(line)}</text>"
        for at, line in enumerate(lines)
    )
