"""NOT between events: of an event, of a pattern, with values and without."""

from __future__ import annotations

from itertools import product

import pytest
from patterns.patterns import (
    automaton,
    both,
    detector,
    either,
    holds,
    no,
    plus,
    run,
    star,
    then,
    times,
    used,
    within,
)

from graphtide.patterns.detector import make_detector
from graphtide.patterns.general import Detector


def test_not_is_about_the_gap_only():
    body = then("a", no("x"), "b")
    assert len(run(detector(body), "x a b x")) == 1
    assert run(detector(body), "a x b") == []


def test_the_event_that_ends_the_gap_may_be_what_not_forbids():
    assert used(run(detector(then("a", no("b"), "b")), "a b")) == [[0, 1]]


def test_an_instance_with_a_violated_not_is_dropped():
    running = detector(then("a", no("x"), "b"))
    run(running, "a x")
    assert running.tokens() == []


def test_what_spoils_one_may_be_used_by_another():
    body = either(then("a", no("c"), "b"), then("d", "c"))
    assert used(run(detector(body), "d a c b")) == [[0, 2]]


def test_what_is_used_by_the_oldest_spoils_the_next():
    running = detector(then("a", no("b"), "c", "b"))
    assert used(run(running, "a c a b c")) == [[0, 1, 3]]
    assert running.tokens() == []


def test_not_with_a_value_of_the_instance():
    body = then("a(v)", no("x(v)"), "b(v)")
    assert len(run(detector(body), "a(1) x(2) b(1)")) == 1
    assert run(detector(body), "a(1) x(1) b(1)") == []


def test_a_variable_that_stands_only_in_not_may_be_anything():
    body = then("a(v)", no("x(w)"), "b(v)")
    assert run(detector(body), "a(1) x(2) b(1)") == []


def test_not_with_a_constant():
    body = then("a", no("x(5)"), "b")
    assert len(run(detector(body), "a x(4) b")) == 1
    assert run(detector(body), "a x(5) b") == []


def test_not_of_a_sequence_looks_for_it_among_all_events():
    body = then("a", no(then("x", "y")), "b")
    assert len(run(detector(body), "a y x b")) == 1
    assert run(detector(body), "a x c y b") == []
    assert run(detector(body), "a x x y b") == []


def test_not_of_a_sequence_that_began_before_the_gap():
    assert len(run(detector(then("a", no(then("x", "y")), "b")), "x a y b")) == 1


def test_not_of_a_sequence_with_values_of_its_own():
    body = then("a", no(then("x(w)", "y(w)")), "b")
    assert len(run(detector(body), "a x(1) y(2) b")) == 1
    assert run(detector(body), "a x(1) x(2) y(1) b") == []


def test_not_of_either_and_both():
    assert run(detector(then("a", no(either("x", "y")), "b")), "a y b") == []
    assert len(run(detector(then("a", no(both("x", "y")), "b")), "a y b")) == 1
    assert run(detector(then("a", no(both("x", "y")), "b")), "a y x b") == []


def test_not_n_times():
    body = then("a", no(times("x", 3)), "b")
    assert len(run(detector(body), "a x x b")) == 1
    assert run(detector(body), "a x x x b") == []


def test_not_within():
    """No two x within 2 of each other."""
    body = then("a", no(within(then("x", "x"), 2)), "b")
    assert len(run(detector(body), "a@0 x@1 x@4 x@7 b@9")) == 1
    assert run(detector(body), "a@0 x@1 x@4 x@6 b@9") == []


def test_not_holds_for():
    body = then("a", no(holds(then("x", "y"), 5)), "b")
    assert len(run(detector(body), "a@0 x@1 y@3 b@9")) == 1
    assert run(detector(body), "a@0 x@1 y@3 y@6 b@9") == []


def test_not_of_a_pattern_with_not():
    """Forbidden is x and then z without y between them."""
    body = then("a", no(then("x", no("y"), "z")), "b")
    assert len(run(detector(body), "a x y z b")) == 1
    assert run(detector(body), "a x z b") == []
    assert run(detector(body), "a x y x z b") == []


def test_not_of_an_absence():
    """Forbidden is an x that no y follows within 3."""
    body = then("a", no(then("x", within(no("y"), 3))), "b")
    assert len(run(detector(body), "a@0 x@1 y@4 b@9")) == 1
    assert run(detector(body), "a@0 x@1 y@5 b@9") == []
    assert len(run(detector(body), "a@0 x@1 b@4")) == 1
    running = detector(body)
    run(running, "a@0 x@1", until=5)
    assert running.tokens() == []


def test_a_gap_around_something_that_may_be_missing():
    body = then("a", no("x"), star("b"), "c")
    assert run(detector(body), "a x c") == []
    assert len(run(detector(body), "a b x c")) == 1


def test_not_at_the_end_of_a_bracket_and_at_its_beginning():
    assert run(detector(then(then("a", no("x")), "b")), "a x b") == []
    assert run(detector(then("a", then(no("x"), "b"))), "a x b") == []


def test_not_in_a_loop():
    body = then(plus(then("a", no("x"))), "b")
    running = detector(body)
    assert run(running, "a x b") == []


def test_absence_of_a_sequence():
    body = then("a", within(no(then("x", "y")), 10))
    assert len(run(detector(body), "a@0 x@3 y@11")) == 1
    assert run(detector(body), "a@0 x@3 y@10", until=99) == []


def test_absence_of_an_absence_that_ends_with_it():
    """x at 2 lacks its y at 5: the end of the gap, which is still within."""
    body = then("a", within(no(then("x", within(no("y"), 3))), 5))
    assert run(detector(body), "a@0 x@2", until=99) == []
    assert len(run(detector(body), "a@0 x@3", until=99)) == 1


# --- NOT in every context: all short streams, against the definition for this one pattern ---


def by_definition(context, forbidden, stream):
    """The matches of `a -> NOT forbidden -> c` (or of `a -> c`), straight from docs/patterns.md."""
    open_, found = [], []
    for number, event in enumerate(stream):
        if event == "c" and open_:
            found.append([open_.pop(0), number])
        elif event == "a" and not (context == "STRICT" and open_):
            if forbidden == "a":
                open_.clear()
            open_.append(number)
        elif context != "CHRONICLE":  # noise
            stays = forbidden is not None and event != forbidden
            open_ = open_ if stays else []
            if event == "a" and not open_:  # STRICT begins anew
                open_ = [number]
        elif event == forbidden:
            open_ = []
    return found


@pytest.mark.slow
@pytest.mark.parametrize("context", ["CHRONICLE", "IMMEDIATE", "STRICT"])
@pytest.mark.parametrize("forbidden", [None, "a", "b", "d"])
def test_not_means_the_same_in_every_context(context, forbidden):
    body = then("a", "c") if forbidden is None else then("a", no(forbidden), "c")
    compiled = automaton(body, context)
    for length in range(6):
        for stream in product("abcd", repeat=length):
            wanted = by_definition(context, forbidden, stream)
            assert used(run(Detector(compiled), " ".join(stream))) == wanted, stream


@pytest.mark.parametrize("context", ["CHRONICLE", "IMMEDIATE", "STRICT"])
def test_the_kernel_reads_not_in_every_context(context):
    compiled = automaton(then("a", no("b"), "c"), context)
    streams = [s for length in range(6) for s in product("abcd", repeat=length)]
    for stream in streams[::7]:
        wanted = by_definition(context, "b", stream)
        assert used(run(make_detector(compiled), " ".join(stream))) == wanted, stream


@pytest.mark.parametrize("context", ["CHRONICLE", "IMMEDIATE", "STRICT"])
def test_not_makes_a_difference_in_every_context(context):
    streams = list(product("abcd", repeat=3))
    without, b, d = (
        [by_definition(context, forbidden, stream) for stream in streams]
        for forbidden in (None, "b", "d")
    )
    assert without != b != d != without
    plain, gap = detector(then("a", "c"), context), detector(then("a", no("b"), "c"), context)
    differs = [s for s in streams if run_anew(plain, s) != run_anew(gap, s)]
    assert differs


def run_anew(running, stream):
    return used(run(Detector(running.automaton), " ".join(stream)))


def test_noise_closes_the_ways_on_without_not():
    """After z only c may come: d would have to follow a at once."""
    body = then("a", either(then(no("x"), "c"), "d"))
    for make in (Detector, make_detector):
        compiled = automaton(body, "IMMEDIATE")
        assert used(run(make(compiled), "a z c")) == [[0, 2]]
        assert run(make(compiled), "a z d") == []
        assert used(run(make(compiled), "a d")) == [[0, 1]]


def test_noise_drops_an_instance_outside_of_a_gap_though_another_is_in_one():
    body = then("a", "b", no("x"), "c")
    for make in (Detector, make_detector):
        assert used(run(make(automaton(body, "IMMEDIATE")), "a b a z b c c")) == [[0, 1, 5]]


def test_absence_within_a_time_ignores_noise_in_every_context():
    body = then("a", within(no("x"), 5))
    for context in ("CHRONICLE", "IMMEDIATE", "STRICT"):
        for make in (Detector, make_detector):
            compiled = automaton(body, context)
            assert len(run(make(compiled), "a@0 z@3", until=9)) == 1
            assert run(make(compiled), "a@0 z@2 x@3", until=9) == []
