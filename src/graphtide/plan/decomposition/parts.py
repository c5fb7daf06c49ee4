"""The connected-variable decomposition: the parts of a query that share no variable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphtide.algebra.variables import pattern_variables
from graphtide.plan.decomposition.nodes import query_variables
from graphtide.plan.decomposition.partition import variable_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.nodes import TriplePattern

    Query = tuple[TriplePattern, ...]

QueryClass = Literal["ground", "star", "loosely connected", "connected", "mixed"]


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts with variables, in order of first appearance, and the patterns without any."""

    open: tuple[Query, ...]
    ground: Query


def decompose(query: Sequence[TriplePattern]) -> Parts:
    """The connected-variable decomposition; the same pattern twice counts once (Definition 10).

    The answers of a query are the product of the answers of its parts.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> x, y, a, p = Var("x"), Var("y"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> parts = decompose([TriplePattern(x, p, a), TriplePattern(a, p, a), TriplePattern(a, p, y)])
    >>> len(parts.open), len(parts.ground)
    (2, 1)
    """
    patterns = tuple(dict.fromkeys(query))
    open_parts = tuple(
        tuple(p for p in patterns if variables & frozenset(pattern_variables(p)))
        for variables in variable_partition(patterns)
    )
    return Parts(open_parts, tuple(p for p in patterns if not pattern_variables(p)))


def is_loosely_connected(query: Sequence[TriplePattern]) -> bool:
    """Whether every way between two variables leads over a constant (Definition 11).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> is_loosely_connected([TriplePattern(Var("x"), Var("p"), Var("y"))])
    False
    """
    return all(len(part) == 1 for part in variable_partition(query))


def is_connected_variable(query: Sequence[TriplePattern]) -> bool:
    """Whether a query has several variables and they are all connected (Definition 12).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> is_connected_variable([TriplePattern(Var("x"), Var("p"), Var("y"))])
    True
    """
    return len(query_variables(query)) > 1 and len(variable_partition(query)) == 1


def query_class(query: Sequence[TriplePattern]) -> QueryClass:
    """Which of the classes a query is in, the narrowest first; `mixed` has parts of several.

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> x, a, p = Var("x"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> query_class([TriplePattern(a, p, a)]), query_class([TriplePattern(x, p, a)])
    ('ground', 'star')
    """
    parts = decompose(query)
    if not parts.open:
        return "ground"
    if is_loosely_connected(query):
        return "star" if len(parts.open) == 1 and not parts.ground else "loosely connected"
    return "connected" if len(parts.open) == 1 and not parts.ground else "mixed"
