"""Activations: appeared, fired, updated, disappeared; and which of them fires next."""

import numpy as np
import pytest
from support.programs import run

from graphtide import LiveGraph
from graphtide.errors import GraphtideError

PREFIX = "PREFIX : <http://example.org/>\n"
HOT = """
QUERY Hot AS SELECT ?room ?t { ?room :temperature ?t FILTER (?t > 30) }
RULE Tell ON APPEAR OF Hot(?room) THEN CALL tell(?room)
"""


def iri(name):
    return f"<http://example.org/{name}>"


def name_of(term):
    return term.value.rpartition("/")[2]


def started(text, mode, **options):
    graph, calls = LiveGraph(), []
    names = ("tell", "first", "second")
    functions = {
        name: lambda *terms, name=name: calls.append((name, *map(name_of, terms))) for name in names
    }
    return graph, run(PREFIX + text, graph, functions=functions, firing=mode, **options), calls


def states(running):
    return [(a.rule, name_of(a.values["room"]), a.state) for a in running.activations()]


def set_temperature(graph, room, old, new):
    with graph.transaction() as change:
        if old is not None:
            change.delete(iri(room), iri("temperature"), old)
        if new is not None:
            change.insert(iri(room), iri("temperature"), new)


def test_an_activation_waits_is_fired_updated_and_gone_with_its_row():
    graph, running, calls = started(HOT, "manual")
    set_temperature(graph, "kitchen", None, 31)
    assert states(running) == [("Tell", "kitchen", "appeared")]
    assert calls == []
    assert running.fire().rule == "Tell"
    assert calls == [("tell", "kitchen")]
    assert states(running) == [("Tell", "kitchen", "fired")]
    set_temperature(graph, "kitchen", 31, 35)
    assert states(running) == [("Tell", "kitchen", "updated")]
    set_temperature(graph, "kitchen", 35, 20)
    assert states(running) == []
    assert running.fire() is None
    assert calls == [("tell", "kitchen")]


def test_what_disappears_before_its_turn_is_never_fired():
    graph, running, calls = started(HOT, "manual")
    set_temperature(graph, "kitchen", None, 31)
    set_temperature(graph, "kitchen", 31, None)
    assert states(running) == []
    assert running.fire_all() == 0
    assert calls == []


def test_a_rule_for_what_disappears_waits_too_and_gives_up_if_the_row_is_back():
    rule = HOT + "RULE Gone ON DISAPPEAR OF Hot(?room) THEN CALL first(?room)"
    graph, running, calls = started(rule, "manual")
    set_temperature(graph, "kitchen", None, 31)
    assert running.fire_all() == 1
    set_temperature(graph, "kitchen", 31, None)
    assert states(running) == [("Gone", "kitchen", "disappeared")]
    set_temperature(graph, "kitchen", None, 40)
    assert states(running) == [("Tell", "kitchen", "appeared")]
    set_temperature(graph, "kitchen", 40, None)
    running.fire_all()
    assert calls == [("tell", "kitchen"), ("first", "kitchen")]


def test_an_update_is_an_event_of_its_own():
    rule = HOT + "RULE Changed ON UPDATE OF Hot(?room) THEN CALL second(?room)"
    graph, running, calls = started(rule, "events")
    set_temperature(graph, "kitchen", None, 31)
    set_temperature(graph, "kitchen", 31, 32)  # still hot
    set_temperature(graph, "kitchen", 32, 20)  # gone: no update
    set_temperature(graph, "kitchen", 20, 33)  # there again: no update
    assert calls == [("tell", "kitchen"), ("second", "kitchen"), ("tell", "kitchen")]
    assert running.fired == 3


def test_an_agenda_drops_what_an_earlier_firing_has_settled():
    """Both rooms are hot; opening the window cools both. With "events" both matches fire."""
    text = """
    QUERY Hot AS SELECT ?room { ?room :is :hot }
    RULE Cool ON APPEAR OF Hot(?room) THEN DELETE { :kitchen :is :hot . :hall :is :hot } ;
      CALL tell(?room)
    """
    for mode, firings in (("events", 2), ("agenda", 1)):
        graph, running, calls = started(text, mode)
        with graph.transaction() as change:
            change.insert(iri("kitchen"), iri("is"), iri("hot"))
            change.insert(iri("hall"), iri("is"), iri("hot"))
        assert len(calls) == running.fired == firings


TWO = """
QUERY Hot AS SELECT ?room { ?room :is :hot }
RULE Second PRIORITY 1 ON APPEAR OF Hot(?room) THEN CALL second(?room)
RULE First  PRIORITY 9 ON APPEAR OF Hot(?room) THEN CALL first(?room)
"""


@pytest.mark.parametrize(
    ("resolver", "expected"),
    [
        ("priority", ["first a", "first b", "second a", "second b"]),
        ("oldest", ["first a", "second a", "first b", "second b"]),
        ("newest", ["second b", "first b", "second a", "first a"]),
        (lambda a: a.priority, ["second a", "second b", "first a", "first b"]),
    ],
)
def test_who_is_next_can_be_chosen(resolver, expected):
    graph, running, calls = started(TWO, "manual", resolver=resolver)
    graph.insert(iri("a"), iri("is"), iri("hot"))
    graph.insert(iri("b"), iri("is"), iri("hot"))
    assert running.fire_all() == 4
    assert [" ".join(each) for each in calls] == expected


def test_a_random_order_is_the_same_for_the_same_seed():
    orders = []
    for seed in (1, 1, 2, 3, 4):
        graph, running, calls = started(TWO, "manual", resolver="random", seed=seed)
        for room in "abcd":
            graph.insert(iri(room), iri("is"), iri("hot"))
        running.fire_all()
        assert sorted(calls) == sorted((rule, r) for rule in ("first", "second") for r in "abcd")
        orders.append(calls)
    assert orders[0] == orders[1]
    assert len({tuple(order) for order in orders}) > 1


def test_one_activation_may_be_chosen_by_hand_and_firing_may_stop():
    graph, running, calls = started(TWO, "manual")
    graph.insert(iri("a"), iri("is"), iri("hot"))
    graph.insert(iri("b"), iri("is"), iri("hot"))
    chosen = running.activations()[-1]
    assert running.fire(chosen) is chosen
    assert calls == [("second", "b")]
    with pytest.raises(GraphtideError, match="does not wait to be fired"):
        running.fire(chosen)
    assert running.fire_all(until=lambda: len(calls) == 2) == 1
    assert len(calls) == 2


def test_an_agenda_runs_to_quiescence_and_a_loop_is_named():
    text = """
    QUERY Use AS SELECT ?d { ?d :used true }
    RULE Back  ON APPEAR OF Use THEN DELETE { ?d :used true }
    RULE Forth ON DISAPPEAR OF Use THEN INSERT { ?d :used true }
    """
    graph, _, _ = started(text, "agenda")
    with pytest.raises(GraphtideError, match="without end: Back, Forth"):
        graph.insert(iri("d"), iri("used"), True)


def test_activations_are_listed_only_where_they_wait():
    _, running, _ = started(HOT, "events")
    with pytest.raises(GraphtideError, match="fire at once"):
        running.activations()
    with pytest.raises(GraphtideError, match="is not known"):
        started(HOT, "sometimes")
    with pytest.raises(GraphtideError, match="no order of firing"):
        started(HOT, "manual", resolver="latest")


def test_what_comes_and_goes_and_is_never_fired_leaves_nothing_behind():
    graph, running, _ = started(HOT, "manual")
    for number in range(3000):
        set_temperature(graph, f"room{number}", None, 31)
        set_temperature(graph, f"room{number}", 31, None)
    conflicts = running._engine.conflicts
    assert running.activations() == []
    assert len(conflicts._heap) == len(conflicts._waiting) <= 1024
    assert all(len(tracker.rows) == 0 for tracker in conflicts._trackers.values())


def test_what_was_fired_is_forgotten_with_its_row():
    graph, running, calls = started(HOT, "agenda")
    for number in range(50):
        set_temperature(graph, f"room{number}", None, 31)
        set_temperature(graph, f"room{number}", 31, None)
    assert len(calls) == 50
    assert running._engine.conflicts._fired == {}


def test_matches_of_one_event_fire_by_the_texts_of_their_values():
    rule = "EVENT Seen(?room) AS { ?room :seen ?b }\nRULE R ON Seen(?room) THEN CALL tell(?room)"
    graph, _, calls = started(rule, "events")
    graph.publish([(iri(name), iri("seen"), 1) for name in "zya"], time=1)
    assert calls == [("tell", "a"), ("tell", "y"), ("tell", "z")], (
        "not by when they were seen first"
    )
    stream = graph.stream(iri("s"))
    triples = [(iri(name), iri("seen"), 1) for name in "xwb"]
    ids = graph.terms.encode_column([text for s, p, _ in triples for text in (s, p, '"1"')])
    quads = np.zeros((6, 4), np.int32)
    quads[:, :3] = np.tile(ids.reshape(3, 3), (2, 1))
    stream.push_ids(np.repeat([5, 6], 3), quads, events=np.repeat([0, 1], 3))
    assert [name for _, name in calls[3:]] == [*"bwx", *"bwx"]
