"""Batches of events against their definitions, with one event as with many."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from graphtide.engine.events import group_events, make_events
from graphtide.engine.ingest import first_backwards

NUMBERS = st.lists(st.integers(0, 3), min_size=1, max_size=5)


@given(NUMBERS)
def test_rows_of_one_number_are_one_event(numbers):
    rows = np.array([[at, 7, 8, 9] for at in range(len(numbers))], np.int32)
    times = np.full(len(numbers), 5)
    events = group_events(times, rows, np.array(numbers))
    expected = {n: [at for at, m in enumerate(numbers) if m == n] for n in dict.fromkeys(numbers)}
    bounds = events.offsets.tolist()
    found = [events.triples[a:b, 0].tolist() for a, b in pairwise(bounds)]
    assert dict(zip(events.numbers.tolist(), found, strict=True)) == expected
    assert events.triples[:, 1:].tolist() == [[7, 8]] * len(numbers)
    assert events.ends.tolist() == [5] * len(expected)


def test_an_event_does_not_change_with_the_array_that_it_was_given_in():
    times, rows = np.array([5]), np.array([[1, 2, 3, 0]], np.int32)
    event = group_events(times, rows, np.array([0]))
    times[0], rows[0, 0] = 9, 9
    assert (event.ends.tolist(), event.triples.tolist()) == ([5], [[1, 2, 3]])


@given(NUMBERS, st.sets(st.integers(0, 3)))
def test_events_without_some_numbers(numbers, left_out):
    rows = np.array([[at, 7, 8, 9] for at in range(len(numbers))], np.int32)
    events = group_events(np.arange(len(numbers)), rows, np.arange(len(numbers)))
    object.__setattr__(events, "numbers", np.array(numbers))
    kept = [at for at, number in enumerate(numbers) if number not in left_out]
    found = events.without(left_out)
    assert found.triples[:, 0].tolist() == found.ends.tolist() == kept
    assert found.offsets.tolist() == list(range(len(kept) + 1))
    assert len(make_events([[(1, 2, 3)]], [4]).without({-1})) == 0


@given(st.integers(0, 4), st.lists(st.integers(0, 4), max_size=4))
def test_the_first_time_that_runs_backwards(clock, times):
    found = first_backwards(clock, np.array(times, np.int64))
    every = [clock, *times]
    wrong = [at for at in range(len(times)) if every[at + 1] < every[at]]
    assert (found and found[0]) == (wrong[0] if wrong else None)
