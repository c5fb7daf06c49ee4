"""Matches of rules straight from the definitions, over the whole history at once."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import product

from graphtide.rules.temporal import AllTests, Span, holds, named
from oracles.reference import evaluate_query


@dataclass(frozen=True)
class Event:
    """An event, after `facts` states of the graph."""

    kind: str
    values: tuple
    time: int
    state: int


def bindings(condition, event):
    """How an event matches a condition: a binding, or None."""
    if event.kind != condition.type.name:
        return None
    found: dict = {}
    for argument, value in zip(condition.arguments, event.values, strict=True):
        if type(argument).__name__ != "Var":
            if argument != value:
                return None
        elif found.setdefault(argument, value) != value:
            return None
    return found


def merged(parts):
    """All bindings as one, or None if two disagree."""
    whole: dict = {}
    for part in parts:
        for var, value in part.items():
            if whole.setdefault(var, value) != value:
                return None
    return whole


def rows(rule, states, first, last):
    """The rows of the facts that hold in every state from one to another."""
    if rule.facts is None:
        return [{}]
    held = [set(evaluate_query(rule.facts, states[n])) for n in range(first, last + 1)]
    return [dict(zip(rule.facts.variables, row, strict=True)) for row in set.intersection(*held)]


def matches(rule, events, states, end, times=None):
    """Every match: the events by name, the binding, and when it is known.

    `states` are the graphs after each transaction, at `times`; `end` is how far the clock has gone.
    """
    denied = [c.name for c in rule.negative]
    parts = rule.test.tests if isinstance(rule.test, AllTests) else (rule.test,)
    plain = AllTests(tuple(p for p in parts if not named(p) & set(denied)))
    found = []
    for chosen in product(events, repeat=len(rule.positive)):
        bound = [bindings(c, e) for c, e in zip(rule.positive, chosen, strict=True)]
        if None in bound:
            continue
        binding = merged(bound)
        spans = {c.name: Span(e.time, e.time) for c, e in zip(rule.positive, chosen, strict=True)}
        if binding is None or not holds(plain, spans):
            continue
        first, last = min(e.state for e in chosen), max(e.state for e in chosen)
        if spoilt(rule, parts, spans, binding, events):
            continue
        until = deadline(rule, parts, spans)
        if until is not None and until >= end:
            continue
        if until is not None and until >= max(s.start for s in spans.values()):
            last = max(last, *(n for n, time in enumerate(times or [0]) if time <= until))
        for row in rows(rule, states, first, last):
            whole = merged([binding, row])
            if whole is not None:
                found.append((tuple(e.time for e in chosen), frozenset(whole.items())))
    return Counter(found)


def spoilt(rule, parts, spans, binding, events):
    for condition in rule.negative:
        test = AllTests(tuple(p for p in parts if condition.name in named(p)))
        for event in events:
            bound = bindings(condition, event)
            if bound is None or merged([binding, bound]) is None:
                continue
            if holds(test, {**spans, condition.name: Span(event.time, event.time)}):
                return True
    return False


def deadline(rule, parts, spans):
    """Until when a denied event could come: every test here is AFTER or BEFORE, with two bounds."""
    found = []
    for condition in rule.negative:
        latest = [
            spans[part.other].end + part.numbers[1]
            if part.operator == "AFTER"
            else spans[part.other].start - part.numbers[0]
            for part in parts
            if part.this == condition.name
        ]
        found.append(min(latest))
    return max(found, default=None)
