"""Deltas as records, and the helper that drops repeated ones."""

from __future__ import annotations

import json
from random import Random

import pyarrow as pa
import pytest

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark import watch
from graphtide.spark.kafka import deltas
from graphtide.spark.kafka.deltas import delta_records, deltas_to_kafka, new_deltas


def delta(row, time, tx=0, diff=1, query="q"):
    return json.dumps(
        {"query": query, "time": time, "tx": tx, "diff": diff, "row": {"a": f"<ex:{row}>"}}
    )


@pytest.mark.parametrize("seed", range(20))
def test_new_deltas_are_those_of_a_topic_without_repetitions(seed):
    """Micro-batches are written in part, then again as a whole, any number of times."""
    rng = Random(seed)
    written = [
        delta(rng.randrange(4), time, rng.randrange(2), rng.choice((-1, 1)), rng.choice("qr"))
        for time in range(40)
    ]
    topic, at = [], 0
    while at < len(written):
        batch = written[at : at + rng.randrange(1, 9)]
        for _ in range(rng.randrange(3)):
            topic += batch[: rng.randrange(len(batch) + 1)]
        topic += batch
        at += len(batch)
    seen, found = {}, []
    while topic:
        size = rng.randrange(1, 12)
        found += new_deltas((text.encode() for text in topic[:size]), seen)
        topic = topic[size:]
    assert found == [json.loads(text) for text in written]


def test_equal_rows_of_two_queries_and_of_two_times_are_different_deltas():
    texts = [delta("a", 1), delta("a", 1, query="r"), delta("a", 1, tx=1), delta("a", 2)]
    assert len(list(new_deltas(texts + texts))) == 4


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_records_of_one_query_and_of_several(spark):
    single = spark.createDataFrame(
        [("q", 7, 1, -2, "<ex:b>", None, '"ä\\""')],
        "query string, time long, tx long, diff long, b string, c string, a string",
    )
    several = spark.createDataFrame(
        [("q", 7, 1, -2, {"b": "<ex:b>", "a": '"ä\\""'}), ("e", 0, 0, 1, {})],
        "query string, time long, tx long, diff long, row map<string, string>",
    )
    row = '{"a":"\\"ä\\\\\\"\\"","b":"<ex:b>"}'
    expected = (
        "topic",
        f'{{"query":"q","row":{row}}}',
        f'{{"query":"q","time":7,"tx":1,"diff":-2,"row":{row}}}',
    )
    (found,) = delta_records(single, "topic").collect()
    assert tuple(found) == expected
    first, second = delta_records(several, "topic").collect()
    assert tuple(first) == expected
    assert second.key == '{"query":"e","row":{}}'
    with pytest.raises(GraphtideError, match="not a stream"):
        deltas_to_kafka(single, "nowhere:1", "topic", checkpoint="unused")
    with pytest.raises(GraphtideError, match="the deltas have no column query, time, tx, diff"):
        delta_records(spark.range(1), "topic")
    with pytest.raises(GraphtideError, match="rejected rows and a topic for them go together"):
        delta_records(single, "topic", "rejected")


class Broker:
    """Stands for Spark's Kafka sink: away for some writes, then back."""

    def __init__(self, away):
        self.away, self.saved, self.tries = away, [], 0

    def createDataFrame(self, table):
        self.table = table
        return self

    def __getattr__(self, name):
        return self if name == "write" else lambda *_, **__: self

    def save(self):
        self.tries += 1
        if self.tries <= self.away:
            raise TimeoutError("Topic deltas not present in metadata after 60000 ms.\n\tat …")
        self.saved.append(self.table.to_pylist())


SET, BAG = "SELECT DISTINCT ?a { ?a ?p ?b }", "SELECT ?a { ?a ?p ?b }"


@pytest.mark.parametrize("seed", range(5))
def test_the_last_record_of_each_row_of_a_set_is_what_is_there(seed):
    """Micro-batches are written in part and again, and then the topic is compacted."""
    rng, there, topic = Random(seed), set(), {}
    for time in range(30):
        row = rng.choice("abcd")
        batch = pa.table({"time": [time], "tx": [0], "diff": [-1 if row in there else 1],
                          "a": [f"<ex:{row}>"]})  # fmt: skip
        there ^= {row}
        broker = Broker(0)
        writer = deltas.TopicWriter(
            broker, "host:9092", "deltas", tombstones=Program.parse(f"QUERY Q AS {SET}")
        )
        for _ in range(rng.randint(1, 2)):
            writer(time, {"Q": batch}, pa.table({}), None)
        topic |= {record["key"]: record["value"] for (record,) in broker.saved}
    kept = {json.loads(value)["row"]["a"] for value in topic.values() if value is not None}
    assert kept == {f"<ex:{row}>" for row in there}
    assert None in topic.values()


def test_tombstones_of_rows_that_may_be_there_twice_are_refused():
    program = Program.parse(f"QUERY Q AS {SET} QUERY R AS {BAG}")
    with pytest.raises(GraphtideError, match="nobody knows when it is gone: R"):
        deltas.TopicWriter(Broker(0), "host:9092", "deltas", tombstones=program)


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_tombstones_of_watch(spark):
    schema = "time long, tx long, diff int, s string, p string, o string"
    rows = [(1, 0, 1, "<ex:a>"), (1, 1, 1, "<ex:b>"), (2, 0, -1, "<ex:a>")]
    changes = spark.createDataFrame([(*row, "<ex:p>", "<ex:o>") for row in rows], schema)
    found = delta_records(watch(changes, SET, partitions=2), "topic", tombstones=True).collect()
    assert sorted((json.loads(row.key)["row"]["a"], row.value is None) for row in found) == [
        ("<ex:a>", False), ("<ex:a>", True), ("<ex:b>", False),
    ]  # fmt: skip
    several = watch(changes, {"Q": SET, "R": BAG}, partitions=2)
    for bag in (watch(changes, BAG, partitions=2), several):
        with pytest.raises(GraphtideError, match="nobody knows when it is gone"):
            delta_records(bag, "topic", tombstones=True)


@pytest.mark.parametrize("away", [0, 1, 3])
def test_a_broker_that_comes_back_in_time(away, monkeypatch):
    pauses = []
    monkeypatch.setattr(deltas.time, "sleep", pauses.append)
    broker = Broker(away)
    table = pa.table({"time": [7], "tx": [0], "diff": [1], "a": ["<ex:a>"]})
    deltas.TopicWriter(broker, "host:9092", "deltas")(3, {"Q": table}, pa.table({}), None)
    assert [row["key"] for (row,) in broker.saved] == ['{"query":"Q","row":{"a":"<ex:a>"}}']
    assert pauses == list(deltas.RETRY_SECONDS[:away])


def test_a_broker_that_stays_away(monkeypatch):
    monkeypatch.setattr(deltas.time, "sleep", lambda _: None)
    table = pa.table({"time": [7], "tx": [0], "diff": [1], "a": ["<ex:a>"]})
    writer = deltas.TopicWriter(Broker(99), "host:9092", "deltas")
    with pytest.raises(
        GraphtideError, match="topic deltas cannot be written, 4 times in 42 s"
    ) as e:
        writer(3, {"Q": table}, pa.table({}), None)
    assert "not present in metadata" in str(e.value) and "\tat" not in str(e.value)
    assert "start again when the broker is back" in e.value.hint
