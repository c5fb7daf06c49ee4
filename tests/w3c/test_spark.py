"""A sample of the W3C's query evaluation tests in Spark itself.

What the partitions answer is shown without Spark, for every test; here Spark runs just that.
"""

from __future__ import annotations

from collections import Counter

import pytest
from w3c.expected import table, term_of
from w3c.judgement import difference
from w3c.manifest import EvaluationTest, evaluation_tests
from w3c.question import expected_answer, quads_of, text_of
from w3c.suites import line, parameters

from graphtide.spark import watch
from oracles.partitions import change_rows
from oracles.transactions import StreamTransaction

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

SCHEMA = "time long, tx long, diff int, s string, p string, o string, g string"
SAMPLE = {
    "sparql10/algebra/nested-opt-1",
    "sparql10/graph/dawg-graph-11",
    "sparql10/dataset/dawg-dataset-12b",
    "sparql10/ask/ask-7",
    "sparql10/sort/dawg-sort-builtin",
    "sparql11/aggregates/agg-avg-02",
    "sparql11/construct/constructwhere04",
    "sparql11/exists/exists03",
    "sparql11/negation/subset-by-exclusion-minus-1",
    "sparql11/property-path/pp37",
    "sparql11/property-path/pp14",
    "sparql11/subquery/subquery12",
}


@pytest.mark.parametrize("test", parameters(t for t in evaluation_tests() if t.name in SAMPLE))
def test_evaluation(test: EvaluationTest, spark, record_property) -> None:
    record_property(*line(test, "spark"))
    quads = quads_of(test)
    stream = [StreamTransaction(time, ((1, quad),)) for time, quad in enumerate(quads)]
    changes = spark.createDataFrame(change_rows(stream), SCHEMA).coalesce(1)
    deltas = watch(changes, text_of(test), partitions=2)
    counts: Counter = Counter()
    for row in deltas.collect():
        counts[tuple(row[4:])] += row[3]
    names = deltas.columns[4:]
    rows = [
        {n: None if t is None else term_of(t) for n, t in zip(names, values, strict=True)}
        for values in counts.elements()
    ]
    problem = difference(table(names, rows), expected_answer(test), test)
    assert problem is None, problem


@pytest.mark.skipif(not evaluation_tests(), reason="the W3C suites are absent")
def test_the_sample_is_there():
    assert {test.name for test in evaluation_tests()} >= SAMPLE
