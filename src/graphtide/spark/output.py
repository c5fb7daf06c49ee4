"""Output: the files of a run, the manifests that commit them, and how to read them.

    OUT/RouteSensor/batch-00000012.parquet    the deltas of a query, sorted by time and transaction
    OUT/RouteSensor/batch-00000012/part-0003-5f0c1a2b.parquet     those of a large partition
    OUT/Flapping/batch-00000012.parquet       the complex events of a pattern
    OUT/firings/batch-00000012.parquet        which rules fired, in order, each with its id
    OUT/quarantine/batch-00000012.parquet     rejected rows
    OUT/_batches/batch-00000012.json          the manifest: the files of a micro-batch, and totals
    OUT/_progress.json                        the last micro-batch, and totals up to it
    OUT/_graphtide.json                       to which checkpoint the output belongs, and columns

A micro-batch is there as soon as its manifest is. What was written without one is no output.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, overload

import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.errors import GraphtideError
from graphtide.spark.files import Location
from graphtide.spark.state.messages import REJECTED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

OutputFormat = Literal["parquet", "json"]

QUARANTINE_NAME: Final = "quarantine"
FIRINGS_NAME: Final = "firings"
OWNER_NAME: Final = "_graphtide.json"
PROGRESS_NAME: Final = "_progress.json"
MANIFESTS_NAME: Final = "_batches"

INLINE_BYTES: Final = 32_000_000
"""Up to so many bytes of a micro-batch are collected by the driver, and make one file."""

_FIRINGS: Final[list[tuple[str, pa.DataType]]] = [
    ("time", pa.int64()),
    ("tx", pa.int64()),
    ("rule", pa.string()),
    ("id", pa.string()),
    ("values", pa.map_(pa.string(), pa.string())),
    ("events", pa.map_(pa.string(), pa.int64())),
]
FIRINGS: Final = pa.schema(_FIRINGS)
"""When a rule fired, at which transaction (none, if time alone did it), its values, its events."""


@dataclass(frozen=True, slots=True)
class OutputSpec:
    """Where the partitions of a job write what is too large for the driver, and how.

    `first_batch` is the number of the stream's first micro-batch.
    """

    out: Location
    format: OutputFormat = "parquet"
    inline_bytes: int = INLINE_BYTES
    first_batch: int = 0


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file of a micro-batch: whose rows, where below `OUT`, and what they add up to."""

    name: str
    file: str
    rows: int
    bytes: int
    appeared: int = 0
    disappeared: int = 0
    last: tuple[int, int] | None = None

    @staticmethod
    def from_json(found: dict[str, Any]) -> OutputFile:
        """The file of a dict."""
        last = found["last"]
        return OutputFile(**{**found, "last": None if last is None else tuple(last)})


@dataclass(slots=True)
class QueryTotals:
    """What a query's deltas add up to."""

    answer: int = 0
    appeared: int = 0
    disappeared: int = 0


@dataclass(slots=True)
class Progress:
    """The last micro-batch that was written, and totals up to it."""

    batch: int = -1
    time: int | None = None
    tx: int | None = None
    quarantined: int = 0
    fired: int = 0
    queries: dict[str, QueryTotals] = field(default_factory=dict)

    def add(self, batch: int, files: Iterable[OutputFile]) -> None:
        """Count the files of another micro-batch."""
        self.batch = batch
        for part in files:
            if part.name == QUARANTINE_NAME:
                self.quarantined += part.rows
            elif part.name == FIRINGS_NAME:
                self.fired += part.rows
            else:
                totals = self.queries[part.name]
                totals.answer += part.appeared - part.disappeared
                totals.appeared += part.appeared
                totals.disappeared += part.disappeared
                if part.last is not None:
                    before = (self.time or 0, self.tx or 0)
                    self.time, self.tx = max(part.last, before)

    @staticmethod
    def from_json(found: dict[str, Any]) -> Progress:
        """The progress of a dict."""
        totals = {name: QueryTotals(**each) for name, each in found["queries"].items()}
        return Progress(**{**found, "queries": totals})


@dataclass(frozen=True, slots=True)
class Manifest:
    """The files of a micro-batch, and the totals with it."""

    batch: int
    files: tuple[OutputFile, ...]
    progress: Progress

    def write(self, out: Location) -> None:
        """Commit the micro-batch."""
        _manifest(out, self.batch).write_text(json.dumps(asdict(self)))


def _manifest(out: Location, batch: int) -> Location:
    return out / MANIFESTS_NAME / f"{batch_name(batch)}.json"


def read_manifest(out: Location, batch: int) -> Manifest | None:
    """The manifest of a micro-batch; None if it is not committed."""
    try:
        found = json.loads(_manifest(out, batch).read_text())
        files = tuple(OutputFile.from_json(each) for each in found["files"])
        return Manifest(found["batch"], files, Progress.from_json(found["progress"]))
    except (FileNotFoundError, ValueError, KeyError, TypeError):
        return None


def committed(out: Location) -> list[int]:
    """The micro-batches that have manifests, which those without output lack."""
    names = (entry.name for entry in (out / MANIFESTS_NAME).entries() if entry.is_file)
    return [batch for name in names if (batch := batch_of(name)) is not None]


def batch_name(batch: int) -> str:
    """What the files of a micro-batch begin with.

    >>> batch_name(12), batch_of("batch-00000012.parquet"), batch_of("notes.txt")
    ('batch-00000012', 12, None)
    """
    return f"batch-{batch:08}"


def batch_of(name: str) -> int | None:
    """The micro-batch of a file or a directory of parts."""
    number = name.removeprefix("batch-").partition(".")[0]
    return int(number) if name.startswith("batch-") and number.isdecimal() else None


def write_table(out: Location, name: str, file: str, table: pa.Table, form: str) -> OutputFile:
    """Write rows to a file; those of queries and patterns are sorted by time and transaction."""
    data = _bytes_of(table, form)
    (out / file).write_bytes(data)
    if name in {QUARANTINE_NAME, FIRINGS_NAME}:
        return OutputFile(name, file, len(table), data.nbytes)
    diffs: Any = table["diff"].to_numpy()
    time, tx = table["time"][-1].as_py(), table["tx"][-1].as_py()
    appeared, disappeared = int(diffs.clip(min=0).sum()), int((-diffs).clip(min=0).sum())
    return OutputFile(name, file, len(table), data.nbytes, appeared, disappeared, (time, tx or 0))


def _bytes_of(table: pa.Table, form: str) -> memoryview:
    if form == "json":
        rows = table.to_pylist(maps_as_pydicts="strict")
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        return memoryview("".join(lines).encode())
    stream = pa.BufferOutputStream()
    pq.write_table(table, stream, compression="zstd")
    return memoryview(stream.getvalue())


# --- reading ---


@overload
def read_output(out: Path | str, query: str) -> pa.Table: ...
@overload
def read_output(out: Path | str, query: str, spark: SparkSession) -> DataFrame: ...
def read_output(
    out: Path | str, query: str, spark: SparkSession | None = None
) -> pa.Table | DataFrame:
    """The committed rows of a query or a pattern, or of "firings" or "quarantine".

    Without a session they are an Arrow table, sorted by time and transaction; with one, a DataFrame
    in no order. Only whole micro-batches are read, also while a run is writing.
    """
    where = Location.of(out)
    if spark is not None:
        from graphtide.spark.session import storage_settings  # noqa: PLC0415 - only with Spark

        where = Location.of(out, storage_settings(spark))
    schema = schema_of(where, query)
    files = [where / file for file in committed_files(where, query)]
    if spark is not None:
        return _as_dataframe(spark, files, schema)
    tables = [read_table(file, schema) for file in files]
    table = pa.concat_tables([schema.empty_table(), *tables])
    if query in {FIRINGS_NAME, QUARANTINE_NAME}:
        return table
    return table.sort_by([(name, "ascending") for name in table.column_names])


def committed_files(out: Location, name: str) -> Iterator[str]:
    """The files of a query in committed micro-batches, in order of these."""
    known = set(committed(out))
    for entry in (out / name).entries():
        batch = batch_of(entry.name)
        if batch is None or batch not in known:
            continue
        if entry.is_file:
            yield f"{name}/{entry.name}"
        elif found := read_manifest(out, batch):
            begin = f"{name}/{entry.name}/"
            yield from sorted(part.file for part in found.files if part.file.startswith(begin))


def read_table(file: Location, schema: pa.Schema) -> pa.Table:
    """The rows of one file."""
    with file.open() as stream:
        if file.suffix != ".json":
            return pq.read_table(stream).cast(schema)
        rows = [json.loads(line) for line in stream]
    maps = [each.name for each in schema if pa.types.is_map(each.type)]
    for row in rows:
        row.update({name: list(row[name].items()) for name in maps})
    return pa.Table.from_pylist(rows, schema=schema)


def schema_of(out: Location, name: str) -> pa.Schema:
    """The columns of what a run writes: a query, a pattern, firings or rejected rows."""
    if name == QUARANTINE_NAME:
        return REJECTED
    if name == FIRINGS_NAME:
        return FIRINGS
    try:
        columns = json.loads((out / OWNER_NAME).read_text())["columns"]
    except (FileNotFoundError, ValueError, KeyError):
        raise GraphtideError(
            f"{out} is not the output of a run", hint="give the --out of graphtide run"
        ) from None
    if name not in columns:
        raise GraphtideError(
            f"there is no output of {name} in {out}", hint=f"it has {', '.join(columns)}"
        )
    return delta_schema(columns[name])


def delta_schema(names: Sequence[str]) -> pa.Schema:
    """The columns of deltas: when, how often, and a text per variable."""
    front: list[tuple[str, pa.DataType]] = [(name, pa.int64()) for name in ("time", "tx", "diff")]
    return pa.schema([*front, *((name, pa.string()) for name in names)])


def _as_dataframe(spark: SparkSession, files: list[Location], schema: pa.Schema) -> DataFrame:
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415 - only with Spark

    columns = from_arrow_schema(schema)
    if not files:
        return spark.createDataFrame([], columns)
    paths = [str(file.absolute()) for file in files]
    reader = spark.read.schema(columns)
    return reader.json(paths) if files[0].suffix == ".json" else reader.parquet(*paths)
