"""Contexts: which match an event joins; loops, PER, values."""

from __future__ import annotations

import numpy as np
from patterns.patterns import (
    TYPES,
    beside,
    both,
    detector,
    either,
    no,
    plus,
    run,
    star,
    then,
    times,
    used,
    within,
)


def test_values_unify():
    running = detector(then("a(v)", "b(v)"), parameters="v")
    found = run(running, "a(1) a(2) b(2) b(3) b(1)")
    assert [(one.values, one.used) for one in found] == [((2,), (1, 2)), ((1,), (0, 4))]


def test_a_variable_twice_in_one_event():
    assert used(run(detector(then("a(v, v)", "b")), "a(1,2) b a(3,3) b")) == [[2, 3]]


def test_constants_and_any_value():
    assert used(run(detector(then("a(5, _)", "b")), "a(4,1) b a(5,9) b")) == [[2, 3]]


def test_the_shortest_match_counts():
    assert used(run(detector(plus("a")), "a a")) == [[0], [1]]


def test_chronicle_begins_anew_before_it_goes_round():
    assert used(run(detector(then(plus("a"), "b")), "a a b b")) == [[0, 2], [1, 3]]


def test_strict_gathers():
    assert used(run(detector(then(plus("a"), "b"), "STRICT"), "a a a b")) == [[0, 1, 2, 3]]


def test_a_loop_that_is_not_the_beginning_gathers_in_every_context():
    body = then("a", plus("b"), "c")
    for context in ("CHRONICLE", "IMMEDIATE", "STRICT"):
        assert used(run(detector(body, context), "a b b b c")) == [[0, 1, 2, 3, 4]]


def test_going_forward_comes_before_going_round():
    """The second b is the first one of the younger instance."""
    running = detector(then("a", plus("b"), "c"))
    assert used(run(running, "a b a b b c c")) == [[0, 1, 4, 5], [2, 3, 6]]


def test_an_ambiguous_event_is_read_in_every_way():
    body = either(then("a", plus("b"), "b", "c"), then("a", "b", "d"))
    assert used(run(detector(body), "a b d")) == [[0, 1, 2]]
    assert used(run(detector(body), "a b b b c")) == [[0, 1, 2, 3, 4]]


def test_immediate_drops_all_with_noise():
    running = detector(then("a", "b"), "IMMEDIATE")
    assert used(run(running, "a a c a b b")) == [[3, 4]]


def test_an_event_of_a_type_that_is_not_named_is_noise():
    running = detector(then("a", "b"), "STRICT")
    assert run(running, "a e b") == []


def test_strict_noise_may_begin_a_new_one():
    assert used(run(detector(then("a", "b", "c"), "STRICT"), "a b a b c")) == [[2, 3, 4]]


def test_per_value():
    running = detector(then("a(v)", "b(v)"), "STRICT", per="v", parameters="v")
    found = run(running, "a(1) a(2) e b(1) b(2)")
    assert [one.values for one in found] == [(1,), (2,)]


def test_without_per_another_value_is_noise():
    assert run(detector(then("a(v)", "b(v)"), "STRICT"), "a(1) a(2) b(1)") == []


def test_noise_of_one_value_leaves_the_others_alone():
    running = detector(then("a(v)", "b(v)", "c(v)"), "IMMEDIATE", per="v", parameters="v")
    found = run(running, "a(1) a(2) c(1) b(1) b(2) c(1) c(2)")
    assert [one.values for one in found] == [(2,)]


def test_per_with_the_variable_in_different_places():
    running = detector(then("a(v, w)", "a(w, v)"), "STRICT", per="v", parameters="v w")
    found = run(running, "a(1,2) a(2,1)")
    assert [(one.values, one.used) for one in found] == [((1, 2), (0, 1))]


def test_a_not_without_the_variable_of_per_looks_at_every_stream():
    running = detector(then("a(v)", no("x"), "b(v)"), "STRICT", per="v", parameters="v")
    assert run(running, "a(1) a(2) x b(1) b(2)") == []


def test_and_of_composite_parts_keeps_them_whole():
    body = both(then("a", "b"), "c")
    accepted = [events for events in ("a b c", "c a b", "a c b") if run(detector(body), events)]
    assert accepted == ["a b c", "c a b"]
    assert used(run(detector(body, "STRICT"), "a c b")) == []
    assert used(run(detector(body, "STRICT"), "a b c")) == [[0, 1, 2]]


def test_and_of_three_is_every_order():
    for events in ("a b c", "a c b", "b a c", "b c a", "c a b", "c b a"):
        assert len(run(detector(both("a", both("b", "c")), "STRICT"), events)) == 1


def test_and_with_a_part_that_may_be_missing():
    body = both(star("a"), "b")
    assert used(run(detector(body), "b")) == [[0]]
    assert used(run(detector(body), "a b")) == [[0, 1]]


def test_all_interleaves():
    body = beside(then("a", "b"), then("c", "d"))
    for events in ("a b c d", "a c b d", "a c d b", "c a b d", "c a d b", "c d a b"):
        assert len(run(detector(body, "STRICT"), events)) == 1, events
    assert run(detector(body, "STRICT"), "b a c d") == []


def test_all_of_equal_parts_needs_each():
    body = beside(then("a", "b"), then("a", "b"))
    assert used(run(detector(body, "STRICT"), "a a b b")) == [[0, 1, 2, 3]]
    assert used(run(detector(body, "STRICT"), "a b a b")) == [[0, 1, 2, 3]]


def test_zones_of_the_parts_of_all_go_on_side_by_side():
    body = beside(within(then("a", "b"), 3), within(then("c", "d"), 9))
    assert len(run(detector(body), "a@0 c@1 b@3 d@10")) == 1
    assert run(detector(body), "a@0 c@1 b@4 d@10") == []
    running = detector(body)
    run(running, "a@0 c@1", until=4)
    assert running.tokens() == []


def test_each_copy_of_times_is_a_step_forward():
    for context in ("CHRONICLE", "IMMEDIATE", "STRICT"):
        body = then(times("a", 2), "b")
        assert used(run(detector(body, context), "a a a b")) == (
            [] if context == "STRICT" else [[0, 1, 3]]
        )


def test_a_batch_gives_what_single_events_give():
    body = within(then("a(v)", no("x(v)"), "b(v)"), 4)
    rows = [("a", 1, 0), ("a", 2, 1), ("x", 1, 2), ("b", 2, 3), ("e", 0, 4), ("b", 1, 4)]
    types = np.array([TYPES[name] for name, _, _ in rows])
    values = np.array([[value, 77] for _, value, _ in rows])
    times_ = np.array([time for _, _, time in rows])
    columns = detector(body, parameters="v").feed(types, values, times_)
    assert columns.values.tolist() == [[2]]
    assert (columns.time.tolist(), columns.start.tolist(), columns.at.tolist()) == ([3], [1], [3])
    assert (columns.first_used.tolist(), columns.used.tolist()) == ([0, 2], [1, 3])


def test_readings_with_different_values_are_all_reported():
    body = either(then("a(v, w)", "b"), then("a(w, v)", "b"))
    found = run(detector(body, parameters="v w"), "a(2,1) b")
    assert [one.values for one in found] == [(1, 2), (2, 1)]
