"""State and cost of a standing basic graph pattern, by class of query and by strategy.

One graph of people, with one query of each class: ground, star, loosely connected, connected. Each
strategy loads the graph, one triple per transaction; then triples are deleted
and inserted again, several times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import perf_counter
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

from benchmarks.harness import Benchmark, check_same
from benchmarks.report import Cell, Report, Table
from graphtide.graph import LiveGraph

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.kernel.batch import Ints
    from graphtide.plan.patterns import Strategy
    from graphtide.rdf.dictionary import TermDictionary

WITHOUT_QUADS: Final = "decomposed, no quads"
STRATEGIES: Final[tuple[str, ...]] = ("rete", "search", "decomposed", WITHOUT_QUADS)
"""Strategies on a graph that stores its quads, and the one that works without them."""

ATTRIBUTES: Final = {"status": 5, "region": 10, "grade": 10}
"""Attribute of a person -> number of its values, which are drawn evenly."""

KNOWN: Final = 5
"""How many people each person knows."""

FIXED: Final = 5
"""The first people have the values of their own number: the ground query asks for them."""

TRIPLES_PER_PERSON: Final = KNOWN + 1 + len(ATTRIBUTES)
MIN_PEOPLE: Final = 10
MIN_TRIPLES: Final = 900

BATCH: Final = 50_000
UPDATES, ROUNDS = 20_000, 5
"""Changes of one call, and how often it is made: the least time counts, for the first call also
fetches code and fills caches."""

PREFIX: Final = "PREFIX : <http://example.org/>\n"

QUERIES: Final[dict[str, str]] = {
    "ground": """SELECT * {
        :person1 :status :status1 . :person2 :status :status2 .
        :person3 :region :region3 . :person4 :grade :grade4 }""",
    "star": "SELECT ?x { ?x :status :status1 . ?x :region :region2 . ?x :grade :grade3 }",
    "loosely connected": """SELECT * {
        ?x :status :status1 . ?x :region :region2 . ?x :grade :grade3 .
        ?y :status :status2 . ?y :region :region3 . ?y :grade :grade4 .
        :person1 :status :status1 }""",
    "connected": """SELECT * {
        ?x :status :status1 . ?x :knows ?y . ?y :worksFor ?z . ?y :region :region2 .
        ?z :grade :grade3 }""",
}
"""Class -> query."""


@dataclass(frozen=True, slots=True)
class BgpTask:
    """A query of a class, under a strategy, over a graph of some size."""

    query_class: str
    strategy: str
    triples: int
    seed: int = 0

    def __str__(self) -> str:
        return f"{self.query_class}, {self.strategy}, {self.triples:,} triples"


@dataclass(frozen=True, slots=True)
class BgpResult:
    """Peak state, and microseconds per change.

    `entries` and `bytes` are the query's own; `quad_bytes` are those of the shared quads with the
    indexes that the query needs. `rows` is the size of the answer, and `delta_rows` the number of
    all rows that appeared or disappeared.
    """

    query_class: str
    strategy: str
    triples: int
    rows: int
    delta_rows: int
    entries: int
    bytes: int
    quad_bytes: int
    load_us: float
    update_us: float


def query_text(query_class: str) -> str:
    """The query of a class.

    >>> query_text("star").count("?x :")
    3
    """
    return PREFIX + QUERIES[query_class]


def make_tasks(sizes: Sequence[int] = (100_000, 1_000_000), seed: int = 0) -> list[BgpTask]:
    """Each class under each strategy, for each size: about so many triples."""
    return [
        BgpTask(query_class, strategy, size, seed)
        for size in sizes
        for query_class in QUERIES
        for strategy in STRATEGIES
    ]


# ---- the graph -----------------------------------------------------------------------------------


def people(triples: int, terms: TermDictionary, seed: int) -> Ints:
    """About `triples` distinct triples as rows `s, p, o` of ids, in random order.

    Who knows whom, who works for whom, and three attributes of each person.

    >>> from graphtide.rdf.dictionary import TermDictionary
    >>> people(90, TermDictionary(), 0).shape
    (90, 3)
    """
    random = np.random.default_rng(seed)
    count = max(triples // TRIPLES_PER_PERSON, MIN_PEOPLE)
    person = _ids(terms, [f"person{i}" for i in range(count)])
    parts = []
    for name, values in ATTRIBUTES.items():
        targets = _ids(terms, [f"{name}{i}" for i in range(values)])
        parts.append(_random_edges(person, _ids(terms, [name]), targets, random))
    knows, works_for = _ids(terms, ["knows"]), _ids(terms, ["worksFor"])
    # The k-th acquaintance is at a fixed distance, so that nobody is known twice.
    steps = random.choice(np.arange(1, count), KNOWN, replace=False).tolist()
    parts += [_rows(person, knows, np.roll(person, -step)) for step in steps]
    parts.append(_random_edges(person, works_for, person[: max(count // 10, 1)], random))
    rows = np.concatenate(parts)
    random.shuffle(rows)
    return rows


def _random_edges(
    person: Ints, predicate: Ints, targets: Ints, random: np.random.Generator
) -> Ints:
    chosen = random.integers(len(targets), size=len(person))
    chosen[:FIXED] = np.arange(FIXED) % len(targets)
    return _rows(person, predicate, targets[chosen])


def _rows(s: Ints, p: Ints, o: Ints) -> Ints:
    return np.stack([s, np.broadcast_to(p, s.shape), o], axis=1).astype(np.int32)


def _ids(terms: TermDictionary, names: Sequence[str]) -> Ints:
    column = pa.array([f"<http://example.org/{name}>" for name in names], pa.string())
    return np.asarray(terms.encode_column(column), np.int32)


# ---- measuring -----------------------------------------------------------------------------------


def measure(task: BgpTask) -> BgpResult:
    """Load a graph change by change, then delete and insert again.

    >>> measure(BgpTask("star", "decomposed", 900)).entries <= 100
    True
    """
    without_quads = task.strategy == WITHOUT_QUADS
    graph = LiveGraph(store="none" if without_quads else "all")
    rows = people(task.triples, graph.terms, task.seed)
    strategy: Strategy = "decomposed" if without_quads else task.strategy  # type: ignore[assignment]
    watch = graph.watch(query_text(task.query_class), strategy=strategy, history=1)
    load = _timed(graph, rows, np.ones(len(rows), np.int32))
    held, stats, forgotten = watch.cache_size(), graph.stats(), watch.evicted
    again, diff = _updates(rows, task.seed)
    update = min(_timed(graph, again, diff) for _ in range(ROUNDS))
    return BgpResult(
        query_class=task.query_class,
        strategy=task.strategy,
        triples=len(rows),
        rows=watch.count(),
        delta_rows=max(watch.evicted, forgotten),
        entries=held.entries,
        bytes=held.bytes,
        quad_bytes=stats.quad_bytes,
        load_us=load,
        update_us=update,
    )


def _updates(rows: Ints, seed: int) -> tuple[Ints, Ints]:
    """Deletes of random triples, each followed by its insert; and the diffs."""
    random = np.random.default_rng(seed + 1)
    chosen = random.choice(len(rows), min(UPDATES // 2, len(rows)), replace=False)
    return np.repeat(rows[chosen], 2, axis=0), np.tile(np.array([-1, 1], np.int32), len(chosen))


def _timed(graph: LiveGraph, rows: Ints, diff: Ints) -> float:
    """Microseconds per change, each of which is a transaction."""
    start = perf_counter()
    for at in range(0, len(rows), BATCH):
        part = rows[at : at + BATCH]
        graph.apply_ids(part[:, 0], part[:, 1], part[:, 2], diff=diff[at : at + BATCH])
    len(graph)  # applies what is buffered
    return (perf_counter() - start) / max(len(rows), 1) * 1e6


def check_agreement(results: Sequence[BgpResult]) -> None:
    """Raise unless all strategies had the same answers: figures of a wrong one mean nothing."""
    for key in dict.fromkeys((r.query_class, r.triples) for r in results):
        own = [r for r in results if (r.query_class, r.triples) == key]
        found = {r.strategy: (r.rows, r.delta_rows) for r in own}
        check_same(found, f"rows and changes of the {key[0]} query")


def report(results: Sequence[BgpResult]) -> Report:
    """State of the query, memory of the quads, and the cost of a change."""
    rows: list[dict[str, Cell]] = [
        {
            "triples": r.triples,
            "class": r.query_class,
            "strategy": r.strategy,
            "rows": r.rows,
            "entries": r.entries,
            "own kB": r.bytes / 1000,
            "quads kB": r.quad_bytes / 1000,
            "load µs": r.load_us,
            "update µs": r.update_us,
        }
        for r in results
    ]
    return Report([Table("Standing patterns, by class and strategy", rows)])


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=BgpTask,
    result=BgpResult,
    tasks=make_tasks,
    small={"sizes": (4500,)},
    measure=measure,
    report=report,
    warm_up=lambda task: [replace(task, triples=MIN_TRIPLES)],
    check=check_agreement,
)
