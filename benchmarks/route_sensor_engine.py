"""RouteSensor on Graphtide: three ways to load, then updates; every edge is a transaction."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute

from benchmarks import route_sensor
from benchmarks.harness import peak_rss_mb, time_each, timed
from graphtide.graph import LiveGraph
from graphtide.rdf.changes import CHANGE_SCHEMA

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from graphtide.engine.watch import Query
    from graphtide.kernel.batch import Ints
    from graphtide.rdf.term_tables import Strings

compute: Any = pyarrow.compute

PIECE: Final = 1 << 14
"""Texts that are made at a time."""


PREDICATES: Final = route_sensor.texts(route_sensor.RELATIONS)


def load_ids(
    task: route_sensor.RouteSensorTask, workload: route_sensor.EdgeWorkload
) -> route_sensor.RouteSensorResult:
    """Load from arrays of ids in one call; then the updates."""
    graph, watch = _graph()
    nodes = encode_pieces(graph, node_texts(workload))
    predicates = graph.terms.encode_column(PREDICATES)
    s, p, o = nodes[workload.s], predicates[workload.relation], nodes[workload.o]
    with timed() as load:
        graph.apply_ids(s, p, o)
    loaded = _result(task, workload, watch, load.seconds)
    spent = time_each(updates(graph, watch, workload))
    return replace(loaded, **route_sensor.update_percentiles(spent))


def load_strings(
    task: route_sensor.RouteSensorTask, workload: route_sensor.EdgeWorkload
) -> route_sensor.RouteSensorResult:
    """Load from an Arrow table of N-Triples strings."""
    graph, watch = _graph()
    table = change_table(workload)
    with timed() as load:
        graph.apply(table)
    return _result(task, workload, watch, load.seconds)


def load_calls(
    task: route_sensor.RouteSensorTask, workload: route_sensor.EdgeWorkload
) -> route_sensor.RouteSensorResult:
    """Load by one call of `insert` per edge, with N-Triples texts."""
    graph, watch = _graph()
    nodes = route_sensor.texts(workload.names())
    s = list(map(nodes.__getitem__, workload.s.tolist()))
    p = list(map(PREDICATES.__getitem__, workload.relation.tolist()))
    o = list(map(nodes.__getitem__, workload.o.tolist()))
    with timed() as load:
        insert = graph.insert
        for edge in zip(s, p, o, strict=True):
            insert(*edge)
        watch.delta()
    return _result(task, workload, watch, load.seconds)


def numbered_iris(start: str, count: int) -> Iterator[Strings]:
    """IRIs that end with a number, in pieces: all at once would be most of the peak memory.

    >>> [piece.to_pylist() for piece in numbered_iris("ex:a", 2)]
    [['<ex:a0>', '<ex:a1>']]
    """
    for begin in range(0, count, PIECE):
        numbers = pa.array(np.arange(begin, min(begin + PIECE, count))).cast(pa.string())
        yield compute.binary_join_element_wise(f"<{start}", numbers, ">", "")


def node_texts(workload: route_sensor.EdgeWorkload) -> Iterator[Strings]:
    """The IRI of every node, in order, in pieces.

    >>> from benchmarks.route_sensor import make_workload
    >>> workload = make_workload(400, seed=0)
    >>> pa.concat_arrays(node_texts(workload)).to_pylist() == route_sensor.texts(workload.names())
    True
    """
    for kind, count in zip(route_sensor.KINDS, workload.counts, strict=True):
        yield from numbered_iris(route_sensor.VOCABULARY + kind, count)


def encode_pieces(graph: LiveGraph, pieces: Iterator[Strings]) -> Ints:
    """The ids of texts, piece by piece."""
    return np.concatenate([graph.terms.encode_column(piece) for piece in pieces])


def change_table(workload: route_sensor.EdgeWorkload) -> pa.Table:
    """The edges as a columnar change log of inserts, one transaction each.

    >>> from benchmarks.route_sensor import make_workload
    >>> change_table(make_workload(400, seed=0)).column_names
    ['time', 'tx', 'diff', 's', 'p', 'o']
    """
    count = len(workload)
    nodes, predicates = pa.concat_arrays(node_texts(workload)), pa.array(PREDICATES)
    columns: list[Any] = [
        pa.array(np.zeros(count, np.int64)),
        pa.array(np.arange(count, dtype=np.int64)),
        pa.array(np.ones(count, np.int8)),
        nodes.take(workload.s),
        predicates.take(workload.relation),
        nodes.take(workload.o),
    ]
    return pa.table(columns, CHANGE_SCHEMA.names[:-1])


def updates(
    graph: LiveGraph, watch: Query, workload: route_sensor.EdgeWorkload
) -> Iterator[Callable[[], object]]:
    """Delete an edge, insert it again, and so on; the delta is read each time."""
    nodes = workload.names()
    for index in workload.updated.tolist():
        ends = route_sensor.texts([nodes[workload.s[index]], nodes[workload.o[index]]])
        edge = ends[0], PREDICATES[workload.relation[index]], ends[1]
        yield partial(_change, graph.delete, edge, watch)
        yield partial(_change, graph.insert, edge, watch)


def _change(change: Callable[..., None], edge: tuple[str, str, str], watch: Query) -> int:
    change(*edge)
    return len(watch.delta())


def _graph() -> tuple[LiveGraph, Query]:
    graph = LiveGraph()
    return graph, graph.watch(route_sensor.QUERY)


def _result(
    task: route_sensor.RouteSensorTask,
    workload: route_sensor.EdgeWorkload,
    watch: Query,
    seconds: float,
) -> route_sensor.RouteSensorResult:
    rate = round(len(workload) / seconds)
    return route_sensor.RouteSensorResult(
        task.engine, len(workload), peak_rss_mb(), watch.count(), rate
    )


LOADS: Final[
    dict[
        str,
        Callable[
            [route_sensor.RouteSensorTask, route_sensor.EdgeWorkload],
            route_sensor.RouteSensorResult,
        ],
    ]
] = {
    "ids": load_ids,
    "strings": load_strings,
    "calls": load_calls,
}
