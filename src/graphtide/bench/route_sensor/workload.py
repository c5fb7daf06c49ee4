"""The edges of the RouteSensor benchmark."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from graphtide.bench.route_sensor import VOCABULARY

if TYPE_CHECKING:
    from numpy.typing import NDArray

REQUIRED = 0.95
"""The share of chains whose route requires the sensor, and which are no match."""

KINDS = ("route", "position", "switch", "sensor")
SHARES = (60, 3, 3, 6)
"""With N as the measure of size: N/60 routes, N/3 switch positions, N/3 switches, N/6 sensors."""


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """Edges in load order, as numbers: `relation` into `RELATIONS`, `s` and `o` into the nodes.

    `updated` are places of edges that are deleted and inserted again once everything is loaded.
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


def make_workload(edges: int, seed: int, updates: int = 1000) -> Workload:
    """About `edges` random edges; the same ones for the same seed.

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
    first = np.cumsum([0, routes, positions, switches])  # the number of each kind's first node
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
    return Workload(
        (routes, positions, switches, sensors),
        relation[order],
        s.astype(np.int32),
        o.astype(np.int32),
        updated,
    )


def texts(names: list[str]) -> list[str]:
    """Names as IRIs in N-Triples syntax.

    >>> texts(["route0"])
    ['<http://www.semanticweb.org/ontologies/2015/trainbenchmark#route0>']
    """
    return [f"<{VOCABULARY}{name}>" for name in names]
