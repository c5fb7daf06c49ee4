"""The sequence: our detector, the automaton by hand, and the definition."""

import numpy as np
import pytest

from benchmarks.sequence import WITHIN_MS, SequenceEvents, detect, make_events, plain_matches


def by_definition(events, within):
    """An event goes to the oldest instance of its key that it takes forward, or begins one."""
    instances, found = [], []
    rows = zip(events.types.tolist(), events.keys.tolist(), events.times.tolist(), strict=True)
    for number, (type_, key, time) in enumerate(rows):
        instances = [one for one in instances if time <= one["start"] + within]
        taking = [one for one in instances if one["key"] == key and one["next"] == type_]
        if taking:
            taking[0]["next"] += 1
            if taking[0]["next"] == 4:
                instances.remove(taking[0])
                found.append((number, key, taking[0]["start"]))
        elif type_ == 0:
            instances.append({"key": key, "next": 1, "start": time})
    return found


def slow_down(events, factor):
    """The same events, further apart: then some come too late."""
    return SequenceEvents(events.types, events.keys, events.times * factor)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("keys", "factor"), [(1, 1), (3, 700), (20, 100), (5, 10_000)])
def test_all_three_agree(seed, keys, factor):
    events = slow_down(make_events(800, keys, seed), factor)
    wanted = by_definition(events, WITHIN_MS)
    assert plain_matches(events, WITHIN_MS, keys) == wanted
    assert list(map(tuple, detect(events)[0].tolist())) == wanted


@pytest.mark.parametrize(("late", "matches"), [(0, 1), (1, 0)])
def test_the_last_event_may_come_at_the_end_of_the_time(late, matches):
    times = np.array([5, 6, 7, 5 + WITHIN_MS + late])
    events = SequenceEvents(np.arange(4), np.ones(4, np.int64), times)
    assert len(detect(events)[0]) == len(plain_matches(events, WITHIN_MS, 1)) == matches


def test_events_are_a_millisecond_apart():
    events = make_events(100_000, 1000, seed=3)
    assert events.times[-1] / 100_000 == pytest.approx(1, rel=0.02)
    assert np.bincount(events.types) == pytest.approx([25_000] * 4, rel=0.05)
    assert len(np.unique(events.keys)) == 1000


def test_no_more_tokens_wait_than_began_within_the_time():
    events = make_events(60_000, 1000)
    most = detect(events)[1]
    begun = events.times[events.types == 0]
    live = max(np.searchsorted(begun, begun + WITHIN_MS, side="right") - np.arange(len(begun)))
    assert live < 3_000  # of 15,000 that began
    assert 0 < most <= 2 * live  # old ones are swept out when there are twice as many
