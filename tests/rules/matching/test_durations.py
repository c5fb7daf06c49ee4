"""Events with a duration: Allen's relations against every pair of events of a history.

The relations are written out here once more, from the definitions of the language.
"""

from __future__ import annotations

from collections import Counter
from itertools import product
from math import inf

from hypothesis import given, settings
from hypothesis import strategies as st

import graphtide as gt

LONGEST = 6


def ranged(numbers, least=1):
    """No number: from `least` on; one: from there on; two: from one to the other."""
    low, high = (*numbers, inf)[:2] if numbers else (least, inf)
    return lambda distance: min(low, high) <= distance <= max(low, high)


def up_to(numbers):
    """No number: from 1 on; one: from 1 to there; two: from one to the other."""
    return ranged((1, *numbers) if len(numbers) == 1 else numbers)


def near(numbers, at=0):
    slack = numbers[min(at, len(numbers) - 1)] if numbers else 0
    return lambda distance: abs(distance) <= slack


def during(a, b, n):
    first, last = (n[:2], n[2:]) if len(n) == 4 else (n, n)
    return up_to(first)(a[0] - b[0]) and up_to(last)(b[1] - a[1])


DEFINED = {
    "AFTER": lambda a, b, n: ranged(n)(a[0] - b[1]),
    "COINCIDES": lambda a, b, n: near(n)(a[0] - b[0]) and near(n, 1)(a[1] - b[1]),
    "DURING": during,
    "FINISHES": lambda a, b, n: a[0] > b[0] and near(n)(a[1] - b[1]),
    "STARTS": lambda a, b, n: near(n)(a[0] - b[0]) and a[1] < b[1],
    "MEETS": lambda a, b, n: near(n)(b[0] - a[1]),
    "OVERLAPS": lambda a, b, n: a[0] < b[0] and a[1] < b[1] and up_to(n)(a[1] - b[0]),
}
CONVERSE = {
    "BEFORE": "AFTER", "INCLUDES": "DURING", "FINISHEDBY": "FINISHES", "STARTEDBY": "STARTS",
    "METBY": "MEETS", "OVERLAPPEDBY": "OVERLAPS",
}  # fmt: skip
MOST = {"AFTER": 2, "COINCIDES": 2, "DURING": 4, "OVERLAPS": 2}


def related(operator, a, b, numbers):
    if operator in CONVERSE:
        return DEFINED[CONVERSE[operator]](b, a, numbers)
    return DEFINED[operator](a, b, numbers)


@st.composite
def relations(draw):
    """A relation with bounds."""
    operator = draw(st.sampled_from([*DEFINED, *CONVERSE]))
    most = MOST.get(CONVERSE.get(operator, operator), 1)
    many = draw(st.sampled_from([n for n in (0, 1, 2, 4) if n <= most]))
    numbers = [draw(st.integers(0, 5)) for _ in range(many)]
    ordered = [n for at in range(0, many, 2) for n in sorted(numbers[at : at + 2])]
    return operator, tuple(ordered if operator != "COINCIDES" else numbers)


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
