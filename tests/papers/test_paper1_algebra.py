"""Paper 1, section 3: labelled graphs as relations and each operator's displayed example."""

from __future__ import annotations

import pytest
from papers.railway import EDGES, EXAMPLE, TYPE, VERTICES, Railway, iri, quad
from pyoxigraph import NamedNode

from graphtide import LiveGraph
from graphtide.algebra.expressions import Call, Const, Var
from graphtide.algebra.relational import Labels, different
from graphtide.errors import GraphtideError

RAIL = Labels(EXAMPLE)

REQUIRES = RAIL.edges(
    "route", "requires", "sensor", edge="requires", source_label="Route", target_label="Sensor"
)
FOLLOWS = RAIL.edges("route", "follows", "switchPosition", edge="follows")
EXIT = RAIL.edges("route", "exit", "semaphore", edge="exit")

WAYS = {
    "rete": {"strategy": "rete"},
    "search": {"strategy": "search"},
    "written": {"plan": "written"},
}
three_ways = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)


def figure_1(*, edge_names=True):
    graph = LiveGraph()
    for label, vertices in VERTICES.items():
        for vertex in vertices:
            graph.insert(iri(vertex), TYPE, iri(label))
    for label, edges in EDGES.items():
        for edge in edges:
            graph.insert(*quad(label, edge)[: 4 if edge_names else 3])
    return graph


def rows(relation, way, attributes):
    """A relation's rows on figure 1, attributes in the order in which the paper prints them."""
    watch = figure_1().watch(relation.query(), **way)
    table = watch.table(terms=True)
    columns = [[_short(t) for t in table[name].to_pylist()] for name in attributes.split()]
    found = list(zip(*columns, strict=True))
    assert len(found) == len(set(found)), "a relation is a set"
    return set(found)


def _short(text):
    name = text.removeprefix(f"<{EXAMPLE}").removesuffix(">")
    return int(name) if name.isdigit() else name


@three_ways
@pytest.mark.parametrize("label", VERTICES)
def test_get_vertices(label, way):
    assert rows(RAIL.vertices("v", label), way, "v") == {(v,) for v in VERTICES[label]}


@three_ways
def test_get_vertices_with_all_of_several_labels(way):
    both = RAIL.vertices("v", "Switch", "TrackElement")
    assert rows(both, way, "v") == {(9,), (12,)}
    assert rows(RAIL.vertices("v", "Switch", "Segment"), way, "v") == set()


@three_ways
@pytest.mark.parametrize("label", EDGES)
def test_get_edges(label, way):
    relation = RAIL.edges("source", label, "target", edge="edge")
    assert rows(relation, way, "source edge target") == set(EDGES[label])


@three_ways
def test_get_edges_between_labelled_vertices(way):
    assert rows(REQUIRES, way, "route requires sensor") == {(2, "d", 6), (4, "f", 7)}
    monitored = RAIL.edges("sw", "monitoredBy", "s", edge="e", source_label="Switch")
    assert rows(monitored, way, "sw e s") == {(9, "h", 5), (12, "k", 7)}


@three_ways
@pytest.mark.parametrize("label", EDGES)
def test_get_edges_without_a_name_is_the_relation_with_one(label, way):
    """Section 3.2.1: the name of an edge may be omitted where nothing else uses it."""
    without = RAIL.edges("source", label, "target")
    assert rows(without, way, "source target") == {(s, t) for s, _, t in EDGES[label]}


@three_ways
def test_edges_without_a_name_are_maintained_as_a_set(way):
    graph = figure_1()
    watch = graph.watch(RAIL.edges("route", "requires", "sensor").query(), **way)
    assert watch.count() == 2
    graph.insert(*quad("requires", (2, "t", 6)))  # parallel to d
    graph.insert(*quad("requires", (2, "u", 5))[:3])  # without an identity
    assert watch.count() == 3
    graph.delete(*quad("requires", (2, "d", 6)))
    assert watch.count() == 3
    graph.delete(*quad("requires", (2, "t", 6)))
    assert watch.count() == 2


@three_ways
def test_operators_over_edges_without_a_name(way):
    follows = RAIL.edges("route", "follows", "position", source_label="Route")
    exits = RAIL.edges("route", "exit", "semaphore")
    assert rows(follows.join(exits), way, "route position semaphore") == {(2, 14, 3)}
    assert rows(follows.antijoin(exits), way, "route position") == {(4, 15)}


def test_edges_that_have_no_identity_cannot_be_named():
    labels = Labels(EXAMPLE, identities=False)
    watch = figure_1(edge_names=False).watch(labels.edges("r", "requires", "s").query())
    assert watch.count() == 2
    with pytest.raises(GraphtideError, match="'requires' have no identity that 'e'"):
        labels.edges("r", "requires", "s", edge="e")


@three_ways
def test_projection(way):
    assert rows(REQUIRES.project("route"), way, "route") == {(2,), (4,)}


@three_ways
def test_projection_gives_each_row_once(way):
    monitored = RAIL.edges("te", "monitoredBy", "sensor", edge="e")
    assert rows(monitored.project("sensor"), way, "sensor") == {(5,), (6,), (7,)}


@three_ways
def test_selection(way):
    route_2 = REQUIRES.select(Call("=", (Var("route"), Const(NamedNode(f"{EXAMPLE}2")))))
    assert rows(route_2, way, "route requires sensor") == {(2, "d", 6)}


@three_ways
def test_cartesian_product(way):
    follows = RAIL.edges("route1", "follows", "switchPosition", edge="follows")
    requires = RAIL.edges("route2", "requires", "sensor", edge="requires")
    found = rows(
        follows.product(requires), way, "route1 follows switchPosition route2 requires sensor"
    )
    assert found == {
        (2, "c", 14, 2, "d", 6),
        (2, "c", 14, 4, "f", 7),
        (4, "e", 15, 2, "d", 6),
        (4, "e", 15, 4, "f", 7),
    }


@three_ways
def test_natural_join(way):
    found = rows(FOLLOWS.join(REQUIRES), way, "route follows switchPosition requires sensor")
    assert found == {(2, "c", 14, "d", 6), (4, "e", 15, "f", 7)}


@three_ways
def test_natural_join_is_commutative_and_associative(way):
    attributes = "route follows switchPosition requires sensor exit semaphore"
    orders = [
        FOLLOWS.join(REQUIRES).join(EXIT),
        FOLLOWS.join(REQUIRES.join(EXIT)),
        EXIT.join(REQUIRES).join(FOLLOWS),
    ]
    assert [rows(order, way, attributes) for order in orders] == [
        {(2, "c", 14, "d", 6, "b", 3)}
    ] * 3


@three_ways
def test_antijoin(way):
    assert rows(FOLLOWS.antijoin(EXIT), way, "route follows switchPosition") == {(4, "e", 15)}


@three_ways
def test_antijoin_is_a_difference(way):
    """r ⊳ s = r ∖ π_R(r ⋈ s)."""
    attributes = "route follows switchPosition"
    joined = rows(FOLLOWS.join(EXIT), way, attributes)
    left = rows(FOLLOWS, way, attributes)
    assert rows(FOLLOWS.antijoin(EXIT), way, attributes) == left - joined
    assert rows(FOLLOWS.semijoin(EXIT), way, attributes) == joined


def test_a_product_needs_different_attributes():
    with pytest.raises(GraphtideError, match="'route'"):
        FOLLOWS.product(REQUIRES)


@pytest.mark.parametrize(
    "use",
    [lambda: FOLLOWS.project("sensor"), lambda: FOLLOWS.select(different("route", "sensor"))],
)
def test_an_unknown_attribute_is_named(use):
    with pytest.raises(GraphtideError, match="unknown attribute 'sensor'"):
        use()


def test_get_vertices_needs_a_label():
    with pytest.raises(GraphtideError, match="label"):
        RAIL.vertices("v")


def test_the_example_graph_is_the_one_of_the_maintenance_tests():
    graph = Railway("?s ?p ?o", "search", variables="*").graph
    assert set(graph.quads()) == set(figure_1().quads())
