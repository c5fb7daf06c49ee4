"""What the page says of a run on Spark, from what a sink has written; without Spark."""

from __future__ import annotations

from types import SimpleNamespace

import httpx
import pyarrow as pa
import pytest
from serve.page.conftest import EXAMPLES

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.serve.app import create_page_app
from graphtide.serve.page import run as page_run
from graphtide.serve.page.run import RunData
from graphtide.serve.server import serving
from graphtide.spark.driver.options import RunOptions
from graphtide.spark.driver.sink import Sink
from graphtide.spark.driver.status import BatchStatus
from graphtide.spark.files import Location
from graphtide.spark.load import PartitionLoad
from graphtide.spark.output import FIRINGS, delta_schema
from graphtide.spark.state.messages import REJECTED

DOORS = delta_schema(["door"])
NOTHING = REJECTED.empty_table()


def doors(*rows):
    return pa.Table.from_pylist([dict(zip(DOORS.names, row, strict=True)) for row in rows], DOORS)


def status(batch, rows, progress):
    return BatchStatus(
        batch, rows, 10.0, 200, 1, 512, 4, 2048, progress.quarantined, {}, 0, 0, "b.rdfp", 8
    )


@pytest.fixture
def run(tmp_path):
    """A run with its page: `write` commits a micro-batch, of which the driver then hears."""
    out = Location.of(tmp_path / "out")
    sink = Sink(out, "run", {"Open": ["door"], "Left": ["door"]}, fires=True)
    options = RunOptions(Location.of(tmp_path), out, Location.of(tmp_path / "c"), 2)
    data = RunData(Program.read(EXAMPLES / "doors.tide"), options)
    first, second = PartitionLoad(1.0, 900, 0.25, 40), PartitionLoad(2.0, 5, 0.5, 8)
    loads = {("match", 0): first, ("match", 1): second}
    job = SimpleNamespace(sink=sink, loads=lambda: loads)

    def write(batch, rows, tables, rejected=NOTHING, firings=None, *, told=True):
        sink.write(batch, tables, rejected, firings)
        if told:
            data.take(job, status(batch, rows, sink.progress))

    return SimpleNamespace(
        write=write, job=job, data=data, get=lambda *path: data.answer("GET", path)
    )


def test_before_the_first_micro_batch_there_is_nothing(run):
    overview = run.get("overview")
    assert [each["rows"] for each in overview["queries"]] == [0, 0, 0]
    assert overview["run"]["batch"] is None
    assert run.get("run")["batches"] == run.get("run")["rejected"] == []
    assert run.get("queries", "Open")["deltas"] == []


def test_deltas_are_those_of_each_transaction_newest_first(run):
    run.write(0, 3, {"Open": doors((5, 0, 1, "<ex:a>"), (5, 0, 1, "<ex:b>"), (9, 1, -1, "<ex:a>"))})
    run.write(1, 1, {"Open": doors((9, 2, 1, "<ex:a>"))})
    found = run.get("queries", "Open")
    assert found["rows"] == 2 and found["columns"] is None
    assert [(d["time"], d["tx"], d["added"], d["removed"]) for d in found["deltas"]] == [
        (9, 2, 1, 0), (9, 1, 0, 1), (5, 0, 2, 0),
    ]  # fmt: skip
    assert found["deltas"][1]["rows"] == [
        {"diff": -1, "row": {"door": {"type": "uri", "value": "ex:a"}}}
    ]
    assert (found["added"], found["removed"]) == ([2, 1], [1, 0])
    numbers = [delta["seq"] for delta in found["deltas"]]
    assert numbers == sorted(set(numbers), reverse=True)


def test_a_micro_batch_of_which_the_driver_is_silent_is_not_lost(run):
    run.write(0, 0, {"Open": doors((5, 0, 1, "<ex:a>"))}, told=False)
    run.write(2, 7, {"Open": doors((6, 1, 1, "<ex:b>"))})
    assert len(run.get("queries", "Open")["deltas"]) == 2
    batches = run.get("run")["batches"]
    assert [(b["batch"], b.get("rows"), b["added"]) for b in batches] == [
        (2, 7, 1), (1, None, 0), (0, None, 1),
    ]  # fmt: skip


def test_what_cannot_be_read_does_not_end_the_run(run, monkeypatch, caplog):
    run.write(0, 3, {"Open": doors((5, 0, 1, "<ex:a>"))}, told=False)
    statuses = [status(batch, 1, run.job.sink.progress) for batch in (0, 1)]
    run.job.statuses = lambda _: iter(statuses)

    def unreachable(*_):
        raise OSError("no route to host")

    with monkeypatch.context() as patch:
        patch.setattr(page_run.outputs, "read_table", unreachable)
        assert list(run.data.following(run.job, lambda: False)) == statuses
    assert "the page does not show micro-batch 0: no route to host" in caplog.text


def test_a_large_file_is_counted_and_not_read(run, monkeypatch):
    monkeypatch.setattr(page_run, "READ_BYTES", 10)
    run.write(0, 2, {"Open": doors((5, 0, 1, "<ex:a>"), (6, 1, -1, "<ex:a>"))})
    (delta,) = run.get("queries", "Open")["deltas"]
    assert (delta["added"], delta["removed"], delta["rows"]) == (1, 1, [])


def test_of_a_large_delta_some_rows_and_its_size_are_shown(run):
    run.write(0, 2, {"Open": doors(*((5, 0, 1, f"<ex:{n}>") for n in range(1000)))})
    (delta,) = run.get("queries", "Open")["deltas"]
    assert delta["added"] == 1000 and len(delta["rows"]) == page_run.SHOWN_ROWS


def test_quarantine_partitions_and_state(run):
    rejected = pa.Table.from_pylist(
        [{"reason": "no term", "file": "a.rdfp", "line": 3, "text": "<oops"}], REJECTED
    )
    run.write(0, 4, {"Open": doors((5, 0, 1, "<ex:a>"))}, rejected)
    found = run.get("run")
    assert found["quarantined"] == 1
    assert (
        found["rejected"][0] | {"reason": "no term", "line": 3, "batch": 0} == found["rejected"][0]
    )
    assert found["stages"] == [
        {
            "stage": "match",
            "partitions": [
                {"partition": 0, "received_bytes": 900, "seconds": 0.25, "state_bytes": 40},
                {"partition": 1, "received_bytes": 5, "seconds": 0.5, "state_bytes": 8},
            ],
        }
    ]
    assert found["batches"][0]["rejected"] == 1 and found["state_bytes"] == 2048
    assert run.get("overview")["run"]["rejected"] == 1


def test_patterns_and_rules(run):
    fired = pa.Table.from_pylist(
        [
            {
                "time": 35, "tx": None, "rule": "Warn", "id": "1",
                "values": [("door", "<ex:a>")], "events": [("Left", 35)],
            }
        ],
        FIRINGS,
    )  # fmt: skip
    run.write(0, 1, {"Left": doors((35, None, 1, "<ex:a>"))}, firings=fired)
    pattern = run.get("patterns", "Left")
    assert pattern["matched"] == 1 and pattern["tokens"] is None and pattern["nodes"]
    row = {"door": {"type": "uri", "value": "ex:a"}}
    assert pattern["matches"] == [{"start": 35, "time": 35, "row": row}]
    rule = run.get("rules", "Warn")
    assert (rule["fired"], rule["firings"][0]["row"]) == (1, row)
    assert rule["firings"][0]["events"] == {"Left": [35, 35]}
    assert [each["rows"] for each in run.get("overview")["queries"]] == [0, 1, 1]


def test_what_only_a_graph_can_answer_is_refused(run):
    for path in (["queries", "Open", "rows"], ["queries", "Close"], ["patterns", "Open"]):
        with pytest.raises(GraphtideError, match="there is no GET"):
            run.data.answer("GET", path)
    with pytest.raises(GraphtideError, match="there is no POST"):
        run.data.answer("POST", ["ask"], body={"text": "ASK {}"})
    with serving(create_page_app(run.data)) as server:
        assert httpx.get(f"{server.url}/").status_code == 200
        assert httpx.get(f"{server.url}/api/overview").json() == run.get("overview")
        refused = httpx.post(f"{server.url}/api/ask", json={"text": "ASK {}"})
        assert refused.status_code == 404 and "Spark" in refused.json()["error"]["hint"]
        foreign = httpx.get(f"{server.url}/api/overview", headers={"host": "example.org"})
        assert foreign.status_code == 421


def test_the_division_of_a_query_is_told(run):
    assert "?door" in run.get("queries", "Open", "plan")["text"]
