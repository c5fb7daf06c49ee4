"""Hypothesis strategies: random graphs, change streams, queries and basic graph patterns.

All draw from the term pools in `oracles.transactions`, so that deletes often find a
present quad. A stream can be drawn *around* a query: most of its quads are then instances of the
triple patterns of the query, so that its answer changes often.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from hypothesis import strategies as st
from pyoxigraph import BlankNode, DefaultGraph, NamedNode, Quad

from graphtide.rdf.terms import to_pyoxigraph, triple_term
from oracles import transactions as pools
from oracles.grammars import term_text
from oracles.query_grammar import RandomQuery, random_queries

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.rdf.terms import Term

T = TypeVar("T")

_SEEDS: Final = st.integers(0, 2**32 - 1)
_SUBJECTS: Sequence[NamedNode | BlankNode] = (
    *pools.IRIS[:2] * 3,
    *pools.IRIS,
    *pools.BLANKS,
    pools.PREDICATES[0],
    pools.GRAPH_NAMES[0],
)
_GRAPHS: Sequence[NamedNode | DefaultGraph] = (*[DefaultGraph()] * 4, *pools.GRAPH_NAMES)
_RESOURCES: Sequence[NamedNode] = (
    *pools.IRIS, *pools.PREDICATES, *pools.GRAPH_NAMES, pools.REIFIES,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A query and several change streams."""

    query: str
    streams: tuple[tuple[pools.StreamTransaction, ...], ...]


def queries(*, max_patterns: int = 6) -> st.SearchStrategy[str]:
    """The text of a random SELECT query; `max_patterns` bounds its basic graph patterns.

    >>> from hypothesis import find
    >>> find(queries(), lambda text: "SELECT" in text)[:6]
    'PREFIX'
    """
    return random_queries(max_patterns=max_patterns).map(lambda query: query.text)


@st.composite
def cases(draw: st.DrawFn, *, streams: int = 4, twins: bool = False, seeded: bool = False) -> Case:
    """A random query with `streams` change streams drawn around it.

    A `seeded` stream is made of one drawn number: that is far faster, and Hypothesis cannot make it
    smaller.
    """
    query = draw(random_queries())
    choices = [Random(draw(_SEEDS)).choice if seeded else _by(draw) for _ in range(streams)]
    drawn = [_stream(choose, around=query, twins=twins) for choose in choices]
    return Case(query.text, tuple(tuple(stream) for stream in drawn))


def quads(*, twins: bool = False) -> st.SearchStrategy[Quad]:
    """One quad from the pools; with `twins`, also literals that only differ in lexical form.

    >>> from hypothesis import find
    >>> find(quads(), lambda quad: quad.predicate == pools.PREDICATES[1]).predicate.value
    'http://example.org/q'
    """
    # By position: `sampled_from` hashes all options once per strategy that is made of them.
    pool = _TWIN_QUADS if twins else _QUADS
    return st.integers(0, len(pool) - 1).map(pool.__getitem__)


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
    draw: st.DrawFn, *, around: RandomQuery | None = None, twins: bool = False
) -> list[pools.StreamTransaction]:
    """A list of transactions over a small set of quads.

    Redundant inserts, deletes of absent quads, re-inserts and several changes of one quad in a
    transaction are common. Times never decrease and often repeat. The first transaction inserts
    many of the quads, so that there is something to delete.
    """
    return _stream(_by(draw), around=around, twins=twins)


class _Choose(Protocol):
    """Chooses one of several options."""

    def __call__(self, options: Sequence[T], /) -> T: ...


def _by(draw: st.DrawFn) -> _Choose:
    # By position: `sampled_from` hashes all options once per strategy that is made of them.
    return lambda options: options[draw(st.integers(0, len(options) - 1))]


def _stream(
    choose: _Choose, *, around: RandomQuery | None, twins: bool
) -> list[pools.StreamTransaction]:
    """See `change_streams`."""
    near = _instances(choose, around, twins=twins) if around else []
    pool = _TWIN_QUADS if twins else _QUADS
    far = [choose(pool) for _ in range(choose(range(1, 9) if near else range(8, 21)))]
    universe = list(dict.fromkeys([*near, *far]))
    first = [(1, quad) for quad in universe[: choose((24, 24, 24, 8, 0))]]
    rest = [
        [(choose((1, -1)), choose(universe)) for _ in range(choose(range(7)))]
        for _ in range(choose(range(3, 8)))
    ]
    return _timed([first, *rest], [0, *(choose(range(4)) for _ in rest)])


def _instances(choose: _Choose, query: RandomQuery, *, twins: bool) -> list[Quad]:
    """Quads that the patterns of `query` match: a few valuations, applied to every pattern."""
    triples = [pattern[2].split()[1:4] for pattern in query.patterns if "<<" in pattern[2]]
    subjects = {pattern[0] for pattern in (*query.patterns, *triples)}
    predicates = {pattern[1] for pattern in (*query.patterns, *triples)}
    words = {word for pattern in (*query.patterns, *triples) for word in pattern}
    variables = sorted(word for word in words if word[:1] in "?_")
    objects: Sequence[Term] = (
        *pools.IRIS,
        *pools.BLANKS,
        *pools.LITERALS,
        *pools.TRIPLES,
        *(pools.TWINS if twins else ()),
    )
    found: list[Quad] = []
    for _ in range(choose((1, 2, 3))):
        valuation: dict[str, Term] = {term_text(term): term for term in _RESOURCES}
        for variable in variables:
            pool = objects
            if variable.startswith("?g"):
                pool = pools.GRAPH_NAMES
            elif variable in predicates:
                pool = pools.PREDICATES
            elif variable in subjects:
                pool = _SUBJECTS
            valuation[variable] = choose(pool)
        found += [quad for pattern in query.patterns if (quad := _instance(pattern, valuation))]
    return found


def _instance(pattern: Sequence[str], valuation: dict[str, Term]) -> Quad | None:
    """The quad of a pattern under a valuation; None if a literal would not be the object."""
    s, p, o = (_value(word, valuation) for word in pattern[:3])
    if o is None:
        return None
    g = valuation[pattern[3]] if pattern[3] else DefaultGraph()
    if not isinstance(s, NamedNode | BlankNode) or not isinstance(p, NamedNode):
        return None
    if not isinstance(g, NamedNode | DefaultGraph):
        return None
    return Quad(s, p, to_pyoxigraph(o), g)


def _value(word: str, valuation: dict[str, Term]) -> Term | None:
    """The term of a word under a valuation; None for a triple term that is not RDF."""
    if not word.startswith("<<"):
        return valuation[word]
    try:
        return triple_term(*(valuation[part] for part in word.split()[1:4]))
    except ValueError:
        return None


def _timed(bodies: list[list[pools.Change]], steps: list[int]) -> list[pools.StreamTransaction]:
    transactions = []
    time = 0
    for body, step in zip(bodies, steps, strict=True):
        time += step
        transactions.append(pools.StreamTransaction(time, tuple(body)))
    return transactions


def _all_quads(literals: Sequence[Term]) -> tuple[Quad, ...]:
    """All quads of the pools; those that should be frequent occur several times."""
    resources: Sequence[Term] = (*_SUBJECTS, *pools.IRIS) * (
        3 * len(literals) // (2 * len(_SUBJECTS))
    )
    choices = product(
        _SUBJECTS, (pools.PREDICATES[0], *pools.PREDICATES), (*resources, *literals), _GRAPHS
    )
    return tuple(Quad(s, p, to_pyoxigraph(o), g) for s, p, o, g in choices)


_QUADS = _all_quads((*pools.LITERALS, *pools.TRIPLES))
_TWIN_QUADS = _all_quads((*pools.LITERALS, *pools.TRIPLES, *pools.TWINS, *pools.TWINS))


# --- basic graph patterns of each class of paper 3 ---
#
#     ground              no variables
#     star                one variable, in every pattern
#     loosely connected   several parts of one variable, and perhaps ground patterns
#     connected           several connected variables
#     mixed               anything
#
# Some predicates and graphs are variables; patterns and constants repeat.

if TYPE_CHECKING:
    Pattern = tuple[str, str, str, str]

CLASSES: Final = ("ground", "star", "loosely connected", "connected", "mixed")

_PREFIX: Final = "PREFIX : <http://example.org/>\n"
_CONSTANTS: Final = tuple(term_text(iri) for iri in pools.IRIS[:2])
_PREDICATES: Final = tuple(term_text(iri) for iri in pools.PREDICATES)
_BGP_GRAPHS: Final = ("", "", "", *(term_text(iri) for iri in pools.GRAPH_NAMES[:1]))


@st.composite
def bgps(draw: st.DrawFn, of_class: str) -> RandomQuery:
    """A query whose pattern is of a class.

    >>> from hypothesis import find
    >>> len(find(bgps("star"), lambda query: len(query.patterns) > 1).patterns)
    2
    """
    patterns = draw(_PATTERNS[of_class])
    return RandomQuery(f"{_PREFIX}SELECT * {{ {' '.join(map(_text, patterns))} }}", tuple(patterns))


@st.composite
def bgp_cases(draw: st.DrawFn, of_class: str, *, streams: int = 1) -> Case:
    """A query of a class with change streams drawn around it; deletes are as common as inserts.

    >>> from hypothesis import find
    >>> len(find(bgp_cases("ground"), lambda case: True).streams)
    1
    """
    query = draw(bgps(of_class))
    drawn = [draw(change_streams(around=query)) for _ in range(streams)]
    return Case(query.text, tuple(tuple(stream) for stream in drawn))


def _text(pattern: Pattern) -> str:
    s, p, o, g = pattern
    return f"GRAPH {g} {{ {s} {p} {o} }}" if g else f"{s} {p} {o} ."


def _patterns(nodes: st.SearchStrategy[str]) -> st.SearchStrategy[Pattern]:
    graphs = st.sampled_from(_BGP_GRAPHS)
    return st.tuples(nodes, st.sampled_from(_PREDICATES), nodes, graphs)


def _ground() -> st.SearchStrategy[list[Pattern]]:
    return st.lists(_patterns(st.sampled_from(_CONSTANTS)), min_size=1, max_size=4)


@st.composite
def _spoke(draw: st.DrawFn, centre: str) -> Pattern:
    """A pattern whose only variable is `centre`, at any position."""
    s, p, o, g = draw(_patterns(st.sampled_from(_CONSTANTS)))
    places: Sequence[Pattern] = (
        (centre, p, o, g),
        (centre, p, o, g),
        (s, p, centre, g),
        (centre, p, centre, g),
        (s, centre, o, g) if centre.startswith("?p") else (s, p, centre, g),
    )
    return draw(st.sampled_from(places))


def _star(centre: str = "?x") -> st.SearchStrategy[list[Pattern]]:
    return st.lists(_spoke(centre), min_size=1, max_size=4)


@st.composite
def _loose(draw: st.DrawFn) -> list[Pattern]:
    centres = draw(st.sampled_from((("?x", "?y"), ("?x", "?y", "?z"), ("?x", "?p"))))
    parts = [
        p for centre in centres for p in draw(st.lists(_spoke(centre), min_size=1, max_size=2))
    ]
    return draw(st.permutations([*parts, *draw(st.lists(_one_ground(), max_size=1))]))


def _one_ground() -> st.SearchStrategy[Pattern]:
    return _patterns(st.sampled_from(_CONSTANTS))


@st.composite
def _connected(draw: st.DrawFn) -> list[Pattern]:
    """Each new variable is connected to an earlier one; then some patterns between these."""
    many = draw(st.integers(2, 4))
    names = [f"?v{i}" for i in range(many)]
    found: list[Pattern] = []
    for at in range(1, many):
        other, (_, p, _, g) = draw(st.sampled_from(names[:at])), draw(_one_ground())
        ends = draw(st.permutations([other, names[at]]))
        label = draw(st.sampled_from((p, p, p, "?p")))
        found.append((ends[0], label, ends[1], draw(st.sampled_from((g, g, g, "?g")))))
    more = _patterns(st.sampled_from((*names, *_CONSTANTS)))
    extra = [p for p in draw(st.lists(more, max_size=2)) if "?" in p[0] + p[2]]
    return draw(st.permutations([*found, *extra]))


@st.composite
def _mixed(draw: st.DrawFn) -> list[Pattern]:
    """A connected part, a star, and perhaps ground patterns."""
    parts = [
        *draw(_connected()),
        *draw(_star("?x"))[:2],
        *draw(_ground())[: draw(st.integers(0, 1))],
    ]
    return draw(st.permutations(parts))


_PATTERNS: Final[dict[str, st.SearchStrategy[list[Pattern]]]] = {
    "ground": _ground(),
    "star": _star(),
    "loosely connected": _loose(),
    "connected": _connected(),
    "mixed": _mixed(),
}
