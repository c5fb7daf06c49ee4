"""Planning takes polynomial time: twice the size of a query is at most about four times the work.

Work is counted in calls of Python functions, which do not depend on the machine.
"""

from __future__ import annotations

import sys

import pytest
from pyoxigraph import NamedNode

from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.choose import choose_plan
from graphtide.plan.estimate import PredicateStats, Statistics

KNOWN = Statistics(
    100_000,
    {NamedNode(f"ex:p{i}"): PredicateStats(5000, 2000 + i, 2500 - i) for i in range(200)},
)
QUADRATIC = 5.5
"""The factor of a quadratic algorithm, and what smaller terms may add. A cubic one has 8."""


def patterns(ends) -> str:
    return " . ".join(f"?v{s} <ex:p{i}> ?v{o}" for i, (s, o) in enumerate(ends))


SHAPES = {
    "path": lambda n: f"?s {'/'.join(['<ex:p1>'] * n)} ?o",
    "path in a closure": lambda n: f"?s ({'/'.join(['<ex:p1>'] * n)})+ ?o",
    "chain": lambda n: patterns((i, i + 1) for i in range(n)),
    "star": lambda n: patterns(("s", i) for i in range(n)),
    "cycle": lambda n: patterns((i, (i + 1) % n) for i in range(n)),
    "optional": lambda n: (
        "?s <ex:p1> ?o " + " ".join(f"OPTIONAL {{ ?s <ex:p{i}> ?v{i} }}" for i in range(n))
    ),
    "optional chain": lambda n: (
        "?v0 <ex:p1> ?o " + " ".join(f"OPTIONAL {{ ?v{i} <ex:p{i}> ?v{i + 1} }}" for i in range(n))
    ),
    "optional chain of joins": lambda n: (
        "?v0 <ex:p1> ?o "
        + " ".join(
            f"OPTIONAL {{ ?v{i} <ex:p{i}> ?v{i + 1} . ?v{i + 1} <ex:p{i + 1}> ?w{i} }}"
            for i in range(n)
        )
    ),
    "union": lambda n: " UNION ".join(f"{{ ?s <ex:p{i}> ?v }}" for i in range(n)),
    "groups": lambda n: " ".join(f"{{ ?s <ex:p{i}>+ ?v }}" for i in range(n)),
}


def work(text: str, statistics: Statistics, strategy: str | None) -> int:
    """The calls that planning a query makes."""
    query = parse_query(text)
    calls = 0

    def count(frame: object, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        choose_plan(query, statistics, strategy=strategy)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [None, "rete", "search"])
@pytest.mark.parametrize("shape", SHAPES)
def test_twice_the_size_is_at_most_four_times_the_work(shape, strategy):
    for statistics in (Statistics(), KNOWN):
        small, large = (
            work(f"SELECT * {{ {SHAPES[shape](n)} }}", statistics, strategy) for n in (50, 100)
        )
        assert large < QUADRATIC * small


MOST_CALLS = 1_500_000
"""Calls of Python functions that take less than a second."""


@pytest.mark.parametrize("shape", ["optional", "optional chain"])
def test_200_optionals_are_planned_within_a_second(shape):
    text = f"SELECT * {{ {SHAPES[shape](200)} }}"
    assert max(work(text, known, None) for known in (Statistics(), KNOWN)) < MOST_CALLS


def test_a_plan_without_alternatives_is_neither_built_twice_nor_weighed(monkeypatch):
    """One pattern in each OPTIONAL: a network has the same inputs as the searches."""
    monkeypatch.setattr("graphtide.plan.choose.plan_cost", pytest.fail)
    query = parse_query(f"SELECT * {{ {SHAPES['optional chain'](5)} }}")
    assert choose_plan(query, KNOWN).strategy == "search"


def test_nothing_is_decomposed_to_be_thrown_away(monkeypatch):
    """The order of variables is searched for the strategy `decomposed`, and for no other."""
    monkeypatch.setattr("graphtide.plan.make.instantiation_order", pytest.fail)
    choose_plan(parse_query(f"SELECT * {{ {SHAPES['chain'](20)} }}"), KNOWN)
