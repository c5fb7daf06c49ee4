"""A run that is rescaled: the same output as if nothing had happened, whatever is killed."""

from __future__ import annotations

from collections import Counter

import pytest

from graphtide.datasets.railway import PREFIX, QUERIES, change_stream
from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import read_output
from graphtide.spark.driver.continued import folder_of
from graphtide.spark.driver.options import Fingerprint, read_fingerprint
from graphtide.spark.driver.rescale import evolve, rescale
from graphtide.spark.driver.run import known_partitions, resumes_from, run
from graphtide.spark.driver.sink import Sink
from graphtide.spark.files import Location

pytestmark = pytest.mark.slow

TEXTS = {
    "RouteSensor": QUERIES["RouteSensor"],
    "SwitchMonitored": QUERIES["SwitchMonitored"],
    "Sensors": f"{PREFIX}SELECT DISTINCT ?sensor {{ ?p :target ?sw . ?sw :monitoredBy ?sensor }}",
}
PROGRAM = "\n".join([PREFIX, *(f"QUERY {n} AS {t[t.index('SELECT') :]}" for n, t in TEXTS.items())])


class Rail:
    """A folder with a growing change log, and a program that runs over it."""

    def __init__(self, folder, spark):
        self.folder, self.spark = folder, spark
        self.stream = list(change_stream(40, seed=3))
        self.written = 0
        (folder / "in").mkdir()

    def write(self, to):
        for number in range(self.written, to):
            write_changes(self.stream[number], self.folder / "in" / f"{number:03}.rdfp")
        self.written = to

    def run(self, program=PROGRAM, **options):
        options = {"rows_per_batch": 600, "once": True, **options}
        folder = self.folder
        job = run(
            self.spark, Program.parse(program), changes=folder / "in", out=folder / "out",
            checkpoint=folder / "checkpoint", **options,
        )  # fmt: skip
        for _ in job.statuses():
            pass
        return job.sink.progress

    def rescale(self, partitions):
        return rescale(self.spark, self.folder / "checkpoint", partitions=partitions)

    @property
    def partitions(self):
        return known_partitions(Location.of(self.folder / "checkpoint"))

    def forget_last_commit(self):
        """As if it had been killed after the last micro-batch was written, before Spark knew."""
        checkpoint = self.folder / "checkpoint"
        found = read_fingerprint(Location.of(checkpoint))
        commits = checkpoint / folder_of("stream", found.continued) / "commits"
        last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
        for path in commits.glob(f"*{last}*"):
            path.unlink()

    def output(self, texts=TEXTS):
        return {
            name: sorted(
                tuple(row.values()) for row in read_output(self.folder / "out", name).to_pylist()
            )
            for name in texts
        }

    def expected(self, texts=TEXTS):
        graph = LiveGraph()
        watches = {name: graph.watch(text, history=10**6) for name, text in texts.items()}
        for batch in self.stream[: self.written]:
            graph.apply(batch)
        return {
            name: sorted(
                (row.time, row.tx, row.diff, *map(str, row.row.values())) for row in watch.rows()
            )
            for name, watch in watches.items()
        }


@pytest.fixture
def rail(tmp_path, spark):
    return Rail(tmp_path, spark)


def test_nothing_is_lost_or_repeated(rail, monkeypatch):
    rail.write(20)
    rail.run(partitions=2)
    before = rail.output()
    assert all(before.values())
    rail.forget_last_commit()

    # Killed at the very end of the command: the checkpoint is as it was.
    with monkeypatch.context() as patch:
        patch.setattr(Fingerprint, "write", killed)
        with pytest.raises(KilledError):
            rail.rescale(3)
    assert rail.partitions == 2

    changed = rail.rescale(3)
    assert (changed.before, changed.partitions, rail.partitions) == (2, 3, 3)
    # A second command before anything has run starts from the same state.
    rail.rescale(4)
    rail.rescale(3)
    rail.write(30)

    # Killed in the new stream's first micro-batch, before and after it was written.
    for name in ("_commit", "_clean"):
        with monkeypatch.context() as patch:
            patch.setattr(Sink, name, killed)
            with pytest.raises(Exception, match="killed"):
                rail.run()
        # And rescaled once more, though its first micro-batch is not complete.
        rail.rescale(4 if rail.partitions == 3 else 3)
    rail.run()
    assert rail.output() == rail.expected()

    last, offset = resumes_from(Location.of(rail.folder / "checkpoint"))
    assert last > changed.batch and offset.position.file == "029.rdfp"
    rail.forget_last_commit()
    rail.rescale(1)
    rail.write(40)
    rail.run(layout="rete")
    assert rail.output() == rail.expected()


def test_a_run_without_input_between_two_changes(rail):
    rail.write(10)
    rail.run(partitions=2)
    rail.rescale(3)
    checkpoint = rail.folder / "checkpoint"
    names = ("RouteSensor", "Sensors")
    fewer = "\n".join(
        [PREFIX, *(f"QUERY {n} AS {TEXTS[n][TEXTS[n].index('SELECT') :]}" for n in names)]
    )
    with pytest.raises(GraphtideError, match="was rescaled, and has not run since"):
        evolve(rail.spark, checkpoint, Program.parse(fewer))
    rail.run()
    rail.rescale(2)
    rail.run()
    evolve(rail.spark, checkpoint, Program.parse(fewer))
    rail.run(fewer)
    with pytest.raises(GraphtideError, match="has read nothing since its program has changed"):
        rail.rescale(3)
    rail.write(15)
    rail.run(fewer)
    assert rail.output(names) == rail.expected({name: TEXTS[name] for name in names})


class KilledError(Exception):
    """Stands for the end of the process."""


def killed(*_):
    raise KilledError("killed")


NEW_TEXTS = {
    "Kept": f"{PREFIX}SELECT DISTINCT ?sw {{ ?sw a :Switch ; :monitoredBy ?sensor }}",
    "RouteSensor": QUERIES["RouteSensor"],
    "SwitchMonitored": f"{PREFIX}SELECT ?sw {{ ?sw a :Switch . ?p :target ?sw }}",
}


def test_another_program(rail, monkeypatch):
    rail.write(15)
    rail.run(partitions=2)
    checkpoint = rail.folder / "checkpoint"
    with pytest.raises(GraphtideError, match="Other asks for"):
        evolve(rail.spark, checkpoint, Program.parse("QUERY Other AS SELECT * { ?a <ex:p> ?b }"))
    with pytest.raises(GraphtideError, match="SwitchMonitored has changed, and it has other col"):
        evolve(
            rail.spark,
            checkpoint,
            Program.parse(PROGRAM.replace("SELECT ?sw ", "SELECT (?sw AS ?x) ")),
        )
    done = evolve(rail.spark, checkpoint, Program.parse(text_of(NEW_TEXTS)))
    assert (done.added, done.changed, done.removed) == (
        ("Kept",), ("SwitchMonitored",), ("Sensors",),
    )  # fmt: skip
    with pytest.raises(GraphtideError, match="query Kept is missing"):
        rail.run()
    with monkeypatch.context() as patch:
        patch.setattr(Sink, "_clean", killed)
        with pytest.raises(KilledError):
            rail.run(text_of(NEW_TEXTS))
    before = rail.expected()  # of a run that was never changed
    ended = rail.output(["Sensors"])
    # Without new input, first answers are there all the same.
    rail.run(text_of(NEW_TEXTS))
    assert totals(rail.output(NEW_TEXTS)) == totals(rail.expected(NEW_TEXTS))
    rail.write(40)
    rail.run(text_of(NEW_TEXTS))
    found, expected = rail.output(NEW_TEXTS), rail.expected(NEW_TEXTS)
    assert totals(found) == totals(expected)
    assert found["RouteSensor"] == expected["RouteSensor"]
    assert rail.output(["Sensors"]) == ended == {"Sensors": before["Sensors"]}
    # From the switch on, deltas are those of a run from the start.
    switch = max(row[:2] for row in ended["Sensors"] + before["RouteSensor"])
    for name in NEW_TEXTS:
        after = [row for row in expected[name] if row[:2] > switch]
        assert set(after) <= set(found[name])


def text_of(texts):
    return "\n".join(
        [PREFIX, *(f"QUERY {n} AS {t[t.index('SELECT') :]}" for n, t in texts.items())]
    )


def totals(output):
    found = {}
    for name, rows in output.items():
        counts = Counter()
        for _, _, diff, *values in rows:
            counts[tuple(values)] += diff
        found[name] = {values: count for values, count in counts.items() if count}
    return found
