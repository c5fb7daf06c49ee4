"""Window arithmetic at its boundaries, by hand and against a search over all closes."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphtide.errors import GraphtideError
from graphtide.streams.stream import Timelist
from graphtide.streams.windows import (
    ALIGNMENTS,
    ChangingWindow,
    ElementWindow,
    TimeWindow,
    WindowContent,
)

shapes = st.builds(
    TimeWindow,
    st.integers(1, 8),
    st.integers(1, 7),
    st.integers(-5, 5),
    st.sampled_from(ALIGNMENTS),
)
times = st.lists(st.integers(0, 4), max_size=30).map(lambda gaps: np.cumsum(gaps).tolist())


@pytest.mark.parametrize(
    ("alignment", "first", "bounds"),
    [
        ("close", 10, {10: (0, 10), 15: (5, 15)}),  # [0, 10), [5, 15)
        ("w3c", 5, {5: (-4, 6), 10: (1, 11)}),  # (-5, 5], (0, 10]
        ("yabench", 5, {5: (-5, 6), 10: (0, 11)}),  # [-5, 5], [0, 10]
        ("rsp4j", 5, {5: (-5, 5), 10: (0, 10)}),
    ],
)
def test_the_four_alignments(alignment, first, bounds):
    window = TimeWindow(10, 5, alignment=alignment)
    assert window.first_close == first
    assert {close: window.bounds(close) for close in bounds} == bounds


@pytest.mark.parametrize(
    ("time", "inside"), [(0, [10]), (4, [10]), (5, [10, 15]), (9, [10, 15]), (10, [15, 20])]
)
def test_an_event_at_open_is_inside_and_one_at_close_is_not(time, inside):
    window = TimeWindow(10, 5)
    closes = [c for c in (10, 15, 20, 25) if window.bounds(c)[0] <= time < window.bounds(c)[1]]
    assert closes == inside
    assert window.enters(np.array([time]))[0] == inside[0]
    assert window.leaves(np.array([time]))[0] == inside[-1] + 5


def test_the_origin_moves_all_windows():
    assert TimeWindow(10, 10, origin=3).closes(0, 40).tolist() == [13, 23, 33]


def test_a_step_longer_than_the_range_leaves_gaps():
    window = TimeWindow(2, 5)
    held = [
        t for t in range(20) if window.enters(np.array([t]))[0] < window.leaves(np.array([t]))[0]
    ]
    assert held == [0, 1, 5, 6, 10, 11, 15, 16]


@given(shapes, st.integers(-20, 40))
def test_an_event_is_in_the_windows_from_where_it_enters_to_where_it_leaves(window, time):
    closes = window.closes(-100, 100).tolist()
    inside = [c for c in closes if window.bounds(c)[0] <= time < window.bounds(c)[1]]
    enters, leaves = (int(f(np.array([time]))[0]) for f in (window.enters, window.leaves))
    assert inside == [c for c in closes if enters <= c < leaves]


@pytest.mark.parametrize("make", [lambda: TimeWindow(0, 1), lambda: TimeWindow(1, 0)])
def test_a_window_without_length_is_refused(make):
    with pytest.raises(GraphtideError, match="at least one tick"):
        make()


def test_an_unknown_alignment_is_refused():
    with pytest.raises(GraphtideError, match="alignment='left'"):
        TimeWindow(1, 1, 0, "left")


def contents(shape, events, sizes):
    """The content at each close, with the events handed over in chunks of some sizes."""
    timelist = Timelist()
    content = WindowContent(shape, timelist)
    present: set[int] = set()
    found = []
    rest = list(enumerate(events))
    end = events[-1] + 50 if events else 0
    while rest:
        size = sizes.pop() if sizes else len(rest)
        chunk, rest = rest[:size], rest[size:]
        numbers = [[1 + n % 4, 7, 7, 0] for n, _ in chunk]
        timelist.append(np.array([t for _, t in chunk]), np.array(numbers, np.int32))
        complete = chunk[-1][1] if rest else end
        while True:
            closes, changes = content.advance(complete)
            if not len(closes):
                break
            for place, close in enumerate(closes.times.tolist()):
                for _, diff, number, *_ in changes[changes[:, 0] == place].tolist():
                    assert (number in present) == (diff < 0)
                    present ^= {number}
                found.append((close, frozenset(present)))
        timelist.drop_before(content.held.start)
    return found


@given(shapes, times, st.lists(st.integers(1, 6)))
def test_the_content_at_every_close_is_that_of_the_definition(shape, events, sizes):
    found = contents(shape, events, sizes)
    first = int(shape.enters(np.array(events[:1]))[0]) if events else 0
    last = events[-1] + 50 - shape.bounds(0)[1] if events else -1
    expected = [
        (close, frozenset(1 + n % 4 for n, t in enumerate(events) if begin <= t < end))
        for close in shape.closes(first - 1, last).tolist()
        for begin, end in [shape.bounds(close)]
    ]
    if shape.alignment == "rsp4j":  # of several windows that close together only the last reports
        assert set(found) <= set(expected)
        assert [close for close, _ in found] == sorted({close for close, _ in found})
    else:
        assert found == expected


@given(st.integers(1, 6), st.integers(1, 8), times, st.lists(st.integers(1, 6)))
def test_windows_of_elements(count, step, events, sizes):
    expected = [
        (events[end - 1], frozenset(1 + n % 4 for n in range(max(0, end - count), end)))
        for end in range(step, len(events) + 1, step)
    ]
    assert contents(ElementWindow(count, step), events, sizes) == expected


def test_a_stream_that_starts_late_does_not_report_all_the_time_before():
    found = contents(TimeWindow(10, 1), [1_700_000_000], [])
    assert found[0] == (1_700_000_001, {1})


@given(st.integers(1, 8), st.integers(1, 7), st.integers(-5, 5), times, st.lists(st.integers(1, 6)))
def test_windows_that_report_every_change(length, step, origin, events, sizes):
    """tau_b = floor((tau - omega) / x) x: what is older is evicted when an event comes at tau."""
    expected = []
    for now in sorted(set(events)):
        begin = origin + (now - origin - length) // step * step
        held = frozenset(1 + n % 4 for n, t in enumerate(events) if begin <= t <= now)
        expected.append((now, held))
    assert contents(ChangingWindow(length, step, origin), events, sizes) == expected
