"""A run that finds its hubs itself: the output of one process, and even partitions afterwards."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.changes import ChangeBatch
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output
from graphtide.spark.driver import dividing
from graphtide.spark.driver.options import Fingerprint, read_fingerprint
from graphtide.spark.driver.rescale import rescale
from graphtide.spark.driver.run import run
from graphtide.spark.driver.sink import Sink
from graphtide.spark.files import Location
from graphtide.spark.job import JobSpec
from graphtide.spark.load import TermCounts
from graphtide.spark.partition.columns import read_quads
from graphtide.spark.partition.grids import route
from graphtide.spark.partition.hubs import hub_counts

STAR = "SELECT ?a ?b ?c { ?a <ex:p> ?b . ?a <ex:q> ?c }"
QUADS = 600
"""Of a file."""


def skewed(files):
    """Half of the quads are about one node; some are deleted again, also those of the node."""
    rng, batches, alive = Random(7), [], []
    for tx in range(files):
        rows = []
        for number in range(QUADS):
            node = "<ex:hub>" if rng.random() < 0.5 else f"<ex:n{tx}-{number % 100}>"
            quad = (node, "<ex:p>", f"<ex:o{tx}-{number}>", None)
            if node != "<ex:hub>" and rng.random() < 0.3:
                quad = (node, "<ex:q>", f"<ex:c{number % 5}>", None)
            alive.append(quad)
            rows.append((tx, tx, 1, *quad))
        rows.append((tx, tx, 1, "<ex:hub>", "<ex:q>", f"<ex:c{tx % 2}>", None))
        gone = (alive.pop(rng.randrange(len(alive))) for _ in range(QUADS // 10))
        rows += [(tx, tx, -1, *quad) for quad in gone]
        batches.append(ChangeBatch.of(rows))
    return batches


class SkewedRun:
    """A folder with change logs, and a query that runs over them."""

    def __init__(self, folder, spark):
        self.folder, self.spark = folder, spark
        self.stream, self.written = skewed(11), 0
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
        table = read_output(self.folder / "out", "Star")
        return sorted(tuple(row.values()) for row in table.to_pylist())

    def expected(self):
        graph = LiveGraph()
        query = graph.watch(STAR, history=10**6)
        for batch in self.stream[: self.written]:
            graph.apply(batch)
        return sorted((r.time, r.tx, r.diff, *map(str, r.row.values())) for r in query.rows())


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
    skewed_run.write(10)

    # Killed in the switch, as late as that can be: the checkpoint is as it was.
    write, hubs = Fingerprint.write, []

    def killed_in_the_switch(self, checkpoint):
        if self.continued is not None:
            hubs.append(self.hubs)
            raise KilledError("killed")
        write(self, checkpoint)

    with monkeypatch.context() as patch:
        patch.setattr(Fingerprint, "write", killed_in_the_switch)
        with pytest.raises(KilledError):
            skewed_run.run()
    assert [term for term, _ in hubs[0]] == ["<ex:hub>"] and skewed_run.hubs == []

    # Killed in the first micro-batch with the hub: it is written once.
    commit = Sink._commit

    def killed_behind_the_switch(self, *batch):
        if skewed_run.hubs:
            raise GraphtideError("killed")
        commit(self, *batch)

    with monkeypatch.context() as patch:
        patch.setattr(Sink, "_commit", killed_behind_the_switch)
        with pytest.raises(GraphtideError, match="killed"):
            skewed_run.run()
    assert skewed_run.hubs == ["<ex:hub>"]

    # Resumed, it has the hub; half of the quads are no longer in one of four partitions.
    (_, after), *_ = skewed_run.run()
    assert skewed_run.hubs == ["<ex:hub>"]
    assert largest_share(JobSpec((("Star", STAR),), 4)) > 0.55 and after < 0.4
    assert skewed_run.output() == skewed_run.expected()

    # The same by hand, to other hubs.
    with pytest.raises(GraphtideError, match="has the hubs <ex:hub> and not the hubs <ex:other>"):
        skewed_run.run(hubs=["<ex:other>"])
    done = rescale(spark, tmp_path / "checkpoint", hubs=["<ex:other>"])
    assert (done.before, done.partitions, done.hubs) == (4, 4, ("<ex:other>",))
    with pytest.raises(GraphtideError, match="no other hubs are given"):
        rescale(spark, tmp_path / "checkpoint", hubs=["<ex:other>"])
    skewed_run.write(11)
    assert skewed_run.run(hubs=())[0][0] == done.batch
    assert skewed_run.hubs == ["<ex:other>"]
    assert skewed_run.output() == skewed_run.expected()


@pytest.mark.slow
def test_it_goes_on_without_being_stopped(tmp_path, spark, monkeypatch):
    monkeypatch.setattr(dividing, "FIRST_LOOK", 2 * QUADS)
    skewed_run = SkewedRun(tmp_path, spark)
    skewed_run.write(7)
    numbers, shares = zip(*skewed_run.run(), strict=True)
    assert list(numbers) == list(range(len(numbers))), "micro-batches are numbered on"
    assert shares[0] > 0.55 and shares[-1] < 0.4
    assert skewed_run.output() == skewed_run.expected()


class KilledError(Exception):
    """Stands for the end of the process."""


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
