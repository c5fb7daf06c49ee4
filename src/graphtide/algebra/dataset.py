"""Datasets: which graphs a query means by its default graph and its named graphs.

https://www.w3.org/TR/sparql11-query/#specifyingDataset. FROM and FROM NAMED become part of the
patterns themselves, so that nothing below has to know of them.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.nodes import (
    Bgp,
    Dataset,
    DefaultGraph,
    Filter,
    GraphNames,
    MergedGraph,
    Node,
    Path,
    SelectQuery,
    Values,
)
from graphtide.algebra.variables import schema

if TYPE_CHECKING:
    from graphtide.rdf.term import NamedNode

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
