"""The links between segments, kept as a graph of their own for RouteLength to walk on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.datasets.queries import train_query_text
from graphtide.datasets.train import name

if TYPE_CHECKING:
    from graphtide.engine import LiveGraph
    from graphtide.engine.delta import DeltaRow

GRAPH = name("segments")


def keep_segment_links(graph: LiveGraph) -> None:
    """Put the links of now into the graph, and keep them in step with the segments.

    >>> from graphtide.engine import LiveGraph
    >>> graph = LiveGraph()
    >>> keep_segment_links(graph)
    >>> graph.insert(
    ...     name("_1"), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", name("Segment")
    ... )
    >>> (name("_1"), name("connectsTo"), name("_1"), GRAPH) in graph
    True
    """
    watch = graph.watch(train_query_text("SegmentLinks"), name="SegmentLinks")
    link = name("connectsTo")
    with graph.transaction() as tx:
        for ends in watch.table().to_pylist():
            tx.insert(ends["from"], link, ends["to"], GRAPH)

    @watch.on_appear
    def insert(row: DeltaRow) -> None:
        graph.insert(str(row.row["from"]), link, str(row.row["to"]), GRAPH)

    @watch.on_disappear
    def delete(row: DeltaRow) -> None:
        graph.delete(str(row.row["from"]), link, str(row.row["to"]), GRAPH)
