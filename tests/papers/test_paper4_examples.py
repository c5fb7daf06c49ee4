"""The examples and figures of paper 4, and the runtime tests of its tool."""

from __future__ import annotations

import pytest
from patterns.patterns import (
    automaton,
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

FIGURE_5 = "a1 a1 a1 a2 a3 a2"


@pytest.mark.parametrize(
    ("context", "matches", "left"),
    [
        ("CHRONICLE", [[0, 3], [1, 5]], 1),
        ("IMMEDIATE", [[0, 3]], 0),
        ("STRICT", [[2, 3]], 0),
    ],
)
def test_figure_5(context, matches, left):
    running = detector(then("a1", "a2"), context)
    assert used(run(running, FIGURE_5)) == matches
    assert len(running.tokens()) == left


TOOL = {
    "or": either("a1", "a2"),
    "follows": then("a1", "a2"),
    "and": both("a1", "a2"),
    "atleast": then(plus("a1"), "a2"),
    "m3": then(times("a1", 3), "a2"),
}


@pytest.mark.parametrize(
    ("context", "events", "counts"),
    [
        ("CHRONICLE", "a1", [1, 0, 0, 0, 0]),
        ("CHRONICLE", "a1 a2", [2, 1, 1, 1, 0]),
        ("IMMEDIATE", "a1", [1, 0, 0, 0, 0]),
        ("IMMEDIATE", "a1 a1", [2, 0, 0, 0, 0]),
        ("IMMEDIATE", "a1 a1 a2", [3, 1, 1, 1, 0]),
        ("IMMEDIATE", "a1 a1 a2 a2", [4, 2, 2, 2, 0]),
        ("STRICT", "a1", [1, 0, 0, 0, 0]),
        ("STRICT", "a1 a1", [2, 0, 0, 0, 0]),
        ("STRICT", "a1 a1 a2", [3, 1, 1, 1, 0]),
        ("STRICT", "a1 a1 a2 a2", [4, 1, 1, 1, 0]),
    ],
)
def test_the_tools_runtime_tests(context, events, counts):
    found = [len(run(detector(body, context), events)) for body in TOOL.values()]
    assert found == counts


@pytest.mark.parametrize(
    ("body", "accepted", "refused"),
    [
        (then("a1", "a2"), ["a1 a2"], ["a1", "a2 a1"]),
        (either("a1", "a2"), ["a1", "a2"], ["a3"]),
        (both("a1", "a2"), ["a1 a2", "a2 a1"], ["a1", "a2 a2"]),
        (then("a3", no("a1"), "a2"), ["a3 a2", "a3 a3 a2"], ["a3 a1 a2"]),
        (then(star("a1"), "a2"), ["a2", "a1 a2", "a1 a1 a2"], ["a1", "a3"]),
        (then(plus("a1"), "a2"), ["a1 a2", "a1 a1 a2"], ["a2", "a1"]),
        (within(then("a1", "a2"), 5), ["a1@0 a2@5"], ["a1@0 a2@6"]),
    ],
)
def test_figure_7(body, accepted, refused):
    for events in accepted:
        assert len(run(detector(body), events)) == 1, events
    for events in refused:
        assert not run(detector(body), events), events


@pytest.mark.parametrize(
    "body",
    [
        lambda n: then(*(f"a{i % 2 + 1}" for i in range(n))),
        lambda n: either(*(f"a{i % 2 + 1}" for i in range(n))),
        lambda n: times("a1", n),
        lambda n: within(then(*["a1", "a2"] * (n // 2)), 9),
    ],
)
@pytest.mark.parametrize("events", [2, 10, 100])
def test_the_automaton_grows_linearly_with_the_events(body, events):
    """Section 6.5: a state after each event, beside the first, and one way to each."""
    made = automaton(body(events))
    assert len(made.positions) == events + 1
    assert sum(map(len, made.transitions)) == events
