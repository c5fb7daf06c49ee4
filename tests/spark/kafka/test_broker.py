"""The pipeline between two topics of a real broker: equal to one process, whatever is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from random import Random
from threading import Thread

import pytest
from spark.faults.stream import TWO_STAGES
from spark.kafka.topics import (
    add_partitions,
    consume,
    deltas_of,
    ends,
    json_records,
    new_topic,
    patch_records,
    produce,
    railway,
)

from graphtide.errors import GraphtideError
from graphtide.spark import deltas_to_kafka, kafka_changes, kafka_shards, watch

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]


def start(spark, broker, topics, home, shards, **options):
    """The standing queries over one topic, into the other."""
    once = options.pop("once", True)
    changes = kafka_changes(spark, broker.servers, topics[0], **options)
    deltas = watch(changes, TWO_STAGES, partitions=2, shards=shards)
    return deltas_to_kafka(
        deltas,
        broker.servers,
        topics[1],
        checkpoint=home / "checkpoint",
        once=once,
        trigger="100ms",
    )


def test_three_partitions_and_a_restart(spark, broker, tmp_path):
    """The changes of a transaction are spread over partitions that are read at different speeds."""
    batches, expected = railway(14, seed=1)
    topics = new_topic(spark, broker, "in-3", 3), new_topic(spark, broker, "out-3", 2)
    random = Random(4)
    records = json_records(batches, lambda number: random.randrange(3))
    half = len(records) // 2
    # The first run sees all of partition 0, and of the others only a part.
    first = [record for number, record in enumerate(records) if number < half or record[0] == 0]
    second = [record for number, record in enumerate(records) if number >= half and record[0] != 0]
    assert kafka_shards(spark, broker.servers, topics[0]) == 3
    for part in (first, [*second, *ends(3)]):
        produce(spark, broker, topics[0], part)
        query = start(spark, broker, topics, tmp_path, 3, records_per_batch=150)
        query.awaitTermination()
    out = consume(spark, broker, topics[1])
    assert expected and deltas_of(out) == expected
    assert len(out) == sum(expected.values()), "nothing failed, so nothing is written twice"
    homes = {}
    for record in out:
        homes.setdefault(record.key, set()).add(record.partition)
    assert all(len(partitions) == 1 for partitions in homes.values())


def test_a_partition_that_is_added(spark, broker, tmp_path):
    """From then on records are in other partitions than before; a restart names the new number."""
    batches, expected = railway(12, seed=5)
    topics = new_topic(spark, broker, "in-grown", 2), new_topic(spark, broker, "out-grown", 2)
    random = Random(6)
    half = len(json_records(batches[:7], lambda _: 0))
    records = json_records(batches, lambda number: random.randrange(2 if number < half else 3))
    produce(spark, broker, topics[0], records[:half])
    start(spark, broker, topics, tmp_path, 2, records_per_batch=150).awaitTermination()
    add_partitions(spark, broker, topics[0], 3)
    assert kafka_shards(spark, broker.servers, topics[0]) == 3
    produce(spark, broker, topics[0], [*records[half:], *ends(3)])
    start(spark, broker, topics, tmp_path, 3, records_per_batch=150).awaitTermination()
    assert any(record[0] == 2 for record in records)
    assert expected and deltas_of(consume(spark, broker, topics[1])) == expected


def test_a_broker_that_is_killed_and_comes_back(spark, broker, tmp_path):
    batches, expected = railway(12, seed=2)
    topics = new_topic(spark, broker, "in-killed", 1), new_topic(spark, broker, "out-killed", 1)
    records = [*patch_records(batches)]
    produce(spark, broker, topics[0], records[:6])
    query = start(
        spark, broker, topics, tmp_path, 1, format="rdf-patch", records_per_batch=2, once=False
    )
    query.processAllAvailable()
    broker.kill()
    restarted = Thread(target=broker.start)
    restarted.start()
    restarted.join()
    produce(spark, broker, topics[0], records[6:])
    try:
        query.processAllAvailable()
    except Exception:  # noqa: BLE001 - the client may give up; then the query is started again
        query.stop()
        query = start(
            spark, broker, topics, tmp_path, 1, format="rdf-patch", records_per_batch=2, once=False
        )
        query.processAllAvailable()
    query.stop()
    assert deltas_of(consume(spark, broker, topics[1])) == expected


def test_a_micro_batch_that_is_run_again(spark, broker, tmp_path):
    """Without its commit, Spark repeats the last micro-batch: the helper drops its deltas."""
    batches, expected = railway(8, seed=3)
    topics = new_topic(spark, broker, "in-again", 1), new_topic(spark, broker, "out-again", 1)
    records = [*json_records(batches, lambda _: 0), *ends(1)]
    produce(spark, broker, topics[0], records)
    start(spark, broker, topics, tmp_path, 1, records_per_batch=120).awaitTermination()
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(path.name) for path in commits.iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (commits / name).unlink(missing_ok=True)
    start(spark, broker, topics, tmp_path, 1, records_per_batch=120).awaitTermination()
    out = consume(spark, broker, topics[1])
    assert len(out) > sum(expected.values()), "the last micro-batch must have been written twice"
    assert deltas_of(out) == expected


def test_what_cannot_be_read_is_said(spark, broker):
    with pytest.raises(GraphtideError, match="does not tell the partitions of missing"):
        kafka_shards(spark, broker.servers, "missing")
    with pytest.raises(GraphtideError, match="no format 'xml' of records"):
        kafka_changes(spark, broker.servers, "missing", format="xml")
    with pytest.raises(GraphtideError, match="tables are for format debezium"):
        kafka_changes(spark, broker.servers, "missing", format="debezium")
    with pytest.raises(GraphtideError, match="a tick of 0 ms"):
        kafka_changes(spark, broker.servers, "missing", tick_ms=0)


def test_rejected_rows_have_a_topic_of_their_own(spark, broker, tmp_path):
    change = {"time": 1, "tx": 0, "s": "<ex:a>", "p": "<ex:p>", "o": "<ex:b>"}
    for name in ("mixed", "good", "bad"):
        new_topic(spark, broker, name, 1)
    wrong = [{**change, "s": '"a"'}, {**change, "diff": 3}]
    values = [json.dumps(change), "{", *map(json.dumps, wrong)]
    produce(spark, broker, "mixed", [*((0, value) for value in values), *ends(1)])
    changes = kafka_changes(spark, broker.servers, "mixed", format="json", streaming=False)
    assert changes.where("reason is not null").select("file", "text").collect() == [
        ("mixed/0/1", "{")
    ]
    deltas = watch(
        kafka_changes(spark, broker.servers, "mixed"), "SELECT ?a { ?a <ex:p> ?b }", rejects=True
    )
    deltas_to_kafka(
        deltas, broker.servers, "good", rejected_topic="bad", checkpoint=tmp_path, once=True
    ).awaitTermination()
    (good,) = consume(spark, broker, "good")
    assert json.loads(good.value)["row"] == {"a": "<ex:a>"}
    rejected = {r.key: json.loads(r.value)["reason"] for r in consume(spark, broker, "bad")}
    assert rejected == {
        "mixed/0/1": "not a JSON object with the fields of a change",
        "mixed/0/2": "column s: a subject is an IRI or a blank node",
        "mixed/0/3": "diff is neither +1 nor -1, nor 0 to mark the end of a transaction",
    }


DOORS = """PREFIX : <http://example.org/>
QUERY Open AS SELECT ?d { ?d :is :open }
EVENT Opened(?d) ON APPEAR OF Open(?d)
EVENT Closed(?d) ON DISAPPEAR OF Open(?d)
PATTERN Left(?d) AS Opened(?d) -> NOT Closed(?d) WITHIN 30s
RULE Warn ON Left(?d) THEN INSERT { ?d :was :forgotten }
"""


def door(name, time, tx, diff):
    terms = {"s": f"<http://example.org/{name}>", "p": "<http://example.org/is>"}
    change = {"time": time, "tx": tx, "diff": diff, **terms, "o": "<http://example.org/open>"}
    return 0, json.dumps(change)


def test_the_command_runs_from_topic_to_topics(spark, broker, tmp_path):
    names = ("doors", "doors-out", "doors-rejected", "doors-firings")
    for name in names:
        new_topic(spark, broker, name, 1)
    records = [door("front", 5, 0, 1), door("back", 9, 1, 1), (0, "oops"), door("back", 20, 2, -1)]
    late = door("side", 3, 7, 1)
    end = (0, json.dumps({"time": 10_000, "tx": 0, "end": True}))
    produce(spark, broker, "doors", [*records, late, door("back", 60, 3, 1), end])
    (tmp_path / "doors.tide").write_text(DOORS, encoding="utf-8")
    command = [sys.executable, "-m", "graphtide.cli.main", "run", "doors.tide"]
    options = [
        ("--kafka", f"servers={broker.servers}"),
        ("--kafka", f"in={names[0]}"),
        ("--kafka", f"out={names[1]}"),
        ("--kafka", f"rejected={names[2]}"),
        ("--kafka", f"firings={names[3]}"),
        ("--out", "out"),
        ("--checkpoint", "checkpoint"),
        ("--spark", "master=local[2,4]"),
        ("--spark", "rows-per-batch=4"),
    ]
    ran = subprocess.run(
        [*command, *(part for option in options for part in option)],
        capture_output=True, text=True, timeout=600, check=False, cwd=tmp_path,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stderr
    assert "1 query, 1 rule over doors of Kafka" in ran.stderr
    assert "Open: 2 rows now, +3 -1" in ran.stderr
    front, back = ({"d": f"<http://example.org/{name}>"} for name in ("front", "back"))
    deltas = [json.loads(record.value) for record in consume(spark, broker, names[1])]
    # By hand: the front door is open from 5 on, at 35 for 30 s; the back door is closed in time.
    assert [(d["time"], d["diff"], d["row"]) for d in deltas if d["query"] == "Open"] == [
        (5, 1, front), (9, 1, back), (20, -1, back), (60, 1, back)
    ]  # fmt: skip
    assert [(d["time"], d["row"]) for d in deltas if d["query"] == "Left"] == [
        (35, front),
        (90, back),
    ]
    rejected = {json.loads(r.value)["reason"]: r.key for r in consume(spark, broker, names[2])}
    assert rejected.pop("not a JSON object with the fields of a change") == "doors/0/2"
    assert len(rejected) == 1 and next(iter(rejected)).startswith("too late")
    fired = [json.loads(record.value) for record in consume(spark, broker, names[3])]
    assert [(f["rule"], f["time"]) for f in fired] == [("Warn", 35), ("Warn", 90)]
