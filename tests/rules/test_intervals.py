"""Complex events that are intervals, in Allen's relations with other events."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from rules.allen import related, relations

import graphtide as gt
from graphtide.lang.tide.format import format_program

LONGEST = 6
HEAD = """PREFIX : <http://example.org/>
EVENT A(?x) AS { ?e :a ?x }
EVENT B(?x) AS { ?e :b ?x }
EVENT C(?x) AS { ?e :c ?x }
"""
TRIP = f"PATTERN Trip(?x) AS (A(?x) -> B(?x)) WITHIN {LONGEST} INTERVAL\n"


def trips(history):
    """Each b ends the oldest a that is not too old: start and end."""
    waiting, found = [], []
    for kind, _, end in history:
        if kind == "a":
            waiting.append(end)
        waiting = [time for time in waiting if end - time <= LONGEST]
        if kind == "b" and waiting:
            found.append((waiting.pop(0), end))
    return found


histories = st.lists(
    st.tuples(st.sampled_from("aabbc"), st.integers(0, 3), st.integers(0, LONGEST)),
    min_size=3,
    max_size=10,
)


@settings(deadline=None, max_examples=60)
@given(relations(), histories)
def test_relations_with_complex_events_that_last(test, steps):
    operator, numbers = test
    bounds = f"[{','.join(map(str, numbers))}]" if numbers else ""
    rule = f"RULE R WHEN EVENT t = Trip(?x) EVENT c = C(?x) {operator}{bounds} t THEN CALL tell("
    text = f"{HEAD}{TRIP}{rule}STARTOF(t), TIMEOF(t), STARTOF(c), TIMEOF(c))"
    graph, told = gt.LiveGraph(tick_ms=1), Counter()
    graph.run(
        gt.Program.parse(text),
        functions={"tell": lambda *times: told.update([tuple(int(t.value) for t in times)])},
        max_event_duration=LONGEST,
    )
    history, now = [], 10
    for kind, gap, length in steps:
        now += gap
        history.append((kind, now - (length if kind == "c" else 0), now))
    iri = "<http://example.org/{}>".format
    for kind, start, end in history:
        graph.publish([(iri("e"), iri(kind), iri("x"))], start=start, end=end)
    graph.advance(to=now + 50)
    others = [(start, end) for kind, start, end in history if kind == "c"]
    expected = Counter(
        (*trip, *other)
        for trip in trips(history)
        for other in others
        if related(operator, other, trip, numbers)
    )
    assert told == expected


def test_a_pattern_without_interval_is_an_instant():
    text = HEAD + TRIP.replace(" INTERVAL", "") + "RULE R ON Trip(?x) THEN CALL tell(STARTOF(Trip))"
    graph, told = gt.LiveGraph(tick_ms=1), []
    graph.run(gt.Program.parse(text), functions={"tell": lambda t: told.append(int(t.value))})
    iri = "<http://example.org/{}>".format
    graph.publish([(iri("e"), iri("a"), iri("x"))], time=1)
    graph.publish([(iri("e"), iri("b"), iri("x"))], time=4)
    assert told == [4]


def test_the_last_complex_events_of_a_pattern():
    graph, iri = gt.LiveGraph(tick_ms=1), "<http://example.org/{}>".format
    running = graph.run(gt.Program.parse(HEAD + TRIP))
    for time, kind in enumerate("abab"):
        graph.publish([(iri("e"), iri(kind), iri("x"))], time=time)
    assert [(each.start, each.time) for each in running.matches("Trip")] == [(0, 1), (2, 3)]
    assert running.matches("Trip", last=1) == running.matches("Trip")[1:]


def test_what_is_refused_and_how_it_is_written():
    (error,) = gt.Program.check(HEAD + "PATTERN P(?x) AS A(?x) -> B(?x) INTERVAL").errors
    assert "INTERVAL is for a pattern that is over in some time" in error.message
    assert TRIP in format_program(
        HEAD + TRIP.lower().replace("trip(", "Trip(").replace("a(", "A(").replace("b(", "B(")
    )
