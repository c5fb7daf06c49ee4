"""Activations: appeared, fired, updated, disappeared; and which of them fires next."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.programs import run

from graphtide import LiveGraph
from graphtide.errors import GraphtideError
from graphtide.rdf.dictionary import TermDictionary
from graphtide.rules import agenda

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


@pytest.mark.slow
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


@pytest.mark.slow
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


# --- an activation lives as long as what its match needs ---

EVENTS = """
EVENT A(?x) AS { ?e a :A ; :of ?x }
EVENT B(?x) AS { ?e a :B ; :of ?x }
EVENT N(?x) AS { ?e a :N ; :of ?x }
"""


def event(kind, of="x"):
    rdf_type = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    return [(iri("e"), rdf_type, iri(kind)), (iri("e"), iri("of"), iri(of))]


def fired(running):
    return [firing.rule for firing in running.firings()]


def test_a_fact_that_a_rule_of_higher_priority_deletes_stops_the_lower_one():
    text = (
        EVENTS
        + """
    RULE Off PRIORITY 9 WHEN FACT { ?x :on true } EVENT a = A(?x) THEN DELETE { ?x :on true }
    RULE Tell           WHEN FACT { ?x :on true } EVENT a = A(?x) THEN CALL tell(?x)
    """
    )
    for mode, rules in (("events", ["Off", "Tell"]), ("agenda", ["Off"])):
        graph, running, calls = started(text, mode)
        graph.insert(iri("x"), iri("on"), True)
        running.assert_event(event("A"))
        assert (fired(running), len(calls)) == (rules, len(rules) - 1)


def test_a_fact_that_was_deleted_and_inserted_again_is_another_one():
    text = EVENTS + "RULE Tell WHEN FACT { ?x :on true } EVENT a = A(?x) THEN CALL tell(?x)"
    graph, running, calls = started(text, "manual")
    graph.insert(iri("x"), iri("on"), True)
    running.assert_event(event("A"))
    assert len(running.activations()) == 1
    graph.delete(iri("x"), iri("on"), True)
    assert running.activations() == []
    graph.insert(iri("x"), iri("on"), True)
    assert (running.activations(), running.fire_all(), calls) == ([], 0, [])


def test_an_event_that_a_rule_of_higher_priority_retracts_stops_the_lower_ones():
    text = (
        EVENTS
        + """
    RULE Drop PRIORITY 9 WHEN EVENT b = B(?x) THEN RETRACT b
    RULE One             WHEN EVENT b = B(?x) THEN CALL first(?x)
    RULE Two             WHEN EVENT a = A(?x) EVENT b = B(?x) THEN CALL second(?x)
    RULE Other           WHEN EVENT a = A(?x) THEN CALL tell(?x)
    """
    )
    for mode, rules in (
        ("events", ["Other", "Drop", "One", "Two"]),
        ("agenda", ["Other", "Drop"]),
    ):
        _, running, _ = started(text, mode)
        running.assert_event(event("A"), time=1)
        running.assert_event(event("B"), time=2)
        assert fired(running) == rules


def test_a_row_that_is_gone_stops_a_rule_with_further_conditions():
    text = (
        EVENTS
        + """
    QUERY Hot AS SELECT ?x { ?x :is :hot }
    EVENT Heats(?x) ON APPEAR OF Hot(?x)
    RULE Given WHEN FACT { ?y :on true } EVENT h = Heats(?y) THEN CALL first(?y)
    RULE Const WHEN EVENT h = Heats(:oven) EVENT a = A(?x) THEN CALL second(?x)
    """
    )
    graph, running, calls = started(text, "manual")
    graph.insert(iri("oven"), iri("on"), True)
    graph.insert(iri("oven"), iri("is"), iri("hot"))
    running.assert_event(event("A"))
    assert sorted(a.rule for a in running.activations()) == ["Const", "Given"]
    graph.delete(iri("oven"), iri("is"), iri("hot"))
    assert (running.activations(), running.fire_all(), calls) == ([], 0, [])


def test_a_forbidden_event_removes_what_waits_even_if_it_comes_later():
    text = EVENTS + "RULE Tell WHEN EVENT a = A(?x) NO EVENT n = N(?x) THEN CALL tell(?x)"
    _, running, calls = started(text, "manual")
    running.assert_event(event("A", "x"), time=1)
    running.assert_event(event("A", "y"), time=2)
    running.assert_event(event("N", "x"), time=3)
    assert [name_of(a.values["x"]) for a in running.activations()] == ["y"]
    running.assert_event(event("A", "x"), time=4)  # N at 3 forbids it, too
    assert (running.fire_all(), calls) == (1, [("tell", "y")])


def test_a_forbidden_event_outside_of_its_bounds_removes_nothing():
    text = (
        EVENTS
        + """
    RULE Tell WHEN EVENT a = A(?x) NO EVENT n = N(?x) AFTER[0,5] a THEN CALL tell(?x)"""
    )
    _, running, calls = started(text, "manual")
    running.assert_event(event("A"), time=1)
    running.assert_event(event("N"), time=7)
    assert (running.fire_all(), calls) == (1, [("tell", "x")])


def test_what_is_removed_leaves_nothing_in_the_index():
    text = (
        EVENTS
        + """
    RULE Drop PRIORITY 9 WHEN EVENT b = B(?x) THEN RETRACT b
    RULE Tell WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[0,9] a NO EVENT n = N(?x)
      THEN CALL tell(?x)
    """
    )
    _, running, _ = started(text, "agenda")
    for time in range(20):
        running.assert_event(event("A"), time=time)
        running.assert_event(event("B"), time=time)
    conflicts = running._engine.conflicts
    assert (conflicts._index, conflicts._waiting) == ({}, {})


# --- random rules, against the definition ---

CONDITIONS = {
    "fact": ("FACT { ?x :on true } EVENT a = A(?x)", "A", True, False),
    "one": ("EVENT a = B(?x)", "B", False, False),
    "pair": ("EVENT a = A(?x) EVENT b = B(?x)", "AB", False, False),
    "pair of facts": ("FACT { ?x :on true } EVENT a = A(?x) EVENT b = B(?x)", "AB", True, False),
    "absence": ("EVENT a = A(?x) NO EVENT n = N(?x)", "A", False, True),
    "absence of two": ("EVENT a = A(?x) EVENT b = B(?x) NO EVENT n = N(?x)", "AB", False, True),
}
ACTIONS = {
    "call": "CALL tell(?x)",
    "off": "DELETE { ?x :on true }",
    "on": "DELETE { ?x :on true } ; INSERT { ?x :set true }",
    "retract": "RETRACT a",
    "deny": "EMIT :out { [] a :N ; :of ?x }",
}


class ByDefinition:
    """Activations in one list, each looked at from scratch before the next one fires."""

    def __init__(self, rules):
        self.rules = rules
        self.events, self.gone, self.on = [], set(), {}
        self.activations, self.fired, self.transactions = [], [], 0

    def change(self, of, *, on):
        if on is (of not in self.on):
            self.transactions += 1
            if on:
                self.on[of] = self.transactions
            else:
                del self.on[of]

    def publish(self, kind, of):
        self.take(kind, of)
        while self.step():
            pass

    def take(self, kind, of):
        order = len(self.events)
        self.events.append((kind, of, self.transactions))
        alive = [n for n, e in enumerate(self.events) if e[1] == of and n not in self.gone]
        for number, (_, (_, kinds, needs_fact, denied), _) in enumerate(self.rules):
            if kind not in kinds:
                continue
            parts = [[order] if k == kind else [n for n in alive if self.events[n][0] == k]
                     for k in kinds]  # fmt: skip
            spoilt = denied and any(self.events[n][0] == "N" for n in alive)
            for chosen in [[]] if spoilt else product(*parts):
                if chosen and (not needs_fact or self.holds(of, chosen)):
                    self.activations.append((number, tuple(chosen), of, len(self.events)))

    def holds(self, of, chosen):
        return of in self.on and all(self.on[of] <= self.events[n][2] for n in chosen)

    def valid(self, activation):
        number, chosen, of, since = activation
        _, (_, _, needs_fact, denied), _ = self.rules[number]
        later = [e for e in self.events[since:] if e[:2] == ("N", of)]
        return (
            not self.gone.intersection(chosen)
            and (not needs_fact or self.holds(of, chosen))
            and not (denied and later)
        )

    def step(self):
        self.activations = [each for each in self.activations if self.valid(each)]
        if not self.activations:
            return False
        chosen = min(self.activations, key=lambda each: (-self.rules[each[0]][0], each[0]))
        self.activations.remove(chosen)
        number, events, of, _ = chosen
        self.fired.append((f"R{number}", of))
        action = self.rules[number][2]
        if action in ("off", "on"):
            self.change(of, on=False)
        elif action == "retract":
            self.gone.add(events[0])
        elif action == "deny":
            self.take("N", of)
        return True


@given(
    rules=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([*CONDITIONS]), st.sampled_from([*ACTIONS])),
        min_size=2,
        max_size=4,
    ),
    history=st.lists(
        st.tuples(st.sampled_from("AABBN+-"), st.sampled_from("xy")), min_size=2, max_size=8
    ),
)
@settings(max_examples=60, deadline=None)
def test_random_rules_fire_as_the_definition_says(rules, history):
    text = EVENTS + "".join(
        f"RULE R{number} PRIORITY {priority} WHEN {CONDITIONS[when][0]} THEN {ACTIONS[action]}\n"
        for number, (priority, when, action) in enumerate(rules)
    )
    graph, running, _ = started(text, "agenda")
    wanted = ByDefinition([(priority, CONDITIONS[when], act) for priority, when, act in rules])
    for time, (what, of) in enumerate(history):
        if what in "+-":
            (graph.insert if what == "+" else graph.delete)(iri(of), iri("on"), True)
            wanted.change(of, on=what == "+")
        else:
            running.assert_event(event(what, of), time=time)
            wanted.publish(what, of)
    got = [(firing.rule, name_of(firing.values["x"])) for firing in running.firings()]
    assert got == wanted.fired


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


@given(
    st.lists(st.sampled_from("abcd") | st.none(), min_size=1, max_size=6), st.sampled_from((0, 32))
)
def test_ranks_are_those_of_the_texts(names, few):
    """One by one, and in columns; ids are in another order than texts, no value comes first."""
    terms, before = TermDictionary(), agenda.FEW
    number = {name: terms.encode(iri(name)) for name in "dcba"} | {None: 0}
    agenda.FEW = few
    try:
        ranks = agenda._ranks(np.array([number[name] for name in names], np.int32), terms)
    finally:
        agenda.FEW = before
    order = sorted(set(names), key=lambda name: name or "")
    assert ranks.tolist() == [order.index(name) for name in names]
