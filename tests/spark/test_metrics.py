"""Metrics in Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/"""

import re
import urllib.error
import urllib.request
from types import SimpleNamespace

import pytest

from graphtide.errors import GraphtideError
from graphtide.spark.metrics import Metrics, MetricsListener

REPORT = {
    "id": "6a1f",
    "name": "railway",
    "batchId": 7,
    "numInputRows": 120,
    "durationMs": {"triggerExecution": 250},
    "stateOperators": [
        {"numRowsTotal": 4, "memoryUsedBytes": 1000},
        {"numRowsTotal": 6, "memoryUsedBytes": 500},
    ],
    "observedMetrics": {"graphtide": {"deltas": 9, "quarantined": 2}},
    "sink": {"numOutputRows": -1},
}

SAMPLE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(\{(?P<labels>[a-z]+="[^"]*"(,[a-z]+="[^"]*")*)\})? '
    r"(?P<value>[0-9.e+-]+)"
)


def samples(text):
    """Name and labels of every sample, with its value; checks the rest of the format."""
    assert text.endswith("\n")
    found, typed = {}, set()
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in {"counter", "gauge"} and name not in typed
            assert kind == "gauge" or name.endswith("_total")
            typed.add(name)
        elif not line.startswith("# HELP "):
            sample = SAMPLE.fullmatch(line)
            assert sample, line
            assert sample["name"] in typed
            found[line.rsplit(" ", 1)[0]] = float(sample["value"])
    return found


def test_reports_add_up():
    listener = MetricsListener()
    listener.take(REPORT)
    listener.take({**REPORT, "batchId": 8, "numInputRows": 30, "sink": {"numOutputRows": 5}})
    found = samples(listener.text())
    assert found['graphtide_rows_total{query="railway"}'] == 150
    assert found['graphtide_batches_total{query="railway"}'] == 2
    assert found['graphtide_batch_seconds_total{query="railway"}'] == 0.5
    assert found['graphtide_batch_seconds{query="railway"}'] == 0.25
    assert found['graphtide_batch{query="railway"}'] == 8
    assert found['graphtide_state_rows{operator="0",query="railway"}'] == 4
    assert found['graphtide_state_store_bytes{operator="1",query="railway"}'] == 500
    assert found['graphtide_deltas_total{query="railway"}'] == 18
    assert found['graphtide_quarantined_total{query="railway"}'] == 4
    # -1 says that the sink does not count
    assert found['graphtide_written_rows_total{query="railway"}'] == 5


def test_rejected_rows_of_each_watch_are_counted_and_told_of(caplog):
    observed = {"graphtide-1": {"rejected": 3}, "graphtide-2": {"rejected": 0}, "own": {"x": 7}}
    listener = MetricsListener()
    listener.take({**REPORT, "observedMetrics": observed})
    found = samples(listener.text())
    assert found['graphtide_rejected_total{query="railway"}'] == 3
    assert not any("_x_" in name for name in found)
    assert caplog.messages == ["railway, micro-batch 7: 3 rows rejected"]


def test_what_is_counted_elsewhere():
    listener = MetricsListener(
        cache=lambda: {"hit": 12, "rebuilt": 1},
        totals=lambda: {"late": 3},
        state=lambda: {"match": 4096},
    )
    found = samples(listener.text())
    assert found == {
        'graphtide_state_bytes{stage="match"}': 4096,
        'graphtide_cache_total{found="hit"}': 12,
        'graphtide_cache_total{found="rebuilt"}': 1,
        "graphtide_late_total": 3,
    }


def test_a_query_begins_and_ends():
    listener = MetricsListener()
    listener.onQueryStarted(SimpleNamespace(id="6a1f", name="railway"))
    assert listener.metrics.value("graphtide_query_up", query="railway") == 1
    listener.onQueryTerminated(SimpleNamespace(id="6a1f", exception="out of memory"))
    assert listener.metrics.value("graphtide_query_up", query="railway") == 0
    assert listener.metrics.value("graphtide_queries_ended_total", failed="yes") == 1


def test_labels_are_escaped():
    metrics = Metrics()
    metrics.set("m", 'a\nb\\"', 1.5, query='say "no"\\\n')
    assert metrics.text() == (
        '# HELP m a\\nb\\\\"\n# TYPE m gauge\nm{query="say \\"no\\"\\\\\\n"} 1.5\n'
    )


@pytest.fixture
def served():
    listener = MetricsListener()
    listener.take(REPORT)
    port = listener.serve(0)
    yield listener, port
    listener.close()


def test_served_on_this_machine_only(served):
    listener, port = served
    assert listener._server.server_address[0] == "127.0.0.1"
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert answer.read().decode() == listener.text()
    with pytest.raises(urllib.error.HTTPError, match="404") as refused:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/other", timeout=10)
    refused.value.close()


def test_a_port_that_is_taken(served):
    with pytest.raises(GraphtideError, match="choose another port"):
        MetricsListener().serve(served[1])
