"""The query forms ASK, CONSTRUCT and DESCRIBE, and datasets, all reduced to SELECT.

Each form holds the SELECT query whose rows decide its answer; `as_select` makes one SELECT of both,
and `with_dataset` works FROM and FROM NAMED into its patterns. What is below maintains rows only.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar, assert_never

from pyoxigraph import BlankNode, Literal, NamedNode

from graphtide.algebra import nodes as alg
from graphtide.algebra.expressions import Call, Const, Expression, Var
from graphtide.algebra.paths import OneOrMore, ToBlank
from graphtide.algebra.traverse import rename, replaced
from graphtide.algebra.trees import balanced
from graphtide.algebra.variables import schema
from graphtide.rdf.terms import TripleTerm

if TYPE_CHECKING:
    from graphtide.rdf.terms import Term

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AskQuery:
    """https://www.w3.org/TR/sparql11-query/#ask: whether `select`, of no columns, has a row.

    d(ask): the answer flips when the number of rows leaves zero or comes back to it.
    """

    select: alg.SelectQuery


@dataclass(frozen=True, slots=True)
class ConstructQuery:
    """https://www.w3.org/TR/sparql11-query/#construct: a template filled in for each row.

    A blank node of the template stands as a `BlankNode` with its label. It becomes one blank node
    per distinct row, a function of its label and the row; `select` then has all visible variables
    as columns, otherwise only those of the template.
    d(construct): +1 where a triple's count rises from 0, -1 where it falls to 0.
    """

    select: alg.SelectQuery
    template: tuple[alg.TriplePattern, ...]


@dataclass(frozen=True, slots=True)
class DescribeQuery:
    """https://www.w3.org/TR/sparql11-query/#describe, as concise bounded descriptions.

    The description of a term is every triple of the default graph with it as subject, and the
    descriptions of the blank nodes that are objects there. `targets` are IRIs, and columns of
    `select`.
    """

    select: alg.SelectQuery
    targets: tuple[Var | NamedNode, ...]


Query = alg.SelectQuery | AskQuery | ConstructQuery | DescribeQuery


ANSWER = Var("answer")
TRIPLE = (Var("subject"), Var("predicate"), Var("object"))
HIDDEN_SPACE = "urn:graphtide:window:"
"""How the names of graphs begin that are no part of the dataset: windows, tables of SERVICE."""
TEMPLATE_NODE = "TEMPLATE NODE"
"""The function that makes the blank nodes of a template; a name that no query can spell."""


def as_select(query: Query) -> alg.SelectQuery:
    """A query of any form as a SELECT query whose rows determine its answer.

    ASK has one row, `?answer`. CONSTRUCT has the distinct triples `?subject ?predicate ?object` of
    its template. DESCRIBE has the triples of each target and of the blank nodes reachable from it.
    """
    match query:
        case alg.SelectQuery():
            return query
        case AskQuery(select):
            return _select(select, (ANSWER,), _ask(select.root), "ASK")
        case ConstructQuery(select, template):
            return _select(select, TRIPLE, _construct(select, template), "CONSTRUCT")
        case DescribeQuery(select, targets):
            return _select(select, TRIPLE, _describe(select, targets), "DESCRIBE")
        case _:
            assert_never(query)


def _select(
    select: alg.SelectQuery, columns: tuple[Var, ...], root: alg.Node, form: str
) -> alg.SelectQuery:
    return alg.SelectQuery(columns, root, select.text, select.dataset, form)


def _ask(root: alg.Node) -> alg.Node:
    rows = Var(".rows")
    counted = alg.Group(root, (), (alg.Aggregate(rows, "COUNT", None),))
    return alg.Project(alg.Extend(counted, ANSWER, Call(">", (rows, Const(Literal(0))))), (ANSWER,))


def _construct(select: alg.SelectQuery, template: tuple[alg.TriplePattern, ...]) -> alg.Node:
    names = {v: Var(f"_:{v.name}") for v in TRIPLE}
    root = alg.Project(select.root, select.variables)
    renamed, patterns = rename(root, names), rename(template, names)
    triples = [_instances(renamed, pattern, names) for pattern in patterns]
    return alg.Distinct(balanced(alg.Union, triples) if triples else alg.Values(TRIPLE, ()))


def _instances(root: alg.Node, pattern: alg.TriplePattern, names: dict[Var, Var]) -> alg.Node:
    """The triples that one pattern of a template gives, without those that are not valid RDF."""
    node = root
    for var, part in zip(TRIPLE, (pattern.subject, pattern.predicate, pattern.object), strict=True):
        node = alg.Extend(node, var, _part(part, root, names))
    subject, predicate, object_ = TRIPLE
    node_subject = Call("||", (Call("ISIRI", (subject,)), Call("ISBLANK", (subject,))))
    valid = Call("&&", (node_subject, Call("ISIRI", (predicate,))))
    return alg.Project(alg.Filter(Call("&&", (valid, Call("BOUND", (object_,)))), node), TRIPLE)


def _part(part: Var | Term, root: alg.Node, names: dict[Var, Var]) -> Expression:
    if isinstance(part, Var):
        return part
    if isinstance(part, TripleTerm):
        parts = (part.subject, part.predicate, part.object)
        return Call("TRIPLE", tuple(_part(each, root, names) for each in parts))
    if not isinstance(part, BlankNode):
        return Const(part)
    original = {new: old for old, new in names.items()}
    args: list[Expression] = [Const(Literal(part.value))]
    for var in schema(root):
        args += (Const(Literal(original.get(var, var).name)), var)
    return Call(TEMPLATE_NODE, tuple(args))


def _describe(select: alg.SelectQuery, targets: tuple[Var | Term, ...]) -> alg.Node:
    target, inside = Var(".target"), Var(".inside")
    rows = alg.Project(select.root, select.variables)
    sources: list[alg.Node] = [
        alg.Project(alg.Extend(rows, target, t), (target,))
        if isinstance(t, Var)
        else alg.Values((target,), ((t,),))
        for t in targets
    ]
    named = alg.Distinct(balanced(alg.Union, sources) if sources else alg.Values((target,), ()))
    nested = alg.Project(
        alg.Join(named, alg.Path(target, OneOrMore(ToBlank()), inside, alg.DEFAULT_GRAPH)),
        (inside,),
    )
    itself = alg.Project(alg.Extend(named, inside, target), (inside,))
    about = alg.Distinct(alg.Union(itself, nested))
    pattern = alg.Bgp((alg.TriplePattern(inside, TRIPLE[1], TRIPLE[2]),))
    triples = alg.Extend(alg.Join(about, pattern), TRIPLE[0], inside)
    return alg.Project(triples, TRIPLE)


EVERYTHING = alg.MergedGraph(None)


def with_dataset(query: alg.SelectQuery, *, union: bool = False) -> alg.SelectQuery:
    """Work FROM and FROM NAMED into the patterns, so that each names the graph it is matched in.

    https://www.w3.org/TR/sparql11-query/#specifyingDataset. With `union`, the default graph of a
    query without FROM is the union of all graphs.
    """
    if query.dataset is not None:
        return replace(query, root=_in_dataset(query.root, query.dataset), dataset=None)
    return replace(query, root=_with_default(query.root, EVERYTHING)) if union else query


def _in_dataset(root: alg.Node, dataset: alg.Dataset) -> alg.Node:
    return replaced(root, lambda part: _with_graphs(part, dataset))


def _with_graphs(leaf: object, dataset: alg.Dataset) -> alg.Node | None:
    """A leaf over the graphs of a dataset: no rows where it names a graph outside of it."""
    graphs: tuple[object, ...]
    match leaf:
        case alg.Bgp(patterns):
            graphs = tuple(dict.fromkeys(pattern.graph for pattern in patterns))
        case alg.Path():
            graphs = (leaf.graph,)
        case alg.GraphNames(var):
            graphs = (var,)
        case _:
            return None
    if any(not isinstance(g, Var | alg.DefaultGraph) and g not in dataset.named for g in graphs):
        if all(isinstance(g, NamedNode) and g.value.startswith(HIDDEN_SPACE) for g in graphs):
            return None
        return alg.Values(schema(leaf), ())
    default = dataset.default[0] if len(dataset.default) == 1 else alg.MergedGraph(dataset.default)
    node: alg.Node = _with_default(leaf, default)
    for graph in graphs:
        if isinstance(graph, Var):
            node = alg.Filter(Call("IN", (graph, *map(Const, dataset.named))), node)
    return node


def _with_default(part: T, graph: NamedNode | alg.MergedGraph) -> T:
    """A node with another graph in place of the default graph."""
    return replaced(part, lambda each: graph if isinstance(each, alg.DefaultGraph) else None)
