"""One query at work in a run: its matches, what is chosen of them, and the changes made of that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from graphtide.bench.train.matches import Matches, VertexNumbers
from graphtide.bench.train.plans import UNBOUNDED
from graphtide.bench.train.transformations import TRANSFORMATIONS, Change, Match, Yard
from graphtide.datasets.queries import EXTRA_QUERIES, train_query_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from graphtide.bench.train.selection import Selection
    from graphtide.datasets.java_random import JavaRandom
    from graphtide.datasets.queries import TrainQuery
    from graphtide.datasets.train import Scenario
    from graphtide.engine import LiveGraph, Watch
    from graphtide.kernel.batch import Ints


class Operation:
    """The check of one query, and its repair or injection."""

    def __init__(
        self, graph: LiveGraph, query: TrainQuery, watch: Watch, scenario: Scenario
    ) -> None:
        self.query = query
        self._graph = graph
        self._scenario = scenario
        self._vertices = VertexNumbers(graph.terms)
        self._found = Matches(watch, query.keys, self._vertices)
        self._places: Matches | None = None
        self._sensors: Matches | None = None
        self._chosen: list[Match] = []

    @property
    def watch(self) -> Watch:
        """The standing query that finds violations."""
        return self._found.watch

    def check(self) -> int:
        """How many violations there are now."""
        return self._found.take()

    def choose(self, selection: Selection, random: JavaRandom, yard: Yard) -> None:
        """Choose matches, and look up what changing them needs to know."""
        if self.query in EXTRA_QUERIES:
            return
        places = self._found if self._scenario == "repair" else self._injection_places()
        chosen = selection.choose(places.rows(), random)
        self._chosen = texts_of(self._graph, chosen)
        if self.query.name == "SwitchMonitored" and self._sensors is not None:
            yard.sensors = _sensors_of(self._graph, self._sensors.rows(), chosen[:, 0])
        if self.query.name == "ConnectedSegments" and self._scenario == "repair":
            yard.triples = triples_of(self._graph, chosen[:, 2])

    def changes(self, yard: Yard) -> Iterator[Change]:
        """The changes that transform the chosen matches, in order."""
        for match in self._chosen:
            yield from TRANSFORMATIONS[self._scenario, self.query.name](match, yard)

    def _injection_places(self) -> Matches:
        """Where errors can be put in: standing queries too, from the first round on."""
        if self._places is None:
            self._places = self._watch(self.query.inject_text, self.query.inject_keys)
            if self.query.name == "SwitchMonitored":
                self._sensors = self._watch(train_query_text("SwitchMonitoredEdges", "inject"), 2)
        return self._places

    def _watch(self, text: str, keys: int) -> Matches:
        watch = self._graph.watch(text, strategy="search", history=UNBOUNDED)
        return Matches(watch, keys, self._vertices)


def texts_of(graph: LiveGraph, rows: Ints) -> list[Match]:
    """Rows of ids as texts of terms."""
    columns: list[list[Any]] = [
        graph.terms.decode_column(np.ascontiguousarray(column)).to_pylist() for column in rows.T
    ]
    return list(zip(*columns, strict=True))


def triples_of(graph: LiveGraph, vertices: Ints) -> dict[str, list[tuple[str, str, str]]]:
    """All triples with one of these vertices at their ends, by vertex."""
    found: dict[str, list[tuple[str, str, str]]] = {
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
