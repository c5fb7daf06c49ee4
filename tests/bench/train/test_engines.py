"""The workload on Spark against the published traces."""

import pytest
from support.train_expected import FIRST_ROUND

from graphtide.bench.train.benchmark import BENCHMARK, TrainTask


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_pipeline_finds_the_same_matches_after_every_round(shared_session):
    task = TrainTask("repair", 1, rounds=1, select="fixed:10", engine="spark", partitions=3)
    results = BENCHMARK.measure_here(task).queries()
    assert {each.query: each.matches for each in results} == FIRST_ROUND["repair", 1]
    assert {each.strategy for each in results} == {"spark"}
