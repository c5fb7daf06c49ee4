"""Hypothesis strategies: basic graph patterns of each class, and change streams around them.

    ground              no variables
    star                one variable, every pattern has it
    loosely connected   several parts of one variable, maybe patterns without any
    connected           several variables that all hang together
    mixed               anything

Predicates and graphs are variables now and then, patterns come twice, and constants repeat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from graphtide.testing.expression_grammar import term_text
from graphtide.testing.generators import Case, change_streams
from graphtide.testing.pools import GRAPH_NAMES, IRIS, PREDICATES
from graphtide.testing.query_grammar import RandomQuery

if TYPE_CHECKING:
    from collections.abc import Sequence

    Pattern = tuple[str, str, str, str]

CLASSES: Final = ("ground", "star", "loosely connected", "connected", "mixed")

_PREFIX: Final = "PREFIX : <http://example.org/>\n"
_CONSTANTS: Final = tuple(term_text(iri) for iri in IRIS[:2])
_PREDICATES: Final = tuple(term_text(iri) for iri in PREDICATES)
_GRAPHS: Final = ("", "", "", *(term_text(iri) for iri in GRAPH_NAMES[:1]))


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
    graphs = st.sampled_from(_GRAPHS)
    return st.tuples(nodes, st.sampled_from(_PREDICATES), nodes, graphs)


def _ground() -> st.SearchStrategy[list[Pattern]]:
    return st.lists(_patterns(st.sampled_from(_CONSTANTS)), min_size=1, max_size=4)


@st.composite
def _spoke(draw: st.DrawFn, centre: str) -> Pattern:
    """A pattern whose only variable is `centre`, at any place where it may stand."""
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
    """Each new variable hangs on one before it; then some more patterns between what is there."""
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
    """A connected part beside a star, maybe beside patterns without variables."""
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
