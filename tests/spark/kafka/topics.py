"""Railway changes as records of Kafka, topics written and read, and the expected deltas."""

from __future__ import annotations

import io
import json
from collections import Counter

from kafka_broker import create_topic
from pyspark.sql import functions as f
from spark.faults.stream import TWO_STAGES, in_process

from graphtide.datasets.railway import change_stream
from graphtide.rdf.formats.change_log import write_changes
from graphtide.spark import new_deltas
from graphtide.spark.kafka.admin import open_admin

LAST = 2**61
"""The time of the records that end a stream."""


def railway(transactions, seed):
    """The changes of a railway, a batch per transaction, and the deltas that they lead to."""
    batches = list(change_stream(transactions, seed=seed, routes=6))
    return batches, in_process(TWO_STAGES, batches)


def json_records(batches, partition_of):
    """A record `(partition, value)` for each change; `partition_of` gets the number of a change."""
    rows = [row for batch in batches for row in batch.to_arrow().to_pylist()]
    return [
        (
            partition_of(number),
            json.dumps({name: row[name] for name in row if row[name] is not None}),
        )
        for number, row in enumerate(rows)
    ]


def patch_records(batches):
    """A record for each transaction, in partition 0, as RDF Patch."""
    records = []
    for batch in batches:
        file = io.BytesIO()
        # A file starts with transaction 0 at time 0; a record has to say which one it is.
        file.write(f"H time {batch.time[0]} .\nH tx {batch.tx[0]} .\n".encode())
        write_changes(batch, file, format="rdfp")
        records.append((0, file.getvalue().decode()))
    return records


def ends(partitions):
    """Records that end everything, one for each partition."""
    return [(each, json.dumps({"time": LAST, "tx": 0, "end": True})) for each in range(partitions)]


def produce(spark, broker, topic, records):
    """Write records, each partition in the order given."""
    numbered = [(number, *record) for number, record in enumerate(records)]
    frame = spark.createDataFrame(numbered, "number long, partition int, value string")
    (
        frame.coalesce(1)
        .sortWithinPartitions("number")
        .select("partition", "value")
        .write.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("topic", topic)
        .save()
    )


def consume(spark, broker, topic):
    """All records of a topic, as rows `partition, offset, key, value`, in order."""
    return (
        spark.read.format("kafka")
        .option("kafka.bootstrap.servers", broker.servers)
        .option("subscribe", topic)
        .load()
        .select("partition", "offset", f.expr("string(key) key"), f.expr("string(value) value"))
        .orderBy("partition", "offset")
        .collect()
    )


def deltas_of(records):
    """The deltas of a topic's records, repetitions dropped, as `in_process` gives them."""
    found = Counter()
    for partition in {record.partition for record in records}:
        values = [record.value for record in records if record.partition == partition]
        for delta in new_deltas(values):
            row = frozenset(delta["row"].items())
            found[delta["query"], delta["time"], delta["tx"], delta["diff"], row] += 1
    return found


def new_topic(spark, broker, name, partitions):
    """Create a topic, and return its name."""
    create_topic(spark, broker.servers, name, partitions)
    return name


def add_partitions(spark, broker, topic, partitions):
    """Let a topic have so many partitions from now on."""
    with open_admin(spark, broker.servers) as (admin, jvm):
        wanted = jvm.java.util.HashMap()
        increase = jvm.org.apache.kafka.clients.admin.NewPartitions.increaseTo
        wanted.put(topic, increase(partitions))
        admin.createPartitions(wanted).all().get()
