"""Records of RDF Patch: a record is a transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from graphtide.limits import Limits
from graphtide.rdf.changes import RejectedRow
from graphtide.rdf.formats.patch import PatchReader
from graphtide.spark.kafka.records import CHANGE_SCHEMA, CHANGE_SQL, ROWS_PER_RECORD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import DataFrame

    from graphtide.rdf.changes import ChangeBatch


def patch_changes(records: DataFrame) -> DataFrame:
    """The changes of records with places."""
    return records.select("raw", "time", "tx", "offset", "shard", "file").mapInArrow(
        read_records, CHANGE_SQL
    )


def read_records(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The changes of each record, and the end of its transaction (Spark's `mapInArrow`)."""
    limits = Limits()
    for batch in batches:
        parts = [
            part
            for record in batch.to_pylist()
            for part in _parts(record, *read_record(record, limits))
        ]
        if parts:
            whole = pa.Table.from_batches(parts, CHANGE_SCHEMA).combine_chunks()
            yield from whole.to_batches()


class _RecordReader(PatchReader):
    """Reads a record, whose time and transaction are known if it does not name them."""

    def __init__(self, record: dict[str, Any], rejected: list[RejectedRow], limits: Limits) -> None:
        super().__init__(record["file"], on_error="skip", rejected=rejected, limits=limits)
        self._time, self._tx = record["time"], record["tx"]


def read_record(
    record: dict[str, Any], limits: Limits
) -> tuple[list[ChangeBatch], list[RejectedRow]]:
    r"""The changes of one transaction, and rejected lines.

    >>> place = {"time": 7, "tx": 0, "file": "rail/0/0"}
    >>> text = b"A <ex:a> <ex:p> <ex:b> .\nB .\n"
    >>> batches, [wrong] = read_record({**place, "raw": text}, Limits())
    >>> batches[0].time.tolist(), wrong.file, wrong.line
    ([7], 'rail/0/0', 2)
    """
    raw: bytes = record["raw"]
    rejected: list[RejectedRow] = []
    try:
        raw.decode()
    except UnicodeDecodeError:
        return [], [_whole_record(record, "the record is not UTF-8")]
    reader = _RecordReader(record, rejected, limits)
    batches = [*reader.feed(raw), *reader.finish()]
    found = {key for batch in batches for key in zip(batch.time, batch.tx, strict=True)}
    if len(found) > 1:
        reason = f"the record has {len(found)} transactions: write each into a record of its own"
        return [], [_whole_record(record, reason)]
    if sum(map(len, batches)) >= ROWS_PER_RECORD:
        return [], [_whole_record(record, f"more than {ROWS_PER_RECORD} changes")]
    return batches, rejected


def _whole_record(record: dict[str, Any], reason: str) -> RejectedRow:
    return RejectedRow(record["file"], 0, 0, record["raw"].decode(errors="replace"), reason)


def _parts(
    record: dict[str, Any], batches: list[ChangeBatch], rejected: list[RejectedRow]
) -> Iterator[pa.RecordBatch]:
    """The rows of a record."""
    place = {"file": record["file"], "shard": record["shard"]}
    seq = record["offset"] * ROWS_PER_RECORD
    for batch in batches:
        count = len(batch)
        yield _table(
            count,
            place,
            time=batch.time,
            tx=batch.tx,
            diff=batch.diff.astype(np.int32),
            s=batch.s,
            p=batch.p,
            o=batch.o,
            g=batch.g,
            seq=np.arange(seq, seq + count),
        )
        seq += count
    if batches:
        last = batches[-1]
        yield _table(1, place, time=last.time[-1:], tx=last.tx[-1:], diff=[0], seq=[seq])
    if rejected:
        names = ("reason", "line", "column", "text")
        reports = {name: [getattr(row, name) for row in rejected] for name in names}
        yield _table(len(rejected), place, **reports)


def _table(count: int, place: dict[str, str], **columns: Iterable[Any]) -> pa.RecordBatch:
    arrays: list[Any] = []
    for field in CHANGE_SCHEMA:
        if field.name in place:
            arrays.append(pa.repeat(pa.scalar(place[field.name], field.type), count))
        elif field.name in columns:
            arrays.append(pa.array(columns[field.name], field.type))
        else:
            arrays.append(pa.nulls(count, field.type))
    return pa.record_batch(arrays, schema=CHANGE_SCHEMA)
