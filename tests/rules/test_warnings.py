"""Programs without errors that hold something that is probably not meant."""

from __future__ import annotations

import logging
from itertools import product

import pytest

import graphtide as gt
from graphtide.rules.temporal import RELATIONS, Span
from graphtide.rules.warnings import warnings_of

HEAD = """PREFIX : <http://example.org/>
QUERY Some AS SELECT ?x { ?x :is ?y }
EVENT A(?x) AS { ?x :a ?y }
EVENT B(?x) AS { ?x :b ?y }
"""


def warned(text: str, longest: float = 0) -> list[str]:
    """The messages of a program."""
    program = gt.Program.parse(HEAD + text)
    return [each.message for each in warnings_of(program, 1000, longest)]


@pytest.mark.parametrize(
    ("event", "why"),
    [
        ("EVENT N(?x) AS { ?x :n 1 } CHECK (2 < 1)", "its CHECK is always false"),
        ("EVENT N(?x) ON CHANGE OF ?x FROM { ?x :is 1 } TO { ?x :is 1 }", "the same state"),
        ("QUERY Q AS SELECT ?x { ?x :is 1 FILTER (false) }\nEVENT N(?x) ON APPEAR OF Q(?x)", "Q"),
        ("QUERY Q AS SELECT ?x { ?x :is 1 } LIMIT 0\nEVENT N(?x) ON DISAPPEAR OF Q(?x)", "Q"),
        ("QUERY Q AS SELECT ?x { VALUES ?x {} }\nEVENT N(?x) ON APPEAR OF Q(?x)", "Q"),
    ],
)
def test_an_event_that_never_happens(event, why):
    (message,) = warned(f"{event}\nRULE R ON N(?x) THEN CALL tell(?x)")
    assert message.startswith("the event N never happens")
    assert why in message
    (of_pattern,) = warned(f"{event}\nPATTERN P(?x) AS A(?x) -> N(?x)")
    assert of_pattern == message


def test_an_event_that_may_happen_is_no_reason_to_warn():
    assert not warned(
        """EVENT N(?x, ?v) AS { ?x :n ?v } CHECK (?v > 1)
        EVENT M(?x) ON CHANGE OF ?x FROM { ?x :is 1 } TO { ?x :is 2 }
        QUERY Due AS SELECT ?x { ?x :is 1 FILTER (EXISTS { :a :b :c } && 1 < 2) }
        EVENT O(?x) ON APPEAR OF Due(?x)
        RULE R ON N(?x, ?v) THEN CALL tell(?x)
        RULE S ON M(?x) THEN CALL tell(?x)
        RULE T ON O(?x) THEN CALL tell(?x)"""
    )


@pytest.mark.parametrize(
    ("facts", "never"),
    [
        ("{ ?x :is ?y FILTER (1 > 2) }", True),
        ("{ ?x :is ?y } FACT { VALUES ?y {} }", True),
        ("{ ?x :is ?y FILTER (?y > 2) }", False),
        ("{ ?x :is ?y OPTIONAL { ?y :is ?z FILTER (false) } }", False),
    ],
)
def test_facts_that_no_graph_has(facts, never):
    rule = f"RULE R WHEN FACT {facts} EVENT a = A(?x) THEN CALL tell(?x)"
    assert warned(rule) == ["the rule R never fires: no graph has its facts"] * never


def test_a_literal_is_never_a_subject():
    assert warned("RULE R ON A(5) THEN CALL tell()") == [
        'A with "5"^^<http://www.w3.org/2001/XMLSchema#integer> never happens'
    ]


def test_tests_that_contradict_each_other():
    (message,) = warned(
        """RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) AFTER[5,9] a AND BEFORE a
        THEN CALL tell(?x)""",
        longest=100,
    )
    assert message == "the rule R never fires: its temporal tests contradict each other"


def possible(operator: str, longest: int) -> bool:
    """Whether some events of that length are in the relation: all of a small range are tried."""
    spans = [Span(s, s + d) for s, d in product(range(7), range(longest + 1))]
    return any(RELATIONS[operator].holds(a, b, ()) for a, b in product(spans, spans))


@pytest.mark.parametrize("operator", list(RELATIONS))
@pytest.mark.parametrize("longest", [0, 1, 3])
def test_a_relation_that_never_holds_between_such_events(operator, longest):
    rule = f"RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) {operator} a THEN CALL tell(?x)"
    messages = warned(rule, longest)
    assert bool(messages) != possible(operator, longest)
    if messages and longest == 0:
        assert messages == [f"the rule R never fires: b {operator} a never holds between instants"]


def test_rows_that_appear_are_instants_however_long_events_last():
    rule = """EVENT Row(?x) ON APPEAR OF Some(?x)
    RULE R WHEN EVENT a = A(?x) EVENT b = Row(?x) INCLUDES a THEN CALL tell(?x)"""
    assert len(warned(rule, longest=1000)) == 1


def test_no_event_that_forbids_nothing():
    rule = "RULE R WHEN EVENT a = A(?x) NO EVENT b = B(?x) DURING a THEN CALL tell(?x)"
    (message,) = warned(rule)
    assert message == (
        "NO EVENT b of the rule R forbids nothing: b DURING a never holds between instants"
    )
    assert not warned(rule, longest=9)


def test_a_running_program_knows_and_logs_its_warnings(caplog):
    text = HEAD + "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) DURING a THEN INSERT { ?x :in 1 }"
    with caplog.at_level(logging.WARNING, "graphtide"):
        running = gt.LiveGraph().run(gt.Program.parse(text))
    assert [each.line for each in running.warnings] == [5]
    assert "never holds between instants" in caplog.text
    assert not gt.LiveGraph().run(gt.Program.parse(text), max_event_duration=9).warnings


def test_warnings_are_those_of_the_text_that_was_given():
    """Equal declarations in other lines are another program."""
    rule = "RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) DURING a THEN CALL tell(?x)"
    programs = [gt.Program.parse(HEAD + gap + rule) for gap in ("", "\n\n", "")]
    assert [[each.line for each in warnings_of(p, 1, 0)] for p in programs] == [[5], [7], [5]]
    assert programs[0] == programs[2] != programs[1]
    assert len({programs[0], programs[2]}) == 1
