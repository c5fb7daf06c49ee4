"""A railway in Kafka: a broker, a topic of changes, standing queries on Spark, a topic of deltas.

    make kafka-demo                                            (or, with more transactions:)
    .venv/bin/python examples/spark/kafka_demo.py 60

Starts a broker in a temporary directory, prints deltas as they arrive, and stops everything.
"""

import json
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from threading import Event, Thread

from kafka_broker import KafkaBroker, create_topic
from pyspark.sql import DataFrame, SparkSession

import graphtide as gt
from graphtide.datasets.railway import QUERIES, change_stream
from graphtide.rdf.changes import ChangeBatch

PARTITIONS = 3
PAUSE_SECONDS = 0.3
MAX_SECONDS = 240.0


def records(batch: ChangeBatch) -> list[tuple[int, str]]:
    """A transaction as a record of one partition; the others are told that its time is over."""
    rows = batch.to_arrow().to_pylist()
    time_, tx = rows[0]["time"], rows[0]["tx"]
    changes = [{name: row[name] for name in ("diff", *"spo")} for row in rows]
    home = time_ % PARTITIONS
    return [
        (each, json.dumps({"time": time_, "tx": tx, "changes": changes if each == home else []}))
        for each in range(PARTITIONS)
    ]


def produce(spark: SparkSession, servers: str, batches: Iterator[ChangeBatch], stop: Event) -> None:
    """Write transactions to the topic `rail`, one after the other."""
    for batch in batches:
        frame = spark.createDataFrame(records(batch), "partition int, value string").coalesce(1)
        kafka = frame.write.format("kafka").option("kafka.bootstrap.servers", servers)
        kafka.option("topic", "rail").save()
        if stop.wait(PAUSE_SECONDS):
            return


def short(term: str) -> str:
    """A term without the namespaces of its IRIs."""
    return re.sub(r"<[^>]*[#/]([^>]*)>", r":\1", term)


class DeltaPrinter:
    """Prints the deltas of each micro-batch, and counts them."""

    def __init__(self) -> None:
        self.deltas: Counter[tuple[str, int]] = Counter()
        self._seen: dict[str, tuple[int, int]] = {}

    def __call__(self, batch: DataFrame, number: int) -> None:  # noqa: ARG002 - Spark's signature
        values = [row.value for row in batch.orderBy("partition", "offset").collect()]
        deltas = gt.spark.new_deltas(values, self._seen)
        for delta in sorted(deltas, key=lambda each: (each["time"], each["tx"])):
            self.deltas[delta["query"], delta["diff"]] += 1
            row = ", ".join(f"?{name}={short(term)}" for name, term in delta["row"].items())
            print(f"{delta['diff']:+} time={delta['time']} {delta['query']} {row}", flush=True)


def run(spark: SparkSession, servers: str, home: Path, transactions: int) -> None:
    """The pipeline between the topics, until the last transaction is through."""
    create_topic(spark, servers, "rail", PARTITIONS)
    create_topic(spark, servers, "alarms", 1)
    changes = gt.spark.kafka_changes(spark, servers, "rail")
    deltas = gt.spark.watch(changes, QUERIES, partitions=2, shards=PARTITIONS)
    pipeline = gt.spark.deltas_to_kafka(
        deltas, servers, "alarms", checkpoint=home / "pipeline", trigger="300ms"
    )
    source = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers)
    alarms = source.option("subscribe", "alarms").option("startingOffsets", "earliest").load()
    printer = DeltaPrinter()
    screen = alarms.writeStream.foreachBatch(printer).trigger(processingTime="300 milliseconds")
    shown = screen.option("checkpointLocation", str(home / "screen")).start()
    expected = in_process(transactions)
    stop = Event()
    producer = Thread(target=produce, args=(spark, servers, change_stream(transactions), stop))
    producer.start()
    until = time.monotonic() + MAX_SECONDS
    try:
        while printer.deltas != expected:
            for query in (pipeline, shown):
                if (error := query.exception()) is not None:
                    raise error
            if time.monotonic() > until:
                sys.exit(f"not through after {MAX_SECONDS:.0f} s")
            time.sleep(0.1)
    finally:
        stop.set()
        producer.join()
        pipeline.stop()
        shown.stop()
    print(f"{expected.total()} deltas, as many as in one process", file=sys.stderr)


def in_process(transactions: int) -> Counter[tuple[str, int]]:
    """How many rows are added and removed, by the in-process engine."""
    graph = gt.LiveGraph()
    watches = {name: graph.watch(text) for name, text in QUERIES.items()}
    graph.apply(change_stream(transactions))
    return Counter((name, row.diff) for name, query in watches.items() for row in query.rows())


def main() -> None:
    """Start a broker and Spark, run, and stop both."""
    transactions = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    with tempfile.TemporaryDirectory(prefix="graphtide-kafka-") as folder:
        home = Path(folder)
        print("starting a Kafka broker and Spark", file=sys.stderr)
        with KafkaBroker(home / "broker") as broker:
            settings = gt.spark.kafka_settings()
            spark = gt.spark.make_session(master="local[2]", partitions=2, settings=settings)
            try:
                run(spark, broker.servers, home, transactions)
            finally:
                spark.stop()


if __name__ == "__main__":
    main()
