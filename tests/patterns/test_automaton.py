"""The shape of automata: figure 7 of paper 4, copies, orders, limits."""

from __future__ import annotations

import pytest
from patterns.patterns import (
    automaton,
    beside,
    both,
    either,
    holds,
    no,
    plus,
    star,
    then,
    times,
    within,
)

from graphtide.errors import GraphtideError


def steps(body):
    """From, to, event, and a + where a loop goes round."""
    made = automaton(body)
    return {
        (t.source, t.target, made.positions[t.target].name + "+" * t.spare)
        for out in made.transitions
        for t in out
    }


def ends(body):
    return [p.number for p in automaton(body).positions if p.final]


@pytest.mark.parametrize(
    ("body", "expected", "final"),
    [
        (then("a1", "a2"), {(0, 1, "a1"), (1, 2, "a2")}, [2]),
        (either("a1", "a2"), {(0, 1, "a1"), (0, 2, "a2")}, [1, 2]),
        (
            both("a1", "a2"),
            {(0, 1, "a1"), (0, 2, "a2"), (1, 3, "a2"), (2, 4, "a1")},
            [3, 4],
        ),
        (
            then(star("a"), "b"),
            {(0, 1, "a"), (1, 1, "a+"), (0, 2, "b"), (1, 2, "b")},
            [2],
        ),
        (then(plus("a"), "b"), {(0, 1, "a"), (1, 1, "a+"), (1, 2, "b")}, [2]),
        (times("a", 3), {(0, 1, "a"), (1, 2, "a"), (2, 3, "a")}, [3]),
    ],
)
def test_figure_7(body, expected, final):
    assert steps(body) == expected
    assert ends(body) == final


def test_not_closes_the_gap_it_stands_in():
    made = automaton(then("a", no("x"), "b", "c"))
    assert [t.nots for out in made.transitions for t in out] == [(), (0,), ()]


def test_a_zone_is_entered_crossed_and_left():
    made = automaton(then("a", within(then("b", "c"), 5), "d"))
    found = [(t.enters, t.crosses, t.leaves) for out in made.transitions for t in out]
    assert found == [((), (), ()), ((0,), (), ()), ((), (0,), ()), ((), (), (0,))]
    assert made.transitions[2][0].bounds[0].latest == ((0, 5),)


def test_holds_for_is_looked_at_where_the_part_ends():
    made = automaton(then(holds(then("a", "b"), 5), "c"))
    assert [t.early for out in made.transitions for t in out] == [(), ((0, 5),), ()]
    looped = automaton(then(holds(then("a", plus("b")), 5), "c"))
    assert {(t.target, t.held) for t in looped.transitions[2]} == {(2, ()), (3, ((0, 5),))}


def test_an_absence_is_a_position_that_waits_for_time():
    made = automaton(then("a", within(no("b"), 30)))
    assert made.positions[2].timer == (0, 30)
    assert made.positions[2].letter is None


def test_a_branch_that_can_never_end_in_time_is_left_out():
    hopeless = within(then("b", within(no("x"), 9)), 5)
    assert {step for step in steps(either("a", hopeless)) if step[0] == 0} == {(0, 1, "a")}


def test_all_of_three_pairs_has_a_position_for_each_state_and_mover():
    """States of two steps each: 3^3; each but the first is reached by those that have moved."""
    made = automaton(beside(then("a", "b"), then("c", "d"), then("x", "y")))
    assert len(made.positions) == 1 + 3 * 2 * 9


def test_too_many_positions():
    with pytest.raises(GraphtideError, match="more than 10,000 positions"):
        automaton(times(times("a", 101), 100))


def test_an_event_that_is_not_declared():
    with pytest.raises(GraphtideError, match="there is no event nowhere"):
        automaton(then("a", "nowhere"))
