"""Standing queries on Spark: from files, from rates; to memory, to files, to a function.

    .venv/bin/python examples/spark/sources_and_sinks.py

Prints:

    files to memory
    1 +1 <ex:route1> <ex:sensor1>
    2 -1 <ex:route1> <ex:sensor1>
    files to files
    2 rows in Parquet
    rate-micro-batch to a function
    train1 is fast from 4 to 7, train2 is fast from 8 to 11
    rate to memory
    train1 is fast from 4 to 7, train2 is fast from 8 to 11
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import graphtide as gt

ROUTE_SENSOR = """SELECT ?route ?sensor WHERE {
  ?route <ex:follows> ?swP . ?swP <ex:target> ?switch . ?switch <ex:monitoredBy> ?sensor
  FILTER NOT EXISTS { ?route <ex:requires> ?sensor } }"""

FAST = "SELECT ?train ?speed WHERE { ?train <ex:speed> ?speed FILTER (?speed > 100) }"

SCHEMA = "time long, tx long, diff int, s string, p string, o string"

# What happens at which time. The last line says that time 2 is over; a later change would, too.
CHANGES = [
    (1, +1, "<ex:route1>", "<ex:follows>", "<ex:position1>"),
    (1, +1, "<ex:position1>", "<ex:target>", "<ex:switch1>"),
    (1, +1, "<ex:switch1>", "<ex:monitoredBy>", "<ex:sensor1>"),
    (2, +1, "<ex:route1>", "<ex:requires>", "<ex:sensor1>"),
    (2, 0, None, None, None),
]


def files(spark: SparkSession, folder: Path) -> DataFrame:
    """Changes as files of JSON, as any source of Spark may give them."""
    names = ("time", "diff", "s", "p", "o")
    lines = [json.dumps({**dict(zip(names, row, strict=True)), "tx": 0}) for row in CHANGES]
    (folder / "changes").mkdir(exist_ok=True)
    (folder / "changes" / "1.json").write_text("\n".join(lines))
    return spark.readStream.schema(SCHEMA).json(str(folder / "changes"))


def readings(rate: DataFrame) -> DataFrame:
    """A train sends its speed with every value of a rate; the speed that it sent before is deleted.

    Three trains take turns. `seq` keeps the changes of one time in order.
    """
    changes = rate.selectExpr(
        "value",
        "explode(array(named_struct('diff', -1, 'at', value - 3),"
        "              named_struct('diff', 1, 'at', value))) as change",
    )
    return changes.selectExpr(
        "value as time",
        "0L as tx",
        "change.diff",
        "concat('<ex:train', pmod(change.at, 3), '>') as s",
        "'<ex:speed>' as p",
        "concat('\"', if(change.at in (4, 8), 120, 60), '\"',"
        "       '^^<http://www.w3.org/2001/XMLSchema#integer>') as o",
        "value * 2 + change.diff as seq",
    )


def show_files_to_memory(spark: SparkSession, folder: Path) -> None:
    deltas = gt.spark.watch(files(spark, folder), ROUTE_SENSOR)
    stream = deltas.writeStream.format("memory").queryName("faults").trigger(availableNow=True)
    stream.start().awaitTermination()
    for row in spark.table("faults").orderBy("time").collect():
        print(row.time, f"{row.diff:+}", row.route, row.sensor)


def show_files_to_files(spark: SparkSession, folder: Path) -> None:
    deltas = gt.spark.watch(files(spark, folder), ROUTE_SENSOR)
    stream = deltas.writeStream.format("parquet").option("path", str(folder / "deltas"))
    stream = stream.option("checkpointLocation", str(folder / "checkpoint-1"))
    stream.trigger(availableNow=True).start().awaitTermination()
    print(spark.read.parquet(str(folder / "deltas")).count(), "rows in Parquet")


def show_rate_micro_batch_to_a_function(spark: SparkSession, folder: Path) -> None:
    batches: dict[int, list[Row]] = {}

    def keep(
        deltas: DataFrame, number: int
    ) -> None:  # a micro-batch that is tried again has its old number
        batches[number] = deltas.collect()

    rate = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    stream = gt.spark.watch(readings(rate), FAST).writeStream.foreachBatch(keep)
    running = stream.option("checkpointLocation", str(folder / "checkpoint-2")).start()
    wait(running, lambda: sum(map(len, batches.values())) >= 4)
    print(intervals(row for rows in batches.values() for row in rows))


def show_rate_to_memory(spark: SparkSession, folder: Path) -> None:
    rate = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    stream = gt.spark.watch(readings(rate), FAST).writeStream.format("memory").queryName("fast")
    running = stream.option("checkpointLocation", str(folder / "checkpoint-3")).start()
    wait(running, lambda: spark.table("fast").count() >= 4)
    print(intervals(spark.table("fast").collect()))


def wait(running: StreamingQuery, enough: Callable[[], bool]) -> None:
    """Let a stream run until there is enough of it."""
    while running.isActive and not enough():
        time.sleep(0.2)
    running.stop()


def intervals(deltas: Iterable[Row]) -> str:
    """When which train was fast: it appears, and it disappears."""
    found: dict[str, list[int]] = {}
    for row in sorted(deltas, key=lambda row: row.time):
        found.setdefault(row.train.strip("<>").removeprefix("ex:"), []).append(row.time)
    return ", ".join(f"{name} is fast from {a} to {b}" for name, (a, b) in found.items())


if __name__ == "__main__":
    session = gt.spark.make_session(master="local[2]", partitions=2)
    with tempfile.TemporaryDirectory() as temporary:
        for title, show in {
            "files to memory": show_files_to_memory,
            "files to files": show_files_to_files,
            "rate-micro-batch to a function": show_rate_micro_batch_to_a_function,
            "rate to memory": show_rate_to_memory,
        }.items():
            print(title)
            show(session, Path(temporary))
    session.stop()
