"""A run that finds its hubs itself: the output of one process, and even partitions afterwards."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from spark.driver.skew import (
    QUADS,
    STAR,
    KilledError,
    expected_deltas,
    killed_in_the_switch,
    skewed,
    written_deltas,
)

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark.driver import dividing
from graphtide.spark.driver.options import read_fingerprint
from graphtide.spark.driver.rescale import rescale
from graphtide.spark.driver.run import run
from graphtide.spark.files import Location
from graphtide.spark.job import JobSpec
from graphtide.spark.load import TermCounts
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.partition.hubs import hub_counts


class SkewedRun:
    """A folder with change logs, and a query that runs over them."""

    def __init__(self, folder, spark):
        self.folder, self.spark = folder, spark
        self.stream, self.written = skewed(10), 0
        (folder / "in").mkdir()

    def write(self, to):
        for number in range(self.written, to):
            write_changes(self.stream[number], self.folder / "in" / f"{number:03}.rdfp")
        self.written = to

    def run(self, hubs="auto"):
        """Run to the end; the number of each micro-batch, and the largest share of its job."""
        folder = self.folder
        job = run(
            self.spark, Program.parse(f"QUERY Star AS {STAR}"), changes=folder / "in",
            out=folder / "out", checkpoint=folder / "checkpoint", partitions=4, hubs=hubs,
            rows_per_batch=QUADS, once=True,
        )  # fmt: skip
        return [
            (status.batch, largest_share(getattr(job, "current", job).job))
            for status in job.statuses()
        ]

    @property
    def hubs(self):
        found = read_fingerprint(Location.of(self.folder / "checkpoint"))
        return [term for term, _ in found.hubs]

    def output(self):
        return written_deltas(self.folder / "out")

    def expected(self):
        return expected_deltas(self.stream[: self.written])


def largest_share(job):
    """The part of a file's quads that the largest partition of a job gets."""
    table = skewed(1)[0].to_arrow()
    texts = [table[name].combine_chunks().cast(pa.string()) for name in "spog"]
    _, where = route(read_quads(texts)[0], job.routes[None])
    return np.bincount(where).max() / len(where)


@pytest.mark.slow
def test_a_hub_is_divided_in_the_stream(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(dividing, "FIRST_LOOK", 2 * QUADS)
    skewed_run = SkewedRun(tmp_path, spark)
    skewed_run.write(9)

    # The checkpoint is as it was.
    with killed_in_the_switch(monkeypatch) as hubs, pytest.raises(KilledError):
        skewed_run.run()
    assert [term for term, _ in hubs[0]] == ["<ex:hub>"] and skewed_run.hubs == []

    # Not killed, it goes on by itself; half of the quads are no longer in one of four partitions.
    numbers, shares = zip(*skewed_run.run(), strict=True)
    assert list(numbers) == list(range(numbers[0], numbers[-1] + 1)), "numbered on"
    assert skewed_run.hubs == ["<ex:hub>"]
    assert shares[0] > 0.55 and shares[-1] < 0.4
    assert skewed_run.output() == skewed_run.expected()

    # The same by hand, to other hubs.
    with pytest.raises(GraphtideError, match="has the hubs <ex:hub> and not the hubs <ex:other>"):
        skewed_run.run(hubs=["<ex:other>"])
    done = rescale(spark, tmp_path / "checkpoint", hubs=["<ex:other>"])
    assert (done.before, done.partitions, done.hubs) == (4, 4, ("<ex:other>",))
    with pytest.raises(GraphtideError, match="no other hubs are given"):
        rescale(spark, tmp_path / "checkpoint", hubs=["<ex:other>"])
    skewed_run.write(10)
    assert skewed_run.run(hubs=())[0][0] == done.batch
    assert skewed_run.hubs == ["<ex:other>"]
    assert skewed_run.output() == skewed_run.expected()


# --- when it looks ---


class CountedStream:
    """A stream of micro-batches of 6,000 quads, half of which have one subject if `skewed`."""

    def __init__(self, batches, hubs=(), *, skewed):
        self.left, self.skewed, self.total = batches, skewed, 0
        self.job = JobSpec((("q", STAR),), 4, hubs=hub_counts(hubs))
        self.counts = SimpleNamespace(terms=self.terms)
        self.ends = self.ended_early = False

    def terms(self):
        counts = {("<ex:hub>", "<ex:p> s"): self.total // 2 if self.skewed else 1}
        return TermCounts(self.total, counts)

    def statuses(self, _):
        while self.left:
            if self.ends:
                self.ended_early = True
                return
            self.left.pop()
            self.total += 6000
            yield len(self.left)

    def end_before_next(self):
        self.ends = True


@pytest.mark.parametrize("skewed", [True, False])
def test_there_is_one_switch_per_hub(skewed):
    batches, divided, begun = list(range(8)), [], []

    def begin():
        begun.append(len(batches))
        return CountedStream(batches, divided, skewed=skewed)

    job = dividing.DividingJob(begin, divided.extend)
    assert list(job.statuses()) == [7, 6, 5, 4, 3, 2, 1, 0]
    # After 6,000 quads it is too early to look; after 12,000 the stream ends.
    assert (begun, divided) == (([8, 6], ["<ex:hub>"]) if skewed else ([8], []))


def test_a_run_that_is_stopped_does_not_switch():
    stream = CountedStream(list(range(8)), skewed=True)
    job = dividing.DividingJob(lambda: stream, lambda _: pytest.fail("a switch"))
    assert list(job.statuses(lambda: stream.ended_early)) == [7, 6]
