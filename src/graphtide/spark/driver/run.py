"""run: a program over changes, into an output directory, until it is stopped or all is read."""

from __future__ import annotations

import json
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from logging import getLogger
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from typing import TYPE_CHECKING, Any, Final, Protocol, Unpack

import numpy as np
import pyarrow as pa

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.rdf.formats.change_log import read_changes, write_changes
from graphtide.rules.compile import feedback_of
from graphtide.spark.api import make_job, run_stages
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver.actions import ActionRunner, Functions
from graphtide.spark.driver.bounded import as_stream
from graphtide.spark.driver.dividing import DividingJob
from graphtide.spark.driver.feedback import FeedbackLog, with_feedback
from graphtide.spark.driver.options import (
    RunOptions,
    RunSettings,
    check_options,
    read_fingerprint,
    trigger_milliseconds,
)
from graphtide.spark.driver.rescale import add_hubs
from graphtide.spark.driver.restore import continue_job
from graphtide.spark.driver.sink import BatchWriter, OnBatch, OnDeltas, Sink
from graphtide.spark.driver.status import BatchStatus, batch_status, explained, passes
from graphtide.spark.files import Location
from graphtide.spark.kafka.positions import check_start, reads_topics
from graphtide.spark.metrics import CacheCounts
from graphtide.spark.output import OutputSpec
from graphtide.spark.restore.kept import job_notes
from graphtide.spark.session import check_classic, check_hadoop, storage_settings
from graphtide.spark.source.offsets import Offset
from graphtide.spark.source.readers import SECRETS
from graphtide.spark.source.source import GraphtideSource
from graphtide.spark.stages.prune import plain_changes
from graphtide.spark.stages.unpack import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.job import JobSpec
    from graphtide.spark.load import PartitionLoad
    from graphtide.spark.partition.program import ProgramSpec

    Loads = Mapping[tuple[str, int], PartitionLoad]
    MakeChanges = Callable[[], DataFrame]

log = getLogger(__name__)

POLL_SECONDS: Final = 0.1
RETRY_SECONDS: Final = (2.0, 10.0, 30.0)
"""The pauses before a query is started again that failed because the machine was busy."""

LOOK_MILLISECONDS: Final = 200
"""The trigger of a run with `once` that waits for feedback."""

STOP_SECONDS: Final = 30.0
BASE_FILE: Final = "base.parquet"


def known_partitions(checkpoint: Location) -> int | None:
    """The number of partitions of a checkpoint, which cannot change."""
    found = read_fingerprint(checkpoint)
    return None if found is None else found.partitions


def resumes_from(checkpoint: Location) -> tuple[int, Offset] | None:
    """The last micro-batch that is committed, and the offset up to which it has read."""
    try:
        found = read_fingerprint(checkpoint)
        before = None if found is None else found.continued
        stopped = going_on.stopped_at(checkpoint / going_on.folder_of("stream", before))
        first = 0 if before is None else before.first_batch
        if stopped is not None:
            return first + stopped.batch, Offset.from_json(stopped.offset)
        return None if before is None else (first - 1, Offset.from_json(before.offset))
    except (GraphtideError, OSError, ValueError, KeyError, TypeError):
        return None


def run(
    spark: SparkSession,
    program: Program | Path,
    *,
    changes: DataFrame | MakeChanges | Path | str,
    out: Path | str,
    checkpoint: Path | str,
    partitions: int | None = None,
    functions: Functions | None = None,
    on_deltas: OnDeltas | None = None,
    on_batch: OnBatch | None = None,
    **settings: Unpack[RunSettings],
) -> SparkJob:
    """Run a program, or the program of a file, over changes; the deltas go to files in `out`.

    `changes` is a directory of change logs, or a DataFrame as `watch` takes it; a function that
    makes it is called again when the stream goes on with other offsets (`hubs="auto"` over topics).
    `changes`, `out` and `checkpoint` are paths or URIs (`graphtide.spark.files`). A stream has
    started when this returns: iterate over `statuses()` to follow it to its end. A bounded
    DataFrame has been run. `partitions` is by default what the checkpoint has, or the number of
    shuffle partitions. `RunOptions` describes the other options. `on_deltas` is called with the
    deltas of every micro-batch that was written, `on_batch` with its number, deltas, rejected rows
    and firings; both again if the micro-batch is run again. CALL finds its functions in
    `functions`; one that has a parameter `firing_id` gets the id of the firing, which is the same
    if the call is made again.
    """
    check_classic(spark)
    storage = storage_settings(spark)
    written = Location.of(checkpoint, storage)
    if partitions is None:
        shuffle = int(spark.conf.get("spark.sql.shuffle.partitions") or 1)
        partitions = known_partitions(written) or shuffle
    make: MakeChanges | None = None
    if isinstance(changes, str | Path):
        source: Location | DataFrame = Location.of(changes, storage)
    elif callable(changes):
        make, source = changes, changes()
    else:
        source = changes
    options = RunOptions(source, Location.of(out, storage), written, partitions, **settings)
    return start(spark, _parsed(program), options, on_deltas, functions, on_batch, make)


def _parsed(program: object) -> Program:
    """The program, read from its file if need be; a text could be either, and is rejected."""
    if isinstance(program, Program):
        return program
    if not isinstance(program, Path):
        raise GraphtideError(
            f"a program is a Program or the Path of its file, not a {type(program).__name__}",
            hint="Program.parse(text) reads a text, Path(name) names a file",
        )
    return Program.read(program)


def start(
    spark: SparkSession,
    program: Program,
    options: RunOptions,
    on_deltas: OnDeltas | None = None,
    functions: Functions | None = None,
    on_batch: OnBatch | None = None,
    make: MakeChanges | None = None,
) -> SparkJob:
    """As `run`, with all options in one object; `make` makes their DataFrame again."""
    if not options.finds_hubs:
        return _begin(spark, program, options, on_deltas, functions, on_batch)
    check_switches(options, make)

    def begin_stream() -> StreamJob:
        here = replace(options, changes=make()) if make else options
        job = _begin(spark, program, here, on_deltas, functions, on_batch)
        assert isinstance(job, StreamJob)  # noqa: S101 - as was checked
        return job

    return DividingJob(begin_stream, partial(add_hubs, spark, options.checkpoint))


def check_switches(options: RunOptions, make: MakeChanges | None) -> None:
    """Check that the stream of a run can go on as another one, from where it has read to."""
    changes = options.changes
    if isinstance(changes, Location):
        return
    if not changes.isStreaming or not reads_topics(changes):
        raise GraphtideError(
            'hubs="auto" is for runs over change logs and topics of Kafka: the stream begins again '
            "with the hubs, and no other source can be told where to go on",
            hint="name the hubs: the log and the metric graphtide_hub_share of a run without them "
            "say which",
        )
    if make is None:
        raise GraphtideError(
            'hubs="auto": the stream begins again with the hubs, and a DataFrame cannot be made '
            "again with other offsets",
            hint="give the function that makes it: changes=lambda: kafka_changes(…, "
            "checkpoint=CHECKPOINT)",
        )


def _begin(
    spark: SparkSession,
    program: Program,
    options: RunOptions,
    on_deltas: OnDeltas | None,
    functions: Functions | None,
    on_batch: OnBatch | None,
) -> SparkJob:
    """Start the stream that a checkpoint has now, or run a bounded DataFrame."""
    for rule, seen in feedback_of(program).items():
        log.warning(
            "the program sees what the rule %s does (%s) a micro-batch later on Spark: input of "
            "the same micro-batch does not see it, and firings may differ from those in process",
            rule, ", ".join(seen),
        )  # fmt: skip
    spec = options.spec(program)
    owner = check_options(program, options)
    before = owner.continued
    feedback = options.checkpoint / going_on.folder_of("feedback", before)
    actions = None if spec is None else make_actions(spec, functions or {}, options, feedback)
    check_hadoop(spark, options.checkpoint)
    if isinstance(options.changes, Location):
        source, base = options.changes, write_base(options)
        changes = patiently(lambda: read_logs(spark, source, options, base, before))
    else:
        changes = options.changes
        folder = options.checkpoint / going_on.folder_of(going_on.BASE_STREAM, before)
        if before is not None and not going_on.has_begun(folder):
            check_start(changes, options.checkpoint, before)
    job = make_job(
        changes,
        program.texts,
        options.partitions,
        clock=options.clock,
        program=spec,
        layout=options.layout,
        hubs={term: dict(counts) for term, counts in owner.hubs or ()},
        limits=options.limits,
    )
    columns = {
        query.name: [variable.name for variable in query.query.variables[: query.shown]]
        for query in job.shown_queries
    }
    for names in columns.values():
        check_names(names)
    for pattern in program.patterns:
        columns[pattern.name] = [parameter.name for parameter in pattern.parameters]
    sink = Sink(options.out, owner.run, columns, options.output_format, fires=bool(program.rules))
    job = replace(job, output=OutputSpec(options.out.absolute(), options.output_format))
    if before is not None:
        job = continue_job(spark, job, before, options.checkpoint, sink)
    going_on.note_job(options.checkpoint, job_notes(job))
    writer = BatchWriter(job, sink, options.quarantine_limit, on_deltas, actions, on_batch)
    bounded = not changes.isStreaming
    if spec is not None and bounded:
        check_new(sink)
        changes = as_stream(changes, job, options.checkpoint / "bounded")
        options = replace(options, once=True)
    if spec is not None and spec.feeds_back:
        known = plain_changes(changes, job)
        changes = with_feedback(spark, known, feedback)
    counts = CacheCounts(spark.sparkContext)
    output = run_stages(changes, job, counts)
    if not changes.isStreaming:
        return BoundedJob(output, writer)
    stream = StreamJob(output, writer, options, counts, going_on.folder_of("stream", before))
    if bounded:
        for status in stream.statuses():
            log.debug("%s", status.line_of_text())
    return stream


def check_new(sink: Sink) -> None:
    """Check that a bounded DataFrame has no output yet."""
    if sink.progress.batch >= 0:
        raise GraphtideError(
            f"{sink.out} has the output of a bounded DataFrame already",
            hint="choose another out and another checkpoint; only a stream can be resumed",
        )


def patiently(action: Callable[[], DataFrame]) -> DataFrame:
    """Try again what fails because the machine is busy."""
    for pause in RETRY_SECONDS:
        try:
            return action()
        except Exception as error:
            if not passes(str(error)):
                raise
            log.warning("the machine is busy: Spark's source is started again in %g s", pause)
            time.sleep(pause)
    try:
        return action()
    except Exception as error:
        raise explained(str(error)) or error from error


def make_actions(
    spec: ProgramSpec, functions: Functions, options: RunOptions, directory: Location
) -> ActionRunner:
    """The runner of a program's actions, with the log of their feedback if they have any."""
    feedback = None
    if spec.feeds_back:
        feedback = FeedbackLog(directory, options.max_rounds)
    return ActionRunner(spec, functions, feedback)


def write_base(options: RunOptions) -> Location | None:
    """Write the data of a run to a change log in its checkpoint, a transaction per file."""
    if not options.data:
        return None
    base = (options.checkpoint / BASE_FILE).absolute()
    if not base.exists():
        batches = (
            replace(batch, time=np.zeros(len(batch), np.int64), tx=np.full(len(batch), tx))
            for tx, path in enumerate(options.data)
            for batch in read_changes(path, limits=options.limits)
        )
        with TemporaryDirectory(dir=options.checkpoint.local) as folder:
            written = Path(folder, BASE_FILE)
            write_changes(batches, written)
            with pa.memory_map(str(written)) as file:
                base.write_bytes(memoryview(file.read_buffer()))
    return base


def read_logs(
    spark: SparkSession,
    path: Location,
    options: RunOptions,
    base: Location | None = None,
    before: going_on.Continued | None = None,
) -> DataFrame:
    """A change log, or a directory of them, as a stream.

    It begins with a base, if there is one, or goes on where the stream before it stopped.
    """
    spark.dataSource.register(GraphtideSource)
    reader = (
        spark.readStream.format("graphtide")
        .option("maxRowsPerBatch", str(options.rows_per_batch))
        .option("startingOffsets", options.start)
        .option(SECRETS, json.dumps(dict(path.settings)))
        .option("limits", json.dumps(options.limits.to_json()))
    )
    if before is not None:
        reader = reader.option("continues", json.dumps(before.offset))
        stream = options.checkpoint / going_on.folder_of("stream", before)
        if before.planned is not None and going_on.begun_at(stream) is None:
            reader = reader.option("planned", json.dumps(before.planned))
    return (reader if base is None else reader.option("base", str(base))).load(str(path))


class SparkJob(Protocol):
    """A program that runs on Spark; iterate over `statuses()` to follow it to its end."""

    @property
    def sink(self) -> Sink:
        """Where the output goes, with the totals so far."""

    def statuses(self, until: Callable[[], bool] = ...) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with."""

    def loads(self) -> Loads:
        """What each partition of each stage did last."""

    def stop(self) -> None:
        """Stop after the current micro-batch."""


class StreamJob:
    """A program as a streaming query."""

    def __init__(
        self,
        output: DataFrame,
        writer: BatchWriter,
        options: RunOptions,
        counts: CacheCounts,
        stream: str,
    ) -> None:
        self._stream_folder = options.checkpoint / stream
        self.sink = writer.sink
        self._writer = writer
        self._options = options
        self.counts = counts
        self._all_is_read = self._stops = False
        self._output = output
        self._pauses = iter(RETRY_SECONDS)
        self.query: StreamingQuery = self._start()

    def _start(self) -> StreamingQuery:
        query = self._stream()
        if self._options.once and self._writer.feeds_back:
            Thread(target=self._end_when_all_is_read, args=(query,), daemon=True).start()
        return query

    def _stream(self) -> StreamingQuery:
        stream = self._output.writeStream.foreachBatch(self._writer.write).option(
            "checkpointLocation", str(self._stream_folder)
        )
        if self._options.once and not self._writer.feeds_back:
            return stream.trigger(availableNow=True).start()
        pause = trigger_milliseconds(self._options.trigger)
        if self._options.once:
            pause = LOOK_MILLISECONDS
        return stream.trigger(processingTime=f"{pause} milliseconds").start()

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with.

        As soon as `until` returns true, the run is stopped after the current micro-batch.
        """
        seen = -1
        changes = self._options.changes
        directory = changes if isinstance(changes, Location) and changes.is_dir() else None
        while True:
            active = self.query.isActive
            if active and (self._all_is_read or until()):
                self.stop()
                active = False
            for report in self._reports():
                if report["batchId"] > seen and report["numInputRows"]:
                    seen = report["batchId"]
                    size = sum(self.counts.state_bytes().values())
                    if not self._options.finds_hubs:
                        self.counts.hubs()  # new ones are logged
                    report["batchId"] += self._writer.first_batch
                    yield batch_status(report, self.sink.progress, directory, size)
            if not active and (until() or not self._starts_again()):
                break
            time.sleep(POLL_SECONDS)
        if self._writer.ended:
            return
        error = self.query.exception()
        # What is interrupted after all was read is no loss: the next start runs it again.
        if error is not None and not self._all_is_read:
            raise self._writer.failure or explained(str(error)) or error

    def _starts_again(self) -> bool:
        """Start a query again from its checkpoint that failed because the machine was busy."""
        error = self.query.exception()
        if (
            error is None
            or self._writer.ended
            or self._writer.failure is not None
            or not passes(str(error))
        ):
            return False
        pause = next(self._pauses, None)
        if pause is None:
            return False
        log.warning("the machine is busy: the micro-batch is run again in %g s", pause)
        time.sleep(pause)
        self.query = self._start()
        return True

    def loads(self) -> Loads:
        """What each partition of each stage did last."""
        return self.counts.loads()

    @property
    def job(self) -> JobSpec:
        """What the stream computes."""
        return self._writer.job

    def end_before_next(self) -> None:
        """Let the stream end when there is another micro-batch, before that is computed."""
        self._writer.is_last = True

    @property
    def ended_early(self) -> bool:
        """Whether the stream has ended so: another one is to go on from it."""
        return self._writer.ended and not self._stops

    def _end_when_all_is_read(self, query: StreamingQuery) -> None:
        """With feedback, that is known only when a pass over the sources finds nothing new."""
        with suppress(Exception):  # `statuses` raises a failure of the query
            query.processAllAvailable()
            self._all_is_read = True

    def _reports(self) -> list[dict[str, Any]]:
        return [json.loads(report.json) for report in self.query.recentProgress]

    def stop(self) -> None:
        """Stop after the current micro-batch."""
        self._stops = True
        # Where one follows the other, there is no pause to wait for: the next one is not computed.
        self._writer.current = max((r["batchId"] for r in self._reports()), default=-1) + 1
        self.end_before_next()
        until = time.monotonic() + STOP_SECONDS
        while self.query.isActive and self.query.status["isTriggerActive"]:
            if time.monotonic() > until:
                break
            time.sleep(POLL_SECONDS)
        self.query.stop()


class BoundedJob:
    """A program over a bounded DataFrame: one batch, which has run when this is made."""

    def __init__(self, output: DataFrame, writer: BatchWriter) -> None:
        self.sink = writer.sink
        check_new(self.sink)
        writer.write(output, 0)

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:  # noqa: ARG002 - as of a stream
        """Nothing is left to follow."""
        return iter(())

    def loads(self) -> Loads:
        """Nothing is counted."""
        return {}

    def stop(self) -> None:
        """Nothing is left to stop."""
