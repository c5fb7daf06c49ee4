"""Property paths, and their translation to patterns.

https://www.w3.org/TR/sparql11-query/#sparqlTranslatePathExpressions
"""

from __future__ import annotations

from functools import reduce
from itertools import takewhile
from typing import TYPE_CHECKING, Final, assert_never

from graphtide.algebra import paths
from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.nodes import Bgp, Filter, Node, Path, TriplePattern, Union
from graphtide.algebra.trees import balanced
from graphtide.lang.sparql.graphs import join
from graphtide.lang.sparql.terms import RDF_TYPE, TermParser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyoxigraph import NamedNode

    from graphtide.rdf.terms import Term

_MODIFIERS: Final[Mapping[str, type[paths.ZeroOrOne | paths.ZeroOrMore | paths.OneOrMore]]] = {
    "?": paths.ZeroOrOne,
    "*": paths.ZeroOrMore,
    "+": paths.OneOrMore,
}


class PathParser:
    """Parses property paths."""

    def __init__(self, terms: TermParser) -> None:
        self.tokens = terms.tokens
        self.terms = terms

    def at_path(self) -> bool:
        """Whether a path, or a plain predicate, comes next."""
        return self.terms.at_iri() or self._at_a() or self.tokens.at("^", "!", "(")

    def path(self) -> paths.PathExpression:
        """A path of any precedence."""
        parts = [self._sequence()]
        while self.tokens.accept("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else paths.Alternative(tuple(parts))

    def predicate(self) -> NamedNode:
        """An IRI, or `a`."""
        if self._at_a():
            self.tokens.advance()
            return RDF_TYPE
        if not self.terms.at_iri():
            self.tokens.fail(f"expected a predicate, found {self.tokens.token}")
        return self.terms.iri()

    def _at_a(self) -> bool:
        return self.tokens.token.kind == "word" and self.tokens.token.text == "a"

    def _sequence(self) -> paths.PathExpression:
        parts = [self._step()]
        while self.tokens.accept("/"):
            parts.append(self._step())
        return parts[0] if len(parts) == 1 else paths.Sequence(tuple(parts))

    def _step(self) -> paths.PathExpression:
        inverse = self.tokens.accept("^") is not None
        step = self._primary_path()
        if self.tokens.at("?", "*") or (self.tokens.at("+") and not self.terms.at_literal()):
            step = _MODIFIERS[self.tokens.advance().text](step)
        return paths.Inverse(step) if inverse else step

    def _primary_path(self) -> paths.PathExpression:
        if self.tokens.accept("!"):
            return self._negated_set()
        if self.tokens.accept("("):
            self.tokens.enter()
            inner = self.path()
            self.tokens.leave()
            self.tokens.expect(")")
            return inner
        return paths.Link(self.predicate())

    def _negated_set(self) -> paths.PathExpression:
        forward: list[NamedNode] = []
        backward: list[NamedNode] = []
        if self.tokens.accept("("):
            while not self.tokens.accept(")"):
                if forward or backward:
                    self.tokens.expect("|")
                (backward if self.tokens.accept("^") else forward).append(self.predicate())
        else:
            (backward if self.tokens.accept("^") else forward).append(self.predicate())
        back = paths.Inverse(paths.NegatedSet(tuple(backward)))
        if not backward:
            return paths.NegatedSet(tuple(forward))
        return paths.Alternative((paths.NegatedSet(tuple(forward)), back)) if forward else back


def path_pattern(
    subject: Var | Term, path: paths.PathExpression, object_: Var | Term, fresh: Callable[[], Var]
) -> Node:
    """Translate a path between two ends. Sequences and alternatives keep duplicates."""
    match path:
        case paths.Link(iri):
            return Bgp((TriplePattern(subject, iri, object_),))
        case paths.Inverse(inner):
            return path_pattern(object_, inner, subject, fresh)
        case paths.Sequence(steps):
            middle = [fresh() for _ in steps[1:]][::-1]
            ends = zip((subject, *middle), steps, (*middle, object_), strict=True)
            return _joined([path_pattern(s, step, o, fresh) for s, step, o in ends])
        case paths.Alternative(choices):
            each = [path_pattern(subject, choice, object_, fresh) for choice in choices]
            return balanced(Union, each)
        case paths.NegatedSet(iris):
            predicate = fresh()
            step = Bgp((TriplePattern(subject, predicate, object_),))
            others = Call("NOT IN", (predicate, *map(Const, iris)))
            return Filter(others, step) if iris else step
        case paths.ZeroOrOne() | paths.ZeroOrMore() | paths.OneOrMore() | paths.ToBlank():
            return Path(subject, path, object_)
        case _:
            assert_never(path)


def _joined(parts: list[Node]) -> Node:
    """The steps of a path, joined; the patterns that it begins with are one basic graph pattern."""
    first = list(takewhile(lambda part: isinstance(part, Bgp), parts))
    patterns: Node = Bgp(tuple(p for part in first if isinstance(part, Bgp) for p in part.patterns))
    return reduce(join, parts[len(first) :], patterns)
