"""Rules on busy histories, in which most of them fire, against the brute-force evaluator."""

from __future__ import annotations

from random import Random

import pytest
from rules.brute_force import matches
from rules.histories import FACTS, TYPES, VALUES, after, found, iri, run

from graphtide.algebra.expressions import Var
from graphtide.lang.sparql.parse import parse_query
from graphtide.rules.model import EventCondition, Rule
from graphtide.rules.temporal import AllTests, AnyTest, NotTest, Temporal


def condition(rng, name, *, negated=False):
    given = tuple(rng.choice([Var("p"), Var("p"), Var("q"), iri("u")]) for _ in "xy")
    return EventCondition(name, TYPES[rng.choice("AB")], given, negated)


def make_rule(rng, *, denied):
    names = rng.choice(("a", "ab", "ab", "abc"))
    events = [condition(rng, name) for name in names]
    tests = [
        after(this, other, rng.randint(-2, 1), rng.randint(1, 4))
        for this, other in zip(names[1:], names, strict=False)
    ]
    if denied:
        events.append(condition(rng, "n", negated=True))
        tests.append(after("n", rng.choice(names), rng.randint(-1, 2), rng.randint(0, 3)))
        if rng.random() < 0.4:
            bounds = (rng.randint(-2, 1), rng.randint(2, 6))
            tests.append(Temporal("BEFORE", "n", rng.choice(names), bounds))
    elif tests and rng.random() < 0.3:
        tests = [rng.choice([AnyTest((tests[0], tests[-1])), NotTest(tests[0])])]
    facts = rng.choice(FACTS)
    bound = {v.name for c in events if not c.negated for v in c.variables}
    if facts and not any(f"?{name} " in facts for name in bound):
        facts = None
    return Rule("rule", tuple(events), facts and parse_query(facts), AllTests(tuple(tests)))


def make_history(rng, size):
    """Facts that hold most of the time, and events of all kinds."""
    states = [(iri("on"), iri("yes")), (iri("near"), iri("u")), (iri("near"), iri("v"))]
    history = [(1, x, state) for x in VALUES for state in states if rng.random() < 0.8]
    for _ in range(size):
        if rng.random() < 0.8:
            history.append((rng.choice("AB"), rng.choice(VALUES), rng.choice(VALUES)))
        else:
            history.append((rng.choice((1, -1)), rng.choice(VALUES), rng.choice(states)))
    return history


@pytest.mark.slow
@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("denied", [False, True])
def test_busy_histories(batched, denied):
    fired = 0
    for seed in range(150):
        rng = Random(seed)
        rule = make_rule(rng, denied=denied)
        history = make_history(rng, 14)
        gaps = [rng.choice((0, 0, 1, 2)) for _ in history]
        engine, events, states = run([rule], history, gaps, batched=batched)
        expected = matches(rule, events, states, 60, engine.state_times)
        assert found(engine, rule) == expected, (seed, rule)
        fired += bool(expected)
    assert fired > 50
