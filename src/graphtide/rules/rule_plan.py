"""RulePlan: a rule in the numbers that its compiled loops take."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from graphtide.rules.differences import conjuncts, instructions
from graphtide.rules.expiry import rule_keepings
from graphtide.rules.kernel.layout import FOREVER, NOT_KEPT, Plan
from graphtide.rules.temporal import Both, Test, has_check, named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from graphtide.algebra.expressions import Var
    from graphtide.kernel.batch import Ints, Longs
    from graphtide.rules.model import EventCondition, Rule

Steps = list[tuple["EventCondition", tuple["Var", ...]]]
"""Conditions in the order in which they are joined, each with the variables it is looked up by."""


@dataclass(frozen=True, slots=True)
class RulePlan:
    """A rule's variables in order (those of facts alone come last), and its arrays.

    `checks` are the tests that look at values; `denied` has those of each event that must not be.
    No event lasts for more than `longest` ticks.
    """

    variables: tuple[Var, ...]
    plan: Plan
    depth: int
    checks: Test
    denied: dict[str, Test]
    longest: int = 0


def make_plan(rule: Rule, longest: int = 0) -> RulePlan:
    """Number a rule's variables and conditions, and say in which order events are joined."""
    conditions = rule.positive
    event_variables = tuple(dict.fromkeys(v for c in conditions for v in c.variables))
    facts = () if rule.facts is None else rule.facts.variables
    shared = tuple(v for v in facts if v in event_variables)
    alone = tuple(v for v in facts if v not in event_variables)
    number = {v: at for at, v in enumerate((*event_variables, *alone))}
    orders = [join_order(c, rule) for c in conditions]
    place = {c.name: at for at, c in enumerate(conditions)}
    indexes = list(dict.fromkeys((place[c.name], key) for order in orders for c, key in order))
    plain, denied = _divided(rule)
    timed = [part for part in plain if not has_check(part)]
    ready, tests = _ready(timed, orders, conditions)
    code = [instructions(part, place) for part in timed]
    ends = np.cumsum([0, *map(len, code)])
    kept = rule_keepings(rule, longest)
    plan = Plan(
        steps=_table([[place[c.name] for c, _ in order] for order in orders]),
        lookups=_table([[indexes.index((place[c.name], k)) for c, k in o] for o in orders]),
        keys=_lists([[number[v] for v in key] for _, key in indexes]),
        indexes=_lists([[i for i, (c, _) in enumerate(indexes) if c == at]
                        for at in range(len(conditions))]),
        bound=_lists([[number[v] for v in c.variables] for c in conditions]),
        ready=ready,
        tests=tests,
        parts=np.column_stack([ends[:-1], ends[1:]]).astype(np.int32),
        code=np.array([step for part in code for step in part], np.int64).reshape(-1, 5),
        keeps=np.array([_ticks(kept[c.name].ticks) for c in conditions], np.int64),
        fact_key=np.array([number[v] for v in shared], np.int32),
        fact_columns=np.array([number[v] for v in (*shared, *alone)], np.int32),
        variables=len(event_variables),
    )  # fmt: skip
    checks = Both(tuple(part for part in plain if has_check(part)))
    depth = 1 + max(map(len, code), default=0)
    return RulePlan((*event_variables, *alone), plan, depth, checks, denied, longest)


def _ticks(kept: float | None) -> int:
    if kept is None:
        return NOT_KEPT
    return FOREVER if kept == inf else int(kept)


def join_order(first: EventCondition, rule: Rule) -> Steps:
    """The other conditions, each after those it shares most with, and what it is looked up by."""
    known = set(first.variables)
    rest = [condition for condition in rule.positive if condition is not first]
    order: Steps = []
    while rest:
        following = max(rest, key=lambda c: len(known.intersection(c.variables)))
        rest.remove(following)
        order.append((following, tuple(v for v in following.variables if v in known)))
        known.update(following.variables)
    return order


def _divided(rule: Rule) -> tuple[list[Test], dict[str, Test]]:
    """The tests between the events that have to happen, and those of each that must not."""
    parts = conjuncts(rule.test)
    denied = [condition.name for condition in rule.negative]
    plain = [part for part in parts if not named(part).intersection(denied)]
    return plain, {
        name: Both(tuple(part for part in parts if name in named(part))) for name in denied
    }


def _ready(
    tests: Sequence[Test], orders: Sequence[Steps], conditions: Sequence[EventCondition]
) -> tuple[Ints, Ints]:
    """Which tests can be evaluated when an event has come, and after each further join."""
    ranges = np.zeros((len(conditions), len(conditions), 2), np.int32)
    listed: list[int] = []
    for at, (first, order) in enumerate(zip(conditions, orders, strict=True)):
        known: set[str] = set()
        for joined, condition in enumerate([first, *(c for c, _ in order)]):
            before = set(known)
            known.add(condition.name)
            begin = len(listed)
            listed += [
                number
                for number, test in enumerate(tests)
                if named(test) <= known and (not joined or not named(test) <= before)
            ]
            ranges[at, joined] = begin, len(listed)
    return ranges, np.array(listed, np.int32)


def _table(rows: Sequence[Sequence[int]]) -> Ints:
    """Rows of equal length; at least one column."""
    width = max(1, *map(len, rows)) if rows else 1
    table = np.zeros((len(rows), width), np.int32)
    for at, row in enumerate(rows):
        table[at, : len(row)] = row
    return table


def _lists(rows: Sequence[Sequence[int]]) -> Ints:
    """Rows that begin with their length."""
    return _table([[len(row), *row] for row in rows] or [[0]])


def no_longs(columns: int) -> Longs:
    """No rows of times.

    >>> no_longs(2).shape
    (0, 2)
    """
    return np.empty((0, columns), np.int64)
