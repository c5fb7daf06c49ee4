"""Deltas to a topic of Kafka, as a changelog; and a helper for those who read it.

A record's key is the row as JSON, with its query; its value is the delta:

    {"query":"Alarm","row":{"sensor":"<ex:s1>"}}
    {"query":"Alarm","time":17,"tx":0,"diff":1,"row":{"sensor":"<ex:s1>"}}

All deltas of a row are in one partition of the topic, in the order of `(time, tx)`. Spark writes a
record at least once; `new_deltas` drops the repetitions. If a topic has tombstones, records of rows
that disappear have no value; whoever takes the last record of each key needs to drop nothing.
"""

from __future__ import annotations

import json
import time
from itertools import chain
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyspark.sql import functions as f
from pyspark.sql.types import MapType, StructType

from graphtide.errors import GraphtideError
from graphtide.spark.driver.options import trigger_milliseconds
from graphtide.spark.job import SETS, is_set

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.lang.tide.program import Program

FRONT: Final = ("query", "time", "tx", "diff")
RETRY_SECONDS: Final = (2.0, 10.0, 30.0)
"""The pauses before records are written again that a broker has not taken."""

NO_SETS: Final = "a row of these queries may be there twice, so nobody knows when it is gone"
SETS_HINT: Final = "tombstones are for SELECT DISTINCT without LIMIT and windows"

log = getLogger(__name__)

_RECORDS: Final = pa.schema([("key", pa.string()), ("value", pa.string())])


def deltas_to_kafka(
    deltas: DataFrame,
    servers: str,
    topic: str,
    *,
    checkpoint: Path | str,
    rejected_topic: str | None = None,
    tombstones: bool = False,
    trigger: str = "1s",
    once: bool = False,
    options: Mapping[str, str] | None = None,
) -> StreamingQuery:
    """Write the deltas of `watch`, a stream, to a topic; returns the running query.

    The rejected rows of `watch(rejects=True)` go to `rejected_topic`. With `tombstones`, the record
    of a row that disappears has no value: a compacted topic then has the rows of now. `trigger` is
    the pause between micro-batches; with `once` the query ends when all that is there has been
    read. `options` are those of Spark's Kafka sink.
    """
    if not deltas.isStreaming:
        raise GraphtideError(
            "these deltas are not a stream",
            hint="write them with delta_records(deltas, topic).write.format('kafka')",
        )
    stream = (
        delta_records(deltas, topic, rejected_topic, tombstones=tombstones)
        .writeStream.format("kafka")
        .options(**(options or {}))
        .option("kafka.bootstrap.servers", servers)
        .option("checkpointLocation", str(checkpoint))
    )
    if once:
        return stream.trigger(availableNow=True).start()
    pause = trigger_milliseconds(trigger)
    return stream.trigger(processingTime=f"{pause} milliseconds").start()


def delta_records(
    deltas: DataFrame,
    topic: str,
    rejected_topic: str | None = None,
    *,
    tombstones: bool = False,
) -> DataFrame:
    """The records that the rows of `watch` become: topic, key and value."""
    missing = [name for name in FRONT if name not in deltas.columns]
    if missing:
        raise GraphtideError(
            f"the deltas have no column {', '.join(missing)}", hint="give what watch returns"
        )
    if tombstones and not deltas.schema["query"].metadata.get(SETS):
        raise GraphtideError(NO_SETS, hint=f"{SETS_HINT}, and give what watch returns")
    names = sorted(name for name in deltas.columns if name not in FRONT)
    has_rejects = "rejected" in names and isinstance(deltas.schema["rejected"].dataType, StructType)
    if has_rejects != (rejected_topic is not None):
        raise GraphtideError(
            "rejected rows and a topic for them go together",
            hint="watch(…, rejects=True) and rejected_topic=…, or neither",
        )
    if has_rejects:
        names.remove("rejected")
    row = _bound(names)
    if names == ["row"] and isinstance(deltas.schema["row"].dataType, MapType):
        row = f.map_from_entries(f.array_sort(f.map_entries("row")))
    key = f.struct("query", row.alias("row"))
    value = f.struct(*(f.col(name) for name in FRONT), row.alias("row"))
    columns = {"topic": f.lit(topic), "key": f.to_json(key), "value": f.to_json(value)}
    if tombstones:
        columns["value"] = f.when(f.col("diff") > 0, columns["value"])
    if has_rejects:
        row = f.col("rejected")
        apart = {"topic": f.lit(rejected_topic), "key": row["file"], "value": f.to_json(row)}
        columns = {
            name: f.when(row.isNotNull(), apart[name]).otherwise(column)
            for name, column in columns.items()
        }
    return deltas.select(*(column.alias(name) for name, column in columns.items()))


def _bound(names: list[str]) -> Column:
    """A map of the columns that are not null, in the order of their names."""
    pairs = [
        f.struct(f.lit(name).alias("key"), f.col(f"`{name}`").alias("value")) for name in names
    ]
    if not pairs:
        return f.create_map().cast("map<string, string>")
    return f.map_from_entries(f.filter(f.array(*pairs), lambda pair: pair["value"].isNotNull()))


class TopicWriter:
    """Writes the output of `run` to topics, each micro-batch after its files (`on_batch`).

    Deltas and complex events go to `topic`; rejected rows and firings to topics of their own, if
    these have a name. With the program as `tombstones`, records of rows that disappear have no
    value; its queries must have DISTINCT.
    """

    def __init__(
        self,
        spark: SparkSession,
        servers: str,
        topic: str,
        *,
        rejected_topic: str | None = None,
        firings_topic: str | None = None,
        tombstones: Program | None = None,
        options: Mapping[str, str] | None = None,
    ) -> None:
        if tombstones is not None:
            check_sets(tombstones.texts)
        self._tombstones = tombstones is not None
        self._spark = spark
        self._options = {**(options or {}), "kafka.bootstrap.servers": servers}
        self._topic, self._rejected, self._firings = topic, rejected_topic, firings_topic

    def __call__(
        self,
        batch: int,  # noqa: ARG002 - the topic has no use for it
        deltas: Mapping[str, pa.Table],
        rejected: pa.Table,
        fired: pa.Table | None,
    ) -> None:
        """Write a micro-batch. One that is run again is written again."""
        records = (
            table_records(name, table, tombstones=self._tombstones)
            for name, table in deltas.items()
        )
        self._write(self._topic, list(chain.from_iterable(records)))
        if self._rejected:
            lines = rejected.to_pylist()
            self._write(self._rejected, [(row["file"] or "", _json(row)) for row in lines])
        if self._firings and fired is not None:
            rows = fired.to_pylist(maps_as_pydicts="strict")
            self._write(self._firings, [(str(row["id"]), _json(row)) for row in rows])

    def _write(self, topic: str, records: Sequence[tuple[str, str | None]]) -> None:
        if not records:
            return
        keys, values = zip(*records, strict=True)
        table = pa.table([pa.array(keys), pa.array(values)], schema=_RECORDS)
        # One task, or else the deltas of one row could overtake each other.
        frame = self._spark.createDataFrame(table).coalesce(1)
        kafka = frame.write.format("kafka").options(**self._options).option("topic", topic)
        for pause in (*RETRY_SECONDS, None):
            try:
                kafka.save()
            except Exception as error:
                reason = str(error).strip().partition("\n")[0]
                if pause is None:
                    raise GraphtideError(
                        f"topic {topic} cannot be written, {len(RETRY_SECONDS) + 1} times in "
                        f"{sum(RETRY_SECONDS):g} s and more: {reason}",
                        hint="start again when the broker is back: the micro-batch is run again",
                    ) from error
                log.warning("topic %s is written again in %g s: %s", topic, pause, reason)
                time.sleep(pause)
            else:
                return


def check_sets(queries: Mapping[str, str]) -> None:
    """Check that no row can be in the answer of one of these queries twice."""
    bags = [name for name, text in queries.items() if not is_set(text)]
    if bags:
        raise GraphtideError(f"{NO_SETS}: {', '.join(bags)}", hint=SETS_HINT)


def table_records(
    name: str, table: pa.Table, *, tombstones: bool = False
) -> list[tuple[str, str | None]]:
    r"""Keys and values of the rows of a query or a pattern; equal ones are added up.

    >>> rows = pa.table({"time": [7, 7], "tx": [0, 0], "diff": [1, 1], "a": ["<ex:a>"] * 2})
    >>> for key, value in table_records("Q", rows):
    ...     print(key, value, sep="\n")
    {"query":"Q","row":{"a":"<ex:a>"}}
    {"query":"Q","time":7,"tx":0,"diff":2,"row":{"a":"<ex:a>"}}
    """
    totals: dict[tuple[str, int, int | None], int] = {}
    rows: dict[str, dict[str, str]] = {}
    for row in table.to_pylist():
        at, tx, diff = (row.pop(field) for field in FRONT[1:])
        bound = {column: row[column] for column in sorted(row) if row[column] is not None}
        key = _json({"query": name, "row": bound})
        rows[key] = bound
        totals[key, at, tx] = totals.get((key, at, tx), 0) + diff

    def value(key: str, at: int, tx: int | None, diff: int) -> str | None:
        if tombstones and diff < 0:
            return None
        return _json({"query": name, "time": at, "tx": tx, "diff": diff, "row": rows[key]})

    ordered = sorted(totals.items(), key=_stamp)
    return [(key, value(key, at, tx, diff)) for (key, at, tx), diff in ordered]


def _stamp(total: tuple[tuple[str, int, int | None], int]) -> tuple[int, int]:
    (_, at, tx), _ = total
    return at, tx or 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def new_deltas(
    values: Iterable[str | bytes], seen: dict[str, tuple[int, int]] | None = None
) -> Iterator[dict[str, Any]]:
    """The deltas of a partition's records, without those that came before.

    A delta is identified by its query, time, tx and row. Those of one row come in order, so that it
    is enough to remember the last `(time, tx)` of each row: `seen` does, from one call to the next.

    >>> one = '{"query":"q","time":1,"tx":0,"diff":1,"row":{"a":"<ex:a>"}}'
    >>> two = one.replace('"time":1', '"time":2')
    >>> [delta["time"] for delta in new_deltas([one, two, one, two])]
    [1, 2]
    """
    seen = {} if seen is None else seen
    for value in values:
        delta: dict[str, Any] = json.loads(value)
        row = json.dumps([delta["query"], delta["row"]], sort_keys=True)
        stamp = delta["time"], delta["tx"] or 0
        if row not in seen or seen[row] < stamp:
            seen[row] = stamp
            yield delta
