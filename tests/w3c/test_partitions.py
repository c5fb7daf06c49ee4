"""The W3C's query evaluation tests on the partitions of the pipeline, without Spark."""

from __future__ import annotations

from collections import Counter
from random import Random
from zlib import crc32

import pytest
from w3c.expected import Table, table, term_of
from w3c.judgement import difference, refusal
from w3c.manifest import EvaluationTest, evaluation_tests
from w3c.question import expected_answer, quads_of, text_of
from w3c.suites import line, sampled_parameters

from oracles.partitions import PartitionRun, change_rows
from oracles.transactions import StreamTransaction

END = (2**62, 0, 0, None, None, None, None)
AT_ONCE = 7


WAYS = {"1": (1, "grid"), "2": (2, "grid"), "4": (4, "grid"), "4-rete": (4, "rete")}


@pytest.mark.parametrize(("test", "way"), sampled_parameters(evaluation_tests(), tuple(WAYS), 17))
@pytest.mark.slow
def test_evaluation(test: EvaluationTest, way: str, record_property) -> None:
    record_property(*line(test, f"partitions-{way}"))
    if (reason := refusal(test)) is not None:
        record_property("w3c-excluded", f"{test.name}: {reason}")
        pytest.skip(f"excluded: {reason}")
    partitions, layout = WAYS[way]
    run = PartitionRun.of({"q": text_of(test)}, partitions, layout=layout)
    rows = [*change_rows(stream(quads_of(test), Random(crc32(test.iri.encode())))), END]
    counts: Counter = Counter()
    for start in range(0, len(rows), AT_ONCE):
        for out in run.batch([rows[start : start + 3], rows[start + 3 : start + AT_ONCE]]):
            counts[out.values] += out.diff
    problem = difference(answer(run, counts), expected_answer(test), test)
    assert problem is None, problem


def stream(quads, random: Random) -> list[StreamTransaction]:
    """The data quad by quad, in random order; one in three goes and comes back."""
    found = []
    for quad in random.sample(quads, len(quads)):
        signs = (1, -1, 1) if random.random() < 0.3 else (1,)
        found += [(sign, quad) for sign in signs]
    return [StreamTransaction(time, (change,)) for time, change in enumerate(found)]


def answer(run: PartitionRun, counts: Counter) -> Table:
    (query,) = run.job.shown_queries
    names = [variable.name for variable in query.query.variables[: query.shown]]
    assert all(count >= 0 for count in counts.values())
    rows = [
        {n: None if t is None else term_of(t) for n, t in zip(names, values, strict=True)}
        for values in counts.elements()
    ]
    return table(names, rows)
