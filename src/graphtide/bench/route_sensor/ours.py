"""Graphtide's own figures: three ways to load, then single updates.

Every edge is a transaction of its own in each of them.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.bench.memory import peak_rss_mb
from graphtide.bench.route_sensor import QUERY, RELATIONS
from graphtide.bench.route_sensor.timing import microseconds, time_each, timed
from graphtide.bench.route_sensor.workload import Workload, texts
from graphtide.engine.live_graph import LiveGraph
from graphtide.rdf.changes import CHANGE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.engine.watch import Watch

Figures = dict[str, float]

PREDICATES = texts(list(RELATIONS))


def load_ids(workload: Workload) -> Figures:
    """Load from id arrays in one call; then the updates."""
    graph, watch = _graph()
    nodes = graph.terms.encode_column(texts(workload.names()))
    predicates = graph.terms.encode_column(PREDICATES)
    s, p, o = nodes[workload.s], predicates[workload.relation], nodes[workload.o]
    with timed() as load:
        graph.apply_ids(s, p, o)
    figures = _figures(workload, watch, load.seconds)
    return figures | microseconds(time_each(updates(graph, watch, workload)))


def load_strings(workload: Workload) -> Figures:
    """Load from an Arrow table of N-Triples strings."""
    graph, watch = _graph()
    table = change_table(workload)
    with timed() as load:
        graph.apply(table)
    return _figures(workload, watch, load.seconds)


def load_calls(workload: Workload) -> Figures:
    """Load by one call of `insert` for each edge, with N-Triples texts."""
    graph, watch = _graph()
    nodes = texts(workload.names())
    s = list(map(nodes.__getitem__, workload.s.tolist()))
    p = list(map(PREDICATES.__getitem__, workload.relation.tolist()))
    o = list(map(nodes.__getitem__, workload.o.tolist()))
    with timed() as load:
        insert = graph.insert
        for edge in zip(s, p, o, strict=True):
            insert(*edge)
        watch.delta()
    return _figures(workload, watch, load.seconds)


def change_table(workload: Workload) -> pa.Table:
    """The edges as a columnar change log of inserts, one transaction each.

    >>> from graphtide.bench.route_sensor.workload import make_workload
    >>> change_table(make_workload(400, seed=0)).column_names
    ['time', 'tx', 'diff', 's', 'p', 'o']
    """
    count = len(workload)
    nodes, predicates = pa.array(texts(workload.names())), pa.array(PREDICATES)
    columns: list[Any] = [
        pa.array(np.zeros(count, np.int64)),
        pa.array(np.arange(count, dtype=np.int64)),
        pa.array(np.ones(count, np.int8)),
        nodes.take(workload.s),
        predicates.take(workload.relation),
        nodes.take(workload.o),
    ]
    return pa.table(columns, CHANGE_SCHEMA.names[:-1])


def updates(graph: LiveGraph, watch: Watch, workload: Workload) -> Iterator[Callable[[], object]]:
    """Delete an edge, insert it again, and so on; the delta is looked at each time."""
    nodes = workload.names()
    for place in workload.updated.tolist():
        ends = texts([nodes[workload.s[place]], nodes[workload.o[place]]])
        edge = ends[0], PREDICATES[workload.relation[place]], ends[1]
        yield partial(_change, graph.delete, edge, watch)
        yield partial(_change, graph.insert, edge, watch)


def _change(change: Callable[..., None], edge: tuple[str, str, str], watch: Watch) -> int:
    change(*edge)
    return len(watch.delta())


def _graph() -> tuple[LiveGraph, Watch]:
    graph = LiveGraph()
    return graph, graph.watch(QUERY)


def _figures(workload: Workload, watch: Watch, seconds: float) -> Figures:
    return {
        "edges": len(workload),
        "load_per_s": round(len(workload) / seconds),
        "rss_mb": peak_rss_mb(),
        "matches": watch.count(),
    }
