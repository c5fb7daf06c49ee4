"""`program.why_not`: which condition of a rule or pattern is missing, and by how much."""

from __future__ import annotations

import pytest

from graphtide import GraphtideError, LiveGraph, Program

PROGRAM = """PREFIX : <http://example.org/>
EVENT Alarm(?a) AS { ?a a :Alarm }
EVENT End(?a)   AS { ?a :ends ?t }
EVENT Mute(?a)  AS { ?a :muted ?t }
RULE Short WHEN EVENT a = Alarm(?a) EVENT e = End(?a) AFTER[0, 5s] a EVENT m = Mute(?a) AFTER e
     FACT { ?a :in ?room . ?room :watched true }
THEN INSERT { ?a :short true }
RULE Silent WHEN EVENT a = Alarm(?a) NO EVENT e = End(?a) AFTER[0, 5s] a
THEN INSERT { ?a :silent true }
RULE Sudden WHEN EVENT a = Alarm(?a) EVENT m = Mute(?a) AFTER[0, 9s] a
     NO EVENT e = End(?a) BEFORE[0, 5s] a
THEN INSERT { ?a :sudden true }
PATTERN Twice(?a) AS Alarm(?a) -> End(?a) -> Alarm(?a)
"""


def iri(name):
    return f"<http://example.org/{name}>"


@pytest.fixture
def running():
    graph = LiveGraph()
    program = graph.run(Program.parse(PROGRAM))
    graph.insert(iri("x"), iri("in"), iri("kitchen"))
    return graph, program


def alarm(graph, time):
    kind = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
    graph.publish([(iri("x"), kind, iri("Alarm"))], time=time)


def end(graph, time):
    graph.publish([(iri("x"), iri("ends"), 1)], time=time)


def steps(explanation):
    return {step.text: step for step in explanation.derivations[0].children}


def test_an_event_that_has_not_come(running):
    graph, program = running
    alarm(graph, 3)
    found = program.why_not("Short", a=iri("x"))
    assert steps(found)["a = Alarm(:x)"].note == "at 3"
    missing = steps(found)["e = End(:x)"]
    assert not missing.holds
    assert "there is none now" in missing.note
    assert found.first_failure() == missing


def test_a_time_bound_and_by_how_much_it_is_missed(running):
    graph, program = running
    alarm(graph, 3)
    end(graph, 4)
    assert steps(program.why_not("Short", a=iri("x")))["e AFTER[0, 5] a"].holds
    test = steps(program.why_not("Short", a=iri("x")))["e AFTER[0, 5] a"]
    assert test.note == "e starts 1 after a ends, allowed is 0 to 5"


def test_the_facts_of_a_rule(running):
    graph, program = running
    alarm(graph, 3)
    facts = steps(program.why_not("Short", a=iri("x")))["facts"]
    assert not facts.holds
    assert "no quad :kitchen :watched true" in next(
        child.note for child in facts.children if not child.holds
    )
    graph.insert(iri("kitchen"), iri("watched"), True)
    assert steps(program.why_not("Short", a=iri("x")))["facts"].holds


def test_a_match_waits_for_a_no_event_until_it_comes(running):
    graph, program = running
    alarm(graph, 3)
    found = program.why_not("Silent", a=iri("x"))
    assert any("waits until" in note for note in found.notes)
    end(graph, 4)
    assert not program.why_not("Silent", a=iri("x")).notes


def test_an_event_that_spoils_a_no_event(running):
    graph, program = running
    end(graph, 2)
    condition = "NO EVENT e = End(:x)"
    assert "one came at 2" in steps(program.why_not("Sudden", a=iri("x")))[condition].note
    alarm(graph, 3)
    spoiled = steps(program.why_not("Sudden", a=iri("x")))[condition]
    assert spoiled.note == "one came at 2"
    assert not spoiled.holds


def test_a_rule_that_has_fired_says_when(running):
    graph, program = running
    alarm(graph, 3)
    graph.advance(20)
    assert "it fired for such values at" in " ".join(program.why_not("Silent", a=iri("x")).notes)


def test_the_tokens_of_a_pattern(running):
    graph, program = running
    none = program.why_not("Twice", a=iri("x"))
    assert "no token" in str(none)
    assert "Alarm(?a)" in str(none)
    alarm(graph, 3)
    found = program.why_not("Twice", a=iri("x"))
    assert "token since 3" in str(found)
    assert "End(?a)" in str(found)
    assert "no token" in str(program.why_not("Twice", a=iri("y")))


def test_a_name_that_is_not_known(running):
    _, program = running
    with pytest.raises(GraphtideError, match="no rule or pattern named Shrt"):
        program.why_not("Shrt")
    with pytest.raises(GraphtideError, match="no column 'b'"):
        program.why_not("Short", b=1)
