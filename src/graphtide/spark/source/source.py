"""The Spark source "graphtide": tails a directory of change logs.

    spark.dataSource.register(GraphtideSource)
    changes = spark.readStream.format("graphtide").load("logs/")

RDF Patch (`.rdfp`, `.patch`), N-Quads, N-Triples (each also packed) and Parquet. The rules
for order, times and transaction numbers are those of `source.offsets`. Options:

| option | meaning |
|---|---|
| `path` | the directory, or a single change log: a path or a URI (`graphtide.spark.files`) |
| `base` | absolute path or URI of a file that is read first |
| `maxRowsPerBatch` | about how many lines or rows a micro-batch takes (200000) |
| `maxFilesPerBatch` | how many files it takes at most (1000) |
| `startingOffsets` | `earliest`, or `latest`: only what is written from now on |
| `continues` | JSON of the offset that a new stream begins with, if it goes on from another one |
| `planned` | JSON of the offset with which its first micro-batch ends, as it was planned before |
| `limits` | a JSON object of numbers of `graphtide.Limits` that are not the defaults |

Rows are changes `time, tx, diff, s, p, o, g, seq`; with a `reason` they are rejected input, with
`file`, `line`, `column` and `text`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from graphtide.spark.source.readers import LogReader, LogStreamReader

SCHEMA_SQL = (
    "time bigint, tx bigint, diff int, s string, p string, o string, g string, seq bigint, "
    "reason string, file string, line bigint, column int, text string"
)


class GraphtideSource(DataSource):
    """A directory of change logs, as a stream that tails it or as a table of all it holds."""

    @classmethod
    def name(cls) -> str:
        """The name of the format."""
        return "graphtide"

    def schema(self) -> str:
        """The columns of `source.read.SCHEMA`."""
        return SCHEMA_SQL

    def reader(self, schema: StructType) -> LogReader:  # noqa: ARG002 - the schema is fixed
        """A reader of what is there."""
        from graphtide.spark.source.readers import LogReader  # noqa: PLC0415 - with the engine

        return LogReader(self.options)

    def streamReader(self, schema: StructType) -> LogStreamReader:  # noqa: ARG002, N802 - Spark's
        """A reader of what is there and of what comes."""
        from graphtide.spark.source.readers import LogStreamReader  # noqa: PLC0415 - as above

        return LogStreamReader(self.options)
