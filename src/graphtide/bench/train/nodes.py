"""What each node of a query's plan holds and has sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from graphtide.plan.describe import describe
from graphtide.plan.physical import nodes

if TYPE_CHECKING:
    from graphtide.engine.live_graph import LiveGraph
    from graphtide.engine.watch import Watch


class NodeFigures(TypedDict):
    """A node in words, the rows it stores now, and the rows it has passed on for changes."""

    node: str
    stored: int
    messages: int


def node_figures(graph: LiveGraph, watch: Watch) -> list[NodeFigures]:
    """The figures of all nodes, inputs before what reads them. Shared nodes count for every query.

    >>> from graphtide.engine.live_graph import LiveGraph
    >>> graph = LiveGraph()
    >>> watch = graph.watch("SELECT ?a { ?a <http://example.org/p> ?b }")
    >>> graph.insert("<ex:a>", "<http://example.org/p>", "<ex:b>")
    >>> [(each["node"], each["messages"]) for each in node_figures(graph, watch)]
    [('input ?a :p ?b', 1), ('project ?a', 1)]
    """
    graph.settle()
    network = graph.standing.network
    sizes, messages = network.sizes(watch.places), network.messages(watch.places)
    return [
        NodeFigures(node=describe(node), stored=sum(sizes[node].values()), messages=messages[node])
        for node in nodes(watch.plan.root)
    ]
