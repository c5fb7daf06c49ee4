"""The plans that the benchmark can run a query with, by name, and figures of their nodes.

Plans with a letter are the layouts of "Incremental graph queries", section 5.3: the same query with
another order of joins, antijoin and selection. C of RouteSensor, and E and F of SemaphoreNeighbor,
join relations without a common attribute: a Cartesian product.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from benchmarks.datasets.queries import TrainQuery, train_query_text
from benchmarks.datasets.train import NAMESPACE, name
from benchmarks.harness import BenchmarkError
from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.relational import Labels, Relation, different
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.patterns import STRATEGIES, Strategy

if TYPE_CHECKING:
    from collections.abc import Callable

    from graphtide.engine.results import DeltaRow
    from graphtide.engine.watch import Query
    from graphtide.graph import LiveGraph

RAIL = Labels(NAMESPACE, identities=False)


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


LAYOUTS: Final[dict[str, dict[str, Callable[[], Relation]]]] = {
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


SEGMENT_LINKS: Final = name("segments")
"""The graph of links between segments."""


def maintain_segment_links(graph: LiveGraph) -> None:
    """Maintain the links between segments in a graph of their own, for the path of RouteLength.

    >>> from graphtide.graph import LiveGraph
    >>> graph = LiveGraph()
    >>> maintain_segment_links(graph)
    >>> graph.insert(
    ...     name("_1"), "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", name("Segment")
    ... )
    >>> (name("_1"), name("connectsTo"), name("_1"), SEGMENT_LINKS) in graph
    True
    """
    watch = graph.watch(train_query_text("SegmentLinks"), name="SegmentLinks")
    link = name("connectsTo")
    with graph.transaction() as tx:
        for ends in watch.table().to_pylist():
            tx.insert(ends["from"], link, ends["to"], SEGMENT_LINKS)

    @watch.on_appear
    def insert(row: DeltaRow) -> None:
        graph.insert(str(row.row["from"]), link, str(row.row["to"]), SEGMENT_LINKS)

    @watch.on_disappear
    def delete(row: DeltaRow) -> None:
        graph.delete(str(row.row["from"]), link, str(row.row["to"]), SEGMENT_LINKS)


Choice: TypeAlias = Strategy | Literal["auto"]
"""A strategy, or `auto`: the planner chooses."""

CHOICES: Final[tuple[Choice, ...]] = ("auto", *STRATEGIES)

DEFAULT_PLAN: Final = "default"
"""The plan that the planner chooses."""


def check_strategy(text: str) -> Choice:
    """The strategy of that name.

    >>> check_strategy("rete")
    'rete'
    """
    if text not in CHOICES:
        known = ", ".join(CHOICES)
        raise BenchmarkError(f"unknown strategy {text!r}", hint=f"choose from {known}")
    return text


def plan_for(query: TrainQuery, plan: str) -> Relation | None:
    """The layout of that name for a query; None lets the planner choose.

    >>> from benchmarks.datasets.queries import find_query
    >>> plan_for(find_query("RouteSensor"), "A").attributes
    ('route', 'swP', 'sw', 'sensor')
    >>> plan_for(find_query("PosLength"), "A")
    Traceback (most recent call last):
        ...
    benchmarks.harness.BenchmarkError: PosLength has no plan named 'A'; choose from default
    """
    layouts = LAYOUTS.get(query.name, {})
    if plan in layouts:
        return layouts[plan]()
    if plan != DEFAULT_PLAN:
        known = ", ".join((DEFAULT_PLAN, *layouts))
        raise BenchmarkError(
            f"{query.name} has no plan named {plan!r}", hint=f"choose from {known}"
        )
    return None


def check_plan(query: TrainQuery, strategy: Choice, plan: str) -> None:
    """Raise unless a query can be run with a strategy and a plan."""
    if plan_for(query, plan) is not None and strategy == "search":
        raise BenchmarkError(
            f"plan {plan} of {query.name} is a network of joins, which a search does not use",
            hint="use plans by name with the strategy rete or auto",
        )


def watch_query(graph: LiveGraph, query: TrainQuery, strategy: Choice, plan: str) -> Query:
    """Register a query with a strategy and a plan."""
    if query.name == "RouteLength":
        maintain_segment_links(graph)
    layout = plan_for(query, plan)
    if layout is not None:
        parsed = parse_query(query.text)
        return graph.watch(
            SelectQuery(parsed.variables, layout.node, query.text),
            plan="written",
            name=query.name,
            history=None,
        )
    return graph.watch(
        query.text,
        strategy=None if strategy == "auto" else strategy,
        name=query.name,
        history=None,
    )
