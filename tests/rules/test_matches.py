"""Rules against a brute-force evaluator over the whole history, and the scenarios of paper 2."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode
from rules.brute_force import Event, matches
from rules.engine import Engine

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.engine.events import make_events
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query
from graphtide.rules.model import EventCondition, EventType, Rule
from graphtide.rules.temporal import AllTests, AnyTest, NotTest, Temporal


def iri(name):
    return NamedNode(f"ex:{name}")


def event_type(name):
    """Graph events `[] a :name ; :x ?x ; :y ?y`."""
    return EventType(
        name,
        (Var("x"), Var("y")),
        (
            TriplePattern(Var("e"), iri("type"), iri(name)),
            TriplePattern(Var("e"), iri("x"), Var("x")),
            TriplePattern(Var("e"), iri("y"), Var("y")),
        ),
    )


def triples(kind, x, y, number):
    e = iri(f"event{number}")
    return [(e, iri("type"), iri(kind)), (e, iri("x"), x), (e, iri("y"), y)]


TYPES = {name: event_type(name) for name in "AB"}
VALUES = [iri(n) for n in "uv"]
NAMES = [Var("p"), Var("p"), Var("q"), Var("r"), iri("u")]
arguments = st.tuples(*(st.sampled_from(NAMES) for _ in "xy"))


def after(this, other, low, width):
    return Temporal("AFTER", this, other, (low, low + width))


def rules(denied=False):
    @st.composite
    def make(draw):
        names = "abc"[: draw(st.integers(1, 3))]
        events = [
            EventCondition(n, TYPES[draw(st.sampled_from("AB"))], draw(arguments)) for n in names
        ]
        tests = [
            after(this, other, draw(st.integers(-4, 3)), draw(st.integers(1, 7)))
            for this, other in zip(names[1:], names, strict=False)
        ]
        test = AllTests(tuple(tests))
        if not denied and tests and draw(st.booleans()):
            test = draw(
                st.sampled_from([AnyTest((tests[0], tests[-1])), NotTest(tests[0]), AllTests(())])
            )
        if denied:
            events.append(EventCondition("n", TYPES["B"], draw(arguments), negated=True))
            low = draw(st.integers(-3, 3))
            other = draw(st.sampled_from(names))
            denials = [after("n", other, low, draw(st.integers(0, 5)))]
            if draw(st.booleans()):
                bounds = (draw(st.integers(-3, 1)), draw(st.integers(2, 9)))
                denials.append(Temporal("BEFORE", "n", draw(st.sampled_from(names)), bounds))
            test = AllTests((*tests, *denials))
        facts = draw(st.sampled_from(FACTS))
        return Rule("rule", tuple(events), facts and parse_query(facts), test)

    return make()


FACTS = (
    None,
    "SELECT ?p { ?p <ex:on> <ex:yes> }",
    "SELECT ?p ?z { ?p <ex:near> ?z }",
    "SELECT ?q { ?q <ex:near> ?z FILTER NOT EXISTS { ?q <ex:on> <ex:yes> } }",
    "SELECT ?p ?z { ?p <ex:near> ?z FILTER (?z != ?p) }",
)
happenings = st.lists(
    st.one_of(
        st.tuples(st.sampled_from("AB"), st.sampled_from(VALUES), st.sampled_from(VALUES)),
        st.tuples(
            st.sampled_from((1, -1)),
            st.sampled_from(VALUES),
            st.sampled_from([(iri("on"), iri("yes")), (iri("near"), iri("u"))]),
        ),
    ),
    min_size=8,
    max_size=14,
)
gaps = st.lists(st.sampled_from((0, 0, 1, 2)), min_size=14, max_size=14)


def run(rule_list, history, times, end=60, *, batched=False, stride=1024):
    """The firings of each rule, and the history as the brute force wants it.

    `batched` tells of events all at once, up to the next change of the graph.
    """
    engine = Engine()
    engine.engine.batch_size = stride
    held = []

    def tell():
        encode = engine.graph.terms.encode
        ids = [[tuple(map(encode, triple)) for triple in event] for event, _ in held]
        engine.take_events(make_events(ids, [time for _, time in held]))
        held.clear()

    for rule in rule_list:
        engine.add(rule)
    events, states, now = [], [frozenset()], 0
    engine.state_times = [0]
    for number, (what, gap) in enumerate(zip(history, times, strict=False)):
        now += gap
        if isinstance(what[0], str):
            kind, x, y = what
            if batched:
                held.append((triples(kind, x, y, number), now))
            else:
                engine.assert_event(triples(kind, x, y, number), time=now)
            events.append(Event(kind, (x, y), now, len(states) - 1))
        else:
            tell()
            diff, subject, (predicate, object_) = what
            engine.advance(now)
            (engine.graph.insert if diff > 0 else engine.graph.delete)(subject, predicate, object_)
            quad = (subject, predicate, object_, None)
            states.append(states[-1] | {quad} if diff > 0 else states[-1] - {quad})
            engine.state_times.append(now)
    tell()
    engine.advance(end)
    return engine, events, states


def found(engine, rule):
    names = [c.name for c in rule.positive]
    return Counter(
        (
            tuple(firing.events[name][1] for name in names),
            frozenset((Var(v), t) for v, t in firing.values.items()),
        )
        for firing in engine.firings()
        if firing.rule == rule.name
    )


@settings(deadline=None, max_examples=200)
@given(rules(), happenings, gaps)
def test_matches_are_those_of_the_definition(rule, history, times):
    engine, events, states = run([rule], history, times)
    assert found(engine, rule) == matches(rule, events, states, 60)


@settings(deadline=None, max_examples=100)
@given(rules(), rules(), happenings, gaps)
def test_a_rule_does_not_depend_on_other_rules(rule, other, history, times):
    alone, *_ = run([rule], history, times)
    renamed = Rule("other", other.events, other.facts, other.test)
    together, *_ = run([renamed, rule], history, times)
    assert found(together, rule) == found(alone, rule)


@settings(deadline=None, max_examples=200)
@given(rules(denied=True), happenings, gaps, st.booleans())
def test_events_that_must_not_happen(rule, history, times, batched):
    """After any of the others, or between two of them; the facts hold until they no longer can."""
    engine, events, states = run([rule], history, times, batched=batched)
    assert found(engine, rule) == matches(rule, events, states, 60, engine.state_times)


# --- the scenarios of the paper ---

EQUIPMENT = parse_query("SELECT ?e { ?e <ex:state> <ex:ACTIVE> }")
ALARM = EventType(
    "Alarm",
    (Var("alarm"), Var("e")),
    (TriplePattern(Var("alarm"), iri("eqpt"), Var("e")),),
)
CONFIRMATION = EventType(
    "Confirmation",
    (Var("conf"), Var("alarm")),
    (TriplePattern(Var("conf"), iri("confirms"), Var("alarm")),),
)
CANCELLATION = EventType(
    "Cancellation",
    (Var("canc"), Var("alarm")),
    (TriplePattern(Var("canc"), iri("cancels"), Var("alarm")),),
)
CONFIRMED = Rule(
    "AlarmConfirmation",
    (
        EventCondition("a", ALARM, (Var("alarm"), Var("e"))),
        EventCondition("c", CONFIRMATION, (Var("conf"), Var("alarm"))),
    ),
    EQUIPMENT,
    Temporal("AFTER", "c", "a", (1, 5)),
)
CANCELLED = Rule(
    "AlarmCancelled",
    (
        EventCondition("a", ALARM, (Var("alarm"), Var("e"))),
        EventCondition("c", CANCELLATION, (Var("canc"), Var("alarm"))),
    ),
    None,
    Temporal("AFTER", "c", "a", (1, 4)),
)


@pytest.fixture
def engine():
    engine = Engine()
    engine.add(CONFIRMED)
    return engine


def active(engine, name="equipment1"):
    engine.graph.insert(iri(name), iri("state"), iri("ACTIVE"))


def alarm(engine, number, time, equipment="equipment1"):
    engine.assert_event([(iri(f"alarm{number}"), iri("eqpt"), iri(equipment))], time=time)


def confirm(engine, number, time):
    engine.assert_event([(iri(f"conf{number}"), iri("confirms"), iri(f"alarm{number}"))], time=time)


def fired(engine):
    return [(f.rule, f.time, f.values["alarm"].value) for f in engine.firings()]


def test_a_confirmation_within_five_ticks(engine):
    active(engine)
    alarm(engine, 1, 10)
    alarm(engine, 2, 30)
    confirm(engine, 2, 33)
    assert fired(engine) == [("AlarmConfirmation", 33, "ex:alarm2")]


def test_after_date_15_the_alarm_of_date_10_is_released(engine):
    active(engine)
    alarm(engine, 1, 10)
    engine.advance(15)
    assert engine.retained == 1
    engine.advance(16)
    assert engine.retained == 0
    confirm(engine, 1, 16)
    assert fired(engine) == []


def test_confirmations_are_never_kept(engine):
    active(engine)
    confirm(engine, 1, 5)
    assert engine.retained == 0


@pytest.mark.parametrize("with_cancellation", [False, True])
def test_alarm_3_does_not_match_an_equipment_that_becomes_active_later(engine, with_cancellation):
    """Alarm3 at 30, the equipment active at 32: no match, whatever other rules there are."""
    if with_cancellation:
        engine.add(CANCELLED)
    alarm(engine, 3, 30)
    engine.advance(32)
    active(engine)
    confirm(engine, 3, 34)
    assert fired(engine) == []


def test_a_state_that_flips_in_between_spoils_the_match(engine):
    active(engine)
    alarm(engine, 1, 10)
    engine.graph.delete(iri("equipment1"), iri("state"), iri("ACTIVE"))
    active(engine)
    confirm(engine, 1, 12)
    assert fired(engine) == []


def test_memory_is_bounded_by_the_constraint():
    engine = Engine()
    engine.add(CONFIRMED)
    for time in range(3000):
        alarm(engine, time, time)
        assert engine.retained <= 6  # those of the last 5 ticks, and of now


def test_actions_run_by_priority_then_declaration():
    engine = Engine()
    heard = []
    one = (EventCondition("a", ALARM, (Var("alarm"), Var("e"))),)
    for name, priority in (("low", 0), ("high", 5), ("later", 0)):
        engine.add(Rule(name, one, priority=priority), lambda firing: heard.append(firing.rule))
    alarm(engine, 1, 1)
    assert heard == ["high", "low", "later"]


def test_rules_that_cause_each_other_without_end_are_named():
    engine = Engine()
    again = Rule("again", (EventCondition("a", ALARM, (Var("alarm"), Var("e"))),))
    engine.add(again, lambda _: alarm(engine, 1, None))
    with pytest.raises(GraphtideError, match="without end: again"):
        alarm(engine, 1, 1)


def test_time_does_not_run_backwards(engine):
    alarm(engine, 1, 10)
    with pytest.raises(GraphtideError, match="backwards"):
        alarm(engine, 2, 9)
