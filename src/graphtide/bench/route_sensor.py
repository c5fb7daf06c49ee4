"""RouteSensor, three joins and a negation over random edges: Graphtide beside CLIPS and DuckDB.

Which sensors watch a switch on a route that does not require them? Four relations are loaded in
random order, and an engine keeps the answer up to date after every edge; then single edges are
deleted and inserted. Nothing here imports the engine: processes that measure peers must not load
it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, TypedDict

import numpy as np

from graphtide.bench.harness import Benchmark
from graphtide.bench.report import BenchReport, make_table, number, text_columns
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray
    from rich.table import Table

VOCABULARY: Final = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"

QUERY: Final = f"""PREFIX : <{VOCABULARY}>
SELECT ?route ?sensor ?swP ?sw WHERE {{
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS {{ ?route :requires ?sensor }}
}}"""

RELATIONS: Final = ("follows", "target", "monitoredBy", "requires")

INPUTS: Final = ("ids", "strings", "calls")
"""How edges are loaded into Graphtide."""

PEERS: Final = {"clipspy": "clips", "duckdb": "duckdb"}
"""Peer -> its Python module."""

MIN_EDGES: Final = 100
WARM_EDGES, WARM_UPDATES = 2000, 20
UPDATES: Final = 1000

REQUIRED: Final = 0.95
"""Share of chains whose route requires the sensor: they are not matches."""

KINDS: Final = ("route", "position", "switch", "sensor")
SHARES: Final = (60, 3, 3, 6)
"""For a size of N: N/60 routes, N/3 switch positions, N/3 switches, N/6 sensors."""


@dataclass(frozen=True, slots=True)
class RouteSensorTask:
    """An engine (or a way to load edges into Graphtide), and the size of the workload."""

    engine: str
    edges: int
    seed: int = 0
    updates: int = UPDATES

    def __str__(self) -> str:
        source = f"from {self.engine}" if self.engine in INPUTS else f"in {self.engine}"
        return f"{self.edges:,} edges {source}"


@dataclass(frozen=True, slots=True)
class RouteSensorResult:
    """Figures of an engine; None is what was not measured."""

    engine: str
    edges: int
    rss_mb: float
    matches: int
    load_per_s: int | None = None
    update_us_median: float | None = None
    update_us_p95: float | None = None
    update_us_mean: float | None = None
    update_us_p99: float | None = None


class UpdatePercentiles(TypedDict):
    """Microseconds per update."""

    update_us_median: float
    update_us_p95: float
    update_us_mean: float
    update_us_p99: float


def update_percentiles(spent: list[float]) -> UpdatePercentiles:
    """Median, 95th and 99th percentile, and mean of some seconds.

    >>> update_percentiles([1e-6, 2e-6, 3e-6])["update_us_p95"]
    2.9
    """
    micros = np.array(spent) * 1e6
    median, p95, p99 = np.percentile(micros, [50, 95, 99])
    return {
        "update_us_median": round(float(median), 2),
        "update_us_p95": round(float(p95), 2),
        "update_us_mean": round(float(micros.mean()), 2),
        "update_us_p99": round(float(p99), 2),
    }


# ---- the workload --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, eq=False)
class EdgeWorkload:
    """Edges in load order, as integers: `relation` into `RELATIONS`, `s` and `o` into the nodes.

    `updated` are indexes of edges that are deleted and inserted again after the load.
    """

    counts: tuple[int, int, int, int]
    relation: NDArray[np.int8]
    s: NDArray[np.int32]
    o: NDArray[np.int32]
    updated: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.relation)

    def names(self) -> list[str]:
        """The name of every node: its kind and its number.

        >>> make_workload(400, seed=0).names()[:2]
        ['route0', 'route1']
        """
        return [
            f"{kind}{number}"
            for kind, count in zip(KINDS, self.counts, strict=True)
            for number in range(count)
        ]


def make_workload(edges: int, seed: int, updates: int = UPDATES) -> EdgeWorkload:
    """About `edges` random edges; equal seeds give equal edges.

    >>> workload = make_workload(13_000, seed=0)
    >>> abs(len(workload) - 13_000) < 100, workload.counts
    (True, (164, 3291, 3291, 1645))
    """
    size = round(edges * 3 / (3 + REQUIRED))
    routes, positions, switches, sensors = (max(1, size // share) for share in SHARES)
    random = np.random.default_rng(seed)
    route_of = random.integers(routes, size=positions)
    switch_of = random.integers(switches, size=positions)
    sensor_of = random.integers(sensors, size=switches)
    chains = np.stack([route_of, sensor_of[switch_of]], axis=1)
    required = np.unique(chains[random.random(positions) < REQUIRED], axis=0)
    first = np.cumsum([0, routes, positions, switches])  # the index of each kind's first node
    numbers = np.arange(positions), np.arange(switches)
    parts = [
        (first[0] + route_of, first[1] + numbers[0]),
        (first[1] + numbers[0], first[2] + switch_of),
        (first[2] + numbers[1], first[3] + sensor_of),
        (first[0] + required[:, 0], first[3] + required[:, 1]),
    ]
    relation = np.repeat(np.arange(4, dtype=np.int8), [len(s) for s, _ in parts])
    order = random.permutation(len(relation))
    s, o = (np.concatenate([part[side] for part in parts])[order] for side in (0, 1))
    updated = random.choice(len(order), size=min(updates // 2, len(order)), replace=False)
    return EdgeWorkload(
        (routes, positions, switches, sensors),
        relation[order],
        s.astype(np.int32),
        o.astype(np.int32),
        updated,
    )


def texts(names: Sequence[str]) -> list[str]:
    """Names as IRIs in N-Triples syntax.

    >>> texts(["route0"])
    ['<http://www.semanticweb.org/ontologies/2015/trainbenchmark#route0>']
    """
    return [f"<{VOCABULARY}{name}>" for name in names]


# ---- measuring -----------------------------------------------------------------------------------


def is_installed(peer: str) -> bool:
    """Whether the module of a peer is installed."""
    return find_spec(PEERS[peer]) is not None


def make_tasks(edges: int, seed: int, *, peers: bool) -> list[RouteSensorTask]:
    """All ways to load, one of them also at a tenth of the size, and the installed peers.

    >>> [str(task) for task in make_tasks(1000, 0, peers=False)][-1]
    '100 edges from ids'
    """
    tasks = [RouteSensorTask(name, edges, seed) for name in INPUTS]
    tasks.append(RouteSensorTask("ids", max(1, edges // 10), seed))
    if peers:
        tasks += [RouteSensorTask(name, edges, seed) for name in PEERS if is_installed(name)]
    return tasks


def measure(task: RouteSensorTask) -> RouteSensorResult:
    """Load all edges, then update some of them."""
    workload = make_workload(task.edges, task.seed, task.updates)
    match task.engine:
        case "clipspy":
            from graphtide.bench.peers import clips_route_sensor

            return clips_route_sensor(task, workload)
        case "duckdb":
            from graphtide.bench.peers import duckdb_route_sensor

            return duckdb_route_sensor(task, workload)
        case _:
            from graphtide.bench import route_sensor_engine

            return route_sensor_engine.LOADS[task.engine](task, workload)


def _small(task: RouteSensorTask) -> RouteSensorTask:
    return replace(task, edges=WARM_EDGES, updates=WARM_UPDATES)


def check_agreement(results: Sequence[RouteSensorResult]) -> None:
    """Raise unless all engines found the same number of matches in the same edges.

    >>> ids = RouteSensorResult("ids", 9, 1.0, matches=3)
    >>> check_agreement([ids, RouteSensorResult("duckdb", 9, 1.0, matches=4)])
    Traceback (most recent call last):
        ...
    graphtide.errors.GraphtideError: the engines disagree on the matches: ids 3, duckdb 4
    """
    most = max(result.edges for result in results)
    found = {result.engine: result.matches for result in results if result.edges == most}
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{name} {matches}" for name, matches in found.items())
        raise GraphtideError(f"the engines disagree on the matches: {listed}")


# ---- reporting -----------------------------------------------------------------------------------


class RouteSensorFigures:
    """The results by engine."""

    def __init__(self, results: Sequence[RouteSensorResult]) -> None:
        most = max(result.edges for result in results)
        self.by_engine = {result.engine: result for result in results if result.edges == most}
        self.ids = self.by_engine["ids"]
        (self.small,) = (result for result in results if result.edges < most)
        self.clips = self.by_engine.get("clipspy")
        self.duckdb = self.by_engine.get("duckdb")

    def load_per_s(self, name: str) -> int:
        """The load rate of a way to load."""
        return self.by_engine[name].load_per_s or 0

    @property
    def cost_ratio(self) -> float:
        """Cost of an edge, relative to a graph with a tenth of the edges."""
        return round((self.small.load_per_s or 0) / self.load_per_s("ids"), 2)


def report(results: Sequence[RouteSensorResult], *, peers: bool = True) -> BenchReport:
    """One JSON object, and a table with ratios to CLIPS; notes if `peers` are missing."""
    figures = RouteSensorFigures(results)
    absent = [name for name in PEERS if peers and not is_installed(name)]
    notes = [f"{name} was left out: pip install 'graphtide[bench]'" for name in absent]
    return BenchReport(_object(figures), [_table(figures)], notes=notes)


def _object(figures: RouteSensorFigures) -> dict[str, Any]:
    ids, clips, duckdb = figures.ids, figures.clips, figures.duckdb
    peers: dict[str, dict[str, Any]] = {}
    if clips is not None:
        peers["clipspy"] = {
            "load_calls_per_s": clips.load_per_s,
            "update_us_median": clips.update_us_median,
            "rss_mb": clips.rss_mb,
            "matches": clips.matches,
        }
    if duckdb is not None:
        peers["duckdb"] = {
            "update_us_median": duckdb.update_us_median,
            "matches": duckdb.matches,
        }
    return {
        "edges": ids.edges,
        **{f"load_{name}_per_s": figures.load_per_s(name) for name in INPUTS},
        "update_us_median": ids.update_us_median,
        "update_us_p95": ids.update_us_p95,
        "update_us_mean": ids.update_us_mean,
        "update_us_p99": ids.update_us_p99,
        "rss_mb": ids.rss_mb,
        "matches": ids.matches,
        "peers": peers,
        "scaling": {
            "edges": figures.small.edges,
            "load_ids_per_s": figures.small.load_per_s,
            "cost_ratio": figures.cost_ratio,
        },
    }


def _table(figures: RouteSensorFigures) -> Table:
    ids, clips, duckdb = figures.ids, figures.clips, figures.duckdb
    clips_load = None if clips is None else clips.load_per_s
    rows: list[list[str]] = []
    for way, aim in (("ids", "≥ 10×"), ("strings", ""), ("calls", "≥ 4×")):
        rate = figures.load_per_s(way)
        peer = number(clips_load) if way == "calls" else ""
        label = f"load from {way}, edges/s"
        rows.append([label, number(rate), peer, "", _times(rate, clips_load), aim])
    for key, label, aim in (
        ("update_us_median", "update, median µs", "< 0.5×"),
        ("update_us_p95", "update, p95 µs", ""),
        ("rss_mb", "peak memory, MB", "< 1×"),
        ("matches", "matches", "equal"),
    ):
        ours, theirs, third = (getattr(each, key, None) for each in (ids, clips, duckdb))
        times = _times(ours, theirs)
        rows.append([label, number(ours), number(theirs), number(third), times, aim])
    rows += [
        [f"peak memory from {way}, MB", number(figures.by_engine[way].rss_mb)]
        for way in ("strings", "calls")
    ]
    label = f"cost per edge / at {figures.small.edges:,} edges"
    rows.append([label, f"{figures.cost_ratio:.2f}×", "", "", "", "≤ 2×"])
    title = f"RouteSensor, {ids.edges:,} edges (ratio: against clipspy)"
    headers = ("", "graphtide", "clipspy", "DuckDB", "ratio", "aim")
    return make_table(title, text_columns(headers), rows)


def _times(ours: float | None, theirs: float | None) -> str:
    return f"{ours / theirs:.2f}×" if ours is not None and theirs else ""


BENCHMARK: Final = Benchmark(
    module=__name__,
    task=RouteSensorTask,
    result=RouteSensorResult,
    measure=measure,
    report=report,
    warm_up=lambda task: [_small(task)],
    prepare=lambda tasks: [_small(task) for task in tasks[: len(INPUTS)]],
    check=check_agreement,
    is_peer=lambda task: task.engine in PEERS,
    garbage_collection=True,
)
