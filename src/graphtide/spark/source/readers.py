"""The readers of the source "graphtide": slices are planned on the driver and read in tasks.

They are apart from `source.source`, which Spark also imports where it only asks for the schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadLimit,
    ReadMaxFiles,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from graphtide.errors import GraphtideError
from graphtide.limits import Limits
from graphtide.spark.files import Location
from graphtide.spark.source import plan as planning
from graphtide.spark.source.offsets import Offset
from graphtide.spark.source.read import read_slice

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import pyarrow as pa

SECRETS: Final = "secretSettings"
"""The option with the settings of remote file systems. Spark does not show what is so called."""

GROUP_BYTES = 4_000_000
"""About how much one task reads; rows of Parquet count as a byte each."""


class LogReader(DataSourceReader):
    """Reads a directory once."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._directory = log_of(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Partitions of some slices each."""
        slices, _ = planning.plan(
            self._directory,
            Offset(),
            planning.Budget(planning.NO_LIMIT, planning.NO_LIMIT),
            ended=True,
        )
        return [InputPartition(group) for group in grouped(slices)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some slices."""
        return read_group(partition, self._directory.limits)


class LogStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Tails a directory: on the driver it plans slices, in the tasks it reads them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._directory = log_of(options)
        self._rows = _number(options, "maxRowsPerBatch", 200_000)
        self._files = _number(options, "maxFilesPerBatch", 1000)
        self._latest = _starts_at_latest(options)
        self._continues = _offset(options, "continues")
        self._end_of_first = _offset(options, "planned")
        self._planned: tuple[Offset, Offset, list[planning.LogSlice]] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        """Where a new stream begins."""
        if self._continues is not None:
            return self._continues.to_json()
        start = Offset()
        return (planning.latest(self._directory, start) if self._latest else start).to_json()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802 - Spark's name
        """From now on, what is there now is all there is."""
        self._directory.freeze()

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802 - Spark's name
        """How much a micro-batch takes."""
        return ReadMaxRows(self._rows)

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        """The end of the next micro-batch; the start, if there is nothing to take."""
        files = limit.max_files if isinstance(limit, ReadMaxFiles) else self._files
        rows = limit.max_rows if isinstance(limit, ReadMaxRows) else planning.NO_LIMIT
        begin = Offset.from_json(start)
        if self._end_of_first is not None and begin == self._continues:
            end, self._end_of_first = self._end_of_first, None
            return end.to_json()
        ended = self._directory.frozen is not None
        slices, end = planning.plan(
            self._directory, begin, planning.Budget(rows, files), ended=ended
        )
        if not slices:
            return start
        self._planned = begin, end, slices
        return end.to_json()

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Sequence[InputPartition]:
        """Partitions of some slices each; planned again where another process has planned them."""
        first, last = Offset.from_json(start), Offset.from_json(end)
        if first == last:
            return []
        if self._planned and self._planned[:2] == (first, last):
            slices = self._planned[2]
        else:
            slices = planning.replan(self._directory, first, last)
        return [InputPartition(group) for group in grouped(slices)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The rows of some slices."""
        return read_group(partition, self._directory.limits)


def grouped(slices: Sequence[planning.LogSlice]) -> list[tuple[planning.LogSlice, ...]]:
    """Pieces for one task each: a task for every small file would cost more than it reads."""
    groups: list[list[planning.LogSlice]] = []
    bytes_left = 0
    for slice_ in slices:
        size = max(slice_.stop - slice_.start.offset, 0)
        if not groups or size > bytes_left:
            groups.append([])
            bytes_left = GROUP_BYTES
        groups[-1].append(slice_)
        bytes_left -= size
    return [tuple(group) for group in groups]


def read_group(partition: InputPartition, limits: Limits) -> Iterator[pa.RecordBatch]:
    """The rows of a partition's slices, one after the other."""
    for slice_ in partition.value:
        yield from read_slice(slice_, limits)


def log_of(options: Mapping[str, str]) -> planning.Directory:
    """The change log that a source's options name, which has to be there."""
    if "path" not in options:
        raise GraphtideError("the source has no path", hint='load("DIRECTORY")')
    settings = json.loads(options.get(SECRETS, "{}"))
    path = Location.of(options["path"], settings)
    planning.check_log(path)
    base, limits = options.get("base"), Limits(**json.loads(options.get("limits", "{}")))
    return planning.Directory.of(
        path, None if base is None else Location.of(base, settings), limits
    )


def _number(options: Mapping[str, str], name: str, default: int) -> int:
    text = options.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        raise GraphtideError(f"{name} is {text!r}, not a number from 1 on")
    return int(text)


def _offset(options: Mapping[str, str], name: str) -> Offset | None:
    text = options.get(name)
    return None if text is None else Offset.from_json(json.loads(text))


def _starts_at_latest(options: Mapping[str, str]) -> bool:
    start = options.get("startingOffsets", "earliest")
    if start not in {"earliest", "latest"}:
        raise GraphtideError(f"startingOffsets is {start!r}", hint="it is earliest or latest")
    return start == "latest"
