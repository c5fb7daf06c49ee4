"""The order of ORDER BY, MIN and MAX, made total.

https://www.w3.org/TR/sparql11-query/#modOrderBy: unbound, blank nodes, IRIs, literals. Where the
recommendation is silent, literals go by kind: numbers (NaN first), booleans, strings (a language
tag decides between equal texts), dates and times by type, durations, all others by datatype. Within
a kind it is an order that `<` never contradicts.
"""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.functions.comparison import REFERENCES
from graphtide.functions.durations import Duration
from graphtide.functions.moments import DateTimeValue, add_duration, timeline
from graphtide.functions.numbers import EXACT, Number
from graphtide.functions.values import Text, value_of

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

OrderValue = tuple[object, ...]


def order_value(term: Term | None) -> OrderValue:
    """A value whose `<` is SPARQL's order of terms; equal for terms that are level in it.

    >>> from graphtide.functions.values import integer_term
    >>> one, other = order_value(integer_term(1)), order_value(Literal(1.0))
    >>> one == other, order_value(NamedNode("ex:a")) < one, order_value(None) < one
    (True, True, True)
    """
    match term:
        case None:
            return (0,)
        case BlankNode():
            return (1,)
        case NamedNode():
            return 2, term.value
        case Literal():
            return 3, *_literal(term)
        case _:
            assert_never(term)


def total_order(term: Term | None) -> tuple[OrderValue, str]:
    """As `order_value`, with the N-Triples text to decide between terms that are level."""
    return order_value(term), "" if term is None else str(term)


def _literal(literal: Literal) -> OrderValue:
    value = value_of(literal)
    match value:
        case bool():
            return 1, value
        case Number():
            return (0, 0, 0) if value.is_nan else (0, 1, value.value)
        case Text(text, language):
            return 2, text, language or ""
        case DateTimeValue():
            return 3, value.datatype, timeline(value)
        case Duration():
            return 4, _length(value)
        case None:
            return 5, literal.datatype.value, literal.value
        case _:
            assert_never(value)


def _length(duration: Duration) -> Decimal:
    """A duration as the sum of its effects on four dates: less on all of them is less in sum."""
    total = Decimal(0)
    for start in REFERENCES:
        total = EXACT.add(total, timeline(add_duration(start, duration)))
    return total
