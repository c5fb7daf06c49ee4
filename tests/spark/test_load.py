"""The load of partitions, and the hubs that are found in a stream."""

import logging
from ast import literal_eval
from collections import Counter
from random import Random

import numpy as np
import pyarrow as pa

from graphtide.spark import load
from graphtide.spark.job import JobSpec
from graphtide.spark.metrics import MetricsListener
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.partition.hubs import hub_counts

STAR = "SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }"


def quads(number, rows=1500, share=0.4):
    """Random quads, of which a share have one subject; those of one predicate have one object."""
    rng = Random(number)
    hub = ["<ex:hub>" if rng.random() < share else f"<ex:{rng.random()}>" for _ in range(rows)]
    predicates = [f"<ex:{rng.choice('ppppq')}>" for _ in range(rows)]
    objects = ["<ex:x>" if p == "<ex:q>" else f"<ex:{rng.random()}>" for p in predicates]
    columns = [
        pa.array(column, pa.string()) for column in (hub, predicates, objects, [None] * rows)
    ]
    return read_quads(columns)[0]


def counted(batches):
    total = load.TermCounts()
    for batch in batches:
        total = total.merged(load.count_terms(batch))
    return total


def test_counts_are_too_low_by_a_known_bound():
    rng, exact, found = Random(1), Counter(), load.TermCounts()
    for _ in range(300):
        terms = [("<ex:hub>", "p s")] * rng.randrange(4) + [
            (f"<ex:{rng.randrange(3000)}>", "p s") for _ in range(60)
        ]
        exact.update(terms)
        found = found.merged(load.TermCounts(len(terms), Counter(terms)))
    assert found.total == exact.total()
    assert len(found.counts) <= load.COUNTED_TERMS
    assert ("<ex:hub>", "p s") in found.counts
    for key, count in exact.items():
        assert 0 <= count - found.counts.get(key, 0) <= found.total / load.COUNTED_TERMS


def test_large_batches_are_sampled():
    few, many = (load.count_terms(quads(2, rows)) for rows in (1500, 9000))
    for rows, result in ((1500, few), (9000, many)):
        assert result.total == rows
        hub = sum(count for (term, _), count in result.counts.items() if term == "<ex:hub>")
        assert 0.35 * rows < hub < 0.45 * rows
    assert len(many.counts) == 3


def test_a_hub_is_logged_once_with_what_to_do(caplog):
    batches = [quads(number) for number in range(3)]
    job = JobSpec((("q", STAR),), 16)
    report = load.HubReport(job)
    with caplog.at_level(logging.WARNING, logger="graphtide"):
        shares = [report.shares(counted(batches[: n + 1])) for n in range(3)]
    assert all(0.35 < each["<ex:hub>"] < 0.45 for each in shares)
    (record,) = caplog.records
    hubs = literal_eval(record.getMessage().partition("hubs=")[2].removesuffix(" divides them"))
    assert set(hubs) == {"<ex:hub>"}
    better = JobSpec((("q", STAR),), 16, hubs=hub_counts(hubs))
    busiest = [
        np.bincount(route(batches[0], each.routes[None])[1], minlength=16).max()
        for each in (job, better)
    ]
    assert busiest[1] < busiest[0] / 2
    assert load.HubReport(better).shares(counted(batches)) == {}


def test_an_even_stream_and_one_that_cannot_be_spread_have_none():
    even = counted([quads(4, share=0.0)])
    skewed = counted([quads(5)])
    assert load.HubReport(JobSpec((("q", STAR),), 16)).shares(even) == {}
    alone = "SELECT ?a { ?a <ex:p> <ex:x> . ?a <ex:q> <ex:y> }"
    assert load.HubReport(JobSpec((("q", alone),), 16)).shares(skewed) == {}


def test_the_load_of_each_partition_is_a_metric():
    loads = {("match", 0): load.PartitionLoad(1.0, 10, 0.5, 100)}
    listener = MetricsListener(loads=lambda: loads, hubs=lambda: {"<ex:hub>": 0.4})
    listener.take({"id": "q"})
    text = listener.text()
    assert 'graphtide_partition_bytes{partition="0",stage="match"} 10\n' in text
    assert 'graphtide_partition_seconds{partition="0",stage="match"} 0.5\n' in text
    assert 'graphtide_partition_state_bytes{partition="0",stage="match"} 100\n' in text
    assert 'graphtide_hub_share{term="<ex:hub>"} 0.4\n' in text
