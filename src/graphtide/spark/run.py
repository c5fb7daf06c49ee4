"""Run: a program over changes, into an output directory, until it is stopped or all is read."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

from graphtide.lang.tide.program import Program
from graphtide.spark.actors import Actors, Functions
from graphtide.spark.feedback import FeedbackLog, with_feedback
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
from graphtide.spark.summarise import plain_changes
from graphtide.spark.unpack import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.reaction import Reaction
    from graphtide.spark.status import BatchStatus

POLL_SECONDS: Final = 0.1
LOOK_MILLISECONDS: Final = 200
"""Between two looks for feedback, where a run ends when there is none."""

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
    functions: Functions | None = None,
    **how: Unpack[How],
) -> Run:
    """Run a program (a file, or one that was read) over changes; the deltas go to files in `out`.

    `changes` is a DataFrame as `watch` takes it, or a directory of change logs. A stream has
    started when this returns: go through `statuses()` to follow it to its end. A bounded DataFrame
    has been run. `cells` is by default what the checkpoint has, or the number of shuffle
    partitions; `RunOptions` tells of the other options. `on_deltas` sees every micro-batch that was
    written. CALL finds its functions in `functions`; one that has a parameter `firing_id` is told
    the id of the firing, which is the same if the call is made again.
    """
    if not isinstance(program, Program):
        program = Program.read(program)
    checkpoint = Path(checkpoint)
    if cells is None:
        partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        cells = known_cells(checkpoint) or partitions
    source = Path(changes) if isinstance(changes, str) else changes
    options = RunOptions(source, Path(out), checkpoint, cells, **how)
    return start_program(spark, program, options, on_deltas, functions)


def start_program(
    spark: SparkSession,
    program: Program,
    options: RunOptions,
    on_deltas: OnDeltas | None = None,
    functions: Functions | None = None,
) -> Run:
    """As `run_program`, with all options in one."""
    reaction = options.reaction(program)
    actors = None if reaction is None else make_actors(reaction, functions or {}, options)
    run = check_options(program, options).run
    if isinstance(options.changes, Path):
        changes = read_logs(spark, options.changes, options)
    else:
        changes = options.changes
    task = make_task(changes, program.texts, options.cells, clock=options.clock, reaction=reaction)
    for query in task.shown_queries:
        check_names([variable.name for variable in query.query.variables[: query.shown]])
    names = [*program.texts, *(pattern.name for pattern in program.patterns)]
    sink = Sink(options.out, run, names, options.output_format, fires=bool(program.rules))
    writer = BatchWriter(task, sink, options.most_quarantined, on_deltas, actors)
    changes = with_reports(changes)
    if reaction is not None and reaction.feeds_back:
        known = plain_changes(changes, task)
        changes = with_feedback(spark, known, options.checkpoint / "feedback")
    matched = match(changes, task)
    if changes.isStreaming:
        return StreamRun(matched, writer, options)
    return BoundedRun(matched, writer)


def make_actors(reaction: Reaction, functions: Functions, options: RunOptions) -> Actors:
    """What carries out the actions of a program."""
    feedback = None
    if reaction.feeds_back:
        feedback = FeedbackLog(options.checkpoint / "feedback", options.most_rounds)
    return Actors(reaction, functions, feedback)


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
        self._all_is_read = False
        self.query: StreamingQuery = self._start(matched)

    def _start(self, matched: DataFrame) -> StreamingQuery:
        stream = matched.writeStream.foreachBatch(self._writer.take).option(
            "checkpointLocation", str(self._options.checkpoint / "stream")
        )
        if self._options.once and not self._writer.feeds_back:
            return stream.trigger(availableNow=True).start()
        pause = trigger_milliseconds(self._options.trigger)
        if self._options.once:
            pause = LOOK_MILLISECONDS
        return stream.trigger(processingTime=f"{pause} milliseconds").start()

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with.

        As soon as `until` says so, the run is stopped after the micro-batch that is under way.
        """
        seen = -1
        if self._options.once and self._writer.feeds_back:
            Thread(target=self._end_when_all_is_read, daemon=True).start()
        changes = self._options.changes
        directory = changes if isinstance(changes, Path) else None
        while True:
            active = self.query.isActive
            if active and (self._all_is_read or until()):
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
        # What is interrupted after all was read is no loss: the next start runs it again.
        if error is not None and not self._all_is_read:
            raise self._writer.failure or explained(str(error)) or error

    def _end_when_all_is_read(self) -> None:
        """With feedback, that is known only when a pass over the sources finds nothing new."""
        with suppress(Exception):  # a failure of the query is told of elsewhere
            self.query.processAllAvailable()
            self._all_is_read = True

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
