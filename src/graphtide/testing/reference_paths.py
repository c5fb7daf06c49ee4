"""Property paths, walked step by step.

https://www.w3.org/TR/sparql11-query/#PropertyPathPatterns
"""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Var
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
from graphtide.rdf.term import BlankNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from graphtide.algebra.nodes import Path
    from graphtide.rdf.term import Term

    Triple = tuple[Term, Term, Term]


def path_solutions(node: Path, triples: Iterable[Triple]) -> list[dict[Var, Term]]:
    """The solutions of a path pattern over one graph.

    >>> from graphtide.algebra.nodes import Path
    >>> from graphtide.rdf.term import NamedNode
    >>> a, p, b = (NamedNode(f"ex:{name}") for name in "apb")
    >>> pattern = Path(Var("x"), ZeroOrOne(Link(p)), b)
    >>> sorted(str(solution[Var("x")]) for solution in path_solutions(pattern, [(a, p, b)]))
    ['<ex:a>', '<ex:b>']
    """
    graph = list(triples)
    subject, object_ = node.subject, node.object
    pairs: list[tuple[Term, Term]]
    if not isinstance(subject, Var):
        pairs = [(subject, end) for end in _ends(node.path, subject, graph)]
    elif not isinstance(object_, Var):
        pairs = [(end, object_) for end in _ends(Inverse(node.path), object_, graph)]
    else:
        nodes = dict.fromkeys(term for s, _, o in graph for term in (s, o))
        pairs = [(start, end) for start in nodes for end in _ends(node.path, start, graph)]
    return [found for pair in pairs if (found := _solution(node, pair)) is not None]


def _solution(node: Path, pair: tuple[Term, Term]) -> dict[Var, Term] | None:
    found: dict[Var, Term] = {}
    for position, term in zip((node.subject, node.object), pair, strict=True):
        known = found.setdefault(position, term) if isinstance(position, Var) else position
        if known != term:
            return None
    return found


def _ends(path: PathExpression, start: Term, graph: list[Triple]) -> set[Term]:
    """The terms that a path leads to."""
    match path:
        case Link(iri):
            return {o for s, p, o in graph if s == start and p == iri}
        case NegatedSet(iris):
            return {o for s, p, o in graph if s == start and p not in iris}
        case ToBlank():
            return {o for s, _, o in graph if s == start and isinstance(o, BlankNode)}
        case Inverse(inner):
            return _starts(inner, start, graph)
        case Sequence(first, second):
            return {e for m in _ends(first, start, graph) for e in _ends(second, m, graph)}
        case Alternative(first, second):
            return _ends(first, start, graph) | _ends(second, start, graph)
        case ZeroOrOne(inner):
            return {start} | _ends(inner, start, graph)
        case ZeroOrMore(inner):
            return _closure({start}, lambda term: _ends(inner, term, graph))
        case OneOrMore(inner):
            return _closure(_ends(inner, start, graph), lambda term: _ends(inner, term, graph))
        case _:
            assert_never(path)


def _starts(path: PathExpression, end: Term, graph: list[Triple]) -> set[Term]:
    """The terms that a path leads from: the same paths over reversed triples."""
    return _ends(_reversed(path), end, [(o, p, s) for s, p, o in graph])


def _reversed(path: PathExpression) -> PathExpression:
    """The path that walks reversed triples from the end to the start."""
    match path:
        case Link() | NegatedSet():
            return path
        case ToBlank():
            raise AssertionError("this path is only walked forwards")
        case Inverse(inner):
            return Inverse(_reversed(inner))
        case Sequence(first, second):
            return Sequence(_reversed(second), _reversed(first))
        case Alternative(first, second):
            return Alternative(_reversed(first), _reversed(second))
        case ZeroOrOne(inner):
            return ZeroOrOne(_reversed(inner))
        case ZeroOrMore(inner):
            return ZeroOrMore(_reversed(inner))
        case OneOrMore(inner):
            return OneOrMore(_reversed(inner))
        case _:
            assert_never(path)


def _closure(found: set[Term], step: Callable[[Term], set[Term]]) -> set[Term]:
    waiting = list(found)
    while waiting:
        new = step(waiting.pop()) - found
        found |= new
        waiting += new
    return found
