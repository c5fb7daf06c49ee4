"""The rules and scenarios of paper 2, sections 3 to 5, as a program."""

from pathlib import Path

import pytest
from support.programs import run

from graphtide import LiveGraph

ALARMS = Path(__file__).parents[2] / "examples" / "alarms.tide"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


def iri(name):
    return f"<http://example.org/{name}>"


class Supervisor:
    def __init__(self, *rules):
        text, _, _ = ALARMS.read_text().partition("\nTEST ")
        if rules:
            head, *declared = text.split("\nRULE ")
            text = "\nRULE ".join([head, *(d for d in declared if d.split()[0] in rules)])
        self.graph = LiveGraph()
        self.running = run(text, self.graph)

    def state(self, equipment, state, time, was=None):
        with self.graph.transaction(time=time) as tx:
            tx.insert(iri(equipment), TYPE, iri("Equipment"))
            if was:
                tx.delete(iri(equipment), iri("state"), iri(was))
            tx.insert(iri(equipment), iri("state"), iri(state))

    def alarm(self, name, equipment, time):
        event = [(iri(name), TYPE, iri("Alarm")), (iri(name), iri("eqpt"), iri(equipment))]
        self.running.assert_event(event, time=time)

    def answer(self, kind, name, alarm, time):
        event = [(iri(name), TYPE, iri(kind)), (iri(name), iri("alarm"), iri(alarm))]
        self.running.assert_event(event, time=time)

    def fired(self):
        return [
            (f.rule, f.time, f.values["alarm"].value.removeprefix("http://example.org/"))
            for f in self.running.firings()
        ]

    def states(self, equipment):
        rows = self.graph.query(f"SELECT ?s {{ {iri(equipment)} {iri('state')} ?s }}")
        return sorted(rows["s"].to_pylist())


def test_alarms_at_10_and_30_and_the_confirmation_of_the_second():
    s = Supervisor("AlarmConfirmation")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.alarm("alarm2", "equipment1", 30)
    s.answer("Confirmation", "confirmation2", "alarm2", 33)
    assert s.fired() == [("AlarmConfirmation", 33, "alarm2")]
    ask = f"SELECT ?a ?c {{ ?x {iri('alarm')} ?a ; {iri('by')} ?c ; a {iri('ConfirmedAlarm')} }}"
    assert s.graph.query(ask).to_pylist() == [{"a": iri("alarm2"), "c": iri("confirmation2")}]


@pytest.mark.parametrize(("time", "fires"), [(10, 0), (11, 1), (15, 1), (16, 0)])
def test_the_confirmation_comes_between_1_and_5_ticks_after_the_alarm(time, fires):
    s = Supervisor("AlarmConfirmation")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.answer("Confirmation", "c", "alarm1", time)
    assert len(s.fired()) == fires


def test_the_alarm_of_10_is_kept_until_15_and_confirmations_never():
    s = Supervisor("AlarmConfirmation")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.answer("Confirmation", "c", "another", 12)
    s.running.advance(15)
    assert s.running.retained == 1
    s.running.advance(16)
    assert s.running.retained == 0


@pytest.mark.parametrize("rules", [("AlarmConfirmation",), ("AlarmConfirmation", "AlarmCancelled")])
def test_alarm_3_at_30_does_not_match_equipment_that_is_active_from_32(rules):
    s = Supervisor(*rules)
    s.state("equipment1", "ONLINE", 0)
    s.alarm("alarm3", "equipment1", 30)
    s.state("equipment1", "ACTIVE", 32, was="ONLINE")
    s.answer("Confirmation", "c", "alarm3", 33)
    assert s.fired() == []


def test_a_state_that_flips_between_alarm_and_confirmation():
    s = Supervisor("AlarmConfirmation")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.state("equipment1", "ONLINE", 11, was="ACTIVE")
    s.state("equipment1", "ACTIVE", 12, was="ONLINE")
    s.answer("Confirmation", "c", "alarm1", 13)
    assert s.fired() == []


def test_a_cancelled_alarm_is_retracted_so_that_it_cannot_be_confirmed():
    s = Supervisor("AlarmConfirmation", "AlarmCancelled")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.alarm("alarm2", "equipment1", 10)
    s.answer("Cancellation", "x", "alarm1", 12)
    s.answer("Confirmation", "c1", "alarm1", 13)
    s.answer("Confirmation", "c2", "alarm2", 13)
    assert s.fired() == [("AlarmCancelled", 12, "alarm1"), ("AlarmConfirmation", 13, "alarm2")]


def test_a_cancellation_after_more_than_4_ticks_comes_too_late():
    s = Supervisor("AlarmConfirmation", "AlarmCancelled")
    s.state("equipment1", "ACTIVE", 0)
    s.alarm("alarm1", "equipment1", 10)
    s.answer("Cancellation", "x", "alarm1", 15)
    s.answer("Confirmation", "c1", "alarm1", 15)
    assert s.fired() == [("AlarmConfirmation", 15, "alarm1")]


@pytest.mark.parametrize(("time", "fires"), [(20, True), (22, True), (23, False)])
def test_an_alarm_on_activation_within_two_ticks_switches_off(time, fires):
    s = Supervisor("AlarmOnActivation")
    s.state("equipment1", "ONLINE", 0)
    s.state("equipment2", "ONLINE", 0)
    s.state("equipment1", "ACTIVE", 20, was="ONLINE")
    s.alarm("other", "equipment2", time)
    s.alarm("alarm1", "equipment1", time)
    assert s.fired() == ([("AlarmOnActivation", time, "alarm1")] if fires else [])
    assert s.states("equipment1") == [iri("OFFLINE" if fires else "ACTIVE")]
    assert s.states("equipment2") == [iri("ONLINE")]


def test_an_alarm_before_the_activation_does_not_count():
    s = Supervisor("AlarmOnActivation")
    s.state("equipment1", "ONLINE", 0)
    s.alarm("alarm1", "equipment1", 19)
    s.state("equipment1", "ACTIVE", 20, was="ONLINE")
    assert s.fired() == []


def test_becoming_active_from_another_state_is_another_change():
    s = Supervisor("AlarmOnActivation")
    s.state("equipment1", "OFFLINE", 0)
    s.state("equipment1", "ACTIVE", 20, was="OFFLINE")
    s.alarm("alarm1", "equipment1", 21)
    assert s.fired() == []


def test_an_alarm_that_nobody_answers_for_10_ticks():
    s = Supervisor("AlarmIgnored")
    s.alarm("alarm1", "e", 10)
    s.alarm("alarm2", "e", 11)
    s.alarm("alarm3", "e", 12)
    s.answer("Confirmation", "c", "alarm1", 20)
    s.answer("Cancellation", "x", "alarm2", 21)
    s.running.advance(22)
    assert s.fired() == []
    s.graph.insert(iri("a"), iri("b"), iri("c"), time=23)  # the data, too, move the clock
    assert [(rule, alarm) for rule, _, alarm in s.fired()] == [("AlarmIgnored", "alarm3")]
    assert (iri("alarm3"), TYPE, iri("IgnoredAlarm")) in s.graph


@pytest.mark.slow
def test_events_of_an_endless_stream_leave_memory():
    s = Supervisor()
    s.state("equipment1", "ACTIVE", 0)
    for time in range(1, 2000):
        s.alarm(f"alarm{time}", "equipment1", time)
        # 6 for AlarmConfirmation, 5 for AlarmCancelled, 11 for AlarmIgnored, and that of now for
        # AlarmOnActivation: an activation may follow in the same tick
        assert s.running.retained <= 23
