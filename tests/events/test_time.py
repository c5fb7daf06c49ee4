"""WITHIN, HOLDS FOR and absence: bounds, expiry, timers."""

from __future__ import annotations

import pytest
from events.patterns import both, detector, either, holds, no, plus, run, then, times, used, within

from graphtide.errors import GraphtideError


def test_an_event_exactly_at_the_end_of_within_counts():
    assert len(run(detector(within(then("a", "b"), 5)), "a@0 b@5")) == 1
    assert not run(detector(within(then("a", "b"), 5)), "a@0 b@6")


def test_within_of_nothing_is_the_same_time():
    assert len(run(detector(within(then("a", "b"), 0)), "a@3 b@3")) == 1
    assert not run(detector(within(then("a", "b"), 0)), "a@3 b@4")


def test_too_late_a_token_is_dropped_by_time_alone():
    running = detector(within(then("a", "b"), 5))
    run(running, "a@0")
    running.advance(5)
    assert len(running.tokens()) == 1
    running.advance(6)
    assert running.tokens() == []


def test_what_is_too_late_for_the_oldest_goes_to_the_next():
    running = detector(within(then("a", "b"), 5))
    assert used(run(running, "a@0 a@3 b@7")) == [[1, 2]]


def test_holds_for_at_the_bound():
    assert len(run(detector(holds(then("a", "b"), 5)), "a@0 b@5")) == 1
    assert not run(detector(holds(then("a", "b"), 5)), "a@0 b@4")


def test_what_ended_too_early_was_used_and_has_to_begin_anew():
    running = detector(holds(then("a", "b"), 5))
    assert not run(running, "a@0 b@4 b@9")
    assert running.tokens() == []
    assert used(run(running, "a@10 b@15")) == [[3, 4]]


def test_too_early_for_the_oldest_is_used_by_it():
    running = detector(holds(then("a", "b"), 5))
    assert used(run(running, "a@0 a@1 b@3 b@6")) == [[1, 3]]


def test_holds_for_of_a_part_in_the_middle():
    body = then(holds(then("a", "b"), 5), "c")
    assert len(run(detector(body), "a@0 b@5 c@6")) == 1
    running = detector(body)
    assert not run(running, "a@0 b@4")
    assert running.tokens() == []


def test_a_loop_may_go_round_until_it_has_held_for_long_enough():
    body = then(holds(then("a", plus("b")), 5), "c")
    assert used(run(detector(body), "a@0 b@1 c@2 b@6 c@7")) == [[0, 1, 3, 4]]


def test_what_must_follow_needs_its_time():
    """After 5 the inner part cannot last 5 before 10: the oldest is gone, b is the next's."""
    body = within(then("a", holds(then("b", "c"), 5)), 10)
    assert used(run(detector(body), "a@0 a@3 b@6 c@11")) == [[1, 2, 3]]
    assert used(run(detector(body), "a@0 a@3 b@5 c@10")) == [[0, 2, 3]]


def test_an_inner_zone_begins_with_its_first_event():
    body = then("a", within(then("b", "c"), 2), "d")
    assert len(run(detector(body), "a@0 b@9 c@11 d@50")) == 1
    assert not run(detector(body), "a@0 b@9 c@12 d@50")


def test_a_zone_in_a_loop_begins_again_each_time():
    body = times(within(then("a", "b"), 2), 2)
    assert len(run(detector(body, "STRICT"), "a@0 b@2 a@10 b@12")) == 1
    assert not run(detector(body, "STRICT"), "a@0 b@2 a@10 b@13")


def test_within_around_and():
    body = within(both("a", "b", "c"), 4)
    assert len(run(detector(body), "c@0 a@2 b@4")) == 1
    assert not run(detector(body), "c@0 a@2 b@5")


def test_absence_is_complete_when_its_time_has_passed():
    running = detector(then("a", within(no("b"), 30)))
    assert run(running, "a@10", until=40) == []
    (found,) = running.advance(41)
    assert (found.time, found.start, found.used) == (40, 10, (0,))
    assert running.tokens() == []


def test_an_event_at_exactly_the_end_of_an_absence_is_within():
    assert run(detector(then("a", within(no("b"), 30))), "a@10 b@40", until=100) == []
    assert len(run(detector(then("a", within(no("b"), 30))), "a@10 b@41")) == 1


def test_absence_counts_from_the_first_event_of_the_zone():
    running = detector(within(then("a", "b", no("c")), 10))
    assert [one.time for one in run(running, "a@0 b@7", until=11)] == [10]
    assert run(detector(within(then("a", "b", no("c")), 10)), "a@0 b@7 c@9", until=99) == []
    assert len(run(detector(within(then("a", "b", no("c")), 10)), "a@0 c@3 b@7", until=99)) == 1


def test_absence_counts_from_what_stands_before_it():
    running = detector(then("a", "b", within(no("c"), 10)))
    assert [one.time for one in run(running, "a@0 b@7", until=18)] == [17]


def test_something_may_follow_an_absence():
    body = then("a", within(no("b"), 5), "c")
    assert used(run(detector(body), "a@0 c@5 c@6")) == [[0, 2]]
    assert run(detector(body), "a@0 b@3 c@6") == []
    assert used(run(detector(body), "a@0 b@6 c@7")) == [[0, 2]]


def test_an_absence_must_end_within_what_is_around_it():
    body = within(then("a", "b", within(no("x"), 5)), 10)
    assert [one.time for one in run(detector(body), "a@0 b@5", until=99)] == [10]
    assert run(detector(body), "a@0 b@6", until=99) == []
    assert used(run(detector(body), "a@0 a@3 b@6", until=99)) == [[1, 2]]


def test_timers_fire_in_order_of_time_then_of_age():
    running = detector(then(either("a", "c"), within(no("b"), 5)))
    found = run(running, "a@0 c@0 a@1", until=20)
    assert [(one.time, one.used) for one in found] == [(5, (0,)), (5, (1,)), (6, (2,))]


def test_timers_fire_before_the_event_that_shows_their_time():
    running = detector(then("a", either(then(within(no("b"), 5), "c"), "d")))
    assert used(run(running, "a@0 d@9")) == [[0, 1]]
    assert used(run(running, "a@20 c@26")) == [[2, 3]]


def test_two_absences_one_after_the_other():
    body = then("a", within(no("b"), 5), within(no("c"), 5))
    assert [one.time for one in run(detector(body), "a@0 c@2 b@8", until=99)] == [10]
    assert run(detector(body), "a@0 b@2", until=99) == []
    assert run(detector(body), "a@0 c@8", until=99) == []


def test_memory_is_bounded_by_what_can_still_be_completed():
    running = detector(within(then("a", "b"), 9))
    for time in range(1000):
        running.step(0, (), time)
        assert len(running.tokens()) <= 10
    assert len(running._due) <= 40


def test_time_does_not_go_back():
    running = detector(then("a", "b"))
    run(running, "a@5")
    with pytest.raises(GraphtideError, match="time went back from 5 to 4"):
        running.step(1, (), 4)


def test_both_bounds():
    body = holds(within(then("a", "b"), 10), 5)
    assert [len(run(detector(body), f"a@0 b@{t}")) for t in (4, 5, 10, 11)] == [0, 1, 1, 0]
