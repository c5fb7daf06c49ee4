"""Rescaled in the middle of a stream: the deltas are those of a run that was never changed."""

from __future__ import annotations

from random import Random

import pytest
from spark.stages.shapes import SHAPES, query, stream
from spark.stages.splits import END, assert_net, in_process, micro_batches
from support.sampling import quick_sample

from graphtide.spark.state import cache
from graphtide.testing.partitions import PartitionRun, net_of


def run_rescaled(run, batches, rng, layouts=(None,)):
    """All output of micro-batches, with changes of the number of partitions in between."""
    out = []
    for at, tasks in enumerate(batches):
        if at and rng.random() < 0.3:
            run = run.rescaled(rng.choice((1, 2, 3, 5, 8)), rng.choice(layouts))
            if rng.random() < 0.3:  # as if the first micro-batch had failed
                run.attempt(tasks)
        out += run.batch(tasks)
    return run, out


@pytest.mark.parametrize("shape", quick_sample(SHAPES, 14))
def test_shapes(shape, monkeypatch):
    for seed in range(3):
        rng = Random(f"{shape} {seed}")
        monkeypatch.setattr(cache, "SMALL_LOG", rng.choice((0, 5, 1000)))
        rows, queries = stream(seed, transactions=14), {shape: query(shape)}
        run = PartitionRun.of(queries, rng.choice((1, 2, 4)), layout=rng.choice((None, "rete")))
        batches = micro_batches([*rows, END], rng)
        _, out = run_rescaled(run, batches, rng, layouts=("grid", "rete", None))
        assert net_of(out) == in_process(queries, rows), seed
        assert_net(out)


def test_all_shapes_at_once():
    queries = {shape: query(shape) for shape in SHAPES}
    rows, rng = stream(4, transactions=12), Random(4)
    run = PartitionRun.of(queries, 3)
    batches = micro_batches([*rows, END], rng)
    _, out = run_rescaled(run, batches, rng)
    assert net_of(out) == in_process(queries, rows)
    assert_net(out)
