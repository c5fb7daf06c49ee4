"""kafka_changes: the changes in a topic of Kafka, as a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal, get_args

from pyspark.errors import AnalysisException

from graphtide.errors import GraphtideError
from graphtide.spark.files import Location
from graphtide.spark.kafka.admin import CONNECTOR_HINT
from graphtide.spark.kafka.debezium import debezium_changes
from graphtide.spark.kafka.json_records import json_changes
from graphtide.spark.kafka.mapping import read_mapping
from graphtide.spark.kafka.patch_records import patch_changes
from graphtide.spark.kafka.positions import known_start
from graphtide.spark.kafka.records import with_places
from graphtide.spark.session import storage_settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from graphtide.spark.kafka.mapping import Tables

RecordFormat = Literal["json", "debezium", "rdf-patch"]

COLUMNS: Final = (
    "time", "tx", "diff", *"spog", "seq", "shard", "reason", "file", "line", "column", "text",
)  # fmt: skip


def kafka_changes(
    spark: SparkSession,
    servers: str,
    topic: str | Sequence[str],
    *,
    format: RecordFormat = "json",  # noqa: A002 - the name users expect
    tables: Tables | None = None,
    tick_ms: int = 1000,
    start: Literal["earliest", "latest"] = "earliest",
    records_per_batch: int = 200_000,
    options: Mapping[str, str] | None = None,
    streaming: bool = True,
    checkpoint: Path | str | Location | None = None,
) -> DataFrame:
    """The changes in a topic, or in several, as `watch` and `run` take them.

    `docs/kafka.md` describes the formats. `tables` says how rows of tables become triples
    (`debezium`). A record without a time has its timestamp, in ticks of `tick_ms` milliseconds.
    `options` are those of Spark's Kafka source, such as `kafka.security.protocol`. Without
    `streaming`, the result is a bounded DataFrame of what is there. If the `checkpoint` of the run
    was rescaled or evolved, the stream starts where that goes on.

    Rows have a `shard`, `TOPIC/PARTITION`, and where they come from, `TOPIC/PARTITION/OFFSET`, in
    `file`. What is no change has a `reason`, and is rejected.
    """
    if format not in get_args(RecordFormat):
        known = ", ".join(get_args(RecordFormat))
        raise GraphtideError(f"no format {format!r} of records", hint=f"there are {known}")
    if (tables is None) != (format != "debezium"):
        raise GraphtideError(
            "tables are for format debezium, which needs them",
            hint="docs/kafka.md shows how the rows of a table become triples",
        )
    if tick_ms < 1:
        raise GraphtideError(f"a tick of {tick_ms} ms is too short", hint="use at least 1")
    reader = (spark.readStream if streaming else spark.read).format("kafka")
    topics = [topic] if isinstance(topic, str) else list(topic)
    reader = reader.options(**(options or {})).option("kafka.bootstrap.servers", servers)
    reader = reader.option("subscribe", ",".join(topics))
    if streaming:
        place = None if checkpoint is None else Location.of(checkpoint, storage_settings(spark))
        continued = None if place is None else known_start(place)
        reader = reader.option("startingOffsets", continued or start)
        reader = reader.option("maxOffsetsPerTrigger", str(records_per_batch))
    try:
        records = with_places(reader.load(), tick_ms)
    except AnalysisException as error:
        if "kafka" not in str(error).lower():
            raise
        raise GraphtideError(
            "this Spark session has no Kafka connector", hint=CONNECTOR_HINT
        ) from None
    if format == "json":
        changes = json_changes(records)
    elif format == "rdf-patch":
        changes = patch_changes(records)
    else:
        changes = debezium_changes(records, read_mapping(tables or {}), tick_ms)
    return changes.select(*COLUMNS)
