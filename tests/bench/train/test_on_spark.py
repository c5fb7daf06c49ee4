"""The workload on Spark against the published traces."""

import pytest
from support.train_expected import FIRST_ROUND

from graphtide.bench.train.run import measure_apart, to_results
from graphtide.bench.train.workload import Workload


@pytest.mark.slow
def test_the_pipeline_finds_the_same_matches_after_every_round():
    workload = Workload("repair", 1, rounds=1, select="fixed:10", engine="spark", cells=3)
    results = to_results(workload, measure_apart(workload))
    assert {each.query: each.matches for each in results} == FIRST_ROUND["repair", 1]
    assert {each.strategy for each in results} == {"spark"}
