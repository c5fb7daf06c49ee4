"""Connected variables: which hang together without a constant in between."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

from graphtide.algebra.variables import pattern_variables
from graphtide.plan.decomposition.nodes import query_variables
from graphtide.plan.decomposition.paths import shortest_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern


def is_var_connected(query: Sequence[TriplePattern]) -> bool:
    """Whether paths without constants connect all of several variables (Definition 8).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> x, y, a, p = Var("x"), Var("y"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> is_var_connected([TriplePattern(x, p, y)])
    True
    >>> is_var_connected([TriplePattern(x, p, a), TriplePattern(a, p, y)])
    False
    """
    variables = query_variables(query)
    return len(variables) > 1 and all(
        shortest_path(query, x, y, through=variables) for x, y in combinations(variables, 2)
    )


def variable_partition(query: Sequence[TriplePattern]) -> tuple[frozenset[Var], ...]:
    """The connected-variable partition: variables that share patterns, and so on (Definition 9).

    >>> from graphtide.algebra.expressions import Var
    >>> from graphtide.algebra.nodes import TriplePattern
    >>> from graphtide.rdf.term import NamedNode
    >>> x, y, z, a, p = Var("x"), Var("y"), Var("z"), NamedNode("ex:a"), NamedNode("ex:p")
    >>> query = [TriplePattern(x, p, y), TriplePattern(y, p, a), TriplePattern(a, p, z)]
    >>> [sorted(v.name for v in part) for part in variable_partition(query)]
    [['x', 'y'], ['z']]
    """
    parts: list[frozenset[Var]] = []
    for pattern in query:
        together = frozenset(pattern_variables(pattern))
        if together:
            meeting = [part for part in parts if part & together]
            at = parts.index(meeting[0]) if meeting else len(parts)
            parts = [part for part in parts if part not in meeting]
            parts.insert(at, together.union(*meeting))
    return tuple(parts)
