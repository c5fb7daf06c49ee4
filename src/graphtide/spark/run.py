"""Run: a program over a directory of change logs, into an output directory, until it is stopped."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import DataError, GraphtideError
from graphtide.lang.program import Program, read_program
from graphtide.spark.pipeline import make_task, match
from graphtide.spark.quarantine import with_reports
from graphtide.spark.run_batch import unpacked
from graphtide.spark.run_checkpoint import Fingerprint, claim_checkpoint, read_fingerprint
from graphtide.spark.sink import OutputFormat, Sink
from graphtide.spark.source import GraphtideSource
from graphtide.spark.source_place import Offset
from graphtide.spark.status import batch_status
from graphtide.spark.unpack import check_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from graphtide.spark.status import BatchStatus
    from graphtide.spark.task import Task

    OnDeltas = Callable[[dict[str, pa.Table]], None]

POLL_SECONDS: Final = 0.1
STOP_SECONDS: Final = 30.0
_TRIGGER = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)")
_MILLISECONDS = {"ms": 1, "s": 1000, "m": 60_000}
_OURS = re.compile(r"graphtide\.errors\.\w+: (.*?)(?:\n\s*\n|\nJVM|\n\tat |\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run reads, where it writes, and how it goes about it.

    `trigger` is the pause between micro-batches ("500ms", "1s", "2m"); with `once` the run ends
    when all that is there has been read. It stops when more than `most_quarantined` rows are set
    aside. With `only_new` a first run begins with what is written from now on.
    """

    changes: Path
    out: Path
    checkpoint: Path
    cells: int
    trigger: str = "1s"
    once: bool = False
    output_format: OutputFormat = "parquet"
    rows_per_batch: int = 200_000
    most_quarantined: int | None = None
    only_new: bool = False


def check_options(program: Program, options: RunOptions) -> Fingerprint:
    """Check all that can be checked without Spark, and take the checkpoint."""
    if not options.changes.exists():
        hint = "make it, and write change logs into it"
        raise DataError("there is no such directory", source=str(options.changes), hint=hint)
    if not options.changes.is_dir():
        raise DataError(
            "is a file; --changes is a directory of change logs", source=str(options.changes)
        )
    if options.cells < 1:
        raise GraphtideError(f"--cells {options.cells}: at least one cell is needed")
    trigger_milliseconds(options.trigger)
    return claim_checkpoint(options.checkpoint, program.texts, options.cells, options.changes)


def trigger_milliseconds(text: str) -> int:
    """The pause between micro-batches.

    >>> trigger_milliseconds("1.5s"), trigger_milliseconds("200ms")
    (1500, 200)
    """
    found = _TRIGGER.fullmatch(text.strip())
    if found is None:
        raise GraphtideError(f"--trigger {text} is no time", hint="write 500ms, 1s, 2m or once")
    return round(float(found[1]) * _MILLISECONDS[found[2]])


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
    options: RunOptions,
    on_deltas: OnDeltas | None = None,
) -> Run:
    """Start a program as a streaming query; `on_deltas` sees every micro-batch that was written."""
    if not isinstance(program, Program):
        program = read_program(Path(program))
    run = check_options(program, options).run
    spark.dataSource.register(GraphtideSource)
    changes = (
        spark.readStream.format("graphtide")
        .option("maxRowsPerBatch", str(options.rows_per_batch))
        .option("startingOffsets", "latest" if options.only_new else "earliest")
        .load(str(options.changes))
    )
    task = make_task(changes, program.texts, options.cells)
    for query in task.cell_queries:
        check_names([variable.name for variable in query.query.variables[: query.shown]])
    sink = Sink(options.out, run, program.texts, options.output_format)
    return Run(match(with_reports(changes), task), task, sink, options, on_deltas)


class Run:
    """A program that runs; go through `statuses()` to follow it to its end."""

    def __init__(
        self,
        matched: DataFrame,
        task: Task,
        sink: Sink,
        options: RunOptions,
        on_deltas: OnDeltas | None,
    ) -> None:
        self.sink = sink
        self._task = task
        self._options = options
        self._on_deltas = on_deltas
        self._failure: GraphtideError | None = None
        self.query: StreamingQuery = self._start(matched)

    def _start(self, matched: DataFrame) -> StreamingQuery:
        writer = matched.writeStream.foreachBatch(self._take).option(
            "checkpointLocation", str(self._options.checkpoint / "stream")
        )
        if self._options.once:
            return writer.trigger(availableNow=True).start()
        pause = trigger_milliseconds(self._options.trigger)
        return writer.trigger(processingTime=f"{pause} milliseconds").start()

    def _take(self, matched: DataFrame, batch: int) -> None:
        """Write a micro-batch. It is computed even if it was written: the state depends on it."""
        deltas, aside = unpacked(matched.toArrow(), self._task)
        self.sink.write(batch, deltas, aside)
        most, found = self._options.most_quarantined, self.sink.progress.quarantined
        if most is not None and found > most:
            self._failure = GraphtideError(
                f"{found} rows are set aside, more than the {most} that are allowed",
                hint=f"look into {self.sink.out / 'quarantine'}; mend the input, or allow more "
                "with --most-quarantined, and start again",
            )
            raise self._failure
        if self._on_deltas is not None:
            self._on_deltas(deltas)

    def statuses(self, until: Callable[[], bool] = lambda: False) -> Iterator[BatchStatus]:
        """The status of each micro-batch, until the run ends; raises what it fails with.

        As soon as `until` says so, the run is stopped after the micro-batch that is under way.
        """
        seen = -1
        while True:
            active = self.query.isActive
            if active and until():
                self.stop()
                active = False
            for report in self._reports():
                if report["batchId"] > seen and report["numInputRows"]:
                    seen = report["batchId"]
                    yield batch_status(report, self.sink.progress, self._options.changes)
            if not active:
                break
            time.sleep(POLL_SECONDS)
        error = self.query.exception()
        if error is not None:
            raise self._failure or _ours(str(error)) or error

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


def _ours(report: str) -> GraphtideError | None:
    """The error of ours inside a report of Spark, which comes with the traces of two languages."""
    found = _OURS.search(report)
    return None if found is None else GraphtideError(found[1].strip())
