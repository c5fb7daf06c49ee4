"""Shortest paths: the quads along which a property path leads from one term to another."""

from __future__ import annotations

from heapq import heappop, heappush
from itertools import count
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode

from graphtide.algebra import paths
from graphtide.limits import allowance

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.rdf.terms import Term
    from graphtide.why.tree import Fact, GraphChoice, QuadSource

Way = tuple["Term", "tuple[Fact, ...]"]
"""An end of a path, and the quads on a shortest way to it."""


class PathWalker:
    """Walks paths in one graph of a source, shortest ways first; each end is found once."""

    def __init__(self, source: QuadSource, graph: GraphChoice) -> None:
        self._source = source
        self._graph = graph

    def ways(self, path: paths.PathExpression, start: Term, *, back: bool = False) -> Iterator[Way]:
        """The ends of a path from a term, or with `back` the starts of a path to it.

        Of `+` and `*` the nearest come first, so that who looks for one end may stop there. The
        quads of a way `back` are in reverse order.
        """
        match path:
            case paths.Link() | paths.NegatedSet() | paths.ToBlank():
                yield from _first_of_each(self._edges(path, start, back=back))
            case paths.Inverse(inner):
                yield from self.ways(inner, start, back=not back)
            case paths.Sequence(steps):
                yield from self._along(steps[::-1] if back else steps, start, back=back)
            case paths.Alternative(choices):
                found = [way for each in choices for way in self.ways(each, start, back=back)]
                yield from _first_of_each(iter(sorted(found, key=lambda way: len(way[1]))))
            case paths.ZeroOrOne(inner):
                yield start, ()
                yield from (w for w in self.ways(inner, start, back=back) if w[0] != start)
            case paths.ZeroOrMore(inner):
                yield from self._closure([(start, ())], inner, back=back)
            case paths.OneOrMore(inner):
                yield from self._closure([*self.ways(inner, start, back=back)], inner, back=back)
            case _:
                assert_never(path)

    def every(
        self, path: paths.PathExpression, start: Term, end: Term | None, *, back: bool
    ) -> Iterator[Way]:
        """The ends of a path from a term by every way that visits no term twice, as they are found.

        Of a way to a known `end`, only terms are visited from which the path leads there.
        """
        match path:
            case paths.Inverse(inner):
                yield from self.every(inner, start, end, back=not back)
            case paths.Sequence(steps):
                yield from self._every_along(steps[::-1] if back else steps, start, end, back=back)
            case paths.Alternative(choices):
                for each in choices:
                    yield from self.every(each, start, end, back=back)
            case paths.ZeroOrOne(inner):
                yield start, ()
                yield from self.every(inner, start, end, back=back)
            case paths.ZeroOrMore(inner) | paths.OneOrMore(inner):
                if isinstance(path, paths.ZeroOrMore):
                    yield start, ()
                yield from self._simple(inner, start, end, back=back)
            case _:
                yield from self._edges(path, start, back=back)

    def _every_along(
        self,
        steps: tuple[paths.PathExpression, ...],
        start: Term,
        end: Term | None,
        *,
        back: bool,
    ) -> Iterator[Way]:
        if len(steps) == 1:
            yield from self.every(steps[0], start, end, back=back)
            return
        for middle, facts in self.every(steps[0], start, None, back=back):
            for last, more in self._every_along(steps[1:], middle, end, back=back):
                yield last, (*facts, *more)

    def _simple(
        self, inner: paths.PathExpression, start: Term, end: Term | None, *, back: bool
    ) -> Iterator[Way]:
        """Repetitions of a path that come to no term twice, the shortest first.

        To a known end, the distance from there is known, so that no detour is begun too early (A*).
        """
        rest: dict[Term, int] | None = None
        if end is not None:
            ways = self._closure([(end, ())], inner, back=not back)
            rest = {term: len(facts) for term, facts in ways}
        order = count(0, -1)
        ahead: list[tuple[int, int, Term, tuple[Fact, ...], frozenset[Term]]] = [
            (0, next(order), start, (), frozenset())
        ]
        while ahead:
            allowance().check_time()
            _, _, at, facts, seen = heappop(ahead)
            if facts:
                yield at, facts
            if facts and at in (start, end):  # a longer way would only contain this one
                continue
            for further, more in self.every(inner, at, None, back=back):
                if further not in seen and (rest is None or further in rest):
                    way = (*facts, *more)
                    length = len(way) + (0 if rest is None else rest[further])
                    heappush(ahead, (length, next(order), further, way, seen | {further}))

    def _edges(self, path: paths.PathExpression, start: Term, *, back: bool) -> Iterator[Way]:
        iri = path.iri if isinstance(path, paths.Link) else None
        first, last = (None, start) if back else (start, None)
        for fact in self._source.find(first, iri, last, self._graph):
            if isinstance(path, paths.NegatedSet) and fact.predicate in path.iris:
                continue
            if isinstance(path, paths.ToBlank) and not isinstance(fact.object, BlankNode):
                continue
            yield (fact.subject if back else fact.object), (fact,)

    def _along(
        self, steps: tuple[paths.PathExpression, ...], start: Term, *, back: bool
    ) -> Iterator[Way]:
        found: list[Way] = [(start, ())]
        for step in steps:
            longer = [
                (end, (*facts, *more))
                for middle, facts in found
                for end, more in self.ways(step, middle, back=back)
            ]
            longer.sort(key=lambda way: len(way[1]))
            found = [*_first_of_each(iter(longer))]
        yield from found

    def _closure(
        self, first: list[Way], inner: paths.PathExpression, *, back: bool
    ) -> Iterator[Way]:
        """Dijkstra's algorithm: one more repetition of the inner path is an edge."""
        order = count()
        ahead: list[tuple[int, int, Term, tuple[Fact, ...]]] = []
        for end, facts in first:
            heappush(ahead, (len(facts), next(order), end, facts))
        done: set[Term] = set()
        while ahead:
            allowance().check_time()
            _, _, end, facts = heappop(ahead)
            if end in done:
                continue
            done.add(end)
            yield end, facts
            for further, more in self.ways(inner, end, back=back):
                if further not in done:
                    way = (*facts, *more)
                    heappush(ahead, (len(way), next(order), further, way))


def _first_of_each(ways: Iterator[Way]) -> Iterator[Way]:
    seen: set[Term] = set()
    for way in ways:
        if way[0] not in seen:
            seen.add(way[0])
            yield way
