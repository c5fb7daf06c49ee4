"""A bounded DataFrame as a stream, for programs whose rules and patterns need one.

Rules act on the graph, and the next micro-batch reads what they did. So the rows are written to the
checkpoint, with a row that ends the last transaction, and read from there in one micro-batch;
those of the actions follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from graphtide.spark.stages.prune import FILE_ID, plain_changes
from graphtide.spark.state.frontier import END
from graphtide.streams.stream import LARGEST

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from graphtide.spark.files import Location
    from graphtide.spark.job import JobSpec


def as_stream(changes: DataFrame, job: JobSpec, directory: Location) -> DataFrame:
    """The rows of a bounded DataFrame, all of them complete, as a stream."""
    spark, plain = changes.sparkSession, plain_changes(changes, job).drop("shard")
    rows, end = directory / "rows", directory / "end"
    if not (end / "_SUCCESS").exists():
        plain.write.mode("overwrite").parquet(str(rows))
        latest = LARGEST if job.windows else END.time
        time = f.max(f.when(f.col("time").between(0, latest), f.col("time")))
        last: Any = spark.read.parquet(str(rows)).select(time).first()
        stamps = "time long, tx long, diff int, seq long"
        ended = spark.createDataFrame([(last[0] or 0, END.tx, 0, 0)], stamps).coalesce(1)
        ended.write.mode("overwrite").parquet(str(end))
    stream = spark.readStream.schema(plain.schema).parquet(str(directory / "*"))
    if "seq" in changes.columns:
        return stream
    # Rows of one file here were rows of one task: their order is known, that of others is not.
    known = [FILE_ID] if FILE_ID in plain.columns else []
    return stream.withColumn(FILE_ID, f.xxhash64(*known, "_metadata.file_path"))
