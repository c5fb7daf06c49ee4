"""Paper 1, section 5.3 and appendix A: the networks of the nine layouts, node by node.

The expected networks are figures 12 to 20, read from the root down: an operator with its attribute
list, then its inputs. An input node is written as the label of its edges.
"""

from __future__ import annotations

import pytest
from papers.railway import EDGES, TYPE, VERTICES

from benchmarks.datasets.queries import find_query
from benchmarks.datasets.train import NAMESPACE
from benchmarks.train.plans import LAYOUTS
from graphtide import LiveGraph
from graphtide.plan.build import build_plan
from graphtide.plan.describe import is_input
from graphtide.plan.patterns import Choices
from graphtide.plan.physical import HashJoin, Select, SemiJoin, children

FOLLOWS = ("follows", "route swP")
TARGET = ("target", "swP sw")
MONITORED = ("monitoredBy", "sw sensor")
REQUIRES = ("requires", "route sensor")
CONNECTS = ("connectsTo", "te1 te2")
MONITORED1 = ("monitoredBy", "te1 sensor1")
MONITORED2 = ("monitoredBy", "te2 sensor2")
EXIT = ("exit", "route1 semaphore")
REQUIRES1 = ("requires", "route1 sensor1")
REQUIRES2 = ("requires", "route2 sensor2")
ENTRY = ("entry", "route2 semaphore")


def join(attributes, left, right):
    return ("⋈", attributes, left, right)


def anti(attributes, left, right):
    return ("⊳", attributes, left, right)


def other_route(attributes, child):
    return ("σ", attributes, child)


FIGURE_12 = anti(
    "route swP sw sensor",
    join("route swP sw sensor", join("route swP sw", FOLLOWS, TARGET), MONITORED),
    REQUIRES,
)
FIGURE_13 = anti(
    "swP sw sensor route",
    join("swP sw sensor route", join("swP sw sensor", TARGET, MONITORED), FOLLOWS),
    REQUIRES,
)
FIGURE_14 = join(
    "route swP sw sensor",
    anti("route swP sw sensor", join("route swP sw sensor", FOLLOWS, MONITORED), REQUIRES),
    TARGET,
)


def figures_15_and_17(of_route_1):
    """A and C differ in the order of one join only."""
    all_seven = "te1 te2 sensor1 sensor2 route1 semaphore route2"
    track = join(
        "te1 te2 sensor1 sensor2", join("te1 te2 sensor1", CONNECTS, MONITORED1), MONITORED2
    )
    six = join("te1 te2 sensor1 sensor2 route1 semaphore", track, of_route_1)
    return anti(all_seven, other_route(all_seven, join(all_seven, six, REQUIRES2)), ENTRY)


FIGURE_15 = figures_15_and_17(join("route1 semaphore sensor1", EXIT, REQUIRES1))
FIGURE_17 = figures_15_and_17(join("route1 sensor1 semaphore", REQUIRES1, EXIT))

B_SIX = "te1 te2 sensor1 route1 sensor2 route2"
FIGURE_16 = anti(
    f"{B_SIX} semaphore",
    join(
        f"{B_SIX} semaphore",
        other_route(
            B_SIX,
            join(
                B_SIX,
                join(
                    "te1 te2 sensor1 route1",
                    CONNECTS,
                    join("te1 sensor1 route1", MONITORED1, REQUIRES1),
                ),
                join("te2 sensor2 route2", MONITORED2, REQUIRES2),
            ),
        ),
        EXIT,
    ),
    ENTRY,
)

D_SEVEN = "te1 te2 route1 semaphore sensor1 sensor2 route2"
FIGURE_18 = anti(
    D_SEVEN,
    other_route(
        D_SEVEN,
        join(
            D_SEVEN,
            join(
                "te1 te2 route1 semaphore sensor1 sensor2",
                join(
                    "te1 te2 route1 semaphore sensor1",
                    CONNECTS,
                    join(
                        "route1 semaphore sensor1 te1",
                        join("route1 semaphore sensor1", EXIT, REQUIRES1),
                        MONITORED1,
                    ),
                ),
                MONITORED2,
            ),
            REQUIRES2,
        ),
    ),
    ENTRY,
)

E_FOUR = "route1 semaphore route2 sensor2"
FIGURE_19 = join(
    f"{E_FOUR} sensor1 te1 te2",
    join(
        f"{E_FOUR} sensor1 te1 te2",
        join(
            f"{E_FOUR} sensor1 te1",
            join(
                f"{E_FOUR} sensor1",
                anti(E_FOUR, other_route(E_FOUR, join(E_FOUR, EXIT, REQUIRES2)), ENTRY),
                REQUIRES1,
            ),
            MONITORED1,
        ),
        CONNECTS,
    ),
    MONITORED2,
)

F_SIX = "te1 sensor1 te2 sensor2 route1 route2"
FIGURE_20 = anti(
    f"{F_SIX} semaphore",
    join(
        f"{F_SIX} semaphore",
        join(
            f"{F_SIX} semaphore",
            other_route(
                F_SIX,
                join(
                    F_SIX,
                    join(
                        "te1 sensor1 te2 sensor2 route1",
                        join("te1 sensor1 te2 sensor2", MONITORED1, MONITORED2),
                        REQUIRES1,
                    ),
                    REQUIRES2,
                ),
            ),
            EXIT,
        ),
        CONNECTS,
    ),
    ENTRY,
)

FIGURES = {
    ("RouteSensor", "A"): FIGURE_12,
    ("RouteSensor", "B"): FIGURE_13,
    ("RouteSensor", "C"): FIGURE_14,
    ("SemaphoreNeighbor", "A"): FIGURE_15,
    ("SemaphoreNeighbor", "B"): FIGURE_16,
    ("SemaphoreNeighbor", "C"): FIGURE_17,
    ("SemaphoreNeighbor", "D"): FIGURE_18,
    ("SemaphoreNeighbor", "E"): FIGURE_19,
    ("SemaphoreNeighbor", "F"): FIGURE_20,
}
all_layouts = pytest.mark.parametrize("case", FIGURES, ids="-".join)


def network(node):
    """A plan in the notation of the figures."""
    attributes = " ".join(v.name for v in node.schema)
    if is_input(node):
        return (node.patterns[0].predicate.value.removeprefix(NAMESPACE), attributes)
    inputs = [network(child) for child in children(node)]
    match node:
        case HashJoin():
            return ("⋈", attributes, *inputs)
        case SemiJoin(negated=True):
            return ("⊳", attributes, *inputs)
        case Select():
            return ("σ", attributes, *inputs)
        case _:
            return (type(node).__name__, attributes, *inputs)


@all_layouts
def test_the_network_is_that_of_the_figure(case):
    query, letter = case
    plan = build_plan(LAYOUTS[query][letter]().query(), Choices("rete", pinned="written"))
    assert network(plan.root) == FIGURES[case]


def test_every_layout_has_a_figure():
    assert {(query, letter) for query in LAYOUTS for letter in LAYOUTS[query]} == set(FIGURES)


def figure_1():
    """The example graph without edge identities, in the benchmark's namespace."""
    graph = LiveGraph()
    for label, vertices in VERTICES.items():
        for vertex in vertices:
            graph.insert(iri(vertex), TYPE, iri(label))
    for label, edges in EDGES.items():
        for source, _, target in edges:
            graph.insert(iri(source), iri(label), iri(target))
    return graph


def iri(name):
    return f"<{NAMESPACE}{name}>"


VIOLATION = {
    "RouteSensor": {"route": 2, "sensor": 5, "swP": 14, "sw": 9},
    "SemaphoreNeighbor": {
        "semaphore": 3,
        "route1": 2,
        "route2": 4,
        "sensor1": 6,
        "sensor2": 7,
        "te1": 11,
        "te2": 12,
    },
}
REPAIR = {"RouteSensor": (2, "requires", 5), "SemaphoreNeighbor": (4, "entry", 3)}


def ways(query):
    """Every layout of a query, and its SPARQL text under both strategies."""
    for make in LAYOUTS[query].values():
        yield make().query(), {"plan": "written"}
    for strategy in ("rete", "search", None):
        yield find_query(query).text, {"strategy": strategy}


@pytest.mark.parametrize("query", VIOLATION)
def test_the_violation_on_the_example_graph_and_its_repair(query):
    """Section 2.2: route 2 and sensor 5; routes 2 and 4. The repair leaves nothing to mend."""
    graph = figure_1()
    watches = [graph.watch(text, **options) for text, options in ways(query)]
    expected = {name: iri(value) for name, value in VIOLATION[query].items()}
    for watch in watches:
        assert [found(row) for row in watch.delta()] == [(1, expected)]
    graph.insert(*map(iri, REPAIR[query]))
    for watch in watches:
        assert [found(row) for row in watch.delta()] == [(-1, expected)]
        assert watch.count() == 0
    graph.delete(*map(iri, REPAIR[query]))
    for watch in watches:
        assert [found(row) for row in watch.delta()] == [(1, expected)]


def found(row):
    return row.diff, {name: str(term) for name, term in row.row.items()}
