"""Explain: a plan as text that can be read aloud, as a Mermaid diagram, or drawn as SVG."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Literal, assert_never

from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.nodes import (
    Bgp,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    LeftJoin,
    Minus,
    Node,
    Path,
    Project,
    Slice,
    Union,
    Values,
)
from graphtide.plan.describe import (
    aggregate_text,
    describe,
    expression_text,
    names,
    path_text,
    patterns_text,
    slice_text,
    state_of,
)
from graphtide.plan.physical import Physical, children, nodes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.plan.physical import QueryPlan


# --- Draws a plan as SVG: the answer on top, inputs at the bottom, each node a box.

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


ExplainFormat = Literal["text", "mermaid", "svg"]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """What is known of a plan at work: rows held, expected and there, by node; and its answer."""

    sizes: Mapping[Physical, Mapping[str, int]] | None = None
    expected: Mapping[Physical, float] | None = None
    actual: Mapping[Physical, int] | None = None
    answer: int | None = None

    def stores(self, node: Physical) -> str:
        """What a node stores, in words; empty if nothing."""
        state = state_of(node, None if self.sizes is None else self.sizes.get(node))
        return f"stores {state}" if state else ""

    def line(self, node: Physical) -> str:
        """What a node does, and how many rows it has: counted, and expected by the planner."""
        there = None if self.actual is None else self.actual.get(node)
        guess = None if self.expected is None else self.expected.get(node)
        parts = [describe(node)]
        if there is not None:
            parts.append(
                rows(there) + (f" ({round(guess):,} expected)" if guess is not None else "")
            )
        elif guess is not None:
            parts.append(f"{rows(round(guess))} expected")
        return ": ".join(parts)

    def lines(self, node: Physical) -> list[str]:
        """All there is to say of a node."""
        return [line for line in (self.line(node), self.stores(node)) if line]


NO_FACTS = NodeFacts()


def explain(
    plan: QueryPlan,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    facts: NodeFacts = NO_FACTS,
) -> str:
    """A query's physical plan, with what is known of it at work."""
    match format:
        case "text":
            return _text(plan, facts)
        case "mermaid":
            return _mermaid(plan, facts)
        case "svg":
            return draw(plan.root, _title(plan, facts), facts.lines)
        case _:
            assert_never(format)


def _title(plan: QueryPlan, facts: NodeFacts) -> str:
    columns = " ".join(f"?{v.name}" for v in plan.variables) or "no columns"
    held = "" if facts.answer is None else f", {rows(facts.answer)} now"
    return f"answer {columns}{held}"


def rows(count: int) -> str:
    """A count of rows in words.

    >>> rows(1), rows(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def _text(plan: QueryPlan, facts: NodeFacts) -> str:
    lines = [f"strategy {plan.strategy}", _title(plan, facts)]
    numbers: dict[Physical, int] = {}

    def walk(node: Physical, prefix: str, *, last: bool) -> None:
        branch = "└─ " if last else "├─ "
        below = prefix + ("   " if last else "│  ")
        if node in numbers:
            lines.append(f"{prefix}{branch}[{numbers[node]}] again")
            return
        numbers[node] = len(numbers) + 1
        first, *others = facts.lines(node)
        lines.append(f"{prefix}{branch}[{numbers[node]}] {first}")
        beside = f"{below}{'│  ' if children(node) else '   '}"
        lines.extend(f"{beside}{line}" for line in others)
        for i, child in enumerate(inputs := children(node), start=1):
            walk(child, below, last=i == len(inputs))

    walk(plan.root, "", last=True)
    return "\n".join(lines)


def _mermaid(plan: QueryPlan, facts: NodeFacts) -> str:
    lines = ["flowchart BT", f'  answer(["{_escape(_title(plan, facts))}"])']
    numbers: dict[Physical, int] = {}

    def walk(node: Physical) -> int:
        if node in numbers:
            return numbers[node]
        numbers[node] = number = len(numbers) + 1
        label = "<br/>".join(facts.lines(node))
        lines.append(f'  n{number}["{_escape(label)}"]')
        lines.extend(f"  n{walk(child)} --> n{number}" for child in children(node))
        return number

    lines.append(f"  n{walk(plan.root)} --> answer")
    return "\n".join(lines)


def _escape(label: str) -> str:
    """Mermaid reads a label as HTML, all but the line breaks that we put in."""
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(sign, entity)
    return label.replace("&lt;br/&gt;", "<br/>")


# --- Explain the logical plan: the algebra of a query as a tree of text, or as a Mermaid diagram.

LogicalFormat = Literal["text", "mermaid"]

Child = tuple[str, Node]
"""An input of a node, and the part it plays there if it is not plainly an input."""


def explain_logical(query: SelectQuery, format: LogicalFormat = "text") -> str:  # noqa: A002
    """A query's algebra: what it means, before anybody decides how to maintain it.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> print(explain_logical(parse_query("SELECT ?s { ?s <ex:p> ?o FILTER(?o > 1) }")))
    project ?s
    └─ filter (?o > "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
       └─ pattern ?s :ex:p ?o
    """
    match format:
        case "text":
            return "\n".join(_logical_text(("", query.root), "", ""))
        case "mermaid":
            return "\n".join(["flowchart BT", *_logical_mermaid(query.root)])
        case _:
            assert_never(format)


def describe_logical(node: Node) -> str:
    """One line on what a node means."""
    match node:
        case Bgp(patterns):
            return f"pattern {patterns_text(patterns)}" if patterns else "one empty row"
        case Join() | Union() | Minus() | Distinct():
            return type(node).__name__.lower()
        case LeftJoin(_, _, condition):
            only = "" if condition is None else f" if {expression_text(condition)}"
            return f"left join{only}"
        case Filter(condition):
            return f"filter {expression_text(condition)}"
        case Extend(_, var, expression):
            return f"bind {var} to {expression_text(expression)}"
        case Values(variables, data):
            return f"values of {names(variables)}, {rows(len(data))}"
        case GraphNames(var):
            return f"graph names {var}"
        case Project(_, variables):
            return f"project {names(variables)}"
        case Path():
            return f"path {path_text(node)}"
        case Group(_, keys, aggregates):
            by = f" by {names(keys)}" if keys else ""
            return f"group{by}: {', '.join(map(aggregate_text, aggregates)) or 'nothing'}"
        case Slice():
            return slice_text(node)
        case _:
            assert_never(node)


def logical_children(node: Node) -> tuple[Child, ...]:
    """A node's inputs; the patterns of its (NOT) EXISTS come last."""
    match node:
        case Join(left, right) | Union(left, right):
            return ("", left), ("", right)
        case LeftJoin(left, right, condition):
            tested = () if condition is None else _tested(condition)
            return ("", left), ("optional: ", right), *tested
        case Minus(left, right):
            return ("", left), ("without: ", right)
        case Filter(condition, child):
            return ("", child), *_tested(condition)
        case Extend(child, _, expression):
            return ("", child), *_tested(expression)
        case Project(child) | Distinct(child) | Group(child) | Slice(child):
            return (("", child),)
        case Bgp() | Values() | GraphNames() | Path():
            return ()
        case _:
            assert_never(node)


def _tested(expression: Expression) -> tuple[Child, ...]:
    match expression:
        case Exists(pattern):
            return (("exists: ", pattern),)
        case Call("!", (Exists(pattern),)):
            return (("not exists: ", pattern),)
        case Call(_, args):
            return tuple(child for arg in args for child in _tested(arg))
        case Var() | Const():
            return ()
        case _:
            assert_never(expression)


def _logical_text(child: Child, branch: str, below: str) -> Iterator[str]:
    role, node = child
    yield f"{branch}{role}{describe_logical(node)}"
    inputs = logical_children(node)
    for number, part in enumerate(inputs, start=1):
        last = number == len(inputs)
        yield from _logical_text(
            part, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  ")
        )


def _logical_mermaid(root: Node) -> Iterator[str]:
    count = 0

    def walk(child: Child) -> Iterator[str]:
        nonlocal count
        count += 1
        number, node = count, child[1]
        yield f'  n{number}["{_logical_escape(describe_logical(node))}"]'
        for part in logical_children(node):
            edge = f"-- {part[0].rstrip(': ')} -->" if part[0] else "-->"
            below = count + 1
            yield from walk(part)
            yield f"  n{below} {edge} n{number}"

    yield from walk(("", root))


def _logical_escape(label: str) -> str:
    """Mermaid reads a label as HTML."""
    for sign, entity in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        label = label.replace(sign, entity)
    return label
