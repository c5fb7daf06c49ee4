"""The alarms of paper 2, rule by rule: what is matched, retained and released, and when."""

from __future__ import annotations

import pytest
from rules.engine import Engine
from rules.histories import iri

from graphtide.algebra.expressions import Var
from graphtide.algebra.nodes import TriplePattern
from graphtide.errors import GraphtideError
from graphtide.lang.sparql.parse import parse_query
from graphtide.rules.model import EventCondition, EventType, Rule
from graphtide.rules.temporal import Temporal

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
    order = []
    one = (EventCondition("a", ALARM, (Var("alarm"), Var("e"))),)
    for name, priority in (("low", 0), ("high", 5), ("later", 0)):
        engine.add(Rule(name, one, priority=priority), lambda firing: order.append(firing.rule))
    alarm(engine, 1, 1)
    assert order == ["high", "low", "later"]


@pytest.mark.slow
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
