"""Plan nodes and their parts as text: what a node does, and what it stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pyoxigraph import NamedNode

from graphtide.algebra import paths
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var, is_calculation
from graphtide.algebra.nodes import Aggregate, DefaultGraph, MergedGraph, Path, Slice, TriplePattern
from graphtide.algebra.variables import pattern_variables
from graphtide.plan import physical as phys
from graphtide.plan.counting import ROOT, sent
from graphtide.plan.decomposition import decompose, query_variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


INFIX = frozenset(("=", "!=", "<", "<=", ">", ">=", "&&", "||"))


def names(variables: Iterable[Var]) -> str:
    """A list of variables, or 'nothing'."""
    return " ".join(f"?{v.name}" for v in variables) or "nothing"


def patterns_text(patterns: Iterable[TriplePattern]) -> str:
    """Triple patterns in SPARQL, with IRIs shortened to their last segment."""
    return " . ".join(_pattern_text(p) for p in patterns)


def _pattern_text(pattern: TriplePattern) -> str:
    triple = " ".join(short(p) for p in (pattern.subject, pattern.predicate, pattern.object))
    if isinstance(pattern.graph, DefaultGraph):
        return triple
    return f"{triple} in {graph_text(pattern.graph)}"


def graph_text(graph: object) -> str:
    """The graph of a pattern, other than the default graph."""
    if isinstance(graph, MergedGraph):
        return "any graph" if graph.names is None else " or ".join(map(short, graph.names))
    return short(graph)


def short(position: object) -> str:
    """A term or variable as text, with IRIs shortened to their last segment."""
    if isinstance(position, NamedNode):
        tail = position.value.rstrip("/#")
        return ":" + tail[max(tail.rfind("/"), tail.rfind("#")) + 1 :]
    return str(position)


def expression_text(expression: Expression) -> str:
    """An expression in SPARQL."""
    match expression:
        case Var():
            return str(expression)
        case Const(term):
            return short(term)
        case Exists():
            return "EXISTS { … }"
        case Call("UMINUS" | "UPLUS" as name, (arg,)):
            return f"{'-' if name == 'UMINUS' else '+'}{expression_text(arg)}"
        case Call("IN" | "NOT IN" as name, (needle, *others)):
            inside = ", ".join(expression_text(a) for a in others)
            return f"{expression_text(needle)} {name} ({inside})"
        case Call(name, (first, *others)) if name in INFIX or is_calculation(name):
            signs = name if is_calculation(name) else (name,) * len(others)
            rest = (f" {s} {expression_text(o)}" for s, o in zip(signs, others, strict=True))
            return f"({expression_text(first)}{''.join(rest)})"
        case Call(name, args):
            inside = ", ".join(expression_text(a) for a in args)
            return f"{_function_name(name)}({inside})"
        case _:
            assert_never(expression)


def _function_name(name: str) -> str:
    return name if not name.startswith("<http") else name.rstrip(">").rsplit("#", 1)[-1]


def decomposed_text(node: phys.Decomposed) -> str:
    """The parts of a decomposed pattern, joined by ×.

    A connected part has the order of its variables: `?b then (?a, ?c)` binds ?b first, after which
    ?a and ?c are independent.
    """
    parts = decompose(node.patterns)
    orders = _orders(node)
    ground = [f"ground {{ {patterns_text(parts.ground)} }}"] if parts.ground else []
    return "decompose " + " × ".join([*ground, *(_part(orders, part) for part in parts.open)])


def _part(orders: Mapping[Var, str], part: tuple[TriplePattern, ...]) -> str:
    variables = query_variables(part)
    if len(variables) == 1:
        return f"star {names(variables)} {{ {patterns_text(part)} }}"
    (order,) = (orders[v] for v in variables if v in orders)
    return f"connected {order} {{ {patterns_text(part)} }}"


def _orders(node: phys.Decomposed) -> dict[Var, str]:
    """For each part, by the first variable that is bound, the order of its variables."""
    below: list[list[str]] = [[] for _ in node.order]
    found: dict[Var, str] = {}
    for at, each in reversed([*enumerate(node.order)]):  # what is bound later comes later
        text, after = names(each.variables), below[at][::-1]
        if after:
            text += f" then {after[0]}" if len(after) == 1 else f" then ({', '.join(after)})"
        if each.above < 0:
            found[each.variables[0]] = text
        else:
            below[each.above].append(text)
    return found


def counting_text(node: phys.Counting) -> str:
    """The groups of a join tree, and which input sends counts to which, by which variables."""
    by = f" by {names(node.keys)}" if node.keys else ""
    each = ", ".join(map(aggregate_text, node.aggregates))
    edges = [
        f"{i + 1} to {parent + 1 if parent != ROOT else 'the groups'}"
        + (f" by {names(shared)}" if shared else "")
        for i, (parent, shared) in enumerate(zip(node.parents, sent(node), strict=True))
    ]
    return f"count{by}{f': {each}' if each else ''}; inputs {', '.join(edges)}"


def path_text(node: Path) -> str:
    """A path pattern in SPARQL, with IRIs shortened to their last segment.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import Path
    >>> from pyoxigraph import NamedNode
    >>> path_text(
    ...     Path(Var("a"), paths.OneOrMore(paths.Link(NamedNode("http://e/knows"))), Var("b"))
    ... )
    '?a :knows+ ?b'
    """
    graph = "" if isinstance(node.graph, DefaultGraph) else f" in {graph_text(node.graph)}"
    return f"{short(node.subject)} {_path(node.path)} {short(node.object)}{graph}"


def aggregate_text(aggregate: Aggregate) -> str:
    """An aggregate in SPARQL."""
    argument = "*" if aggregate.argument is None else names((aggregate.argument,))
    distinct = "DISTINCT " if aggregate.distinct else ""
    separator = f"; SEPARATOR={aggregate.separator!r}" if aggregate.separator != " " else ""
    called = f"{aggregate.function}({distinct}{argument}{separator})"
    return f"{called} as {names((aggregate.var,))}"


def slice_text(node: Slice) -> str:
    """Projection, order and range of a logical slice."""
    return f"{'distinct' if node.distinct else 'project'} {names(node.variables)}" + _range(node)


def top_text(node: phys.TopK) -> str:
    """Columns, order and range of a physical slice."""
    return f"top {'distinct ' if node.distinct else ''}{names(node.schema)}" + _range(node)


def _range(node: Slice | phys.TopK) -> str:
    text = ""
    if node.keys:
        keys = " ".join(f"{'-' if k.descending else ''}{names((k.var,))}" for k in node.keys)
        text += f", ordered by {keys}"
    if node.offset:
        text += f", from row {node.offset + 1:,}"
    if node.limit is not None:
        text += f", at most {node.limit:,}"
    return text + (f", for each {names(node.per)}" if node.per else "")


def _path(path: paths.PathExpression) -> str:
    match path:
        case paths.Link(iri):
            return short(iri)
        case paths.ToBlank():
            return "(to a blank node)"
        case paths.NegatedSet(iris):
            return f"!({'|'.join(map(short, iris))})"
        case paths.Inverse(inner):
            return f"^{_path(inner)}"
        case paths.Sequence(steps):
            return f"({'/'.join(map(_path, steps))})"
        case paths.Alternative(choices):
            return f"({'|'.join(map(_path, choices))})"
        case paths.ZeroOrOne(inner):
            return f"{_path(inner)}?"
        case paths.ZeroOrMore(inner):
            return f"{_path(inner)}*"
        case paths.OneOrMore(inner):
            return f"{_path(inner)}+"
        case _:
            assert_never(path)


def describe(node: phys.Physical) -> str:
    """What a node does, in one line."""
    match node:
        case phys.Search(patterns, checks):
            found = "input" if is_input(node) else "search"
            text = f"{found} {patterns_text(patterns)}"
            for check in checks:
                word = "without" if check.negated else "with"
                text += f" {word} {{ {patterns_text(check.patterns)} }}"
            return text
        case phys.Decomposed():
            return decomposed_text(node)
        case phys.Constant(rows):
            return "one empty row" if rows == ((),) else _constants(len(rows))
        case phys.HashJoin(_, _, keys, loose, overlap):
            text = f"join on {names(keys)}" if keys or loose else "product"
            text += f", {names(loose)} if bound" if loose else ""
            return text + (f", one of {names(overlap)} bound on both sides" if overlap else "")
        case phys.SemiJoin(_, _, keys, negated):
            return f"{'antijoin' if negated else 'semijoin'} on {names(keys)}"
        case phys.RangeJoin(_, _, keys, value, operator, bound):
            on = f" on {names(keys)}" if keys else ""
            return f"range join{on}: {names((value,))} {operator} {names((bound,))}"
        case phys.Select(_, condition):
            return f"select {expression_text(condition)}"
        case phys.Compute(_, columns):
            each = (f"{names((var,))} as {expression_text(value)}" for var, value in columns)
            return f"compute {', '.join(each)}"
        case phys.Merge():
            return "union"
        case phys.Unique():
            return f"distinct {names(node.schema)}"
        case phys.Keep(_, sources):
            each = (
                names((v,))
                if of in (None, v) or "." in (of.name[0], v.name[0])
                else names((of,)) + " as " + names((v,))
                for of, v in zip(sources, node.schema, strict=True)
            )
            return f"project {' '.join(each)}"
        case phys.GroupBy(_, keys, aggregates):
            by = f" by {names(keys)}" if keys else ""
            return f"group{by}: {', '.join(map(aggregate_text, aggregates)) or 'nothing'}"
        case phys.Counting():
            return counting_text(node)
        case phys.TopK():
            return top_text(node)
        case phys.Closure(of):
            return f"reach from {_sources_text(of[1])}" if of[1:] else "reach from everywhere"
        case _:
            assert_never(node)


def is_input(node: phys.Physical) -> bool:
    """Whether a node is an input node of a Rete network: one edge, and classes of its ends."""
    if not isinstance(node, phys.Search) or node.checks:
        return False
    return all(len(pattern_variables(p)) < 2 for p in node.patterns[1:])


def state_of(node: phys.Physical, sizes: Mapping[str, int] | None) -> str:
    """What a node stores, with its current size if known; empty for nothing."""

    def size(key: str) -> str:
        return "" if sizes is None else f" ({sizes.get(key, 0):,} now)"

    match node:
        case phys.HashJoin():
            return f"left rows{size('left')} and right rows{size('right')}"
        case phys.SemiJoin():
            return f"left rows{size('left')} and a count per right key{size('right')}"
        case phys.RangeJoin():
            return f"left rows in order{size('rows')} and their bounds{size('bounds')}"
        case phys.Decomposed():
            return f"a bit per pattern of each instance{size('instances')}"
        case phys.Unique():
            return f"a count per row{size('rows')}"
        case phys.GroupBy():
            return f"the state of each group{size('groups')}"
        case phys.Counting():
            return f"counts by key{size('keys')} and groups{size('groups')}"
        case phys.TopK():
            return f"all rows in order{size('rows')}"
        case phys.Closure():
            return f"edges{size('edges')} and pairs that they connect{size('pairs')}"
        case (
            phys.Search()
            | phys.Constant()
            | phys.Select()
            | phys.Compute()
            | phys.Merge()
            | phys.Keep()
        ):
            return ""
        case _:
            assert_never(node)


def _sources_text(node: phys.Physical) -> str:
    if isinstance(node, phys.Constant):
        return ", ".join(short(each) for row in node.rows for each in row if each is not None)
    return "what is demanded"


def _constants(count: int) -> str:
    return "1 constant row" if count == 1 else f"{count} constant rows"
