"""Records of Kafka as Spark columns, and the rows of changes that all formats lead to.

A record has a place, `TOPIC/PARTITION/OFFSET`, and is of a shard, `TOPIC/PARTITION`: Kafka keeps
the order of records within a partition only. The changes of a record are ordered by `seq`. A record
that does not say to which transaction it belongs is one by itself: its number is unique, and in
order within a partition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa
from pyspark.sql import functions as f

from graphtide.spark.source.read import SCHEMA

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

CHANGE_SQL: Final = (
    "time bigint, tx bigint, diff int, s string, p string, o string, g string, seq bigint, "
    "reason string, file string, line bigint, column int, text string, shard string"
)
CHANGE_SCHEMA: Final = SCHEMA.append(pa.field("shard", pa.string()))
"""The columns of the source of change logs, and `shard`."""

ROWS_PER_RECORD: Final = 1 << 20
"""`seq` is the offset times this, and the index of the change in its record."""

_OFFSETS: Final = 1 << 48
_WHOLE: Final = r"^\s*[+-]?\d+\s*$"


def with_places(records: DataFrame, tick_ms: int) -> DataFrame:
    """Columns of Kafka's source as the formats need them; tombstones are no changes.

    `raw` is the value as bytes and `text` as text, `time` the record's timestamp in ticks, and
    `tx` its own transaction.
    """
    shard = f.concat_ws("/", "topic", "partition")
    tx = f.col("partition").cast("bigint") * f.lit(_OFFSETS) + f.col("offset")
    return records.where("value is not null").select(
        f.col("value").alias("raw"),
        f.make_valid_utf8(f.col("value").cast("string")).alias("text"),
        f.is_valid_utf8(f.col("value").cast("string")).alias("is_text"),
        f.floor(f.unix_millis("timestamp") / f.lit(tick_ms)).cast("bigint").alias("time"),
        tx.alias("tx"),
        "offset",
        shard.alias("shard"),
        f.concat_ws("/", shard, "offset").alias("file"),
    )


def whole(text: Column) -> Column:
    """A text as a whole number, or null."""
    return f.when(text.rlike(_WHOLE), f.trim(text).try_cast("bigint"))


def change_rows(records: DataFrame) -> DataFrame:
    """A row per change, from columns `time, tx, changes, reason, text` and those of the place.

    `changes` is an array of structs `diff, s, p, o, g`. A record with a reason is rejected.
    """
    nothing = f.array(f.struct(*(f.lit(None).alias(name) for name in ("diff", *"spog"))))
    rejected = f.col("reason").isNotNull()
    rows = records.select("*", f.posexplode(f.when(rejected, nothing).otherwise(f.col("changes"))))
    return rows.select(
        f.when(~rejected, f.col("time")).alias("time"),
        f.when(~rejected, f.col("tx")).alias("tx"),
        *(f.col(f"col.{name}").alias(name) for name in ("diff", *"spog")),
        (f.col("offset") * f.lit(ROWS_PER_RECORD) + f.col("pos")).alias("seq"),
        "reason",
        "file",
        f.lit(None).cast("bigint").alias("line"),
        f.lit(None).cast("int").alias("column"),
        f.when(rejected, f.col("text")).alias("text"),
        "shard",
    )
