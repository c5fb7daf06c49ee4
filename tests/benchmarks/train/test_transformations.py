"""Each repair ends the violation of a minimal model; each injection makes one where none was."""

import pytest
from support.train_expected import QUERIES
from support.train_minimal import CHAIN, MINIMAL, edge

from benchmarks.datasets.java_random import JavaRandom
from benchmarks.datasets.queries import find_query
from benchmarks.datasets.train import length_literal, name, vertex
from benchmarks.train.operations import QueryOperation
from benchmarks.train.plans import watch_query
from benchmarks.train.transformations import MatchSelection, TransformationContext
from graphtide.graph import LiveGraph

ALL = MatchSelection("proportional", 100)


def transformed(triples, query, scenario):
    """The graph before and after all matches of one operation are transformed, and its matches."""
    graph = LiveGraph()
    for triple in triples:
        graph.insert(*triple)
    found = find_query(query)
    watch = watch_query(graph, found, "search", "default")
    operation = QueryOperation(graph, found, watch, scenario)
    counts = [operation.check()]
    before = texts(graph)
    context = TransformationContext(last_vertex=90)
    operation.choose(ALL, JavaRandom(1), context)
    with graph.transaction() as tx:
        for diff, triple in operation.changes(context):
            (tx.insert if diff > 0 else tx.delete)(*triple)
    counts.append(operation.check())
    after = texts(graph)
    return after - before, before - after, counts


def texts(graph):
    return {(str(s), str(p), str(o)) for s, p, o, _ in graph.quads()}


@pytest.mark.parametrize("query", QUERIES)
def test_a_repair_ends_the_violation(query):
    assert transformed(MINIMAL[query], query, "repair")[2] == [1, 0]


def test_what_repairs_change():
    def repair(query):
        return transformed(MINIMAL[query], query, "repair")[:2]

    assert repair("PosLength") == (
        {edge(1, "length", length_literal(2))},
        {edge(1, "length", length_literal(-1))},
    )
    assert repair("SwitchMonitored") == (
        {edge(91, "a", "Sensor"), edge(2, "monitoredBy", 91)},
        set(),
    )
    assert repair("RouteSensor") == ({edge(1, "requires", 4)}, set())
    assert repair("SwitchSet") == (
        {edge(4, "currentPosition", "POSITION_STRAIGHT")},
        {edge(4, "currentPosition", "POSITION_DIVERGING")},
    )
    assert repair("SemaphoreNeighbor") == ({edge(3, "entry", 1)}, set())


def test_a_repair_removes_a_segment_with_all_its_triples():
    more = [edge(99, "elements", 3), edge(3, "length", length_literal(7))]
    new, gone, counts = transformed(
        [*MINIMAL["ConnectedSegments"], *more], "ConnectedSegments", "repair"
    )
    assert counts == [1, 0]
    assert new == {edge(2, "connectsTo", 4)}
    assert gone == {
        *more,
        edge(3, "a", "Segment"),
        edge(3, "a", "TrackElement"),
        edge(3, "monitoredBy", 1),
        edge(2, "connectsTo", 3),
        edge(3, "connectsTo", 4),
    }


def test_what_injections_change():
    def inject(query, *triples):
        return transformed(triples, query, "inject")

    assert inject("PosLength", edge(1, "a", "Segment"), edge(1, "length", length_literal(7))) == (
        {edge(1, "length", length_literal(0))},
        {edge(1, "length", length_literal(7))},
        [0, 1],
    )
    monitored = [edge(1, "monitoredBy", 2), edge(1, "monitoredBy", 3)]
    sensors = [edge(2, "a", "Sensor"), edge(3, "a", "Sensor")]
    assert inject("SwitchMonitored", edge(1, "a", "Switch"), *sensors, *monitored) == (
        set(),
        set(monitored),
        [0, 1],
    )
    required = edge(1, "requires", 4)
    assert inject("RouteSensor", *MINIMAL["RouteSensor"], required) == (set(), {required}, [0, 1])
    entry = edge(3, "entry", 1)
    assert inject("SemaphoreNeighbor", *MINIMAL["SemaphoreNeighbor"], entry) == (
        set(),
        {entry},
        [0, 1],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("POSITION_FAILURE", "POSITION_STRAIGHT"),
        ("POSITION_STRAIGHT", "POSITION_DIVERGING"),
        ("POSITION_DIVERGING", "POSITION_FAILURE"),
    ],
)
def test_an_injection_turns_a_switch_on(before, after):
    triples = [edge(1, "a", "Switch"), edge(1, "currentPosition", before)]
    new, gone, _ = transformed(triples, "SwitchSet", "inject")
    assert new == {edge(1, "currentPosition", after)}
    assert gone == {edge(1, "currentPosition", before)}


def test_an_injection_puts_a_segment_in_between():
    pair = [t for t in MINIMAL["ConnectedSegments"] if not {vertex(n) for n in CHAIN[2:]} & set(t)]
    new, gone, _ = transformed(pair, "ConnectedSegments", "inject")
    assert gone == {edge(2, "connectsTo", 3)}
    assert new == {
        edge(91, "a", "Segment"),
        edge(91, "a", "TrackElement"),
        edge(91, "length", length_literal(500)),
        edge(91, "monitoredBy", 1),
        edge(2, "connectsTo", 91),
        edge(91, "connectsTo", 3),
    }


def test_a_segment_that_is_gone_keeps_no_length():
    segment, context = vertex(3), TransformationContext(last_vertex=90, removed={vertex(3)})
    from benchmarks.train.transformations import inject_pos_length, repair_pos_length

    for transform in (inject_pos_length, repair_pos_length):
        assert list(transform((segment, length_literal(0)), context)) == []
        assert list(transform((vertex(4), length_literal(0)), context))


def test_names_are_in_the_vocabulary():
    assert name("Route") == "<http://www.semanticweb.org/ontologies/2015/trainbenchmark#Route>"
