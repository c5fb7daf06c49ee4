"""`watch` on a server of Spark Connect that this process starts: `python connect_job.py FOLDER`.

It prints the times of the deltas of a stream, then those of a bounded DataFrame.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from graphtide.spark import watch
from graphtide.spark.session import all_settings, worker_environment

SCHEMA = "time long, tx long, diff int, s string, p string, o string, g string"
TEXT = "SELECT ?a ?b { ?a <ex:p> ?b }"


def main(folder):
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ |= worker_environment()
    builder = SparkSession.builder.remote("local[2,4]")
    for key, value in all_settings("local[2,4]", 2, {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    rows = [(time, 0, 1, f"<ex:{time}>", "<ex:p>", "<ex:b>", None) for time in (1, 2)]
    bounded = watch(spark.createDataFrame(rows, SCHEMA), TEXT, partitions=2).collect()
    (folder / "in").mkdir()
    for time in range(4):
        line = {"time": time, "tx": 0, "diff": 1, "s": "<ex:a>", "p": "<ex:p>", "o": f"<ex:{time}>"}
        (folder / "in" / f"{time}.json").write_text(json.dumps(line))
        os.utime(folder / "in" / f"{time}.json", (10**9 + time,) * 2)
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    deltas = watch(reader.json(str(folder / "in")), TEXT, partitions=2)
    writer = deltas.writeStream.trigger(availableNow=True).format("memory").queryName("deltas")
    query = writer.start()
    query.awaitTermination()
    assert query.recentProgress[-1]["eventTime"]["watermark"] > "1970-01-01T00:00:01"
    streamed = spark.table("deltas").collect()
    print(*(sorted(row.time for row in part) for part in (streamed, bounded)))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
