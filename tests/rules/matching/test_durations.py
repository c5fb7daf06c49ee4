"""Events with a duration: Allen's relations against every pair of events of a history."""

from __future__ import annotations

from collections import Counter
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.allen import related, relations

import graphtide as gt

LONGEST = 6


spans = st.lists(st.tuples(st.sampled_from("AB"), st.integers(0, 3), st.integers(0, LONGEST)),
                 min_size=2, max_size=9)  # fmt: skip

PROGRAM = """PREFIX : <http://example.org/>
EVENT A(?x) AS {{ ?e :a ?x }}
EVENT B(?x) AS {{ ?e :b ?x }}
RULE R WHEN EVENT a = A(?x) EVENT b = B(?x) {operator}{bounds} a{more} THEN CALL tell(STARTOF(a), \
TIMEOF(a), STARTOF(b), TIMEOF(b), TIMEOF())
"""


def history_of(steps):
    """Events in order of their ends: kind, start, end."""
    now, found = 10, []
    for kind, gap, length in steps:
        now += gap
        found.append((kind, now - length, now))
    return found


def fired(test, history, more="", **given_times):
    """What the rule tells: the times of both events, and of the match."""
    operator, numbers = test
    bounds = f"[{','.join(map(str, numbers))}]" if numbers else ""
    text = PROGRAM.format(operator=operator, bounds=bounds, more=more)
    graph, told = gt.LiveGraph(), Counter()
    running = graph.run(
        gt.Program.parse(text),
        functions={"tell": lambda *times: told.update([tuple(int(t.value) for t in times)])},
        max_event_duration=LONGEST,
    )
    iri = "<http://example.org/{}>".format
    for kind, start, end in history:
        running.assert_event([(iri("e"), iri(kind.lower()), iri("x"))], start=start, end=end)
    graph.advance(to=history[-1][2] + 50)
    return told


def pairs(history):
    a = [(s, e) for kind, s, e in history if kind == "A"]
    b = [(s, e) for kind, s, e in history if kind == "B"]
    return product(a, b)


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(relations(), spans)
def test_relations_between_events_that_last(test, steps):
    history = history_of(steps)
    expected = Counter(
        (*a, *b, max(a[1], b[1])) for a, b in pairs(history) if related(test[0], b, a, test[1])
    )
    assert fired(test, history) == expected


@settings(deadline=None, max_examples=30)
@given(relations(), st.integers(-4, 6), spans)
def test_times_in_a_filter(test, least, steps):
    history = history_of(steps)
    more = f" AND FILTER (STARTOF(b) - TIMEOF(a) >= {least} && TIMEOF() > STARTOF())"
    expected = Counter(
        (*a, *b, max(a[1], b[1]))
        for a, b in pairs(history)
        if related(test[0], b, a, test[1])
        and b[0] - a[1] >= least
        and max(a[1], b[1]) > min(a[0], b[0])
    )
    assert fired(test, history, more) == expected
