"""Rules against a brute-force evaluator over the whole history."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.brute_force import matches
from rules.histories import found, gaps, happenings, rules, run

from graphtide.jit import JIT, compiled
from graphtide.rules.kernel.types import direct
from graphtide.rules.model import Rule

if TYPE_CHECKING:
    from graphtide.arrays import Int, Longs2


@pytest.mark.slow
@settings(deadline=None, max_examples=200)
@given(rules(), happenings, gaps)
def test_matches_are_those_of_the_definition(rule, history, times):
    engine, events, states = run([rule], history, times)
    assert found(engine, rule) == matches(rule, events, states, 60)


@settings(deadline=None, max_examples=100)
@given(rules(), rules(), happenings, gaps)
def test_a_rule_does_not_depend_on_other_rules(rule, other, history, times):
    alone, *_ = run([rule], history, times)
    renamed = Rule("other", other.events, other.facts, other.test)
    together, *_ = run([renamed, rule], history, times)
    assert found(together, rule) == found(alone, rule)


@settings(deadline=None, max_examples=200)
@given(rules(denied=True), happenings, gaps, st.booleans())
def test_events_that_must_not_happen(rule, history, times, batched):
    """After any of the others, or between two of them; the facts hold until they no longer can."""
    engine, events, states = run([rule], history, times, batched=batched)
    assert found(engine, rule) == matches(rule, events, states, 60, engine.state_times)


@compiled
def last_of(rows: Longs2) -> Int:
    """The last cell."""
    return rows[len(rows) - 1, rows.shape[1] - 1]


def test_a_loop_is_called_directly_with_rows_without_gaps_only():
    """Its machine code would read another cell of columns with gaps."""
    rows = np.arange(12, dtype=np.int64).reshape(3, 4)
    assert direct(last_of, rows)(rows) == 11
    if JIT:
        assert direct(last_of, rows) is direct(last_of, rows[:2])
        for gaps in (rows[:, :2], rows.T):
            with pytest.raises(TypeError, match=r"argument 0 of .*last_of"):
                direct(last_of, gaps)
