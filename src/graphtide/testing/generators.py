"""Hypothesis strategies: random graphs, change streams and queries that meet each other.

All draw from the pools of `graphtide.testing.pools`, so that a random delete has a fair chance of
hitting a present quad. A stream can be drawn *around* a query: then most of its quads are instances
of the query's own triple patterns, and most queries have answers that come and go.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from graphtide.testing.expression_grammar import term_text
from graphtide.testing.pools import BLANKS, GRAPH_NAMES, IRIS, LITERALS, PREDICATES, TWINS
from graphtide.testing.query_grammar import RandomQuery, random_queries
from graphtide.testing.transactions import StreamTransaction

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.rdf.term import Term
    from graphtide.testing.transactions import Change

__all__ = ["Case", "cases", "change_streams", "graphs", "quads", "queries"]

_SUBJECTS: Sequence[NamedNode | BlankNode] = (
    *IRIS[:2] * 3,
    *IRIS,
    *BLANKS,
    PREDICATES[0],
    GRAPH_NAMES[0],
)
_GRAPHS: Sequence[NamedNode | DefaultGraph] = (*[DefaultGraph()] * 4, *GRAPH_NAMES)
_RESOURCES: Sequence[NamedNode] = (*IRIS, *PREDICATES, *GRAPH_NAMES)


@dataclass(frozen=True, slots=True)
class Case:
    """A query and several change streams to maintain it under."""

    query: str
    streams: tuple[tuple[StreamTransaction, ...], ...]


def queries(*, max_patterns: int = 6) -> st.SearchStrategy[str]:
    """The text of a random SELECT query; `max_patterns` bounds its basic graph patterns.

    >>> from hypothesis import find
    >>> find(queries(), lambda text: "UNION" in text)[:6]
    'PREFIX'
    """
    return random_queries(max_patterns=max_patterns).map(lambda query: query.text)


@st.composite
def cases(draw: st.DrawFn, *, streams: int = 4, twins: bool = False) -> Case:
    """A random query with `streams` change streams drawn around it."""
    query = draw(random_queries())
    drawn = [draw(change_streams(around=query, twins=twins)) for _ in range(streams)]
    return Case(query.text, tuple(tuple(stream) for stream in drawn))


def quads(*, twins: bool = False) -> st.SearchStrategy[Quad]:
    """One quad from the pools; with `twins`, also literals that only differ in spelling.

    >>> from hypothesis import find
    >>> find(quads(), lambda quad: quad.predicate == PREDICATES[1]).predicate.value
    'http://example.org/q'
    """
    return st.sampled_from(_TWIN_QUADS if twins else _QUADS)


def graphs(
    *, min_size: int = 0, max_size: int = 20, twins: bool = False
) -> st.SearchStrategy[list[Quad]]:
    """A set of distinct quads, as a list: default graph and named graphs.

    >>> from hypothesis import find
    >>> len(find(graphs(min_size=3), lambda graph: True))
    3
    """
    return st.lists(quads(twins=twins), min_size=min_size, max_size=max_size, unique=True)


@st.composite
def change_streams(
    draw: st.DrawFn,
    *,
    around: RandomQuery | None = None,
    max_transactions: int = 8,
    max_changes: int = 6,
    twins: bool = False,
) -> list[StreamTransaction]:
    """A list of transactions over one small graph's quads.

    All changes come from a few quads, so redundant inserts, deletes of absent quads, re-inserts and
    several changes of one quad in a transaction are common. Times never fall and often repeat. The
    first transaction inserts many of the quads, so that there is something to delete.
    """
    near = draw(_instances(around, twins=twins)) if around else []
    far = draw(graphs(min_size=1 if near else 8, max_size=8 if near else 20, twins=twins))
    universe = list(dict.fromkeys([*near, *far]))
    first = [(1, quad) for quad in universe[: draw(st.sampled_from((24, 24, 24, 8, 0)))]]
    change = st.tuples(st.sampled_from((1, -1)), st.sampled_from(universe))
    rest = draw(
        st.lists(st.lists(change, max_size=max_changes), min_size=3, max_size=max_transactions - 1)
    )
    steps = draw(st.lists(st.integers(0, 3), min_size=len(rest), max_size=len(rest)))
    return _timed([first, *rest], [0, *steps])


@st.composite
def _instances(draw: st.DrawFn, query: RandomQuery, *, twins: bool) -> list[Quad]:
    """Quads that the patterns of `query` match: a few valuations, applied to every pattern."""
    subjects = {pattern[0] for pattern in query.patterns}
    predicates = {pattern[1] for pattern in query.patterns}
    variables = sorted({word for pattern in query.patterns for word in pattern if word[:1] in "?_"})
    objects: Sequence[Term] = (*IRIS, *BLANKS, *LITERALS, *(TWINS if twins else ()))
    found: list[Quad] = []
    for _ in range(draw(st.integers(1, 3))):
        valuation: dict[str, Term] = {term_text(term): term for term in _RESOURCES}
        for variable in variables:
            pool = objects
            if variable.startswith("?g"):
                pool = GRAPH_NAMES
            elif variable in predicates:
                pool = PREDICATES
            elif variable in subjects:
                pool = _SUBJECTS
            valuation[variable] = draw(st.sampled_from(pool))
        found += [quad for pattern in query.patterns if (quad := _instance(pattern, valuation))]
    return found


def _instance(pattern: Sequence[str], valuation: dict[str, Term]) -> Quad | None:
    """The quad of a pattern under a valuation; None when a literal would be no object."""
    s, p, o = (valuation[word] for word in pattern[:3])
    g = valuation[pattern[3]] if pattern[3] else DefaultGraph()
    if isinstance(s, Literal) or not isinstance(p, NamedNode) or isinstance(g, Literal):
        return None
    return Quad(s, p, o, g)


def _timed(bodies: list[list[Change]], steps: list[int]) -> list[StreamTransaction]:
    transactions = []
    time = 0
    for body, step in zip(bodies, steps, strict=True):
        time += step
        transactions.append(StreamTransaction(time, tuple(body)))
    return transactions


def _all_quads(literals: Sequence[Term]) -> tuple[Quad, ...]:
    """Every quad of the pools, the likelier ones several times."""
    resources: Sequence[Term] = (*_SUBJECTS, *IRIS) * (3 * len(literals) // (2 * len(_SUBJECTS)))
    choices = product(_SUBJECTS, (PREDICATES[0], *PREDICATES), (*resources, *literals), _GRAPHS)
    return tuple(Quad(s, p, o, g) for s, p, o, g in choices)


_QUADS = _all_quads(LITERALS)
_TWIN_QUADS = _all_quads((*LITERALS, *TWINS, *TWINS))
