"""Answers as bags of rows that can be compared, whoever computed them."""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Final

from pyoxigraph import Literal, QueryBoolean, QuerySolutions, QueryTriples

from graphtide.algebra.nodes import Aggregate, SelectQuery, Slice
from graphtide.algebra.queries import ANSWER, TRIPLE, AskQuery, ConstructQuery
from graphtide.algebra.traverse import walk
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.testing.generators import well_designed
from graphtide.testing.reference import evaluate_rows
from graphtide.testing.reference_update import evaluate_ask, evaluate_construct, evaluate_describe
from graphtide.testing.transactions import XSD, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyoxigraph import Quad, Store

    from graphtide.rdf.terms import Term

Row = tuple[tuple[str, str], ...]
Bag = Counter[Row]

_EXACT: Final = (f"{XSD}integer", f"{XSD}decimal")
_BINARY: Final = (f"{XSD}double", f"{XSD}float")


def row_of(bindings: Mapping[str, Term | None]) -> Row:
    """The bound variables of a row with their terms as text, sorted.

    >>> from pyoxigraph import Literal
    >>> row_of({"b": Literal("x"), "a": None})
    (('b', '"x"'),)
    """
    return tuple(sorted((name, str(term)) for name, term in bindings.items() if term is not None))


def by_value(row: Row) -> Row:
    """The row with every number in one spelling of its value, for oracles that respell numbers.

    >>> by_value((("x", '"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'),))
    (('x', '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),)
    """
    return tuple((name, _number(text)) for name, text in row)


def _number(text: str) -> str:
    lexical, mark, datatype = text.rpartition("^^")
    if not mark:
        return text
    try:
        if datatype[1:-1] in _EXACT:
            value = Decimal(lexical[1:-1])
            return f'"{value.normalize() + 0:f}"^^{datatype}'
        if datatype[1:-1] in _BINARY:
            return f'"{float(lexical[1:-1])!r}"^^{datatype}'
    except (InvalidOperation, ValueError):
        return text
    return text


def oxigraph_answer(query: str, store: Store, *, limit: int | None = None) -> Bag | None:
    """The answer of pyoxigraph on a snapshot; None when it has more than `limit` rows.

    >>> from pyoxigraph import Store
    >>> oxigraph_answer("SELECT ?x { VALUES ?x { 1 1 } }", Store(), limit=1) is None
    True
    """
    bag: Bag = Counter()
    for count, row in enumerate(_rows(store.query(query)), 1):
        if limit is not None and count > limit:
            return None
        bag[row] += 1
    return bag


def _rows(found: QuerySolutions | QueryBoolean | QueryTriples) -> Iterable[Row]:
    """The rows that a standing query of the same form has."""
    if isinstance(found, QueryBoolean):
        return [row_of({ANSWER.name: Literal(bool(found))})]
    if isinstance(found, QueryTriples):
        return {_triple(t.subject, t.predicate, t.object) for t in found}
    names = [variable.value for variable in found.variables]
    return (row_of({name: solution[name] for name in names}) for solution in found)


def _triple(*terms: Term) -> Row:
    return row_of({var.name: term for var, term in zip(TRIPLE, terms, strict=True)})


def reference_answer(query: str, quads: Iterable[Quad]) -> Bag:
    """The plain reference evaluator's answer on a snapshot.

    >>> reference_answer("SELECT ?x { VALUES ?x { 'a' 'a' } }", [])
    Counter({(('x', '"a"'),): 2})
    """
    parsed = parse_any_query(query)
    there = [terms_of(quad) for quad in quads]
    if isinstance(parsed, AskQuery):
        return Counter({row_of({ANSWER.name: Literal(evaluate_ask(parsed, there))}): 1})
    if isinstance(parsed, SelectQuery):
        names = [variable.name for variable in parsed.variables]
        rows = evaluate_rows(parsed, there)
        return Counter(row_of(dict(zip(names, row, strict=True))) for row in rows)
    if isinstance(parsed, ConstructQuery):
        return Counter(_triple(*triple) for triple in evaluate_construct(parsed, there))
    return Counter(_triple(*triple) for triple in evaluate_describe(parsed, there))


# --- For which queries pyoxigraph is an oracle: those that it reads as the recommendation does.
#
# It is none for
#
# - OPTIONALs that are not well-designed (see `well_designed`);
# - ranges of an order: where rows tie, or terms have no order, each engine has its own;
# - aggregates but COUNT: the least of values without an order, the last digits of a mean, the order
#   of a concatenation, and any value at all (SAMPLE) are the engine's choice;
# - COUNT of an expression: with an error among the values it gives none;
# - COUNT(DISTINCT *) where patterns have blank nodes: it counts their values, which no row has;
# - DESCRIBE, which every engine does its own way;
# - FROM of several graphs: it counts a triple that is in two of them twice;
# - alternatives and negated sets in paths: it gives a pair once where `p|q`, or two predicates that
#   `!p` stands for, connect it twice.

_SEVERAL_WAYS: Final = re.compile(r"(?<!\|)\|(?!\|)|!\(\^?:")
_ROWS_AND_NODES: Final = re.compile(
    r"COUNT\s*\(\s*DISTINCT\s*\*.*(_:|\[)", re.IGNORECASE | re.DOTALL
)


def oxigraph_agrees(query: SelectQuery) -> bool:
    """Whether pyoxigraph's answer is the one that the recommendation asks for.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> oxigraph_agrees(parse_query("SELECT (COUNT(?x) AS ?n) { ?x <ex:p> ?y }"))
    True
    >>> oxigraph_agrees(parse_query("SELECT (SAMPLE(?x) AS ?n) { ?x <ex:p> ?y }"))
    False
    """
    merged = query.dataset is not None and len(query.dataset.default) > 1
    if merged or query.form == "DESCRIBE":
        return False
    if _SEVERAL_WAYS.search(query.text) or _ROWS_AND_NODES.search(query.text):
        return False
    if not well_designed(query.root):
        return False
    return not any(map(_departs, walk(query.root)))


def _departs(part: object) -> bool:
    match part:
        case Slice(limit=limit, offset=offset):
            return limit is not None or offset > 0
        case Aggregate(function="COUNT", argument=argument):
            return argument is not None and not argument.name[0].isalpha()  # an expression's
        case Aggregate():
            return True
        case _:
            return False
