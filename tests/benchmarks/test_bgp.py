"""The benchmark of standing patterns: its data, and its claims about what is kept."""

from dataclasses import replace

import numpy as np
import pytest
from support.decomposition import query_class as class_of

from benchmarks.bgp import (
    ATTRIBUTES,
    BENCHMARK,
    QUERIES,
    STRATEGIES,
    TRIPLES_PER_PERSON,
    make_tasks,
    people,
    query_text,
)
from graphtide.lang.sparql.parse import parse_query
from graphtide.plan.build import build_plan
from graphtide.plan.physical import Decomposed, nodes
from graphtide.rdf.dictionary import TermDictionary

SIZE = 4500


@pytest.fixture(scope="module")
def results():
    return replace(BENCHMARK, own_process=False).run(make_tasks([SIZE], seed=3))


@pytest.mark.parametrize("query_class", QUERIES)
def test_each_query_is_of_its_class(query_class):
    plan = build_plan(parse_query(query_text(query_class)), "decomposed")
    (matched,) = [node for node in nodes(plan.root) if isinstance(node, Decomposed)]
    assert class_of(matched.patterns) == query_class


def test_people_have_all_their_triples_and_none_twice():
    rows = people(SIZE, TermDictionary(), 1)
    assert len(rows) == len(np.unique(rows, axis=0)) == SIZE
    assert np.unique(rows[:, 0], return_counts=True)[1].tolist() == [TRIPLES_PER_PERSON] * (
        SIZE // TRIPLES_PER_PERSON
    )
    assert len(ATTRIBUTES) < TRIPLES_PER_PERSON


@pytest.mark.slow
def test_all_contenders_have_the_same_answers(results):
    assert len(results) == len(QUERIES) * len(STRATEGIES)
    for query_class in QUERIES:
        own = [r for r in results if r.query_class == query_class]
        assert len({(r.rows, r.delta_rows) for r in own}) == 1
        assert any(r.delta_rows for r in own)


@pytest.mark.slow
def test_a_star_keeps_at_most_a_mask_for_each_centre_and_nothing_per_triple(results):
    for result in results:
        if result.query_class == "star" and result.strategy.startswith("decomposed"):
            assert 0 < result.entries <= SIZE // TRIPLES_PER_PERSON


@pytest.mark.slow
def test_without_quads_nothing_else_is_kept(results):
    for result in results:
        if result.strategy == "decomposed, no quads":
            assert result.quad_bytes < 1000
