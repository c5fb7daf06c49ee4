"""The W3C's query evaluation and update tests against the reference evaluator.

It answers every query, also those that cannot be maintained.
"""

from __future__ import annotations

import pytest
from pyoxigraph import Literal
from w3c.expected import Table, table
from w3c.graph_store import load, stored
from w3c.isomorphism import same_bag
from w3c.judgement import difference, ordered_as_wanted
from w3c.manifest import EvaluationTest, UpdateTest, evaluation_tests, path_of, update_tests
from w3c.question import TRIPLE, expected_answer, quads_of, query_of
from w3c.suites import line, parameters

from graphtide.algebra.nodes import SelectQuery
from graphtide.algebra.queries import AskQuery, ConstructQuery, Query
from graphtide.lang.sparql.parse import parse_update
from oracles.reference import evaluate_rows
from oracles.reference_update import (
    evaluate_ask,
    evaluate_construct,
    evaluate_describe,
    evaluate_update,
)
from oracles.transactions import terms_of


@pytest.mark.parametrize("test", parameters(evaluation_tests(), 3))
def test_evaluation(test: EvaluationTest, record_property) -> None:
    record_property(*line(test, "reference"))
    query = query_of(test)
    found = answer(query, [terms_of(quad) for quad in quads_of(test)])
    wanted = expected_answer(test)
    problem = difference(found, wanted, test)
    assert problem is None, problem
    assert ordered_as_wanted(found, wanted, test, query)


@pytest.mark.parametrize("test", parameters(update_tests()))
def test_update(test: UpdateTest, record_property) -> None:
    record_property(*line(test, "reference"))
    text = path_of(test.request).read_text(encoding="utf-8")
    update = parse_update(text, base=test.request)
    found = evaluate_update(update, stored(test.before), load)
    assert same_bag([*found], list(dict.fromkeys(stored(test.after))))


def answer(query: Query, quads: list) -> Table:
    """The answer of a query as a table, whatever its form."""
    if isinstance(query, AskQuery):
        return table(["answer"], [{"answer": Literal(evaluate_ask(query, quads))}])
    if isinstance(query, SelectQuery):
        names = [variable.name for variable in query.variables]
        rows = evaluate_rows(query, quads)
    else:
        construct = isinstance(query, ConstructQuery)
        evaluate = evaluate_construct if construct else evaluate_describe
        names, rows = list(TRIPLE), evaluate(query, quads)
    return table(names, [dict(zip(names, row, strict=True)) for row in rows])
