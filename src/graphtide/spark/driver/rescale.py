"""rescale: a checkpoint on another number of partitions, without reading its input again.

The state of the old stream is exported, and the file of the checkpoint is replaced: from then on it
belongs to a new stream, which begins with that state (`driver.restore`), and whose source goes on
where that of the old one stopped. Until then the old stream is as it was, and can be resumed.
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass, replace
from logging import getLogger
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from graphtide.errors import GraphtideError
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver.options import Fingerprint, read_fingerprint
from graphtide.spark.files import Location
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.restore.stages import SAVED_STAGES
from graphtide.spark.session import check_hadoop, storage_settings
from graphtide.spark.state.log import FORMAT, Head, LogEntry, MemoryLog
from graphtide.spark.state.saved import save_log, saved_log

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changed:
    """A checkpoint that was changed: its partitions before and now, and where it goes on."""

    before: int
    partitions: int
    batch: int


def rescale(spark: SparkSession, checkpoint: Path | str, *, partitions: int) -> Changed:
    """Let a checkpoint of `run` go on with another number of partitions.

    The run must have been stopped. The next `run` with this checkpoint and the same output goes on
    where it stopped: nothing is lost, nothing is repeated.
    """
    if partitions < 1:
        raise GraphtideError(f"partitions={partitions}: at least one partition is needed")
    where = Location.of(checkpoint, storage_settings(spark))
    found = known_checkpoint(where)
    if found.partitions == partitions:
        raise GraphtideError(f"{where} has {partitions} partitions already")
    after = continued_from(spark, where, found)
    replace(found, partitions=partitions, continued=after).write(where)
    log.info("%s goes on with %d partitions", where, partitions)
    return Changed(found.partitions, partitions, after.first_batch)


def known_checkpoint(checkpoint: Location) -> Fingerprint:
    """The fingerprint of a checkpoint whose stream can go on as another."""
    checkpoint.check()
    found = read_fingerprint(checkpoint)
    if found is None:
        raise GraphtideError(
            f"{checkpoint} is not a checkpoint", hint="give the --checkpoint of graphtide run"
        )
    if found.changes.startswith("a DataFrame") or found.changes.startswith("a bounded"):
        raise GraphtideError(
            f"the run of {checkpoint} reads {found.changes}, which cannot be told where to go on",
            hint="this works for runs over change logs: run(changes=PATH), --changes",
        )
    return found


def continued_from(
    spark: SparkSession, checkpoint: Location, found: Fingerprint, *, reserved: int = 0
) -> going_on.Continued:
    """Export the state of a checkpoint's stream; from where another one goes on.

    `reserved` is how many micro-batches come before those of the new stream. A stream that has not
    begun yet goes on from the state that it was to begin with.
    """
    before = found.continued
    stream = checkpoint / going_on.in_generation(going_on.BASE_STREAM, before)
    stopped = going_on.stopped_at(stream)
    if stopped is None:
        if before is not None and before.reserved >= reserved:
            return before
        if before is not None:
            raise GraphtideError(
                f"{checkpoint} was rescaled, and has not been run since",
                hint="resume the run, stop it after a micro-batch, and try again",
            )
        raise GraphtideError(
            f"{checkpoint} has no complete micro-batch: there is nothing to go on from",
            hint="delete it and its output, and start again as you like",
        )
    if reserved and stopped.planned is not None:
        raise GraphtideError(
            f"the last micro-batch of {checkpoint} was begun and not completed",
            hint="resume the run as it was, stop it with Ctrl-C, and try again",
        )
    notes = going_on.noted_job(checkpoint)
    if notes is None:
        raise made_before(checkpoint)
    check_hadoop(spark, checkpoint)
    export = f"export-{uuid.uuid4().hex[:8]}"
    export_logs(
        spark, stream, stopped.batch, notes["stages"], found.partitions, checkpoint / export
    )
    first = 0 if before is None else before.first_batch
    after = going_on.Continued(
        generation=1 if before is None else before.generation + 1,
        export=export,
        partitions=found.partitions,
        queries=found.queries,
        first_batch=first + stopped.batch + 1 + reserved,
        reserved=reserved,
        offset=stopped.offset,
        planned=stopped.planned,
        job=notes,
    )
    copy_feedback(checkpoint, before, after, first + stopped.batch)
    if going_on.stopped_at(stream) != stopped:
        raise GraphtideError(
            f"the run of {checkpoint} is not stopped: it has gone on meanwhile",
            hint="stop it with Ctrl-C or SIGTERM, and try again",
        )
    return after


def made_before(checkpoint: Location) -> GraphtideError:
    """The error of a checkpoint without notes of its job."""
    return GraphtideError(
        f"{checkpoint} was made by an earlier version of graphtide",
        hint="resume the run once with this version, stop it, and try again",
    )


def copy_feedback(
    checkpoint: Location,
    before: going_on.Continued | None,
    after: going_on.Continued,
    last: int,
) -> None:
    """Copy what actions did in the last micro-batch: the next one is to read it."""
    name = f"batch-{last:08}.json"
    file = checkpoint / going_on.in_generation("feedback", before) / name
    if file.exists():
        folder = checkpoint / going_on.in_generation("feedback", after)
        folder.make_directory()
        (folder / name).write_text(file.read_text())


# --- the state of a stream ---


def export_logs(
    spark: SparkSession,
    stream: Location,
    batch: int,
    stages: list[str],
    partitions: int,
    to: Location,
) -> None:
    """Save the logs of a stream after a micro-batch, those of each partition in a file."""
    for at, stage in enumerate(stages):
        if stage in SAVED_STAGES:
            (to / stage).make_directory()
            # Spark numbers stateful operators from the last one on.
            rows = state_rows(spark, stream, batch, len(stages) - 1 - at)
            save = saver(to.absolute(), stage, partitions)
            saved = rows.groupBy("partition").applyInPandas(save, "partition int").collect()
            if stage == "match" and len(saved) != partitions:
                raise GraphtideError(
                    f"{stream} has the state of {len(saved)} partitions, not of {partitions}",
                    hint="it is damaged, or it was made by another version of Spark",
                )


def saver(to: Location, stage: str, partitions: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Saves the state of one partition."""

    def save(frame: pd.DataFrame) -> pd.DataFrame:
        partition = partition_keys(partitions).index(int(frame["partition"].iloc[0]))
        saved_log(to, stage, partition).write_bytes(save_log(log_of(frame)))
        return frame[["partition"]].head(1)

    return save


def state_rows(spark: SparkSession, stream: Location, batch: int, operator: int) -> DataFrame:
    """All state of an operator: a row per chunk and, with version 0, one for the head."""
    reader = (
        spark.read.format("statestore")
        .option("path", str(stream.absolute()))
        .option("batchId", batch)
        .option("operatorId", operator)
    )
    heads = reader.option("stateVarName", "head").load()
    chunks = reader.option("stateVarName", "chunks").load()
    columns = ("partition", "version", "token", "chunk", "fingerprint")
    none = f.lit(None).cast("string")

    def named(table: DataFrame, *found: Any) -> DataFrame:  # noqa: ANN401 - columns of Spark's
        pairs = zip(("key.partition", *found), columns, strict=True)
        return table.select(
            *((f.col(c) if isinstance(c, str) else c).alias(name) for c, name in pairs)
        )

    value = "user_map_value"
    return named(
        heads, f.lit(0).cast("long"), "value.fields", "value.data", "value.fingerprint"
    ).unionByName(named(chunks, "user_map_key.version", f"{value}.token", f"{value}.chunk", none))


def log_of(frame: pd.DataFrame) -> MemoryLog:
    """The log of a partition, from the rows of its state."""
    found = MemoryLog()
    rows: Any = frame.to_dict("records")
    for row in rows:
        version, token, chunk = int(row["version"]), row["token"], bytes(row["chunk"])
        if version:
            found.put_chunk(LogEntry(version, token, chunk))
            continue
        number = int(row["fingerprint"].split()[1])
        if number != FORMAT:
            raise GraphtideError(
                f"the state of the checkpoint has format {number} and not {FORMAT}",
                hint="use the version of graphtide that made it",
            )
        found.put_head(Head.of(token, chunk))
    return found
