"""The W3C's SPARQL 1.0 and 1.1 query evaluation tests, three ways each."""

from __future__ import annotations

from collections import Counter
from zlib import crc32

import pytest
from w3c.expected import Table, table, term_of
from w3c.judgement import EXCLUDED, difference
from w3c.manifest import EvaluationTest, evaluation_tests, suite_folder
from w3c.question import expected_answer, quads_of, text_of
from w3c.ways import WAYS

from graphtide import LiveGraph
from graphtide.errors import UnsupportedError
from graphtide.testing.answers import row_of

TESTS = evaluation_tests()
ABSENT = pytest.param(
    None,
    id="absent",
    marks=pytest.mark.skip(reason=f"the W3C suites are not at {suite_folder().name}"),
)


@pytest.mark.parametrize("test", [pytest.param(test, id=test.name) for test in TESTS] or [ABSENT])
def test_evaluation(test: EvaluationTest, record_property) -> None:
    query = text_of(test)
    record_property("w3c", test.name)
    if (reason := EXCLUDED.get(test.iri) or refusal(query)) is not None:
        record_property("w3c-excluded", reason)
        pytest.skip(f"excluded: {reason}")
    quads, wanted = quads_of(test), expected_answer(test)
    for way, run in WAYS.items():
        for watch in run(query, quads, crc32(test.iri.encode())):
            found = answer(watch)
            problem = difference(found, wanted, test)
            assert problem is None, f"{way} ({watch.strategy}): {problem}"


def refusal(query: str) -> str | None:
    """Why the engine does not maintain a query; None when it does."""
    try:
        LiveGraph().watch(query)
    except UnsupportedError as error:
        return error.message.splitlines()[0]
    return None


def answer(watch) -> Table:
    """The current answer, which the deltas so far must add up to."""
    rows = watch.table().to_pylist() if watch.variables else [{}] * watch.count()
    counts: Counter = Counter()
    for delta in watch.changes():
        counts[row_of(delta.row)] += delta.diff
    present = [{name: text for name, text in row.items() if text is not None} for row in rows]
    assert Counter(tuple(sorted(row.items())) for row in present) == counts
    assert watch.count() == len(rows)
    terms = [{name: term_of(text) for name, text in row.items()} for row in present]
    return table(list(watch.variables), terms)
