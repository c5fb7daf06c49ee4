"""Limits in partitions: those of the job, with the errors and the missing values of one process."""

from __future__ import annotations

import pickle
from copy import deepcopy

import pytest

from graphtide import Limits, LiveGraph
from graphtide.errors import LimitError
from graphtide.spark.driver.status import explained
from graphtide.spark.job import JobSpec
from oracles.partitions import PartitionRun, net_of

SQUARES = {"q": "SELECT ?a (?n * ?n AS ?m) { ?a <ex:p> ?n }"}
CROSS = {"q": "SELECT ?a ?d { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d }"}
INTEGER = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'.format
END = (9, 0, 0, None, None, None, None)


def test_values_that_are_too_long_are_missing():
    limits = Limits(digits=100)
    rows = [(1, 0, 1, f"<ex:{n}>", "<ex:p>", INTEGER(10**n), None) for n in (2, 99)]
    graph = LiveGraph(limits=limits)
    watch = graph.watch(SQUARES["q"])
    for _, _, _, s, p, o, _ in rows:
        graph.insert(s, p, o, time=1)
    expected = {
        tuple(None if value is None else str(value) for value in row.row.values())
        for row in watch.rows()
    }
    assert ("<ex:99>", None) in expected and len(expected) == 2
    run = PartitionRun.of(SQUARES, 2, limits=limits)
    assert {row.values for row in run.batch([[*rows, END]])} == expected
    free = PartitionRun.of(SQUARES, 2).batch([[*rows, END]])
    assert all(value is not None for row in free for value in row.values)


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["grid", "rete"])
def test_a_flush_over_its_limit_stops_the_stream_and_a_higher_one_goes_on(layout):
    """600 rows on each side of one value: 360,000 rows."""
    rows = [(1, 0, 1, f"<ex:a{n}>", "<ex:p>", "<ex:b>", None) for n in range(600)]
    rows += [(1, 0, 1, "<ex:c>", "<ex:r>", f"<ex:d{n}>", None) for n in range(600)]
    rows += [(2, 0, 1, "<ex:b>", "<ex:q>", "<ex:c>", None), END]
    limited = PartitionRun.of(CROSS, 2, layout=layout, limits=Limits(flush_bytes=1_000_000))
    before = deepcopy(limited.logs)
    with pytest.raises(LimitError, match="the flush needs more memory") as caught:
        limited.batch([rows])
    assert caught.value.limit == "flush_bytes"
    # As Spark reports it, after the traceback of the worker.
    told = explained(
        f"Traceback (most recent call last):\ngraphtide.errors.LimitError: {caught.value}"
    )
    assert str(told) == str(caught.value)
    resumed = PartitionRun.of(CROSS, 2, layout=layout)
    resumed.logs = before
    assert len(net_of(resumed.batch([rows]))) == 600 * 600


def test_limits_go_with_the_job_and_are_no_part_of_its_checkpoint():
    limits = Limits(digits=7, query_seconds=None)
    job = JobSpec(tuple(SQUARES.items()), 2, limits=limits)
    assert pickle.loads(pickle.dumps(job)).limits == limits
    assert Limits(**limits.to_json()) == limits
    assert job.fingerprint == JobSpec(job.queries, 2).fingerprint
