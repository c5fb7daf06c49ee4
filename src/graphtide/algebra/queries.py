"""The query forms around a SELECT: ASK, CONSTRUCT and DESCRIBE.

Each holds the SELECT query whose rows decide its answer, so that whoever can follow the rows can
follow the answer.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar, assert_never, cast

from pyoxigraph import BlankNode, Literal

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.nodes import (
    DEFAULT_GRAPH,
    Aggregate,
    Bgp,
    Dataset,
    DefaultGraph,
    Distinct,
    Extend,
    Filter,
    GraphNames,
    Group,
    Join,
    MergedGraph,
    Node,
    Path,
    Project,
    SelectQuery,
    TriplePattern,
    Union,
    Values,
)
from graphtide.algebra.paths import OneOrMore, ToBlank
from graphtide.algebra.rename import rename
from graphtide.algebra.variables import schema

if TYPE_CHECKING:
    from pyoxigraph import NamedNode

    from graphtide.algebra.expressions import Expression
    from graphtide.rdf.terms import Term


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


# --- ASK, CONSTRUCT and DESCRIBE as SELECT queries: who can maintain rows can maintain them all.
#
# ASK         one row, ?answer: the count of the rows compared with zero
# CONSTRUCT   the distinct triples ?subject ?predicate ?object that the template gives
# DESCRIBE    the triples of each target, and of the blank nodes that hang on it

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


# --- Datasets: which graphs a query means by its default graph and its named graphs.
#
# https://www.w3.org/TR/sparql11-query/#specifyingDataset. FROM and FROM NAMED become part of the
# patterns themselves, so that nothing below has to know of them.

T = TypeVar("T")

EVERYTHING = MergedGraph(None)


def with_dataset(query: SelectQuery, *, union: bool = False) -> SelectQuery:
    """A query whose patterns name the graphs they are asked of.

    With `union`, the default graph of a query without FROM is the union of all graphs.
    """
    if query.dataset is not None:
        root = _Meant(query.dataset).part(query.root)
        return replace(query, root=root, dataset=None)
    if union:
        return replace(query, root=_everywhere(query.root))
    return query


def _default_graph(dataset: Dataset) -> NamedNode | MergedGraph:
    if len(dataset.default) == 1:
        return dataset.default[0]
    return MergedGraph(dataset.default)


class _Meant:
    """Works a dataset into a query's nodes, EXISTS in its expressions included."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset = dataset

    def part(self, part: T) -> T:
        match part:
            case Bgp() | Path() | GraphNames():
                return cast("T", self._leaf(part))
            case _:
                return _each_part(part, self.part)

    def _leaf(self, leaf: Bgp | Path | GraphNames) -> Node:
        """A leaf with its graphs named: nothing where a graph is none of the dataset's."""
        graphs = {leaf.var} if isinstance(leaf, GraphNames) else set(_graphs(leaf))
        named = self._dataset.named
        unknown = [g for g in graphs if not isinstance(g, Var | DefaultGraph) and g not in named]
        if unknown:
            return Values(schema(leaf), ())
        found: Node = leaf
        if not isinstance(leaf, GraphNames):
            found = _with_default(leaf, _default_graph(self._dataset))
        for graph in graphs:
            if isinstance(graph, Var):
                found = Filter(Call("IN", (graph, *map(Const, named))), found)
        return found


def _graphs(leaf: Bgp | Path) -> list[Any]:
    return [p.graph for p in leaf.patterns] if isinstance(leaf, Bgp) else [leaf.graph]


def _with_default(leaf: Bgp | Path, meant: NamedNode | MergedGraph) -> Bgp | Path:
    if isinstance(leaf, Path):
        return replace(leaf, graph=meant) if isinstance(leaf.graph, DefaultGraph) else leaf
    patterns = (
        replace(p, graph=meant) if isinstance(p.graph, DefaultGraph) else p for p in leaf.patterns
    )
    return Bgp(tuple(patterns))


def _everywhere(part: T) -> T:
    match part:
        case Bgp() | Path():
            return cast("T", _with_default(part, EVERYTHING))
        case _:
            return _each_part(part, _everywhere)


def _each_part(part: T, change: Any) -> T:  # noqa: ANN401 - any part of a node
    """A node or expression with each of its parts changed."""
    if isinstance(part, tuple):
        return cast("T", tuple(change(each) for each in part))
    if is_dataclass(part) and not isinstance(part, type | Var):
        parts = {f.name: change(getattr(part, f.name)) for f in fields(part)}
        return cast("T", replace(part, **parts))
    return part
