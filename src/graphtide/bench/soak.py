"""Soak test: endless events with fresh ids; what a graph holds must not grow with their number.

Each part is a graph of its own: a window, a rule, a pattern, and a graph that stores no quads.
Every event has an id that no other has, so what is held is flat only if terms are given back.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa

from graphtide.bench import report as reports
from graphtide.bench.harness import Benchmark, peak_rss_mb
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

PARTS: Final = ("window", "rule", "pattern", "none")

BATCH: Final = 20_000
"""Events per call."""

PER_TICK: Final = 20
"""Events of one tick."""

PLACES: Final = 1000
"""Different objects of the events; all else of an event is its own."""

POINTS: Final = 25
"""How often memory is looked at, at most."""

WARM_UP_EVENTS: Final = 1000

STREAM: Final = "<http://example.org/stream>"

WINDOW: Final = """PREFIX : <http://example.org/>
REGISTER ISTREAM :out AS SELECT ?event ?place
FROM NAMED WINDOW :w ON :stream [RANGE PT10S STEP PT5S]
WHERE { WINDOW :w { ?event :at ?place } }"""

RULE: Final = """PREFIX : <http://example.org/>
EVENT Seen(?event, ?place) AS { ?event :at ?place }
RULE Again WHEN EVENT a = Seen(?first, ?place) EVENT b = Seen(?second, ?place) AFTER[1,5] a
  THEN INSERT { ?place :crowded true }"""

PATTERN: Final = """PREFIX : <http://example.org/>
EVENT Seen(?event, ?place) AS { ?event :at ?place }
PATTERN Twice(?place) AS (Seen(?a, ?place) -> Seen(?b, ?place)) WITHIN 50s"""

QUERY: Final = """PREFIX : <http://example.org/>
SELECT ?place (COUNT(*) AS ?many) { ?event :at ?place } GROUP BY ?place"""


@dataclass(frozen=True, slots=True)
class SoakTask:
    """A part, and how many events it takes."""

    part: str
    events: int


class SoakPoint(NamedTuple):
    """What is held after some events: resident memory, terms, and bytes by the graph's count."""

    events: int
    rss_mb: float
    terms: int
    term_bytes: int
    other_bytes: int


@dataclass(frozen=True, slots=True)
class SoakResult:
    """The curve of one part; a line of `curve` has the values of a `SoakPoint`."""

    part: str
    events: int
    seconds: float
    peak_mb: float
    curve: list[list[float]]

    def points(self) -> list[SoakPoint]:
        """The points of the curve."""
        return [SoakPoint(*line) for line in self.curve]  # type: ignore[arg-type] # JSON's numbers


def event_batch(first: int, many: int, graph: str | None, *, diff: int = 1) -> ChangeBatch:
    """Events from a number on, each with an id of its own; into a graph that names a stream.

    >>> event_batch(7, 1, None).s.to_pylist()
    ['<http://example.org/event7>']
    """
    ids = np.arange(first, first + many)
    places = (ids * 7919) % PLACES
    return ChangeBatch(
        ids // PER_TICK,
        ids,
        np.full(many, diff, np.int8),
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


def feed(graph: LiveGraph, part: str, events: int) -> Iterator[int]:
    """Feed events to the graph of a part, batch by batch; how many it has got."""
    for first in range(0, events, BATCH):
        many = min(BATCH, events - first)
        if part == "none":  # what comes is deleted later, and twice as much is never matched
            graph.apply(_inserted_and_deleted(first, many))
        else:
            graph.apply(event_batch(first, many, STREAM))
        yield first + many


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


def measure(task: SoakTask) -> SoakResult:
    """Feed the events of a part, and look at memory again and again."""
    graph = make_graph(task.part)
    curve: list[list[float]] = []
    wanted = {task.events * (n + 1) // POINTS for n in range(POINTS)}
    start, before = perf_counter(), 0
    for fed in feed(graph, task.part, task.events):
        if any(before < each <= fed for each in wanted):
            curve.append(list(look(graph, fed)))
        before = fed
    seconds = perf_counter() - start
    return SoakResult(task.part, task.events, seconds, peak_rss_mb(), curve)


def look(graph: LiveGraph, events: int) -> SoakPoint:
    """What a graph holds now."""
    stats = graph.stats()
    return SoakPoint(
        events, rss_mb(), stats.terms, stats.term_bytes, stats.quad_bytes + stats.query_bytes
    )


def rss_mb() -> float:
    """Resident memory of this process now, in MB of 10^6 bytes; the peak, where that is unknown.

    >>> rss_mb() > 1
    True
    """
    status = Path("/proc/self/statm")
    if not status.exists():
        return peak_rss_mb()
    return round(int(status.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


# --- report ---

_COLUMNS: Final[Sequence[reports.TableColumn[tuple[str, SoakPoint]]]] = [
    reports.TableColumn("part", lambda row: row[0], left=True),
    reports.TableColumn("events", lambda row: reports.number(row[1].events)),
    reports.TableColumn("MB resident", lambda row: reports.number(row[1].rss_mb)),
    reports.TableColumn("terms", lambda row: reports.number(row[1].terms)),
    reports.TableColumn("kB of terms", lambda row: reports.number(row[1].term_bytes // 1000)),
    reports.TableColumn(
        "kB of quads and queries", lambda row: reports.number(row[1].other_bytes // 1000)
    ),
]


def report(results: Sequence[SoakResult]) -> reports.BenchReport:
    """The curve of each part as a table, and as a diagram of memory over events."""
    rows = [(result.part, point) for result in results for point in result.points()]
    lines: list[tuple[str, Callable[[SoakPoint], float]]] = [
        ("MB resident", lambda point: point.rss_mb),
        ("terms", lambda point: point.terms),
    ]
    panels = [
        reports.Panel(
            label,
            reports.group_points(
                (part, point.events, max(value(point), 1)) for part, point in rows
            ),
            "events",
            label,
        )
        for label, value in lines
    ]
    notes = [f"{r.part}: {r.events / r.seconds:,.0f} events/s" for r in results if r.seconds]
    table = reports.make_table("What is held, after so many events", _COLUMNS, rows)
    return reports.BenchReport(
        reports.to_objects(results), [table], reports.Plot("Soak test", [panels]), notes
    )


def growth(points: Sequence[SoakPoint], value: Callable[[SoakPoint], float]) -> float:
    """By how much a value has grown from the first half of a curve to the second: of the peaks.

    >>> points = [SoakPoint(n, 0.0, terms, 0, 0) for n, terms in enumerate([5, 9, 7, 9])]
    >>> growth(points, lambda point: point.terms)
    1.0
    """
    middle = len(points) // 2
    return max(map(value, points[middle:])) / max(map(value, points[:middle]))


def make_tasks(events: int, parts: Sequence[str] = PARTS) -> list[SoakTask]:
    """A task for each part."""
    return [SoakTask(part, events) for part in parts]


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=SoakTask,
    result=SoakResult,
    measure=measure,
    report=report,
    warm_up=lambda task: [SoakTask(task.part, WARM_UP_EVENTS)],
    garbage_collection=True,
)
