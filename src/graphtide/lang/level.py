"""A query level: one SELECT, ASK, CONSTRUCT or DESCRIBE, and the aggregates it uses.

https://www.w3.org/TR/sparql11-query/#sparqlAggregateAlgebra: every aggregate of a level is computed
once, under a name of its own, and the name stands in the expressions instead.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression, Var


@dataclass(frozen=True, slots=True)
class AggregateCall:
    """An aggregate as it is written; `argument` None is `*`."""

    function: str
    argument: Expression | None
    distinct: bool = False
    separator: str = " "


@dataclass(slots=True)
class Level:
    """What is known of a query level while its clauses are read."""

    aggregates: dict[AggregateCall, Var] = field(default_factory=dict)
    inside: bool = False  # whether an aggregate's argument is being read
    uses: list[tuple[Var, int]] = field(default_factory=list)  # variables outside aggregates
