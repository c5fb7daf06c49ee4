"""Output that partitions write themselves: committed once, whatever fails, and read when it is."""

from __future__ import annotations

import json
import random
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from support.object_store import BUCKET, object_store

from graphtide.errors import GraphtideError
from graphtide.graph import LiveGraph
from graphtide.rdf.changes import ChangeBatch
from graphtide.spark import read_output
from graphtide.spark.driver.run import StreamJob
from graphtide.spark.driver.sink import BatchWriter, Sink, StreamEndedError
from graphtide.spark.files import Location
from graphtide.spark.output import OutputSpec
from graphtide.spark.stages import parts
from graphtide.spark.state.messages import MESSAGES, REJECTED, to_chunk
from oracles.partitions import PartitionRun

pytestmark = pytest.mark.filterwarnings("default")

TEXTS = {
    "Pairs": "SELECT ?x ?y { ?x <ex:p> ?y }",
    "Paths": "SELECT ?x ?z { ?x <ex:p> ?y . ?y <ex:q> ?z }",
}
NAMES = tuple(TEXTS)
BAD = (0, 0, 1, "no term", "<ex:p>", "<ex:o>", None)


def random_stream(seed, batches=8, changes=12):
    """Micro-batches of one transaction each."""
    choose = random.Random(seed)

    def term():
        return f"<ex:n{choose.randrange(5)}>"

    def change(time):
        predicate = choose.choice(["<ex:p>", "<ex:q>"])
        return time, time, choose.choice([1, 1, -1]), term(), predicate, term(), None

    return [[change(time) for _ in range(changes)] for time in range(batches)]


STREAM = random_stream(7)


@pytest.fixture(scope="module")
def expected():
    graph = LiveGraph()
    watches = {name: graph.watch(text, history=10**6) for name, text in TEXTS.items()}
    graph.apply([ChangeBatch.of(rows) for rows in STREAM])
    found = {
        name: Counter(
            (row.time, row.tx, row.diff, *map(str, row.row.values())) for row in watch.rows()
        )
        for name, watch in watches.items()
    }
    assert all(len(rows) > 5 for rows in found.values())
    return found


class Run:
    """A run whose micro-batches go through a job's partitions and its sink, without Spark."""

    def __init__(self, out, monkeypatch, *, inline_bytes=0, form="parquet", on_deltas=None):
        self._partitions = PartitionRun.of(TEXTS, partitions=2)
        spec = OutputSpec(Location.of(out), form, inline_bytes)
        self._partitions.job = replace(self._partitions.job, output=spec)
        queries = self._partitions.job.shown_queries
        self._columns = {q.name: [v.name for v in q.query.variables[: q.shown]] for q in queries}
        self._out, self._form, self._on_deltas = out, form, on_deltas
        self.number = 0
        monkeypatch.setattr(parts, "micro_batch", lambda: self.number)
        self.start()

    def start(self):
        """A driver begins, or begins again."""
        sink = Sink(self._out, "run", self._columns, self._form)
        self.writer = BatchWriter(self._partitions.job, sink, None, self._on_deltas)

    def computed(self, number):
        """The output of a micro-batch, with the files that its partitions have written."""
        self.number = number
        end = (number, number, 0, None, None, None, None)
        self._partitions.batch([[*STREAM[number], *([] if number else [BAD]), end]])
        table = pa.table(
            {
                "chunk": [to_chunk(self._partitions.messages)],
                "rejected": pa.nulls(1, pa.binary()),
                "time": [self._partitions.time],
            }
        )
        return SimpleNamespace(toArrow=lambda: table)

    def write(self, number):
        self.writer.write(self.computed(number), number)


def found(out):
    return {name: Counter(tuple(row.values()) for row in rows(out, name)) for name in NAMES}


def rows(out, name):
    return read_output(out, name).to_pylist()


@pytest.fixture(scope="module")
def store():
    with object_store() as environment:
        yield environment


@pytest.fixture(params=["disk", "object store"])
def out(request, tmp_path, monkeypatch):
    if request.param == "disk":
        return str(tmp_path / "out")
    for name, value in request.getfixturevalue("store").items():
        monkeypatch.setenv(name, value)
    return f"s3a://{BUCKET}/{tmp_path.name}/out"


@pytest.mark.slow
@pytest.mark.parametrize(("inline_bytes", "form"), [(0, "parquet"), (10**9, "json"), (0, "json")])
def test_the_deltas_are_those_of_one_process(out, monkeypatch, expected, inline_bytes, form):
    run = Run(out, monkeypatch, inline_bytes=inline_bytes, form=form)
    for number in range(len(STREAM)):
        run.write(number)
    assert found(out) == expected
    if not inline_bytes:
        assert [row["text"] for row in rows(out, "quarantine")] == ["no term <ex:p> <ex:o>"]
    totals = run.writer.sink.progress.queries
    for name in NAMES:
        diffs = [diff for _, _, diff, *_ in expected[name].elements()]
        assert totals[name].appeared == sum(diff for diff in diffs if diff > 0)
        assert totals[name].answer == sum(diffs)
    times = [time for name in NAMES for time, *_ in expected[name]]
    assert run.writer.sink.progress.time == max(times)
    kinds = {entry.is_file for entry in (Location.of(out) / "Pairs").entries()}
    assert kinds == {inline_bytes > 0}, "directories of parts, or a file for each batch"


@pytest.mark.slow
@pytest.mark.parametrize("inline_bytes", [0, 10**9])
def test_kills_at_every_step_lose_and_double_nothing(out, monkeypatch, expected, inline_bytes):
    """The driver ends before one of its writes of a micro-batch, and starts again."""
    run = Run(out, monkeypatch, inline_bytes=inline_bytes)
    written = Location.write_bytes
    left = [10**9]

    def killed(self, data):
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        written(self, data)

    monkeypatch.setattr(Location, "write_bytes", killed)
    choose = random.Random(4)
    kills = 0
    for number in range(len(STREAM)):
        output = run.computed(number)
        for _ in range(5):
            left[0] = choose.randint(0, 3)
            try:
                run.writer.write(output, number)
                break
            except KeyboardInterrupt:
                kills += 1
                left[0] = 10**9
                run.start()
        left[0] = 10**9
        run.writer.write(output, number)  # Spark may not have noted that it was written
        assert all(rows(out, name) is not None for name in NAMES)
    assert kills > 5
    assert found(out) == expected
    run.start()
    assert run.writer.sink.progress.batch == len(STREAM) - 1


def test_a_batch_is_there_when_its_manifest_is(out, monkeypatch):
    run = Run(out, monkeypatch)
    output = run.computed(0)
    assert list((Location.of(out) / "Pairs").entries()), "its files are"
    assert rows(out, "Pairs") == []
    run.writer.write(output, 0)
    first = rows(out, "Pairs")
    assert first
    assert read_output(out, "Paths").column_names[:3] == ["time", "tx", "diff"]


def test_parts_of_other_attempts_are_deleted(tmp_path, monkeypatch):
    out = tmp_path / "out"
    run = Run(out, monkeypatch)
    run.computed(0)  # a first attempt fails after it has written
    snapshot = sorted(path.name for path in out.rglob("part-*"))
    fresh = Run(out, monkeypatch)
    fresh.write(0)
    kept = sorted(path.name for path in out.rglob("part-*"))
    assert snapshot and kept and not set(snapshot) & set(kept)
    assert pq.read_table(out / "Pairs").num_rows == len(rows(out, "Pairs"))
    again = Run(out, monkeypatch)  # the same micro-batch once more, after it was committed
    again.write(0)
    assert sorted(path.name for path in out.rglob("part-*")) == kept


@pytest.mark.parametrize("damage", ["truncate", "delete", "manifest"])
def test_a_damaged_file_is_replaced_and_not_believed(tmp_path, monkeypatch, damage, caplog):
    out = tmp_path / "out"
    run = Run(out, monkeypatch)
    run.write(0)
    before, totals = rows(out, "Pairs"), (out / "_progress.json").read_text()
    victim = next((out / "Pairs").rglob("part-*"))
    if damage == "truncate":
        victim.write_bytes(b"")
    elif damage == "delete":
        victim.unlink()
    else:
        (out / "_batches" / "batch-00000000.json").write_text("")
        assert rows(out, "Pairs") == []
    Run(out, monkeypatch).write(0)
    assert rows(out, "Pairs") == before
    assert (out / "_progress.json").read_text() == totals, "nothing is counted twice"
    assert ("is damaged" in caplog.text) == (damage != "manifest")


def test_callbacks_get_all_rows_also_those_in_files(tmp_path, monkeypatch):
    seen = []
    run = Run(tmp_path / "out", monkeypatch, on_deltas=seen.append)
    run.write(0)
    assert seen[0]["Pairs"].to_pylist() == rows(tmp_path / "out", "Pairs")


def test_an_output_that_the_driver_does_not_see_is_explained(tmp_path, monkeypatch):
    run = Run(tmp_path / "out", monkeypatch)
    output = run.computed(0)
    for path in (tmp_path / "out").rglob("part-*"):
        path.unlink()  # it was written on another machine
    with pytest.raises(GraphtideError, match="is not seen here") as caught:
        run.writer.write(output, 0)
    assert "all nodes share" in caught.value.hint
    assert not list((tmp_path / "out" / "_batches").iterdir())


def test_a_full_disk_of_an_executor_is_explained(tmp_path, monkeypatch):
    run = Run(tmp_path / "out", monkeypatch)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Location, "write_bytes", full)
    with pytest.raises(GraphtideError, match=r"batch 0 cannot be written to .*No space left"):
        run.computed(0)


def test_what_the_driver_gets_does_not_grow_with_the_output(tmp_path, monkeypatch):
    """However many rows a micro-batch has, the driver gets their names and counts."""
    sizes = []
    for factor in (1, 40):
        run = Run(tmp_path / str(factor), monkeypatch)
        stream = [(1, 0, 1, f"<ex:s{n}>", "<ex:p>", "<ex:o>", None) for n in range(500 * factor)]
        run._partitions.batch([[*stream, (2, 0, 0, None, None, None, None)]])
        sizes.append(len(to_chunk(run._partitions.messages)))
        files = parts.written_parts(run._partitions.messages)
        assert sum(part.rows for part in files if part.name == "Pairs") == 500 * factor
    assert sizes[1] < sizes[0] * 1.2


def test_other_directories_and_names_are_explained(tmp_path):
    with pytest.raises(GraphtideError, match="not the output of a run"):
        read_output(tmp_path, "q")
    Sink(tmp_path, "run", {"q": ["x"]})
    with pytest.raises(GraphtideError, match="there is no output of r") as caught:
        read_output(tmp_path, "r")
    assert "it has q" in caught.value.hint
    assert read_output(tmp_path, "q").column_names == ["time", "tx", "diff", "x"]


def test_firings_are_read_from_json_as_from_parquet(tmp_path):
    fired = [
        {"time": 1, "tx": None, "rule": "r", "id": "7", "values": [("x", "<ex:a>")]}
        | {"events": [("e", 1)]}
    ]
    from graphtide.spark.output import FIRINGS

    table = pa.Table.from_pylist(fired, schema=FIRINGS)
    for form in ("json", "parquet"):
        out = tmp_path / form
        Sink(out, "run", {}, form, fires=True).write(3, {}, REJECTED.empty_table(), table)
        assert read_output(out, "firings").to_pylist() == table.to_pylist()
        assert json.loads((out / "_progress.json").read_text())["fired"] == 1


def test_messages_without_files_have_none():
    assert parts.written_parts(MESSAGES.empty_table()) == []


class Restless:
    """A query of Spark whose micro-batches follow each other without a pause, one at each look."""

    def __init__(self, run):
        self._run, self.isActive, self.recentProgress = run, True, []
        self.outputs = [run.computed(number) for number in range(len(STREAM))]

    @property
    def status(self):
        number = len(self.recentProgress)
        try:
            self._run.writer.write(self.outputs[number], number)
        except StreamEndedError:
            self.isActive = False
        else:
            report = {"batchId": number, "numInputRows": 0}
            self.recentProgress.append(SimpleNamespace(json=json.dumps(report)))
        return {"isTriggerActive": True}

    def stop(self):
        assert not self.isActive, "interrupted in the middle of a micro-batch"

    def exception(self):
        return StreamEndedError()


def test_a_stream_without_pauses_is_stopped_after_the_current_micro_batch(
    tmp_path, monkeypatch, expected
):
    run = Run(str(tmp_path / "out"), monkeypatch)
    query = Restless(run)
    monkeypatch.setattr(StreamJob, "_start", lambda _: query)
    options = SimpleNamespace(checkpoint=tmp_path, changes=None)
    job = StreamJob(None, run.writer, options, None, "stream")
    for _ in range(3):
        query.status  # noqa: B018 - a micro-batch
    # 0 to 2 are done, so 3 is the current one, whether Spark has given it to the writer or not.
    assert list(job.statuses(lambda: True)) == []
    assert run.writer.sink.progress.batch == 3 and len(query.recentProgress) == 4
    assert not job.ended_early, "no other stream is to go on"
    run.start()
    for number in range(4, len(STREAM)):
        run.writer.write(query.outputs[number], number)
    assert found(str(tmp_path / "out")) == expected
