"""ASK, CONSTRUCT and DESCRIBE, answered from scratch.

https://www.w3.org/TR/sparql11-query/#QueryForms
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.expressions import Var
from graphtide.functions.templates import fill_template
from graphtide.rdf.term import BlankNode
from graphtide.testing.reference import evaluate_rows, visible_quads

if TYPE_CHECKING:
    from collections.abc import Iterable

    from graphtide.algebra.nodes import SelectQuery
    from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery
    from graphtide.rdf.term import Term
    from graphtide.testing.reference import Quad

    Triple = tuple[Term, Term, Term]


def evaluate_ask(query: AskQuery, quads: Iterable[Quad]) -> bool:
    """Whether the pattern has a solution.

    >>> from graphtide.lang.sparql import parse_any_query
    >>> evaluate_ask(parse_any_query("ASK { FILTER(1 = 1) }"), [])
    True
    """
    return bool(evaluate_rows(query.select, quads))


def evaluate_construct(query: ConstructQuery, quads: Iterable[Quad]) -> frozenset[Triple]:
    """The triples of the template for all rows.

    >>> from graphtide.lang.sparql import parse_any_query
    >>> text = "CONSTRUCT { ?x <ex:twice> ?x } { VALUES ?x { <ex:a> 1 } }"
    >>> [" ".join(map(str, t)) for t in evaluate_construct(parse_any_query(text), [])]
    ['<ex:a> <ex:twice> <ex:a>']
    """
    return frozenset(
        (s, p, o)
        for row in solutions_of(query.select, quads)
        for s, p, o, _ in fill_template(query.template, row)
    )


def evaluate_describe(query: DescribeQuery, quads: Iterable[Quad]) -> frozenset[Triple]:
    """The concise bounded descriptions of the targets, over the default graph."""
    known = list(quads)
    rows = solutions_of(query.select, known)
    waiting: list[Term] = []
    for target in query.targets:
        if isinstance(target, Var):
            waiting += [row[target] for row in rows if target in row]
        else:
            waiting.append(target)
    triples = [(s, p, o) for s, p, o, g in visible_quads(query.select.dataset, known) if g is None]
    found: set[Triple] = set()
    described: set[Term] = set()
    while waiting:
        term = waiting.pop()
        if term in described:
            continue
        described.add(term)
        about = [triple for triple in triples if triple[0] == term]
        found.update(about)
        waiting += [o for _, _, o in about if isinstance(o, BlankNode)]
    return frozenset(found)


def solutions_of(query: SelectQuery, quads: Iterable[Quad]) -> list[dict[Var, Term]]:
    """The rows of a query with their bound variables only."""
    return [
        {v: t for v, t in zip(query.variables, row, strict=True) if t is not None}
        for row in evaluate_rows(query, quads)
    ]
