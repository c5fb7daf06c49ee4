"""Endless events with fresh ids: a window, a rule, a pattern, and a graph that stores no quads.

Every event has an id that no other has, so what a graph holds is bounded only if terms are given
back.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Iterator

PARTS = ("window", "rule", "pattern", "none")

BATCH = 20_000
"""Events per call."""

PER_TICK = 20
"""Events of one tick."""

PLACES = 1000
"""Different objects of the events; all else of an event is its own."""

STREAM = "<http://example.org/stream>"

WINDOW = """PREFIX : <http://example.org/>
REGISTER ISTREAM :out AS SELECT ?event ?place
FROM NAMED WINDOW :w ON :stream [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?event :at ?place } }"""

RULE = """PREFIX : <http://example.org/>
EVENT Seen(?event, ?place) AS { ?event :at ?place }
RULE Again WHEN EVENT a = Seen(?first, ?place) EVENT b = Seen(?second, ?place) AFTER[1,5] a
  THEN INSERT { ?place :crowded true }"""

PATTERN = """PREFIX : <http://example.org/>
EVENT Seen(?event, ?place) AS { ?event :at ?place }
PATTERN Twice(?place) AS (Seen(?a, ?place) -> Seen(?b, ?place)) WITHIN 50s"""

QUERY = """PREFIX : <http://example.org/>
SELECT ?place (COUNT(*) AS ?many) { ?event :at ?place } GROUP BY ?place"""


class Held(NamedTuple):
    """What a graph holds: terms, and bytes by its own count."""

    terms: int
    term_bytes: int
    other_bytes: int


def event_batch(first: int, many: int, graph: str | None) -> ChangeBatch:
    """Events from a number on, each with an id of its own; into a graph that names a stream."""
    ids = np.arange(first, first + many)
    places = (ids * 7919) % PLACES
    return ChangeBatch(
        ids // PER_TICK,
        ids,
        np.ones(many, np.int8),
        pa.array([f"<http://example.org/event{n}>" for n in ids.tolist()]),
        pa.array(["<http://example.org/at>"] * many),
        pa.array([f"<http://example.org/place{n}>" for n in places.tolist()]),
        pa.array([graph] * many, pa.string()),
    )


def make_graph(part: str) -> LiveGraph:
    """The graph of a part, with what takes in the events."""
    graph = LiveGraph(store="none" if part == "none" else "all")
    if part == "none":
        graph.watch(QUERY)
        return graph
    graph.stream(STREAM)
    if part == "window":
        graph.watch(WINDOW)
    else:
        graph.run(Program.parse(RULE if part == "rule" else PATTERN))
    return graph


def feed(graph: LiveGraph, part: str, events: int) -> Iterator[Held]:
    """Feed events to the graph of a part; yields what it holds after each batch."""
    for first in range(0, events, BATCH):
        many = min(BATCH, events - first)
        if part == "none":  # what comes is deleted later, and twice as much is never matched
            graph.apply(_inserted_and_deleted(first, many))
        else:
            graph.apply(event_batch(first, many, STREAM))
        yield look(graph)


def _inserted_and_deleted(first: int, many: int) -> ChangeBatch:
    """Events that are inserted and deleted at once, each with a triple that no query matches."""
    come = event_batch(first, many, None)
    ids = np.arange(first, first + many)
    unmatched = pa.array([f'"note of {n}"' for n in ids.tolist()])
    says = pa.array(["<http://example.org/says>"] * many)
    end = np.full(many, int(come.time[-1]), np.int64)
    return ChangeBatch(
        np.concatenate([end] * 4),
        np.repeat(np.arange(4 * first, 4 * first + 4), many).astype(np.int64),
        np.repeat([1, 1, -1, -1], many).astype(np.int8),
        pa.concat_arrays([come.s] * 4),
        pa.concat_arrays([come.p, says, says, come.p]),
        pa.concat_arrays([come.o, unmatched, unmatched, come.o]),
        pa.nulls(4 * many, pa.string()),
    )


def look(graph: LiveGraph) -> Held:
    """What a graph holds now."""
    stats = graph.stats()
    return Held(stats.terms, stats.term_bytes, stats.quad_bytes + stats.query_bytes)
