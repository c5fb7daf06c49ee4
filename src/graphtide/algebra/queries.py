"""The query forms around a SELECT: ASK, CONSTRUCT and DESCRIBE.

Each holds the SELECT query whose rows decide its answer, so that whoever can follow the rows can
follow the answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from graphtide.algebra.nodes import SelectQuery

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Var
    from graphtide.algebra.nodes import TriplePattern
    from graphtide.rdf.term import NamedNode


@dataclass(frozen=True, slots=True)
class AskQuery:
    """https://www.w3.org/TR/sparql11-query/#ask: whether `select`, of no columns, has a row.

    d(ask): the answer flips when the number of rows leaves zero or comes back to it.
    """

    select: SelectQuery


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """https://www.w3.org/TR/sparql11-query/#construct: a template filled in for each row.

    A blank node of the template stands as a `BlankNode`, whose label says which it is. It becomes
    a blank node per distinct row: a function of its label and the row. `select` then has all
    visible variables as columns; otherwise only those of the template.
    d(construct): +1 where a triple's count rises from 0, -1 where it falls to 0.
    """

    select: SelectQuery
    template: tuple[TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """https://www.w3.org/TR/sparql11-query/#describe, as concise bounded descriptions.

    The description of a term is every triple of the default graph with it as subject, and the
    descriptions of the blank nodes that are objects there. `targets` are IRIs, and columns of
    `select`.
    """

    select: SelectQuery
    targets: tuple[Var | NamedNode, ...]


Query = SelectQuery | AskQuery | ConstructQuery | DescribeQuery
