"""Rules against a brute-force evaluator over the whole history."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rules.brute_force import matches
from rules.histories import found, gaps, happenings, rules, run

from graphtide.rules.model import Rule


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
