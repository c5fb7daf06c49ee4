"""The W3C's SPARQL 1.0 and 1.1 query evaluation tests on the engine, maintained and asked once."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest
from w3c.expected import Table, table, term_of
from w3c.judgement import difference, ordered_as_wanted, refusal
from w3c.manifest import EvaluationTest, evaluation_tests
from w3c.question import expected_answer, quads_of, query_of, text_of
from w3c.suites import line, parameters, sampled_parameters
from w3c.ways import WAYS, loaded

from graphtide.kernel.batch import DIFF
from oracles.answers import row_of


@pytest.mark.parametrize(("test", "way"), sampled_parameters(evaluation_tests(), tuple(WAYS), 10))
def test_maintained(test: EvaluationTest, way: str, record_property) -> None:
    query = text_of(test)
    record_property(*line(test, way))
    if (reason := refusal(test)) is not None:
        record_property("w3c-excluded", f"{test.name}: {reason}")
        pytest.skip(f"excluded: {reason}")
    quads, wanted = quads_of(test), expected_answer(test)
    for watch in WAYS[way](query, quads, crc32(test.iri.encode())):
        problem = difference(answer(watch), wanted, test)
        assert problem is None, f"{watch.strategy}: {problem}"


@pytest.mark.parametrize("test", parameters(evaluation_tests(), 3))
def test_asked_once(test: EvaluationTest, record_property) -> None:
    record_property(*line(test, "asked-once"))
    graph = loaded(quads_of(test))
    asked = graph.query(text_of(test), terms=True)
    rows = asked.to_pylist()
    if not asked.num_columns:  # an Arrow table without columns has no rows
        rows = [{}] * int(graph._runtime.queries.evaluate(query_of(test))[:, DIFF].sum())
    terms = [{n: None if t is None else term_of(t) for n, t in row.items()} for row in rows]
    found, wanted = table(asked.column_names, terms), expected_answer(test)
    problem = difference(found, wanted, test)
    assert problem is None, problem
    assert ordered_as_wanted(found, wanted, test, query_of(test))


def answer(watch) -> Table:
    """The current answer, which the deltas so far must add up to."""
    rows = watch.table(terms=True).to_pylist() if watch.variables else [{}] * watch.count()
    counts: Counter = Counter()
    for delta in watch.rows():
        counts[row_of(delta.row)] += delta.diff
    present = [{name: text for name, text in row.items() if text is not None} for row in rows]
    assert Counter(tuple(sorted(row.items())) for row in present) == counts
    assert watch.count() == len(rows)
    terms = [{name: term_of(text) for name, text in row.items()} for row in present]
    return table(list(watch.variables), terms)
