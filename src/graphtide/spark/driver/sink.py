"""Sink: the files of an output directory, each micro-batch written once however often it is run.

    OUT/RouteSensor/batch-00000012.parquet    the deltas of a query, sorted by time and transaction
    OUT/Flapping/batch-00000012.parquet       the complex events of a pattern
    OUT/firings/batch-00000012.parquet        which rules fired, in order, each with its id
    OUT/quarantine/batch-00000012.parquet     rejected rows
    OUT/_progress.json                        the last micro-batch, and totals up to it
    OUT/_graphtide.json                       to which checkpoint the output belongs

A file has its name only when it is complete, and a file that is there is never written again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from graphtide.errors import GraphtideError
from graphtide.spark.stages.unpack import emitted_deltas
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from graphtide.spark.driver.actions import ActionRunner
    from graphtide.spark.job import JobSpec

log = getLogger(__name__)

OutputFormat = Literal["parquet", "json"]

QUARANTINE_NAME: Final = "quarantine"
FIRINGS_NAME: Final = "firings"
_PROGRESS, _OWNER = "_progress.json", "_graphtide.json"


@dataclass(slots=True)
class QueryTotals:
    """What a query's deltas add up to."""

    answer: int = 0
    appeared: int = 0
    disappeared: int = 0

    def add(self, diffs: Iterable[int]) -> None:
        """Count delta rows."""
        for diff in diffs:
            self.answer += diff
            self.appeared += max(diff, 0)
            self.disappeared += max(-diff, 0)


@dataclass(slots=True)
class Progress:
    """The last micro-batch that was written, and totals up to it."""

    batch: int = -1
    time: int | None = None
    tx: int | None = None
    quarantined: int = 0
    fired: int = 0
    queries: dict[str, QueryTotals] = field(default_factory=dict)


class Sink:
    """Writes deltas, complex events, firings and rejected rows."""

    def __init__(
        self,
        out: Path,
        run: str,
        queries: Iterable[str],
        output_format: OutputFormat = "parquet",
        *,
        fires: bool = False,
    ) -> None:
        queries = list(queries)
        self._fires = fires
        self.out = out
        self._format: OutputFormat = output_format
        self._claim(run, queries)
        self.progress = self._read_progress(queries)

    def write(
        self,
        batch: int,
        deltas: Mapping[str, pa.Table],
        rejected: pa.Table,
        fired: pa.Table | None = None,
    ) -> None:
        """Write a micro-batch; one that was written before stays as it is."""
        try:
            self._write_batch(batch, deltas, rejected, fired)
        except OSError as error:
            raise GraphtideError(
                f"batch {batch} cannot be written to {self.out}: {error.strerror or error}",
                hint="make room, or let this user write there, and start again: nothing is lost, "
                "the micro-batch is run again",
            ) from error

    def _write_batch(
        self,
        batch: int,
        deltas: Mapping[str, pa.Table],
        rejected: pa.Table,
        fired: pa.Table | None,
    ) -> None:
        for name, table in [*deltas.items(), (QUARANTINE_NAME, rejected), (FIRINGS_NAME, fired)]:
            if table is not None and len(table):
                self._write(self.out / name / f"batch-{batch:08}.{self._format}", table)
        if batch <= self.progress.batch:
            log.info("micro-batch %d had been written before: its files stay", batch)
            return
        self.progress.batch = batch
        self.progress.quarantined += len(rejected)
        self.progress.fired += len(fired) if fired is not None else 0
        for name, table in deltas.items():
            self.progress.queries[name].add(_integers(table, "diff"))
            if len(table):
                last = (_integers(table, "time")[-1], _integers(table, "tx")[-1] or 0)
                before = (self.progress.time or 0, self.progress.tx or 0)
                self.progress.time, self.progress.tx = max(last, before)
        replace_text(self.out / _PROGRESS, json.dumps(asdict(self.progress)))
        log.debug("wrote micro-batch %d, up to time %s", batch, self.progress.time)
        if len(rejected):
            log.warning(
                "micro-batch %d: %d rows to quarantine, %d in all",
                batch, len(rejected), self.progress.quarantined,
            )  # fmt: skip

    def _claim(self, run: str, queries: list[str]) -> None:
        """Make the directories; reject those of another run, whose files are not ours."""
        for taken in (QUARANTINE_NAME, FIRINGS_NAME):
            if taken in {name.lower() for name in queries}:
                raise GraphtideError(
                    f"a query cannot be named {taken}: its directory is taken",
                    hint="give the query another name",
                )
        owner = self.out / _OWNER
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            if not owner.exists():
                if holds_something(self.out):
                    raise GraphtideError(
                        f"{self.out} is not empty, and not the output of graphtide",
                        hint="choose another --out",
                    )
                replace_text(owner, json.dumps({"run": run}))
            for name in [*queries, QUARANTINE_NAME, *([FIRINGS_NAME] if self._fires else [])]:
                (self.out / name).mkdir(exist_ok=True)
            found = json.loads(owner.read_text(encoding="utf-8"))["run"]
        except OSError as error:
            raise GraphtideError(f"{self.out} cannot be written: {error.strerror}") from None
        if found != run:
            raise GraphtideError(
                f"{self.out} holds the output of another run",
                hint="resume with that run's --checkpoint, or choose another --out",
            )

    def _read_progress(self, queries: Iterable[str]) -> Progress:
        path = self.out / _PROGRESS
        if not path.exists():
            return Progress(queries={name: QueryTotals() for name in queries})
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        tallies = {name: QueryTotals(**tally) for name, tally in found["queries"].items()}
        return Progress(**{**found, "queries": tallies})

    def _write(self, path: Path, table: pa.Table) -> None:
        if path.exists():
            return
        unfinished = path.with_name(f"_{path.name}.tmp")
        if self._format == "parquet":
            pq.write_table(table, unfinished, compression="zstd")
        else:
            rows = table.to_pylist(maps_as_pydicts="strict")
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            unfinished.write_text("".join(lines), encoding="utf-8")
        unfinished.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, never a part."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def holds_something(directory: Path) -> bool:
    """Whether a directory has anything in it, but for what a crash in `replace_text` may leave."""
    return any(path.suffix != ".tmp" for path in directory.iterdir())


def _integers(table: pa.Table, name: str) -> list[int]:
    column: Any = table[name]
    values: list[int] = column.to_pylist()
    return values


OnDeltas = Callable[[dict[str, pa.Table]], None]
"""What sees the deltas of a micro-batch after they were written, by query."""

OnBatch = Callable[[int, Mapping[str, pa.Table], pa.Table, pa.Table | None], None]
"""What sees all output of a micro-batch after it was written: deltas, rejected rows, firings."""


class BatchWriter:
    """Writes micro-batches, and remembers why it could not."""

    def __init__(
        self,
        job: JobSpec,
        sink: Sink,
        max_quarantined: int | None,
        on_deltas: OnDeltas | None,
        actions: ActionRunner | None = None,
        on_batch: OnBatch | None = None,
    ) -> None:
        self._actions = actions
        self._on_batch = on_batch
        self.sink = sink
        self.failure: GraphtideError | None = None
        self._job = job
        self._max_quarantined = max_quarantined
        self._on_deltas = on_deltas

    @property
    def feeds_back(self) -> bool:
        """Whether the next micro-batch may read what actions write."""
        return self._actions is not None and self._actions.spec.feeds_back

    def write(self, output: DataFrame, batch: int) -> None:
        """Write a micro-batch. It is computed even if it was written: the state depends on it."""
        table = output.toArrow()
        messages = msg.from_chunks(table["chunk"].to_pylist(), msg.MESSAGES)
        rejected = msg.from_chunks(table["rejected"].to_pylist(), msg.REJECTED)
        deltas = tables_of(messages, self._job)
        firings = None
        try:
            if self._actions is None:
                self.sink.write(batch, deltas, rejected)
            else:
                fired, events, firings = self._actions.tables(messages)
                if batch > self.sink.progress.batch:  # what was written was called, too
                    self._actions.call(fired)
                deltas |= events
                self.sink.write(batch, deltas, rejected, firings)
                times: Any = table["time"].to_pylist()
                self._actions.feed_back(batch, max(times, default=0), fired)
            self._check_quarantine()
            if self._on_batch is not None:
                self._on_batch(batch, deltas, rejected, firings)
        except GraphtideError as error:
            self.failure = error
            raise
        if self._on_deltas is not None:
            self._on_deltas(deltas)

    def _check_quarantine(self) -> None:
        found = self.sink.progress.quarantined
        if self._max_quarantined is not None and found > self._max_quarantined:
            raise GraphtideError(
                f"{found} rows are rejected, more than the {self._max_quarantined} allowed",
                hint=f"look into {self.sink.out / QUARANTINE_NAME}; fix the input, or allow more "
                "with --max-quarantined, and start again",
            )


def tables_of(messages: pa.Table, job: JobSpec) -> dict[str, pa.Table]:
    """The deltas of each named query: a column per variable, sorted by time, tx and row."""
    deltas = emitted_deltas(messages, job)
    found = {}
    for number, query in enumerate(job.shown_queries):
        names = [variable.name for variable in query.query.variables[: query.shown]]
        part = msg.of_kind(deltas, msg.MessageKind.DELTA, number)
        stamps: dict[str, Any] = {name: part[name] for name in ("time", "tx", "diff")}
        table = pa.table({**stamps, **msg.value_columns(part, names)})
        found[query.name] = table.sort_by([(name, "ascending") for name in table.column_names])
    return found
