"""The query plans of "Incremental graph queries", section 5.3, as they are written there.

Each layout is the same query in another order of joins, antijoin and selection. C of RouteSensor,
and E and F of SemaphoreNeighbor, join relations that share no attribute: a Cartesian product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from graphtide.algebra.relational import Labels, Relation, different
from graphtide.datasets.train import NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

RAIL = Labels(NAMESPACE)


def _edges(source: str, label: str, target: str, ends: tuple[str, str]) -> Relation:
    return RAIL.edges(source, label, target, source_label=ends[0], target_label=ends[1])


FOLLOWS = _edges("route", "follows", "swP", ("Route", "SwitchPosition"))
TARGET = _edges("swP", "target", "sw", ("SwitchPosition", "Switch"))
MONITORED = _edges("sw", "monitoredBy", "sensor", ("Switch", "Sensor"))
REQUIRES = _edges("route", "requires", "sensor", ("Route", "Sensor"))

CONNECTS = _edges("te1", "connectsTo", "te2", ("TrackElement", "TrackElement"))
MONITORED1 = _edges("te1", "monitoredBy", "sensor1", ("TrackElement", "Sensor"))
MONITORED2 = _edges("te2", "monitoredBy", "sensor2", ("TrackElement", "Sensor"))
EXIT = _edges("route1", "exit", "semaphore", ("Route", "Semaphore"))
REQUIRES1 = _edges("route1", "requires", "sensor1", ("Route", "Sensor"))
REQUIRES2 = _edges("route2", "requires", "sensor2", ("Route", "Sensor"))
ENTRY = _edges("route2", "entry", "semaphore", ("Route", "Semaphore"))
OTHER_ROUTE = different("route1", "route2")


def _route_sensor_a() -> Relation:
    return FOLLOWS.join(TARGET).join(MONITORED).antijoin(REQUIRES)


def _route_sensor_b() -> Relation:
    return TARGET.join(MONITORED).join(FOLLOWS).antijoin(REQUIRES)


def _route_sensor_c() -> Relation:
    return FOLLOWS.product(MONITORED).antijoin(REQUIRES).join(TARGET)


def _semaphore_neighbor_a() -> Relation:
    left = CONNECTS.join(MONITORED1).join(MONITORED2).join(EXIT.join(REQUIRES1))
    return left.join(REQUIRES2).select(OTHER_ROUTE).antijoin(ENTRY)


def _semaphore_neighbor_b() -> Relation:
    left = CONNECTS.join(MONITORED1.join(REQUIRES1)).join(MONITORED2.join(REQUIRES2))
    return left.select(OTHER_ROUTE).join(EXIT).antijoin(ENTRY)


def _semaphore_neighbor_c() -> Relation:
    left = CONNECTS.join(MONITORED1).join(MONITORED2).join(REQUIRES1.join(EXIT))
    return left.join(REQUIRES2).select(OTHER_ROUTE).antijoin(ENTRY)


def _semaphore_neighbor_d() -> Relation:
    left = CONNECTS.join(EXIT.join(REQUIRES1).join(MONITORED1)).join(MONITORED2)
    return left.join(REQUIRES2).select(OTHER_ROUTE).antijoin(ENTRY)


def _semaphore_neighbor_e() -> Relation:
    left = EXIT.product(REQUIRES2).select(OTHER_ROUTE).antijoin(ENTRY)
    return left.join(REQUIRES1).join(MONITORED1).join(CONNECTS).join(MONITORED2)


def _semaphore_neighbor_f() -> Relation:
    left = MONITORED1.product(MONITORED2).join(REQUIRES1).join(REQUIRES2).select(OTHER_ROUTE)
    return left.join(EXIT).join(CONNECTS).antijoin(ENTRY)


LAYOUTS: dict[str, dict[str, Callable[[], Relation]]] = {
    "RouteSensor": {"A": _route_sensor_a, "B": _route_sensor_b, "C": _route_sensor_c},
    "SemaphoreNeighbor": {
        "A": _semaphore_neighbor_a,
        "B": _semaphore_neighbor_b,
        "C": _semaphore_neighbor_c,
        "D": _semaphore_neighbor_d,
        "E": _semaphore_neighbor_e,
        "F": _semaphore_neighbor_f,
    },
}
