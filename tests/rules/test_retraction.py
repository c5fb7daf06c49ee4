"""RETRACT: what patterns forget, and what they would have done without the event."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patterns.patterns import pattern, then
from patterns.random_patterns import TYPES, declarations, per_declarations, streams
from rules.pattern_programs import RDF_TYPE, iri
from support.programs import run

from graphtide import LiveGraph
from graphtide.patterns import history
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import make_detector
from graphtide.patterns.event_rows import RowArranger
from graphtide.patterns.general import Detector
from graphtide.patterns.history import EventNumbers, TokenHistory

NUMBERS = {name: number for number, name in enumerate(TYPES)}
END = 100


class Fed:
    """A detector with its history; events have the numbers of their places in the stream."""

    def __init__(self, declared, make):
        automaton = compile_pattern(declared, NUMBERS, lambda _: 1)
        self.history = TokenHistory(make(automaton), retracts=True)
        self._arranger = RowArranger(automaton)

    def time(self, to):
        return [(m.values, m.time, m.start, m.used) for m in self.history.advance(to)]

    def step(self, number, event):
        name, values, time = event
        row = np.array([(*values, 0, 0)[:2]], np.int32)
        columns = np.array([NUMBERS[name]]), row, np.array([time]), np.array([number])
        found = self.history.feed(self._arranger.rows(*columns))
        ends = found.first_used.tolist()
        used = [tuple(found.used[a:b].tolist()) for a, b in pairwise(ends)]
        columns = found.values.tolist(), found.time.tolist(), found.start.tolist(), used
        return [(tuple(v), t, s, u) for v, t, s, u in zip(*columns, strict=True)]


def matches(fed, stream, retracted=(), *, begin=0):
    """The matches of a stream, but those that a retracted event completes."""
    found = []
    for number, event in enumerate(stream):
        if number < begin or event is None:
            continue
        found += fed.time(event[2])
        own = fed.step(number, event)
        if number in retracted:
            fed.history.retract(number, event[2])
        else:
            found += own
        fed.history.begin()
    return found


any_pattern = st.one_of(declarations(), per_declarations())


@given(data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("make", [make_detector, Detector])
def test_an_event_that_is_retracted_at_once_never_came(make, data):
    declared, stream = data.draw(any_pattern), data.draw(streams())
    retracted = data.draw(st.sets(st.integers(0, len(stream) - 1), max_size=3))
    fed, other = Fed(declared, make), Fed(declared, make)
    left = [None if n in retracted else event for n, event in enumerate(stream)]
    found = matches(fed, stream, retracted) + fed.time(END)
    assert found == matches(other, left) + other.time(END)


@given(data=st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.parametrize("short", [2, 1024])
def test_an_event_that_is_retracted_later_has_no_effect_on_what_follows(short, data):
    declared, stream = data.draw(any_pattern), data.draw(streams())
    cut = data.draw(st.integers(1, len(stream)))
    gone = data.draw(st.integers(0, cut - 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "MIN_HISTORY", short)
        fed, other = Fed(declared, make_detector), Fed(declared, make_detector)
        matches(fed, stream[:cut])
        left = [None if n == gone else event for n, event in enumerate(stream)]
        matches(other, left[:cut])
        now = stream[cut - 1][2]
        other.time(now)  # what time completes meanwhile is in the past
        fed.history.retract(gone, now)
        rest = matches(fed, stream, begin=cut) + fed.time(END)
        assert rest == matches(other, left, begin=cut) + other.time(END)


@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_a_rollback_brings_a_retracted_event_back(data):
    declared, stream = data.draw(any_pattern), data.draw(streams())
    first = data.draw(st.integers(1, len(stream)))
    cut = data.draw(st.integers(first, len(stream)))
    fed, other = Fed(declared, make_detector), Fed(declared, make_detector)
    matches(fed, stream[:first])
    matches(other, stream[:first])
    to = fed.history.savepoint()
    for number in range(first, cut):
        fed.step(number, stream[number])
    for gone in data.draw(st.sets(st.integers(0, cut - 1), max_size=2)):
        fed.history.retract(gone, stream[cut - 1][2])
    fed.history.rollback(to)
    rest = matches(fed, stream, begin=first) + fed.time(END)
    assert rest == matches(other, stream, begin=first) + other.time(END)


def test_of_an_event_long_ago_only_the_instances_that_consumed_it_are_dropped(monkeypatch):
    monkeypatch.setattr(history, "MIN_HISTORY", 1)
    monkeypatch.setattr(history, "MAX_RETRACTABLE", 4)
    for make in (make_detector, Detector):
        fed = Fed(pattern(then("a(x)", "b(x)"), parameters="x"), make)
        stream = [("a", (number,), number) for number in (1, 2, 3)]
        stream += [(kind, (9,), time) for time in range(4, 30) for kind in "ab"]
        matches(fed, stream)
        assert len(fed.history._input) < len(stream)
        fed.history.retract(1, 30)
        found = [fed.step(60 + n, ("b", (n,), 30)) for n in (1, 2, 3)]
        assert [bool(each) for each in found] == [True, False, True]


def test_numbers_of_events_are_found_by_their_order():
    numbers = EventNumbers()
    numbers.add(np.array([3, 4, 6]), 0)
    numbers.add(np.array([8]), 3)
    assert [numbers.of(order) for order in range(10)] == [
        None, None, None, 0, 1, None, 2, None, 3, None,
    ]  # fmt: skip


# --- programs ---

PREFIX = "PREFIX : <http://example.org/>\n"
EVENTS = """
EVENT A(?x) AS { ?e a :A ; :of ?x }
EVENT B(?x) AS { ?e a :B ; :of ?x }
"""


def event(kind, of="x"):
    return [(iri("e"), RDF_TYPE, iri(kind)), (iri("e"), iri("of"), iri(of))]


def started(text, mode, graph=None):
    return run(PREFIX + text, LiveGraph() if graph is None else graph, firing=mode)


MODES = ("events", "agenda")


@pytest.mark.parametrize("mode", MODES)
def test_a_retracted_event_is_in_no_pattern(mode):
    text = (
        EVENTS
        + """
    PATTERN Pair(?x) AS A(?x) -> B(?x)
    PATTERN Alone(?x) AS A(?x) -> NOT B(?x) WITHIN 5
    RULE Mute WHEN FACT { ?x :muted true } EVENT a = A(?x) THEN RETRACT a
    """
    )
    graph = LiveGraph(tick_ms=1000)
    graph.insert(iri("y"), iri("muted"), True)
    running = started(text, mode, graph)
    for time, (kind, of) in enumerate([("A", "x"), ("A", "y"), ("B", "y"), ("B", "x"), ("A", "y")]):
        running.assert_event(event(kind, of), time=time)
    running.advance(50)
    assert [str(m.values["x"]) for m in running.matches("Pair")] == [iri("x")]
    assert running.matches("Alone") == []


@pytest.mark.parametrize("mode", MODES)
def test_a_retracted_event_was_no_noise_and_violated_nothing(mode):
    text = (
        EVENTS
        + """
    PATTERN Twice(?x) AS A(?x){2} CONTEXT STRICT
    PATTERN Clear(?x) AS A(?x) -> NOT B(?x) -> A(?x)
    RULE Mute WHEN EVENT b = B(?x) THEN RETRACT b
    """
    )
    running = started(text, mode)
    for time, kind in enumerate("ABA"):
        running.assert_event(event(kind), time=time)
    assert [(m.start, m.time) for m in running.matches("Twice")] == [(0, 2)]
    assert [(m.start, m.time) for m in running.matches("Clear")] == [(0, 2)]


@pytest.mark.parametrize("mode", MODES)
def test_a_complex_event_that_is_out_stays_out(mode):
    text = (
        EVENTS
        + """
    PATTERN Pair(?x) AS A(?x) -> B(?x)
    RULE Mute PRIORITY 9 WHEN EVENT b = B(?x) THEN RETRACT b
    RULE Note WHEN EVENT p = Pair(?x) THEN INSERT { ?x :noted true }
    """
    )
    graph = LiveGraph()
    running = started(text, mode, graph)
    for time, kind in enumerate("ABB"):
        running.assert_event(event(kind), time=time)
    # Each B completes a pair, and is taken back: the A waits again.
    assert [(m.start, m.time) for m in running.matches("Pair")] == [(0, 1), (0, 2)]
    assert (iri("x"), iri("noted"), True) in graph


def test_one_of_several_events_of_a_transaction_is_retracted():
    text = (
        EVENTS
        + """
    QUERY Hot AS SELECT ?x { ?x :is :hot }
    EVENT Heats(?x) ON APPEAR OF Hot(?x)
    PATTERN Next(?x) AS Heats(?x) -> A(?x)
    RULE Mute WHEN FACT { ?x :muted true } EVENT h = Heats(?x) THEN RETRACT h
    """
    )
    for muted in "abc":
        graph = LiveGraph()
        graph.insert(iri(muted), iri("muted"), True)
        running = started(text, "events", graph)
        with graph.transaction(time=1) as change:
            for room in "abc":
                change.insert(iri(room), iri("is"), iri("hot"))
        for room in "abc":
            running.assert_event(event("A", room), time=2)
        found = [str(m.values["x"]) for m in running.matches("Next")]
        assert found == [iri(room) for room in "abc" if room != muted]
