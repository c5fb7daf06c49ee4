"""The deterministic form, and its arrays read by the letter of their docstring."""

from __future__ import annotations

from random import Random

import pytest
from patterns.patterns import (
    TYPES,
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
from patterns.table_runner import TableRunner
from support.sampling import quick_sample

from graphtide.errors import GraphtideError
from graphtide.patterns.detector import Detector
from graphtide.patterns.determine import determine
from graphtide.patterns.tables import make_tables

DETERMINISTIC = {
    "follows": then("a(v)", "b(v)", "c(w)"),
    "common beginning": either(then("a(v)", "b(v)"), then("a(v)", "c(v)")),
    "and": both("a(v)", "b(v)", "c(v)"),
    "all": beside(then("a(v)", "b(v)"), then("c(v)", "d(v)")),
    "loop": then(plus("a(v)"), "b(v)"),
    "inner loop": then("a(v)", star("b(v)"), "c(v)"),
    "loop of two": then(plus(then("a(v)", "b(v)")), "c(v)"),
    "copies": then(times("a(v)", 3), "b(v)"),
    "within": within(then("a(v)", "b(v)", "c(v)"), 4),
    "holds for": holds(then("a(v)", "b(v)"), 3),
    "holds for in the middle": then(holds(then("a(v)", "b(v)"), 3), "c(v)"),
    "a loop that holds": then(holds(then("a(v)", plus("b(v)")), 4), "c(v)"),
    "a loop that holds at the end": holds(then("a(v)", plus("b(v)")), 4),
    "time for what follows": within(then("a(v)", holds(then("b(v)", "c(v)"), 3)), 6),
    "not": then("a(v)", no("x(v)"), "b(v)"),
    "not of anything": then("a(v)", no("x(u)"), "b(v)"),
    "not twice the same": then("a(v)", no("d(u, u)"), "b(v)"),
    "not in a loop": then("a(v)", plus(then("b(v)", no("x(v)"))), "c(v)"),
    "absence": then("a(v)", within(no("b(v)"), 3)),
    "absence in the middle": then("a(v)", within(no("b(v)"), 3), "c(v)"),
    "absence at the end of a zone": within(then("a(v)", "b(v)", no("c(v)")), 5),
    "absence in time": within(then("a(v)", "b(v)", within(no("x(v)"), 2)), 5),
    "constants": then("a(1)", "b(2)", "c(v)"),
    "maybe bound": then(either("a(v)", "b(w)"), "c(v)"),
}


def stream(seed, arity):
    random, time, rows = Random(seed), 0, []
    for _ in range(40):
        time += random.choice([0, 0, 1, 1, 2, 5])
        type_ = random.choice([*arity, *arity, *arity, TYPES["e"]])
        values = tuple(random.choice([1, 1, 1, 2]) for _ in range(arity.get(type_, 0)))
        rows.append((type_, values, time))
    return rows


@pytest.mark.parametrize("name", quick_sample(DETERMINISTIC, 4))
@pytest.mark.parametrize("context", ["CHRONICLE", "IMMEDIATE", "STRICT"])
def test_tables_say_what_the_tokens_do(name, context):
    compiled = automaton(DETERMINISTIC[name], context, parameters="v")
    tables = make_tables(determine(compiled))
    arity = {letter.type: len(letter.arguments) for letter in compiled.letters()}
    complete = 0
    for seed in range(40):
        engine, runner = Detector(compiled), TableRunner(tables, context)
        for row in stream(seed, arity):
            expected = [(f.values, f.time, f.start, f.used) for f in engine.step(*row)]
            assert runner.step(*row) == expected, (seed, row)
            assert len(runner.tokens) == len(engine.tokens()), (seed, row)
            complete += len(expected)
    assert complete > 0


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (either(then("a(v)", "b(v)"), then("a(1)", "c")), "a is awaited in two ways at once"),
        (then("a", no(then("x", "y")), "b"), "NOT of a pattern of several events"),
        (either(within(then("a", "b"), 5), then("a", "b", "c")), "have different time"),
        (
            either(then("a", within(no("x"), 3)), then("a", "b")),
            "an absence is awaited together with something else",
        ),
    ],
)
def test_what_has_no_tables_says_why(body, reason):
    form = determine(automaton(body))
    assert any(reason in why for why in form.why_not), form.why_not
    with pytest.raises(GraphtideError, match="is not deterministic"):
        make_tables(form)


def test_a_state_with_two_letters_of_one_type_is_ambiguous():
    form = determine(automaton(then("e", either(then("a(v)", "b"), then("a(1)", "c")))))
    assert form.ambiguous == {1}


def test_orders_that_have_done_the_same_go_on_alike():
    """AND of n events: a state for each set of them, not for each order."""
    assert len(determine(automaton(both("a", "b", "c", "d"))).states) <= 1 + 4 * 2**3
    assert len(automaton(both("a", "b", "c", "d")).positions) == 1 + 4 * 2**3
