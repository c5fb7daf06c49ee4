"""The benchmark of the pipeline on Spark, on a tiny stream."""

import json
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.__main__ import main
from benchmarks.harness import Benchmark
from benchmarks.route_sensor import QUERY
from benchmarks.spark.benchmark import (
    BULK_ROWS,
    FILES,
    PipelineResult,
    PipelineTask,
    StreamBatch,
    add_spare,
    growth,
    to_result,
    write_stream,
)
from benchmarks.spark.processor_time import ProcessorTimes
from graphtide import LiveGraph
from graphtide.spark import api

CHANGES = 2000


@pytest.fixture(scope="module")
def stream(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stream") / "input"
    return folder, write_stream(folder, CHANGES, seed=0, small=2)


def test_the_stream_grows_to_three_sizes(stream):
    folder, batches = stream
    files = sorted(folder.iterdir())
    assert len(files) == FILES * len(batches)
    sizes = sorted({batch.edges for batch in batches if batch.kind == "small"})
    total = sizes[-1]
    assert total == pytest.approx(CHANGES, rel=0.05)
    assert sizes[:2] == pytest.approx([total / 20, total / 4], abs=1)
    assert sum(batch.rows for batch in batches if batch.kind == "bulk") == total


def test_small_batches_leave_the_graph_as_it_was(stream):
    folder, batches = stream
    graph = LiveGraph()
    watch = graph.watch(QUERY)
    counts = []
    files = sorted(folder.iterdir())
    for at, batch in enumerate(batches):
        parts = [pq.read_table(path) for path in files[FILES * at : FILES * (at + 1)]]
        assert all(len(part) for part in parts), "a task for each file"
        table = pa.concat_tables(parts)
        assert table["diff"].to_pylist()[-1] == 0, "the end of the last transaction"
        graph.apply(table.slice(0, batch.rows))
        assert len(graph) == batch.edges
        counts.append((batch.edges, watch.count()))
    assert len(set(counts)) == len({edges for edges, _ in counts})
    assert counts[-1][1] > 0


def test_spare_batches_come_last(tmp_path):
    write_stream(tmp_path / "input", CHANGES, seed=0, small=1)
    before = sorted(path.name for path in (tmp_path / "input").iterdir())
    add_spare(tmp_path / "input")
    after = sorted(path.name for path in (tmp_path / "input").iterdir())
    assert after[: len(before)] == before and len(after) == len(before) + 3 * FILES


def test_medians_leave_out_the_first_batches():
    batches = [
        StreamBatch("bulk", 100, 100),
        *[StreamBatch("small", 100, 10)] * 3,
        *[StreamBatch("bulk", 1100, 1000)] * 2,
        *[StreamBatch("small", 2100, 10)] * 3,
    ]
    took = [9000, 900, 10, 20, 1000, 500, 900, 30, 50]
    task = PipelineTask("identity", 2100)
    times = {at: ms / 1000 for at, ms in enumerate(took)}
    output = {"batch_ms": dict(enumerate(took)), "batch_cpu": times, "matches": 4}
    result = to_result(task, output, batches)
    # bulk: 1000 rows in 1000 and in 500 ms; small: 10 and 20, then 30 and 50 ms
    sizes = {"100": 15.0, "2100": 40.0}
    seconds = 0.75 * BULK_ROWS / 1000
    assert result == PipelineResult("identity", 2100, 1500.0, 25.0, sizes, 4, seconds, 25.0)
    assert growth(result) == 2.67


def test_processor_time_by_batch(tmp_path):
    """The work between two commits belongs to the second."""
    commits = tmp_path / "commits"
    commits.mkdir()
    with ProcessorTimes(tmp_path) as times:
        (commits / "0").touch()
        until = time.monotonic() + 10
        while not times.by_batch() and time.monotonic() < until:
            time.sleep(0.01)
        sum(range(10_000_000))
        (commits / "1").touch()
    assert list(times.by_batch()) == [0, 1]
    assert times.by_batch()[1] > 0


@pytest.fixture
def shared(spark, monkeypatch):
    """All pipelines run in the session of the tests."""
    from benchmarks.spark import pipelines

    processor = api.PartitionProcessor

    def measure(self, task):
        # A pipeline puts its own operator there, and ends with its process.
        monkeypatch.setattr(api, "PartitionProcessor", processor)
        return self.measure(task)

    monkeypatch.setattr(Benchmark, "measure_apart", measure)
    monkeypatch.setattr(pipelines, "make_session", lambda **_: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_all_pipelines_agree_on_a_tiny_stream(shared, tmp_path, capsys):
    code = main(["spark", "--small", "--json", str(tmp_path / "found.json")])
    assert code == 0, capsys.readouterr().err
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    figures = {each["name"]: each for each in found["results"]}
    for name in ("identity", "graphtide", "ten", "reevaluate"):
        assert figures[name]["rows_per_s"] > 0
        assert len(figures[name]["batch_ms_by_graph_size"]) == 3
    assert 0 < figures["graphtide"]["cache_hit_ratio"] < 1
