"""Paths, aggregates and slices in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.nodes import DefaultGraph
from graphtide.algebra.paths import (
    Alternative,
    Inverse,
    Link,
    NegatedSet,
    OneOrMore,
    PathExpression,
    Sequence,
    ToBlank,
    ZeroOrMore,
    ZeroOrOne,
)
from graphtide.plan.wording import graph_text, names, short

if TYPE_CHECKING:
    from graphtide.algebra.nodes import Aggregate, Path, Slice
    from graphtide.plan.physical import TopK


def path_text(node: Path) -> str:
    """A path pattern as a query would write it, IRIs shortened to their last part.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import Path
    >>> from graphtide.rdf.term import NamedNode
    >>> path_text(Path(Var("a"), OneOrMore(Link(NamedNode("http://e/knows"))), Var("b")))
    '?a :knows+ ?b'
    """
    graph = "" if isinstance(node.graph, DefaultGraph) else f" in {graph_text(node.graph)}"
    return f"{short(node.subject)} {_path(node.path)} {short(node.object)}{graph}"


def aggregate_text(aggregate: Aggregate) -> str:
    """An aggregate as a query would write it."""
    argument = "*" if aggregate.argument is None else names((aggregate.argument,))
    distinct = "DISTINCT " if aggregate.distinct else ""
    separator = f"; SEPARATOR={aggregate.separator!r}" if aggregate.separator != " " else ""
    called = f"{aggregate.function}({distinct}{argument}{separator})"
    return f"{called} as {names((aggregate.var,))}"


def slice_text(node: Slice) -> str:
    """What is kept of the rows, and in which order."""
    return f"{'distinct' if node.distinct else 'project'} {names(node.variables)}" + _range(node)


def top_text(node: TopK) -> str:
    """What is kept of the rows, and in which order."""
    return f"top {'distinct ' if node.distinct else ''}{names(node.schema)}" + _range(node)


def _range(node: Slice | TopK) -> str:
    text = ""
    if node.keys:
        keys = " ".join(f"{'-' if k.descending else ''}{names((k.var,))}" for k in node.keys)
        text += f", ordered by {keys}"
    if node.offset:
        text += f", from row {node.offset + 1:,}"
    if node.limit is not None:
        text += f", at most {node.limit:,}"
    return text + (f", for each {names(node.per)}" if node.per else "")


def _path(path: PathExpression) -> str:
    match path:
        case Link(iri):
            return short(iri)
        case ToBlank():
            return "(to a blank node)"
        case NegatedSet(iris):
            return f"!({'|'.join(map(short, iris))})"
        case Inverse(inner):
            return f"^{_path(inner)}"
        case Sequence(first, second):
            return f"({_path(first)}/{_path(second)})"
        case Alternative(first, second):
            return f"({_path(first)}|{_path(second)})"
        case ZeroOrOne(inner):
            return f"{_path(inner)}?"
        case ZeroOrMore(inner):
            return f"{_path(inner)}*"
        case OneOrMore(inner):
            return f"{_path(inner)}+"
        case _:
            assert_never(path)
