"""Answers as bags of rows, by pyoxigraph and by the reference evaluator.

`oxigraph_agrees` tells for which queries pyoxigraph is an oracle. It is not for

- OPTIONALs that are not well-designed (see `well_designed`);
- GROUP BY inside EXISTS, where it groups before it looks at the outer row;
- LIMIT and OFFSET: the order of ties, and of terms without an order, is implementation-defined;
- aggregates except COUNT: minima of terms without an order, last digits of averages, order of
  concatenation, and SAMPLE are implementation-defined;
- COUNT of an expression: with an error among the values, its result is unbound;
- COUNT(DISTINCT *) with blank nodes in patterns, or sequences in paths: it counts values that are
  not in the rows;
- DESCRIBE, which is implementation-defined;
- FROM with several graphs: it counts a triple that is in two of them twice;
- sub-SELECT inside `GRAPH ?g`: it looks for its rows in all graphs;
- `*` and `?` from or to a constant: it connects that with itself only if it is in the graph;
- alternatives and negated sets in paths: it returns a pair once that is connected twice.
"""

from __future__ import annotations

import re
from collections import Counter
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import TYPE_CHECKING, Final, assert_never

from pyoxigraph import Literal, Quad, QueryBoolean, QuerySolutions, QueryTriples, Store

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Exists, Expression, Var
from graphtide.algebra.paths import OneOrMore
from graphtide.algebra.queries import ANSWER, TRIPLE, AskQuery, ConstructQuery
from graphtide.algebra.traverse import walk
from graphtide.algebra.variables import certain, mentioned
from graphtide.lang.sparql.parse import parse_any_query
from graphtide.rdf.terms import from_pyoxigraph
from oracles.reference import evaluate_rows
from oracles.reference_update import evaluate_ask, evaluate_construct, evaluate_describe
from oracles.transactions import XSD, terms_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

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
    """The row with numbers in canonical form, for oracles that change their lexical form.

    >>> by_value((("x", '"2.50"^^<http://www.w3.org/2001/XMLSchema#decimal>'),))
    (('x', '"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>'),)
    """
    return tuple((name, _number(text)) for name, text in row)


@lru_cache(maxsize=1 << 12)
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
    """The answer of pyoxigraph on a snapshot; None if it has more than `limit` rows, or fails.

    >>> from pyoxigraph import Store
    >>> oxigraph_answer("SELECT ?x { VALUES ?x { 1 1 } }", Store(), limit=1) is None
    True
    """
    bag: Bag = Counter()
    try:
        for count, row in enumerate(_rows(store.query(query)), 1):
            if limit is not None and count > limit:
                return None
            bag[row] += 1
    except RuntimeError:  # it tries a literal as the subject of a triple term
        return None
    return bag


def _rows(found: QuerySolutions | QueryBoolean | QueryTriples) -> Iterable[Row]:
    """The rows of a standing query of the same form."""
    if isinstance(found, QueryBoolean):
        return [row_of({ANSWER.name: Literal(bool(found))})]
    if isinstance(found, QueryTriples):
        return {_triple(*map(from_pyoxigraph, (t.subject, t.predicate, t.object))) for t in found}
    names = [variable.value for variable in found.variables]
    return (
        row_of({name: t and from_pyoxigraph(t) for name in names for t in [solution[name]]})
        for solution in found
    )


def _triple(*terms: Term) -> Row:
    return row_of({var.name: term for var, term in zip(TRIPLE, terms, strict=True)})


def reference_answer(query: str, quads: Iterable[Quad]) -> Bag:
    """The answer of the reference evaluator on a snapshot.

    >>> reference_answer("SELECT ?x { VALUES ?x { 'a' 'a' } }", [])
    Counter({(('x', '"a"'),): 2})
    """
    parsed = parse_any_query(query)
    there = [terms_of(quad) for quad in quads]
    if isinstance(parsed, AskQuery):
        return Counter({row_of({ANSWER.name: Literal(evaluate_ask(parsed, there))}): 1})
    if isinstance(parsed, alg.SelectQuery):
        names = [variable.name for variable in parsed.variables]
        rows = evaluate_rows(parsed, there)
        return Counter(row_of(dict(zip(names, row, strict=True))) for row in rows)
    if isinstance(parsed, ConstructQuery):
        return Counter(_triple(*triple) for triple in evaluate_construct(parsed, there))
    return Counter(_triple(*triple) for triple in evaluate_describe(parsed, there))


_SEVERAL_WAYS: Final = re.compile(r"(?<!\|)\|(?!\|)|!\(\^?:")
_ROWS_AND_NODES: Final = re.compile(
    r"COUNT\s*\(\s*DISTINCT\s*\*.*(_:|\[|/)", re.IGNORECASE | re.DOTALL
)

_SELECT_IN_GRAPH: Final = re.compile(r"GRAPH\s*\?\w+\s*\{.*SELECT", re.IGNORECASE | re.DOTALL)


def oxigraph_agrees(query: alg.SelectQuery) -> bool:
    """Whether the answer of pyoxigraph is defined by the recommendation, and correct.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> oxigraph_agrees(parse_query("SELECT (COUNT(?x) AS ?n) { ?x <ex:p> ?y }"))
    True
    >>> oxigraph_agrees(parse_query("SELECT (SAMPLE(?x) AS ?n) { ?x <ex:p> ?y }"))
    False
    """
    merged = query.dataset is not None and len(query.dataset.default) > 1
    if merged or query.form == "DESCRIBE":
        return False
    texts = (_SEVERAL_WAYS, _ROWS_AND_NODES, _SELECT_IN_GRAPH)
    if any(text.search(query.text) for text in texts):
        return False
    if not well_designed(query.root):
        return False
    return not any(map(_departs, walk(query.root)))


def _departs(part: object) -> bool:
    match part:
        case alg.Slice(limit=limit, offset=offset):
            return limit is not None or offset > 0
        case alg.Path(subject, path, object_):
            ends = isinstance(subject, Var) and isinstance(object_, Var)
            return not ends and not isinstance(path, OneOrMore)
        case Exists(pattern):
            # It ignores that a part of a triple term is bound outside to a triple term.
            return any(
                isinstance(inner, alg.Group)
                or (isinstance(inner, Call) and inner.name == "ISTRIPLE")
                for inner in walk(pattern)
            )
        case alg.Aggregate(function="COUNT", argument=argument):
            return (
                argument is not None and not argument.name[0].isalpha()
            )  # an invented variable: the argument is an expression
        case alg.Aggregate():
            return True
        case _:
            return False


_NOTHING = frozenset[Var]()


def well_designed(node: alg.Node, elsewhere: frozenset[Var] = _NOTHING) -> bool:
    """Whether no OPTIONAL binds variables that occur elsewhere, but not in its left side.

    The recommendation evaluates the right side of OPTIONAL independently. pyoxigraph substitutes
    the rows of the left side, which is equivalent for well-designed queries only. `elsewhere` are
    the variables of the rest of the query.

    >>> from graphtide.lang.sparql.parse import parse_query
    >>> well_designed(parse_query("SELECT * { ?a <x:p> ?b OPTIONAL { ?b <x:q> ?c } }").root)
    True
    >>> query = "SELECT * { ?a <x:p> ?c { ?a <x:p> ?b OPTIONAL { ?b <x:q> ?c } } }"
    >>> well_designed(parse_query(query).root)
    False
    """
    match node:
        case alg.Bgp() | alg.Values() | alg.GraphNames() | alg.Path():
            return True
        case alg.Join(left, right) | alg.Minus(left, right):
            return _both(left, right, elsewhere)
        case alg.LeftJoin(left, right, condition):
            exposed = mentioned(right) - certain(left)
            inside = condition is None or _in_expression(condition)
            return not exposed & elsewhere and inside and _both(left, right, elsewhere)
        case alg.Union(left, right):
            return well_designed(left, elsewhere) and well_designed(right, elsewhere)
        case alg.Filter(condition, child):
            return _in_expression(condition) and well_designed(child, elsewhere)
        case alg.Extend(child, _, expression):
            return _in_expression(expression) and well_designed(child, elsewhere)
        case alg.Project(child, _) | alg.Distinct(child) | alg.Group(child) | alg.Slice(child):
            return well_designed(child, elsewhere)
        case _:
            assert_never(node)


def _both(left: alg.Node, right: alg.Node, elsewhere: frozenset[Var]) -> bool:
    return well_designed(left, elsewhere | mentioned(right)) and well_designed(
        right, elsewhere | mentioned(left)
    )


def _in_expression(expression: Expression) -> bool:
    """Inside EXISTS the outer row is substituted anyway: only the body is checked."""
    match expression:
        case Var() | Const():
            return True
        case Call(_, args):
            return all(_in_expression(argument) for argument in args)
        case Exists(pattern):
            return well_designed(pattern)
        case _:
            assert_never(expression)
