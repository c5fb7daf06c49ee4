"""RouteSensor, three joins and a negation over random edges: Graphtide beside CLIPS and DuckDB.

Which sensors watch a switch on a route that does not require them? Four relations are loaded in
random order, and an engine keeps the answer up to date after every edge; then single edges are
deleted and inserted. Nothing here imports the engine: processes that measure peers must not load
it. The table of every kind of change has the figures; other benchmarks load the same edges.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypedDict

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

VOCABULARY: Final = "http://www.semanticweb.org/ontologies/2015/trainbenchmark#"

QUERY: Final = f"""PREFIX : <{VOCABULARY}>
SELECT ?route ?sensor ?swP ?sw WHERE {{
  ?route :follows ?swP . ?swP :target ?sw . ?sw :monitoredBy ?sensor .
  FILTER NOT EXISTS {{ ?route :requires ?sensor }}
}}"""

RELATIONS: Final = ("follows", "target", "monitoredBy", "requires")

INPUTS: Final = ("ids", "strings", "calls")
"""How edges are loaded into Graphtide."""

MIN_EDGES: Final = 100
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


def measure(task: RouteSensorTask) -> RouteSensorResult:
    """Load all edges, then update some of them."""
    workload = make_workload(task.edges, task.seed, task.updates)
    match task.engine:
        case "clipspy":
            from benchmarks.peers import clips_route_sensor

            return clips_route_sensor(task, workload)
        case "duckdb":
            from benchmarks.peers import duckdb_route_sensor

            return duckdb_route_sensor(task, workload)
        case _:
            from benchmarks import route_sensor_engine

            return route_sensor_engine.LOADS[task.engine](task, workload)
