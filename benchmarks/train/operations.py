"""The matches of a query in a run, in the order of the public benchmark, and their changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.datasets.queries import EXTRA_QUERIES, TrainQuery, train_query_text
from benchmarks.datasets.train import Scenario, vertex_numbers
from benchmarks.train import transformations
from graphtide.kernel.batch import DIFF, Ints, Longs
from graphtide.kernel.counts import DELTA_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from benchmarks.datasets.java_random import JavaRandom
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph
    from graphtide.rdf.dictionary import TermDictionary


class VertexNumbers:
    """The numbers of vertices by the ids of their terms, read from their IRIs once each.

    >>> from benchmarks.datasets.train import vertex
    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> terms = TermDictionary()
    >>> ids = terms.encode_column([vertex(17), vertex(4)])
    >>> VertexNumbers(terms).of(ids)
    array([17,  4])
    """

    def __init__(self, terms: TermDictionary) -> None:
        self._terms = terms
        self._numbers = np.zeros(1024, np.int64)

    def of(self, ids: Ints) -> Longs:
        """The numbers of these vertices."""
        if ids.size and int(ids.max()) >= len(self._numbers):
            more = np.zeros(max(int(ids.max()), len(self._numbers)), np.int64)
            self._numbers = np.concatenate([self._numbers, more])
        numbers = self._numbers[ids]
        new = np.unique(ids[numbers == 0])
        if len(new):
            self._numbers[new] = vertex_numbers(self._terms.decode_column(new))
            numbers = self._numbers[ids]
        return numbers


class SortedMatches:
    """The rows of a watch as ids, sorted by the vertices in their first columns.

    The watch must have an unbounded history. A round changes few rows of many: these are inserted
    in order, and the rest is not sorted again.
    """

    def __init__(self, watch: Query, keys: int, vertices: VertexNumbers) -> None:
        self.watch = watch
        self._keys = keys
        self._vertices = vertices
        self._rows: Ints = np.empty((0, len(watch.variables)), np.int32)
        self._packed = packed(self._rows)
        self._pending: list[Ints] = []

    def update(self) -> int:
        """Read the new deltas of the watch; the number of its rows."""
        self._pending += [net for net, _ in self.watch.drain()]
        return self.watch.count()

    def rows(self) -> Ints:
        """The rows as ids of terms, in order."""
        self.update()
        if self._pending:
            changed = np.concatenate(self._pending)
            self._pending = []
            self._merge(changed[:, DELTA_VALUES:], changed[:, DIFF])
        return self._rows

    def _merge(self, rows: Ints, diffs: Ints) -> None:
        """Consolidate changed rows, delete the removed ones and insert the added ones."""
        # Rows may also differ in values only, such as the old and the new length.
        numbers = rows.astype(np.int64)
        for at in range(self._keys):
            numbers[:, at] = self._vertices.of(rows[:, at])
        order = np.lexsort(numbers.T[::-1])
        rows, diffs, keys = rows[order], diffs[order], packed(numbers[order])
        starts = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]]))
        total = np.add.reduceat(diffs, starts)
        removed = np.searchsorted(self._packed, keys[starts[total < 0]])
        self._rows = np.delete(self._rows, removed, axis=0)
        self._packed = np.delete(self._packed, removed)
        added = starts[total > 0]
        indexes = np.searchsorted(self._packed, keys[added])
        self._rows = np.insert(self._rows, indexes, rows[added], axis=0)
        self._packed = np.insert(self._packed, indexes, keys[added])


def packed(rows: Ints | Longs) -> NDArray[np.bytes_]:
    """Rows of integers as byte strings with the same order.

    >>> keys = packed(np.array([[1, 256], [1, 255], [300, 0]]))
    >>> np.argsort(keys).tolist()
    [1, 0, 2]
    """
    wide = np.ascontiguousarray(rows, ">i4")
    return wide.view(f"S{4 * rows.shape[1]}").reshape(len(rows))


class QueryOperation:
    """The check of one query, and its repair or injection."""

    def __init__(
        self, graph: LiveGraph, query: TrainQuery, watch: Query, scenario: Scenario
    ) -> None:
        self.query = query
        self._graph = graph
        self._scenario = scenario
        self._vertices = VertexNumbers(graph.terms)
        self._found = SortedMatches(watch, query.keys, self._vertices)
        self._injectable: SortedMatches | None = None
        self._sensors: SortedMatches | None = None
        self._chosen: list[transformations.Match] = []

    @property
    def watch(self) -> Query:
        """The standing query that finds violations."""
        return self._found.watch

    def check(self) -> int:
        """The present number of violations."""
        return self._found.update()

    def choose(
        self,
        selection: transformations.MatchSelection,
        random: JavaRandom,
        context: transformations.TransformationContext,
    ) -> None:
        """Select matches, and look up what their transformations need."""
        if self.query in EXTRA_QUERIES:
            return
        matches = self._found if self._scenario == "repair" else self._injection_matches()
        chosen = selection.choose(matches.rows(), random)
        self._chosen = texts_of(self._graph, chosen)
        if self.query.name == "SwitchMonitored" and self._sensors is not None:
            context.sensors = _sensors_of(self._graph, self._sensors.rows(), chosen[:, 0])
        if self.query.name == "ConnectedSegments" and self._scenario == "repair":
            context.triples = triples_of(self._graph, chosen[:, 2])

    def changes(
        self, context: transformations.TransformationContext
    ) -> Iterator[transformations.TripleChange]:
        """The changes that transform the selected matches, in order."""
        for match in self._chosen:
            yield from transformations.TRANSFORMATIONS[self._scenario, self.query.name](
                match, context
            )

    def _injection_matches(self) -> SortedMatches:
        """Where errors can be injected: standing queries too, from the first round on."""
        if self._injectable is None:
            self._injectable = self._watch(self.query.inject_text, self.query.inject_keys)
            if self.query.name == "SwitchMonitored":
                self._sensors = self._watch(train_query_text("SwitchMonitoredEdges", "inject"), 2)
        return self._injectable

    def _watch(self, text: str, keys: int) -> SortedMatches:
        watch = self._graph.watch(text, strategy="search", history=None)
        return SortedMatches(watch, keys, self._vertices)


def texts_of(graph: LiveGraph, rows: Ints) -> list[transformations.Match]:
    """Rows of ids as texts of terms."""
    texts: Any = iter(graph.terms.decode_column(rows.reshape(-1)).to_pylist())
    return list(zip(*[texts] * rows.shape[1], strict=True))


def triples_of(graph: LiveGraph, vertices: Ints) -> dict[str, list[transformations.Triple]]:
    """All triples with one of these vertices as subject or object, by vertex."""
    found: dict[str, list[transformations.Triple]] = {
        vertex: [] for (vertex,) in texts_of(graph, vertices[:, None])
    }
    if found:
        quads = graph.quad_ids()
        touched = np.isin(quads[:, 0], vertices) | np.isin(quads[:, 2], vertices)
        for s, p, o in texts_of(graph, quads[touched, :3]):
            for end in {s, o} & found.keys():
                found[end].append((s, p, o))
    return found


def _sensors_of(graph: LiveGraph, edges: Ints, switches: Ints) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for switch, sensor in texts_of(graph, edges[np.isin(edges[:, 0], switches)]):
        found.setdefault(switch, []).append(sensor)
    return found
