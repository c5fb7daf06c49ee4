"""Expiry: an endless stream retains no more events than the tests of the rules need."""

from __future__ import annotations

from itertools import product
from math import inf

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rules.engine import Engine

from graphtide import LiveGraph
from graphtide.engine.events import EventBatch
from graphtide.jit import JIT
from graphtide.lang.tide.program import Program
from graphtide.rules.compile import Compiler
from graphtide.rules.expiry import closed
from graphtide.rules.temporal import AllTests, Temporal

PROGRAM = """
PREFIX : <http://example.org/>
EVENT A(?x, ?n) AS { ?n :a ?x }
EVENT B(?x, ?n) AS { ?n :b ?x }
EVENT C(?x, ?n) AS { ?n :c ?x }
RULE Pair  WHEN FACT { ?x :on true } EVENT a = A(?x, ?m) EVENT b = B(?x, ?m) AFTER[1,5] a
           THEN INSERT { ?m :pair ?x }
RULE Chain WHEN EVENT a = A(?x, ?m) EVENT b = B(?x, ?m) AFTER[0,3] a
                EVENT c = C(?x, ?m) AFTER[1,4] b
           THEN INSERT { ?m :chain ?x }
"""
EACH = 40
"""Events of each type at every tick."""

# Pair keeps an A for 5 ticks more than that of now. Chain keeps an A for 3 + 4, a B for 4 (and a B
# may come before the A of its tick, a C never before its B).
BOUND = EACH * ((5 + 1) + (3 + 4 + 1) + (4 + 1))

NAMES = 997


def make_engine():
    """The rules without their actions: only matching is under test."""
    graph = LiveGraph()
    program = Program.parse(PROGRAM)
    compiler = Compiler(1000)
    engine = Engine(graph)
    for rule in program.rules:
        engine.add(compiler.rule(rule))
    graph.insert("<http://example.org/x0>", "<http://example.org/on>", True)
    return engine


def endless(engine, ticks, rng):
    """Batches of events: at each tick some of each type, in random order."""
    terms = engine.graph.terms
    predicates = [terms.encode(f"<http://example.org/{name}>") for name in "abc"]
    subjects = terms.encode_column([f"<http://example.org/n{k}>" for k in range(NAMES)])
    objects = terms.encode_column([f"<http://example.org/x{k}>" for k in range(5)])
    step = 400
    for first in range(0, ticks, step):
        many = min(step, ticks - first)
        kinds = np.tile(np.repeat(predicates, EACH), (many, 1))
        kinds = rng.permuted(kinds, axis=1).ravel()
        times = np.repeat(np.arange(first, first + many), 3 * EACH)
        triples = np.empty((len(times), 3), np.int32)
        triples[:, 0] = subjects[rng.integers(0, NAMES, len(times))]
        triples[:, 1] = kinds
        triples[:, 2] = objects[rng.integers(0, 5, len(times))]
        begins = np.arange(len(times) + 1, dtype=np.int64)
        yield EventBatch(triples, begins, times, times, np.full(len(times), -1, np.int64))


def stream(ticks):
    engine = make_engine()
    taken = 0
    for events in endless(engine, ticks, np.random.default_rng(0)):
        engine.take_events(events)
        taken += len(events)
        assert engine.retained <= BOUND
    assert engine.max_retained <= BOUND  # at any time in between
    assert engine.max_retained > BOUND // 2  # the bound is no empty word
    assert engine.fired > 0
    engine.advance(engine.clock + 8)
    assert engine.retained == 0
    return taken


@pytest.mark.slow
def test_memory_is_bounded_by_the_tests():
    assert stream(60) == 60 * 3 * EACH


@pytest.mark.slow
@pytest.mark.skipif(not JIT, reason="ten million events take hours in plain Python")
def test_memory_is_bounded_over_ten_million_events():
    ticks = -(-10_000_000 // (3 * EACH))
    assert stream(ticks) >= 10_000_000


BOUND_TESTS = st.tuples(
    st.sampled_from((("a", "b"), ("b", "c"), ("a", "c"), ("c", "a"))),
    st.tuples(st.integers(-2, 2), st.integers(0, 2)),
)


@given(st.lists(BOUND_TESTS, max_size=4))
def test_the_closure_has_the_distances_that_instants_can_have(given_tests):
    """Times from 0 to 16 are enough: no two of three events are further apart than 8 by tests."""
    tests = [Temporal("AFTER", b, a, (low, low + more)) for (a, b), (low, more) in given_tests]
    bounds = closed("abc", AllTests(tuple(tests)))
    at = ({"a": 8, "b": b, "c": c} for b, c in product(range(17), repeat=2))
    possible = [
        times
        for times in at
        if all(t.numbers[0] <= times[t.this] - times[t.other] <= t.numbers[1] for t in tests)
    ]
    for one, two in product("abc", repeat=2):
        found = {times[two] - times[one] for times in possible}
        low, high = bounds[one, two].low, bounds[one, two].high
        if possible and -inf < low and high < inf:
            assert (min(found), max(found)) == (low, high)
        elif not possible:
            assert any(each.low > each.high for each in bounds.values())
