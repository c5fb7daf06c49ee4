"""ASK, CONSTRUCT and DESCRIBE as SELECT queries: who can maintain rows can maintain them all.

ASK         one row, ?answer: the count of the rows compared with zero
CONSTRUCT   the distinct triples ?subject ?predicate ?object that the template gives
DESCRIBE    the triples of each target, and of the blank nodes that hang on it
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, assert_never

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.nodes import (
    DEFAULT_GRAPH,
    Aggregate,
    Bgp,
    Distinct,
    Extend,
    Filter,
    Group,
    Join,
    Path,
    Project,
    SelectQuery,
    TriplePattern,
    Union,
    Values,
)
from graphtide.algebra.paths import OneOrMore, ToBlank
from graphtide.algebra.queries import AskQuery, ConstructQuery, DescribeQuery
from graphtide.algebra.rename import rename
from graphtide.algebra.variables import schema
from graphtide.rdf.term import BlankNode, Literal

if TYPE_CHECKING:
    from graphtide.algebra.expressions import Expression
    from graphtide.algebra.nodes import Node
    from graphtide.algebra.queries import Query
    from graphtide.rdf.term import Term

ANSWER = Var("answer")
TRIPLE = (Var("subject"), Var("predicate"), Var("object"))
TEMPLATE_NODE = "TEMPLATE NODE"
"""The function that makes the blank nodes of a template; no query can call it by this name."""


def as_select(query: Query) -> SelectQuery:
    """A query of any form as one whose rows tell its answer."""
    match query:
        case SelectQuery():
            return query
        case AskQuery(select):
            return _turned(select, (ANSWER,), _asked(select.root), "ASK")
        case ConstructQuery(select, template):
            return _turned(select, TRIPLE, _constructed(select, template), "CONSTRUCT")
        case DescribeQuery(select, targets):
            return _turned(select, TRIPLE, _described(select, targets), "DESCRIBE")
        case _:
            assert_never(query)


def _turned(select: SelectQuery, columns: tuple[Var, ...], root: Node, form: str) -> SelectQuery:
    return SelectQuery(columns, root, select.text, select.dataset, form)


def _asked(root: Node) -> Node:
    rows = Var(".rows")
    counted = Group(root, (), (Aggregate(rows, "COUNT", None),))
    return Project(Extend(counted, ANSWER, Call(">", (rows, Const(Literal(0))))), (ANSWER,))


def _constructed(select: SelectQuery, template: tuple[TriplePattern, ...]) -> Node:
    names = {v: Var(f"_:{v.name}") for v in TRIPLE}
    root = Project(select.root, select.variables)
    renamed, patterns = rename(root, names), rename(template, names)
    filled = [_filled(renamed, pattern, names) for pattern in patterns]
    return Distinct(reduce(Union, filled) if filled else Values(TRIPLE, ()))


def _filled(root: Node, pattern: TriplePattern, names: dict[Var, Var]) -> Node:
    """The triples that one pattern of a template gives, those that are none left out."""
    node = root
    for var, part in zip(TRIPLE, (pattern.subject, pattern.predicate, pattern.object), strict=True):
        node = Extend(node, var, _part(part, root, names))
    subject, predicate, object_ = TRIPLE
    legal = Call("&&", (Call("!", (Call("ISLITERAL", (subject,)),)), Call("ISIRI", (predicate,))))
    return Project(Filter(Call("&&", (legal, Call("BOUND", (object_,)))), node), TRIPLE)


def _part(part: Var | Term, root: Node, names: dict[Var, Var]) -> Expression:
    if isinstance(part, Var):
        return part
    if not isinstance(part, BlankNode):
        return Const(part)
    original = {new: old for old, new in names.items()}
    cells: list[Expression] = [Const(Literal(part.value))]
    for var in schema(root):
        cells += (Const(Literal(original.get(var, var).name)), var)
    return Call(TEMPLATE_NODE, tuple(cells))


def _described(select: SelectQuery, targets: tuple[Var | Term, ...]) -> Node:
    target, inside = Var(".target"), Var(".inside")
    rows = Project(select.root, select.variables)
    found: list[Node] = [
        Project(Extend(rows, target, t), (target,))
        if isinstance(t, Var)
        else Values((target,), ((t,),))
        for t in targets
    ]
    named = Distinct(reduce(Union, found) if found else Values((target,), ()))
    hanging = Project(
        Join(named, Path(target, OneOrMore(ToBlank()), inside, DEFAULT_GRAPH)), (inside,)
    )
    itself = Project(Extend(named, inside, target), (inside,))
    about = Distinct(Union(itself, hanging))
    pattern = Bgp((TriplePattern(inside, TRIPLE[1], TRIPLE[2]),))
    triples = Extend(Join(about, pattern), TRIPLE[0], inside)
    return Project(triples, TRIPLE)
