"""Events of several types: one event, which any of its types may match."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from patterns.patterns import TYPES as LETTERS
from patterns.patterns import automaton, beside, detector, either, no, then, times
from patterns.random_patterns import TYPES, declarations, per_declarations

from graphtide.kernel.tokens.tables import NEW_EVENT, NEW_KEY, NEW_OCCURRENCE, SAME_OCCURRENCE
from graphtide.patterns.compile import compile_pattern
from graphtide.patterns.detector import KernelDetector, make_detector
from graphtide.patterns.event_rows import UNNAMED, RowArranger
from graphtide.patterns.general import Detector
from graphtide.patterns.tokens import Event
from oracles.event_oracle import EventOracle

NUMBERS = {name: number for number, name in enumerate(TYPES)}
END = 100
CONTEXTS = ("CHRONICLE", "IMMEDIATE", "STRICT")


def used(running, events):
    """The events of each match; `ab c` is an event of the types a and b, then one of c."""
    found = []
    for time, word in enumerate(events.split(), start=(running.now or 0) + 1):
        found += running.take([Event(LETTERS[letter], (), time) for letter in word])
    return [list(each.used) for each in found]


def both_ways(body, context="CHRONICLE"):
    """The general detector, and the one that is chosen."""
    return detector(body, context), make_detector(automaton(body, context))


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_event_is_no_noise_to_itself(context):
    for running in both_ways(times("a", 2), context):
        assert used(running, "ax ax a xa") == [[0, 1], [2, 3]]


@pytest.mark.parametrize("context", CONTEXTS)
def test_one_event_is_not_two_steps(context):
    for running in both_ways(then("a", "b"), context):
        assert used(running, "ab ab ab ab") == [[0, 1], [2, 3]]


@pytest.mark.parametrize("context", CONTEXTS)
def test_an_event_does_not_violate_the_not_that_begins_with_it(context):
    for running in both_ways(then("a", no("b"), "c"), context):
        assert used(running, "ab c ab b c") == [[0, 1]]


def test_any_of_its_types_violates_a_not():
    for running in both_ways(then("a", no("b"), "c")):
        assert used(running, "a xb c") == []


def test_an_event_of_two_awaited_types_is_read_in_both_ways():
    body = either(then("a", "c"), then("b", "d"))
    for events, expected in (
        ("ab d", [[0, 1]]),
        ("ab c", [[0, 1]]),
        ("ab c d a c", [[0, 1], [3, 4]]),
    ):
        for running in both_ways(body):
            assert used(running, events) == expected


def test_the_kernel_takes_over_again_when_the_ambiguous_tokens_are_gone():
    running = make_detector(automaton(either(then("a", "c"), then("b", "d"))))
    assert isinstance(running, KernelDetector)
    assert used(running, "a ab c") == [[0, 2]]
    assert running._general is not None
    assert used(running, "d") == [[1, 3]]
    assert running._general is not None
    assert used(running, "b d") == [[4, 5]]
    assert running._general is None


def test_an_event_of_several_types_goes_to_the_oldest_instance_only():
    for running in both_ways(beside("a", "b")):
        assert used(running, "a ab ab b") == [[0, 1], [2, 3]]


def test_rows_of_one_type_are_several_occurrences():
    """Two doors are opened by one event, and closed by another: both are seen."""
    body = then("a(v)", "b(v)")
    for running in (
        detector(body, parameters="v"),
        make_detector(automaton(body, parameters="v")),
    ):
        assert running.take([Event(0, (1,), 0), Event(0, (2,), 0)]) == []
        found = running.take([Event(1, (2,), 5), Event(1, (1,), 5), Event(1, (3,), 5)])
        assert sorted((each.values, each.used) for each in found) == [
            ((1,), (0, 1)),
            ((2,), (0, 1)),
        ]


def test_rows_are_arranged_by_key_and_rank():
    arranger = RowArranger(automaton(then("a(v, w)", "b(v)"), parameters="v"))
    a, b, x = LETTERS["a"], LETTERS["b"], LETTERS["x"]
    rows = [(a, 1, 7), (a, 1, 8), (a, 2, 7), (b, 1, 0), (b, 2, 0), (x, 9, 9), (x, 9, 9), (b, 1, 0)]
    numbers = np.array([0, 0, 0, 0, 0, 0, 1, 2])
    types, *values = (np.array(column) for column in zip(*rows, strict=True))
    found = arranger.rows(types, np.column_stack(values), numbers, numbers)
    assert found.source.tolist() == [0, 3, 1, 2, 4, 6, 7]
    assert found.types.tolist() == [a, b, a, a, b, UNNAMED, b]
    assert found.begins.tolist() == [
        NEW_EVENT,
        SAME_OCCURRENCE,
        NEW_OCCURRENCE,
        NEW_KEY,
        SAME_OCCURRENCE,
        NEW_EVENT,
        NEW_EVENT,
    ]


@st.composite
def typed_streams(draw, most=8):
    """Events of one to three types: their rows (at most one of a type) and times.

    An event of several types has one value: its rows agree on all variables, and so are one
    occurrence of the event for every pattern.
    """
    time, events = 0, []
    for _ in range(draw(st.integers(1, most))):
        time += draw(st.integers(0, 3))
        names = draw(st.lists(st.sampled_from([*TYPES]), min_size=1, max_size=3, unique=True))
        first = draw(st.integers(1, 2))
        rows = []
        for name in sorted(names, key=NUMBERS.__getitem__):
            second = draw(st.integers(1, 2)) if len(names) == 1 else first
            rows.append((name, (first, second)[: TYPES[name]]))
        events.append((rows, time))
    return events


def expected(pattern, stream):
    oracle, found = EventOracle(pattern), []
    for ((name, values), *others), time in stream:
        found += oracle.step(name, values, time, tuple(others))
    found += oracle.advance(END)
    return [(each.values, each.time, each.used) for each in found]


def detected(running, stream):
    found = []
    for rows, time in stream:
        found += running.take([Event(NUMBERS[name], values, time) for name, values in rows])
    found += running.advance(END)
    return [(each.values, each.time, each.used) for each in found]


@given(pattern=st.one_of(declarations(), per_declarations()), stream=typed_streams())
@settings(max_examples=150, deadline=None)
def test_events_of_several_types_match_as_the_definitions_say(pattern, stream):
    running = Detector(compile_pattern(pattern, NUMBERS, lambda _: 1))
    assert detected(running, stream) == expected(pattern, stream)


@given(pattern=st.one_of(declarations(composite=False), per_declarations()), stream=typed_streams())
@settings(max_examples=150, deadline=None)
def test_the_kernel_takes_events_of_several_types(pattern, stream):
    running = make_detector(compile_pattern(pattern, NUMBERS, lambda _: 1))
    assume(isinstance(running, KernelDetector))
    assert detected(running, stream) == expected(pattern, stream)


def test_times_of_arrow_need_no_loops_of_their_own():
    """Loops are compiled for each kind of array that they get, read-only ones too."""
    when = np.array([3, 4])
    when.flags.writeable = False
    arranger = RowArranger(automaton(then("a", "b")))
    rows = arranger.rows(np.array([0, 1]), np.zeros((2, 0)), when, 0)
    assert rows.times.flags.writeable and rows.times.tolist() == [3, 4]
