"""Explain a query: its physical plan and its algebra, as text, Mermaid or SVG."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Literal, NamedTuple, assert_never

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.trees import Steps, finish
from graphtide.diagram import Drawing, DrawnEdge, DrawnNode, Mermaid, draw_tree
from graphtide.plan import describe as wording
from graphtide.plan.choose import reason
from graphtide.plan.physical import Physical, QueryPlan, children, nodes

if TYPE_CHECKING:
    from collections.abc import Mapping

    from graphtide.plan.estimate import Statistics
    from graphtide.plan.order import Pin
    from graphtide.plan.patterns import Strategy


ExplainFormat = Literal["text", "mermaid", "svg"]


@dataclass(frozen=True, slots=True)
class NodeFacts:
    """Statistics of a running plan: sizes of state, expected and actual rows, and answer rows."""

    sizes: Mapping[Physical, Mapping[str, int]] | None = None
    expected: Mapping[Physical, float] | None = None
    actual: Mapping[Physical, int] | None = None
    answer: int | None = None
    statistics: Statistics | None = None

    def stores(self, node: Physical) -> str:
        """The state of a node as text; empty if it has none."""
        state = wording.state_of(node, None if self.sizes is None else self.sizes.get(node))
        return f"stores {state}" if state else ""

    def load(self, node: Physical) -> int:
        """The rows that a node stores and sends."""
        stored = sum((self.sizes or {}).get(node, {}).values())
        return stored + (self.actual or {}).get(node, 0)

    def line(self, node: Physical) -> str:
        """A node, with its number of rows: actual, and expected by the planner."""
        there = None if self.actual is None else self.actual.get(node)
        guess = None if self.expected is None else self.expected.get(node)
        parts = [wording.describe(node)]
        if there is not None:
            parts.append(
                rows(there) + (f" ({round(guess):,} expected)" if guess is not None else "")
            )
        elif guess is not None:
            parts.append(f"{rows(round(guess))} expected")
        return ": ".join(parts)

    def lines(self, node: Physical) -> list[str]:
        """The lines of a node: what it does, and its state."""
        return [line for line in (self.line(node), self.stores(node)) if line]


NO_FACTS = NodeFacts()


def explain(
    plan: QueryPlan,
    format: ExplainFormat = "text",  # noqa: A002 - the user's word
    facts: NodeFacts = NO_FACTS,
    asked: tuple[alg.SelectQuery, Strategy | None, Pin | None] | None = None,
) -> str:
    """The physical plan of a query, with statistics if it is running.

    If it is known what was `asked` for, the text ends with why this plan was chosen.
    """
    match format:
        case "text":
            why = []
            if asked is not None and facts.statistics is not None:
                why = ["", reason(asked[0], plan, facts.statistics, *asked[1:])]
            return "\n".join([_text(plan, facts), *why])
        case "mermaid":
            return _mermaid(plan, facts)
        case "svg":
            return drawing(plan, facts).svg()
        case _:
            assert_never(format)


def _title(plan: QueryPlan, facts: NodeFacts) -> str:
    columns = " ".join(f"?{v.name}" for v in plan.variables) or "no columns"
    held = "" if facts.answer is None else f", {rows(facts.answer)} now"
    return f"answer {columns}{held}"


def rows(count: int) -> str:
    """A number of rows as text.

    >>> rows(1), rows(2000)
    ('1 row', '2,000 rows')
    """
    return "1 row" if count == 1 else f"{count:,} rows"


def _text(plan: QueryPlan, facts: NodeFacts) -> str:
    numbers: dict[Physical, int] = {}

    def show(node: Physical) -> tuple[list[str], tuple[Physical, ...]]:
        if node in numbers:
            return [f"[{numbers[node]}] again"], ()
        numbers[node] = len(numbers) + 1
        first, *others = facts.lines(node)
        return [f"[{numbers[node]}] {first}", *others], children(node)

    lines = draw_tree(plan.root, show)
    return "\n".join([f"strategy {plan.strategy}", _title(plan, facts), *lines])


def _mermaid(plan: QueryPlan, facts: NodeFacts) -> str:
    chart = Mermaid("up")
    chart.node("answer", [_title(plan, facts)], rounded=True)
    ids: dict[Physical, str] = {}

    def walk(node: Physical) -> Steps[str]:
        if node not in ids:
            ids[node] = f"n{len(ids) + 1}"
            chart.node(ids[node], facts.lines(node))
            for child in children(node):
                chart.edge((yield walk(child)), ids[node])
        return ids[node]

    chart.edge(finish(walk(plan.root)), "answer")
    return str(chart)


def drawing(plan: QueryPlan, facts: NodeFacts = NO_FACTS) -> Drawing:
    """The plan as a drawing: the answer at the top, each node below all nodes that read it.

    An edge has the rows that go along it, where they are counted; a node is hot if it holds or
    sends at least half of what all nodes do.
    """
    physical = nodes(plan.root)[::-1]
    ids = {node: index for index, node in enumerate(physical, 1)}
    loads = {node: facts.load(node) for node in physical}
    total = sum(loads.values())
    counted = facts.actual or {}
    pairs = [(child, node) for node in physical for child in children(node)]
    sent = {node: f"{counted[node]:,}" if node in counted else "" for node in physical}
    return Drawing(
        "up",
        [
            DrawnNode([_title(plan, facts)], "round"),
            *(
                DrawnNode(facts.lines(node), hot=len(physical) > 1 and loads[node] * 2 > total)
                for node in physical
            ),
        ],
        [
            DrawnEdge(ids[plan.root], 0, sent[plan.root]),
            *(DrawnEdge(ids[child], ids[node], sent[child]) for child, node in pairs),
        ],
    )


# --- the algebra of a query ---

LogicalFormat = Literal["text", "mermaid"]


class LogicalChild(NamedTuple):
    """An input of a node, and its role, if it is not a plain input."""

    role: str
    node: alg.Node


def explain_logical(query: alg.SelectQuery, format: LogicalFormat = "text") -> str:  # noqa: A002
    """The algebra of a query, before planning.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> print(explain_logical(parse_query("SELECT ?s { ?s <ex:p> ?o FILTER(?o > 1) }")))
    project ?s
    └─ filter (?o > "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
       └─ pattern ?s :ex:p ?o
    """
    match format:
        case "text":
            return "\n".join(draw_tree(_input(query.root), _shown, first=""))
        case "mermaid":
            return _logical_mermaid(query.root)
        case _:
            assert_never(format)


def describe_logical(node: alg.Node) -> str:
    """A node of the algebra in one line."""
    match node:
        case alg.Bgp(patterns):
            return f"pattern {wording.patterns_text(patterns)}" if patterns else "one empty row"
        case alg.Join() | alg.Union() | alg.Minus() | alg.Distinct():
            return type(node).__name__.lower()
        case alg.LeftJoin(_, _, condition):
            only = "" if condition is None else f" if {wording.expression_text(condition)}"
            return f"left join{only}"
        case alg.Filter(condition):
            return f"filter {wording.expression_text(condition)}"
        case alg.Extend(_, var, expression):
            return f"bind {var} to {wording.expression_text(expression)}"
        case alg.Values(variables, data):
            return f"values of {wording.names(variables)}, {rows(len(data))}"
        case alg.GraphNames(var):
            return f"graph names {var}"
        case alg.Project(_, variables):
            return f"project {wording.names(variables)}"
        case alg.Path():
            return f"path {wording.path_text(node)}"
        case alg.Group(_, keys, aggregates):
            by = f" by {wording.names(keys)}" if keys else ""
            return f"group{by}: {', '.join(map(wording.aggregate_text, aggregates)) or 'nothing'}"
        case alg.Slice():
            return wording.slice_text(node)
        case _:
            assert_never(node)


def logical_children(node: alg.Node) -> tuple[LogicalChild, ...]:
    """The inputs of a node, and at the end the patterns of its (NOT) EXISTS."""
    match node:
        case alg.Join(left, right) | alg.Union(left, right):
            return _input(left), _input(right)
        case alg.LeftJoin(left, right, condition):
            tested = () if condition is None else _exists_patterns(condition)
            return _input(left), LogicalChild("optional", right), *tested
        case alg.Minus(left, right):
            return _input(left), LogicalChild("without", right)
        case alg.Filter(condition, child):
            return _input(child), *_exists_patterns(condition)
        case alg.Extend(child, _, expression):
            return _input(child), *_exists_patterns(expression)
        case alg.Project(child) | alg.Distinct(child) | alg.Group(child) | alg.Slice(child):
            return (_input(child),)
        case alg.Bgp() | alg.Values() | alg.GraphNames() | alg.Path():
            return ()
        case _:
            assert_never(node)


def _input(node: alg.Node) -> LogicalChild:
    return LogicalChild("", node)


def _exists_patterns(expression: Expression) -> tuple[LogicalChild, ...]:
    match expression:
        case Exists(pattern):
            return (LogicalChild("exists", pattern),)
        case Call("!", (Exists(pattern),)):
            return (LogicalChild("not exists", pattern),)
        case Call(_, args):
            return tuple(child for arg in args for child in _exists_patterns(arg))
        case Var() | Const():
            return ()
        case _:
            assert_never(expression)


def _shown(child: LogicalChild) -> tuple[list[str], tuple[LogicalChild, ...]]:
    role = f"{child.role}: " if child.role else ""
    return [f"{role}{describe_logical(child.node)}"], logical_children(child.node)


def _logical_mermaid(root: alg.Node) -> str:
    chart = Mermaid("up")
    numbers = count(1)

    def walk(node: alg.Node) -> Steps[str]:
        name = f"n{next(numbers)}"
        chart.node(name, [describe_logical(node)])
        for role, child in logical_children(node):
            chart.edge((yield walk(child)), name, role)
        return name

    finish(walk(root))
    return str(chart)
