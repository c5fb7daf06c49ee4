"""Hubs: exact for any set of them, and their quads are spread."""

from __future__ import annotations

from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import check_partitions
from support.sampling import quick_sample

from graphtide.errors import GraphtideError
from graphtide.spark import explain
from graphtide.spark.job import JobSpec
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.partition.hubs import hub_counts
from oracles.generators import cases
from oracles.partitions import change_rows

STAR = "SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?c }"
CHAIN = "SELECT * { ?a <ex:p> ?b . ?b <ex:q> ?c . ?c <ex:r> ?d . ?d <ex:s> ?e }"
NODES = [f"<http://e/n{n}>" for n in range(3)]


@pytest.mark.slow
@pytest.mark.parametrize("layout", ["grid", "rete"])
@pytest.mark.parametrize("shape", quick_sample(SHAPES, 19))
def test_shapes(shape, layout):
    """With three nodes, any of them may be hubs, and so may a graph."""
    for hubs in ((NODES[1],), (*NODES, "<http://e/g1>")):
        options = {"layout": layout, "hubs": hubs}
        check_partitions({shape: query(shape)}, stream(len(hubs)), 3, seed=1, **options)


@pytest.mark.slow
@seed(1)
@settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(cases(streams=1), st.sampled_from((2, 3, 8)), st.integers(0, 10**6))
def test_random_queries_with_random_hubs(case, partitions, number):
    rows = change_rows(case.streams[0])
    rng = Random(number)
    terms = sorted({text for row in rows for text in row[3:] if text})
    hubs = tuple(rng.sample(terms, min(len(terms), rng.randint(1, 4))))
    layout = rng.choice(("grid", "rete"))
    check_partitions({"q": case.query}, rows, partitions, number, layout=layout, hubs=hubs)


def loads(text, hubs, layout, *, partitions=16, rows=8000):
    """How many quads each partition gets, if one node is very frequent."""
    rng = Random(5)

    texts = []
    for _ in range(rows):
        ends = [f"<ex:{rng.random()}>", f"<ex:{rng.random()}>"]
        if rng.random() < 0.5:
            ends[rng.randrange(2)] = "<ex:hub>"
        texts.append((ends[0], f"<ex:{rng.choice('pqrs')}>", ends[1]))
    columns = [pa.array(values) for values in zip(*texts, strict=True)]
    quads, _ = read_quads([*columns, pa.nulls(len(texts), pa.string())])
    job = JobSpec((("q", text),), partitions, layouts=(("q", layout),), hubs=hub_counts(hubs))
    _, where = route(quads, job.routes[None])
    return np.bincount(where, minlength=partitions)


@pytest.mark.parametrize(("text", "layout"), [(STAR, "grid"), (CHAIN, "rete")])
def test_the_largest_partition_gets_less(text, layout):
    before, after = (loads(text, hubs, layout) for hubs in ((), ("<ex:hub>",)))
    assert before.max() > 2.5 * np.median(before)
    assert after.max() < 0.7 * before.max()
    assert after.max() < 1.7 * np.median(after)


def test_several_dimensions_spread_a_hub_by_themselves():
    before, after = (loads(CHAIN, hubs, "grid") for hubs in ((), ("<ex:hub>",)))
    assert before.tolist() == after.tolist()
    assert before.max() < 2.5 * np.median(before)


@pytest.mark.slow
def test_without_that_node_nothing_is_copied_more():
    text = "SELECT * { ?a <ex:p> ?b . ?a <ex:q> ?b }"
    assert loads(text, (), "grid").sum() == loads(text, ("<ex:none>",), "grid").sum()


def test_hubs_are_part_of_the_fingerprint():
    queries = (("q", STAR),)
    prints = {
        JobSpec(queries, 4, hubs=hub_counts(hubs)).fingerprint
        for hubs in ((), ["<a:b>"], ["<a:c>"])
    }
    assert len(prints) == 3


def test_explain_says_how_a_hub_is_divided():
    assert "  if ?a is the hub <ex:hub>: ?b in 2 parts × ?c in 4 parts" in explain(
        STAR, 8, hubs=["<ex:hub>"]
    )


def test_there_are_not_too_many_hubs():
    terms = [f"<http://e/n{n}>" for n in range(17)]
    assert len(hub_counts(terms[:16])) == 16
    with pytest.raises(GraphtideError, match="17 hubs: at most 16 are supported"):
        hub_counts(terms)
