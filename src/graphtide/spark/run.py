"""Run: a program over changes, into an output directory, until it is stopped or all is read."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

from graphtide.lang.program import Program, read_program
from graphtide.spark.pipeline import make_task, match
from graphtide.spark.quarantine import with_reports
from graphtide.spark.run_batch import BatchWriter, OnDeltas
from graphtide.spark.run_bounded import BoundedRun
from graphtide.spark.run_checkpoint import read_fingerprint
from graphtide.spark.run_failure import explained
from graphtide.spark.run_options import How, RunOptions, check_options, trigger_milliseconds
from graphtide.spark.sink import Sink
from graphtide.spark.source import GraphtideSource
from graphtide.spark.source_place import Offset
from graphtide.spark.status import batch_status
from graphtide.spark.unpack import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.status import BatchStatus

POLL_SECONDS: Final = 0.1
STOP_SECONDS: Final = 30.0


def known_cells(checkpoint: Path) -> int | None:
    """The number of cells of a checkpoint, which a run has to keep."""
    found = read_fingerprint(checkpoint)
    return None if found is None else found.cells


def resumes_from(checkpoint: Path) -> tuple[int, Offset] | None:
    """The last micro-batch that is done, and how far it had read."""
    try:
        stream = checkpoint / "stream"
        last = max(int(path.name) for path in (stream / "commits").iterdir() if path.name.isdigit())
        lines = (stream / "offsets" / str(last)).read_text(encoding="utf-8").splitlines()
        return last, Offset.from_json(json.loads(lines[2]))
    except (OSError, ValueError, IndexError, KeyError, TypeError):
        return None


def run_program(
    spark: SparkSession,
    program: Program | str | Path,
    *,
    changes: DataFrame | Path | str,
    out: Path | str,
    checkpoint: Path | str,
    cells: int | None = None,
    on_deltas: OnDeltas | None = None,
    **how: Unpack[How],
) -> Run:
    """Run a program (a file, or one that was read) over changes; the deltas go to files in `out`.

    `changes` is a DataFrame as `watch` takes it, or a directory of change logs. A stream has
    started when this returns: go through `statuses()` to follow it to its end. A bounded DataFrame
    has been run. `cells` is by default what the checkpoint has, or the number of shuffle
    partitions; `RunOptions` tells of the other options. `on_deltas` sees every micro-batch that was
    written.
    """
    if not isinstance(program, Program):
        program = read_program(Path(program))
    checkpoint = Path(checkpoint)
    if cells is None:
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        cells = known_cells(checkpoint) or partitions
    source = Path(changes) if isinstance(changes, str) else changes
    options = RunOptions(source, Path(out), checkpoint, cells, **how)
    return start_program(spark, program, options, on_deltas)


def start_program(
    spark: SparkSession, program: Program, options: RunOptions, on_deltas: OnDeltas | None = None
) -> Run:
    """As `run_program`, with all options in one."""
    run = check_options(program, options).run
    if isinstance(options.changes, Path):
        changes = read_logs(spark, options.changes, options)
    else:
        changes = options.changes
    task = make_task(changes, program.texts, options.cells, clock=options.clock)
    for query in task.cell_queries:
        check_names([variable.name for variable in query.query.variables[: query.shown]])
    sink = Sink(options.out, run, program.texts, options.output_format)
    writer = BatchWriter(task, sink, options.most_quarantined, on_deltas)
    matched = match(with_reports(changes), task)
    if changes.isStreaming:
        return StreamRun(matched, writer, options)
    return BoundedRun(matched, writer)


def read_logs(spark: SparkSession, directory: Path, options: RunOptions) -> DataFrame:
    """A directory of change logs as a stream."""
    spark.dataSource.register(GraphtideSource)
    return (
        spark.readStream.format("graphtide")
        .option("maxRowsPerBatch", str(options.rows_per_batch))
        .option("startingOffsets", "latest" if options.only_new else "earliest")
        .load(str(directory))
    )


class Run(Protocol):
    """A program that runs; go through `statuses()` to follow it to its end."""

    @property
    def sink(self) -> Sink:
        """Where the output goes, with the totals so far."""

    def statuses(self, until: Callable[[], bool] = ...) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with."""

    def stop(self) -> None:
        """Let the micro-batch that is under way come to its end, then stop."""


class StreamRun:
    """A run as a streaming query."""

    def __init__(self, matched: DataFrame, writer: BatchWriter, options: RunOptions) -> None:
        self.sink = writer.sink
        self._writer = writer
        self._options = options
        self.query: StreamingQuery = self._start(matched)

    def _start(self, matched: DataFrame) -> StreamingQuery:
        stream = matched.writeStream.foreachBatch(self._writer.take).option(
            "checkpointLocation", str(self._options.checkpoint / "stream")
        )
        if self._options.once:
            return stream.trigger(availableNow=True).start()
        pause = trigger_milliseconds(self._options.trigger)
        return stream.trigger(processingTime=f"{pause} milliseconds").start()

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with.

        As soon as `until` says so, the run is stopped after the micro-batch that is under way.
        """
        seen = -1
        changes = self._options.changes
        directory = changes if isinstance(changes, Path) else None
        while True:
            active = self.query.isActive
            if active and until():
                self.stop()
                active = False
            for report in self._reports():
                if report["batchId"] > seen and report["numInputRows"]:
                    seen = report["batchId"]
                    yield batch_status(report, self.sink.progress, directory)
            if not active:
                break
            time.sleep(POLL_SECONDS)
        error = self.query.exception()
        if error is not None:
            raise self._writer.failure or explained(str(error)) or error

    def _reports(self) -> list[dict[str, Any]]:
        return [json.loads(report.json) for report in self.query.recentProgress]

    def stop(self) -> None:
        """Let the micro-batch that is under way come to its end, then stop."""
        until = time.monotonic() + STOP_SECONDS
        while self.query.isActive and self.query.status["isTriggerActive"]:
            if time.monotonic() > until:
                break
            time.sleep(POLL_SECONDS)
        self.query.stop()
