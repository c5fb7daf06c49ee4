"""Sink: commits the output of micro-batches, each once however often it is run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from dataclasses import asdict
from logging import getLogger
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.spark import output as outputs
from graphtide.spark.files import Location
from graphtide.spark.stages.parts import cannot_write, concatenated, output_tables, written_parts
from graphtide.spark.state import messages as msg

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from graphtide.spark.driver.actions import ActionRunner
    from graphtide.spark.job import JobSpec

log = getLogger(__name__)


class Sink:
    """Writes deltas, complex events, firings and rejected rows, as `graphtide.spark.output` says.

    `columns` has the names of the values of each query and pattern.
    """

    def __init__(
        self,
        out: Path | Location,
        run: str,
        columns: Mapping[str, Sequence[str]],
        output_format: outputs.OutputFormat = "parquet",
        *,
        fires: bool = False,
    ) -> None:
        self._fires = fires
        self.out = Location.of(out)
        self._format: outputs.OutputFormat = output_format
        self._claim(run, columns)
        self.progress = self._read_progress(columns)
        for name in columns:  # a query may be new
            self.progress.queries.setdefault(name, outputs.QueryTotals())

    def write(
        self,
        batch: int,
        tables: Mapping[str, pa.Table],
        rejected: pa.Table,
        fired: pa.Table | None = None,
        parts: Sequence[outputs.OutputFile] = (),
    ) -> None:
        """Write a micro-batch and commit it; one that was committed before stays as it is.

        `parts` are files that partitions have written already.
        """
        found = {**tables, outputs.QUARANTINE_NAME: rejected}
        if fired is not None:
            found[outputs.FIRINGS_NAME] = fired
        try:
            before = self._whole(batch) if batch <= self.progress.batch else None
            if before is not None:
                log.info("micro-batch %d had been written before: its files stay", batch)
                self._clean(batch, parts, before.files)
                return
            self._commit(batch, found, parts)
        except OSError as error:
            raise cannot_write(batch, self.out, error) from error
        rows = len(rejected) + sum(
            part.rows for part in parts if part.name == outputs.QUARANTINE_NAME
        )
        if rows:
            log.warning(
                "micro-batch %d: %d rows to quarantine, %d in all",
                batch, rows, self.progress.quarantined,
            )  # fmt: skip

    def _commit(
        self, batch: int, tables: Mapping[str, pa.Table], parts: Sequence[outputs.OutputFile]
    ) -> None:
        self._check_parts(parts)
        files = list(parts)
        for name, table in tables.items():
            if len(table):
                file = f"{name}/{outputs.batch_name(batch)}.{self._format}"
                files.append(outputs.write_table(self.out, name, file, table, self._format))
        self._clean(batch, parts, files)
        progress = deepcopy(self.progress)
        if batch > progress.batch:
            progress.add(batch, files)
        if files:
            outputs.Manifest(batch, tuple(files), progress).write(self.out)
        self.progress = progress
        (self.out / outputs.PROGRESS_NAME).write_text(json.dumps(asdict(progress)))
        log.debug("wrote micro-batch %d, up to time %s", batch, progress.time)

    def _whole(self, batch: int) -> outputs.Manifest | None:
        """The manifest of a micro-batch if all its files are there, with their sizes."""
        found = outputs.read_manifest(self.out, batch)
        if found is None:
            return None
        for part in found.files:
            entry = (self.out / part.file).info()
            if entry is None or entry.size != part.bytes:
                log.warning("%s is damaged: micro-batch %d is written again", part.file, batch)
                return None
        return found

    def _check_parts(self, parts: Sequence[outputs.OutputFile]) -> None:
        """Check that this process sees what the partitions have written."""
        for part in parts:
            entry = (self.out / part.file).info()
            if entry is None or entry.size != part.bytes:
                raise GraphtideError(
                    f"{self.out / part.file} was written by an executor and is not seen here",
                    hint="choose an out that all nodes share, and start again: nothing is lost",
                )

    def _clean(
        self, batch: int, parts: Iterable[outputs.OutputFile], files: Iterable[outputs.OutputFile]
    ) -> None:
        """Delete parts of attempts that are not the ones committed."""
        kept = {part.file for part in files}
        for name in {part.name for part in parts}:
            folder = f"{name}/{outputs.batch_name(batch)}"
            for entry in (self.out / folder).entries():
                if f"{folder}/{entry.name}" not in kept:
                    (self.out / folder / entry.name).delete()

    def _claim(self, run: str, columns: Mapping[str, Sequence[str]]) -> None:
        """Make the directories; reject those of another run, whose files are not ours."""
        for taken in (outputs.QUARANTINE_NAME, outputs.FIRINGS_NAME):
            if taken in {name.lower() for name in columns}:
                raise GraphtideError(
                    f"a query cannot be named {taken}: its directory is taken",
                    hint="give the query another name",
                )
        owner = self.out / outputs.OWNER_NAME
        try:
            self.out.make_directory()
            if not owner.exists():
                if holds_something(self.out):
                    raise GraphtideError(
                        f"{self.out} is not empty, and not the output of graphtide",
                        hint="choose another --out",
                    )
                known = {name: list(names) for name, names in columns.items()}
                owner.write_text(json.dumps({"run": run, "columns": known}))
            self._add_columns(owner, run, columns)
            fires = [outputs.FIRINGS_NAME] if self._fires else []
            for name in [*columns, outputs.QUARANTINE_NAME, outputs.MANIFESTS_NAME, *fires]:
                (self.out / name).make_directory()
            found = json.loads(owner.read_text())["run"]
        except OSError as error:
            raise GraphtideError(f"{self.out} cannot be written: {error.strerror}") from None
        if found != run:
            raise GraphtideError(
                f"{self.out} holds the output of another run",
                hint="resume with that run's --checkpoint, or choose another --out",
            )

    def _add_columns(self, owner: Location, run: str, columns: Mapping[str, Sequence[str]]) -> None:
        """Note the columns of queries that the run did not have before."""
        found = json.loads(owner.read_text())
        known = found["columns"]
        new = {name: list(names) for name, names in columns.items() if known.get(name) != [*names]}
        if found["run"] != run or not new:
            return
        for name in new:
            if name in known:
                raise GraphtideError(
                    f"{self.out} has output of {name} with other columns",
                    hint="give the query another name",
                )
        owner.write_text(json.dumps({**found, "columns": known | new}))

    def _read_progress(self, names: Iterable[str]) -> outputs.Progress:
        """The totals of the last manifest, or of a later micro-batch without output."""
        noted = outputs.Progress(queries={name: outputs.QueryTotals() for name in names})
        try:
            noted = outputs.Progress.from_json(
                json.loads((self.out / outputs.PROGRESS_NAME).read_text())
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError):
            log.debug("%s has no totals", self.out)
        for batch in sorted(outputs.committed(self.out), reverse=True):
            if batch <= noted.batch:
                break
            if (found := outputs.read_manifest(self.out, batch)) is not None:
                return found.progress
        return noted


def holds_something(directory: Location) -> bool:
    """Whether a directory has anything in it, but for what a crash may leave of a file."""
    return any(not entry.name.endswith(".tmp") for entry in directory.entries())


OnDeltas = Callable[[dict[str, pa.Table]], None]
"""What sees the deltas of a micro-batch after they were written, by query."""

OnBatch = Callable[[int, Mapping[str, pa.Table], pa.Table, pa.Table | None], None]
"""What sees all output of a micro-batch after it was written: deltas, rejected rows, firings."""


class StreamEndedError(Exception):
    """Ends a stream before a micro-batch is computed: another stream is to begin with it."""


class BatchWriter:
    """Writes micro-batches, and remembers why it could not.

    If it `is_last`, the next one is not computed: the stream ends, and `ended` says so. One that
    was begun before, and is run again, is not the next; nor is the `current` one, if that is known,
    which Spark may have begun.
    """

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
        self.is_last = self.ended = False
        self._begun = self.current = -1
        self.job = job
        self._max_quarantined = max_quarantined
        self._on_deltas = on_deltas

    @property
    def feeds_back(self) -> bool:
        """Whether the next micro-batch may read what actions write."""
        return self._actions is not None and self._actions.spec.feeds_back

    @property
    def first_batch(self) -> int:
        """The number of the stream's first micro-batch."""
        return 0 if self.job.output is None else self.job.output.first_batch

    def write(self, output: DataFrame, number: int) -> None:
        """Write a micro-batch. It is computed even if it was written: the state depends on it."""
        if self.is_last and number > max(self._begun, self.current):
            self.ended = True
            raise StreamEndedError
        self._begun = number
        batch = self.first_batch + number
        table = output.toArrow()
        messages = msg.from_chunks(table["chunk"].to_pylist(), msg.MESSAGES)
        rejected = msg.from_chunks(table["rejected"].to_pylist(), msg.REJECTED)
        tables, parts = output_tables(messages, self.job), written_parts(messages)
        firings = None
        try:
            if self._actions is None:
                self.sink.write(batch, tables, rejected, parts=parts)
            else:
                fired, firings = self._actions.firings(messages)
                if batch > self.sink.progress.batch:  # what was written was called, too
                    self._actions.call(fired)
                self.sink.write(batch, tables, rejected, firings, parts)
                times: Any = table["time"].to_pylist()
                self._actions.feed_back(batch, max(times, default=0), fired)
            self._check_quarantine()
            if self._on_batch is not None:
                deltas = self._with_parts(batch, tables, parts)
                self._on_batch(batch, deltas, rejected, firings)
        except GraphtideError as error:
            self.failure = error
            raise
        if self._on_deltas is not None:
            self._on_deltas(self._with_parts(batch, tables, parts))

    def _with_parts(
        self, batch: int, tables: dict[str, pa.Table], parts: Sequence[outputs.OutputFile]
    ) -> dict[str, pa.Table]:
        """The rows of a micro-batch, with those that are in files only."""
        manifest = outputs.read_manifest(self.sink.out, batch) if parts else None
        begins = {name: f"{name}/{outputs.batch_name(batch)}/" for name in tables}
        files = manifest.files if manifest is not None else ()
        return {
            name: concatenated(
                [
                    table,
                    *(
                        outputs.read_table(self.sink.out / part.file, table.schema)
                        for part in files
                        if part.file.startswith(begins[name])
                    ),
                ]
            )
            for name, table in tables.items()
        }

    def _check_quarantine(self) -> None:
        found = self.sink.progress.quarantined
        if self._max_quarantined is not None and found > self._max_quarantined:
            raise GraphtideError(
                f"{found} rows are rejected, more than the {self._max_quarantined} allowed",
                hint=f"look into {self.sink.out / outputs.QUARANTINE_NAME}; fix the input, or "
                "allow more with --max-quarantined, and start again",
            )
