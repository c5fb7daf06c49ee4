"""rescale and evolve: other partitions, hubs or programs, without reading the input again.

The state of the old stream is exported, and the file of the checkpoint is replaced: from then on it
belongs to a new stream, which begins with that state (`driver.restore`), and whose source goes on
where that of the old one stopped. Until then the old stream is as it was, and can be resumed.

What is as it was goes on without a gap. A new query starts with its whole answer, a changed one
with the difference between its old and its new answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver import options as opt
from graphtide.spark.driver.status import explaining
from graphtide.spark.files import Location
from graphtide.spark.job import JobSpec, partition_query
from graphtide.spark.partition.hashing import partition_keys
from graphtide.spark.partition.hubs import MAX_HUBS, HubCounts, Hubs, hub_counts
from graphtide.spark.partition.program import program_spec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.restore import kept
from graphtide.spark.restore.stages import SAVED_STAGES
from graphtide.spark.session import check_hadoop, storage_settings
from graphtide.spark.stages.unpack import check_names
from graphtide.spark.state import saved
from graphtide.spark.state.log import FORMAT, Head, LogEntry, MemoryLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession

log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Changed:
    """A checkpoint that was changed: its partitions before and now, its hubs, the next batch."""

    before: int
    partitions: int
    batch: int
    hubs: tuple[str, ...] = ()


def rescale(
    spark: SparkSession,
    checkpoint: Path | str | Location,
    *,
    partitions: int | None = None,
    hubs: Hubs | None = None,
) -> Changed:
    """Let a checkpoint of `run` go on with another number of partitions, or other hubs.

    The run must have been stopped. The next `run` with this checkpoint and the same output goes on
    where it stopped: nothing is lost, nothing is repeated. `hubs` are all that it then has.
    """
    if partitions is not None and partitions < 1:
        raise GraphtideError(f"partitions={partitions}: at least one partition is needed")
    named = None if hubs is None else hub_counts(hubs)
    where = Location.of(checkpoint, storage_settings(spark))
    return _rescaled(spark, where, partitions, named, computed=True)


def _rescaled(
    spark: SparkSession,
    where: Location,
    partitions: int | None,
    named: HubCounts | None,
    *,
    computed: bool,
) -> Changed:
    """Switch a checkpoint; `computed`: a micro-batch that was planned may have been, too."""
    found = known_checkpoint(where)
    wanted = replace(
        found,
        partitions=partitions or found.partitions,
        hubs=found.hubs if named is None else named,
    )
    if wanted == found:
        raise GraphtideError(
            f"{where} has {found.partitions} partitions already, and no other hubs are given",
            hint="give another number of partitions (partitions=) or other hubs (hubs=)",
        )
    after = continued_from(spark, where, found, computed=computed)
    replace(wanted, continued=after).write(where)
    names = tuple(term for term, _ in wanted.hubs or ())
    log.info("%s goes on with %d partitions, hubs: %s", where, wanted.partitions, names or "none")
    return Changed(found.partitions, wanted.partitions, after.first_batch, names)


def add_hubs(
    spark: SparkSession, checkpoint: Location, found: Mapping[str, Mapping[str, int]]
) -> None:
    """Let a checkpoint go on with more hubs, as many as there may be.

    Its stream ended before the micro-batch was computed that comes next.
    """
    known = {term: dict(counts) for term, counts in known_checkpoint(checkpoint).hubs or ()}
    hubs = dict(list({**known, **found}.items())[:MAX_HUBS])
    _rescaled(spark, checkpoint, None, hub_counts(hubs), computed=False)


def known_checkpoint(checkpoint: Location) -> opt.Fingerprint:
    """The fingerprint of a checkpoint whose stream can go on as another."""
    checkpoint.check()
    found = None if checkpoint.is_file() else opt.read_fingerprint(checkpoint, needed=True)
    if found is None:
        raise GraphtideError(
            f"{checkpoint} is not a checkpoint of graphtide run",
            hint="give the --checkpoint of graphtide run, or of gt.spark.run; a query of watch "
            "belongs to its program, and cannot be changed",
        )
    if found.changes == opt.BOUNDED:
        raise GraphtideError(
            f"the run of {checkpoint} has read {found.changes}, and is done",
            hint="start again with another --checkpoint and --out",
        )
    return found


def continued_from(
    spark: SparkSession,
    checkpoint: Location,
    found: opt.Fingerprint,
    *,
    reserved: int = 0,
    computed: bool = True,
) -> going_on.Continued:
    """Export the state of a checkpoint's stream; from where another one goes on.

    `reserved` is how many micro-batches come before those of the new stream. If one was planned and
    may have been `computed`, it has to end where it was to end, because its output may be there.
    """
    before = found.continued
    stream = checkpoint / going_on.folder_of(going_on.BASE_STREAM, before)
    stopped = going_on.stopped_at(stream)
    if stopped is None and before is not None:
        return not_begun(checkpoint, before, stream, reserved)
    if stopped is None:
        raise GraphtideError(
            f"{checkpoint} has no complete micro-batch: there is nothing to go on from",
            hint="delete it and its output, and start again as you like",
        )
    topics = found.changes == opt.STREAMING
    if topics and not going_on.in_topics(stopped.offset):
        raise GraphtideError(
            f"the run of {checkpoint} reads {found.changes}, whose source cannot be told where to "
            "go on",
            hint="this works for runs over change logs and over topics of Kafka",
        )
    planned = stopped.planned
    if topics and not computed:
        planned = None  # Kafka's source plans it anew
    if planned is not None and (reserved or topics):
        raise incomplete(checkpoint)
    notes = going_on.noted_job(checkpoint)
    if notes is None:
        raise made_before(checkpoint)
    check_hadoop(spark, checkpoint)
    export = f"export-{going_on.new_id()}"
    with explaining():
        stages = notes["stages"]
        saved_partitions = export_logs(
            spark, stream, stopped.batch, stages, found.partitions, checkpoint / export
        )
    if before is not None and not saved_partitions:
        return not_read(checkpoint, before, stopped, reserved)
    if saved_partitions != found.partitions:
        raise GraphtideError(
            f"{stream} has the state of {saved_partitions} partitions, not of {found.partitions}",
            hint="it is damaged, or it was made by another version of Spark",
        )
    first = 0 if before is None else before.first_batch
    after = going_on.Continued(
        id=going_on.new_id(),
        export=export,
        partitions=found.partitions,
        queries=found.queries,
        first_batch=first + stopped.batch + 1 + reserved,
        reserved=reserved,
        offset=stopped.offset,
        planned=planned,
        job=notes,
    )
    copy_feedback(checkpoint, before, after, first + stopped.batch)
    if going_on.stopped_at(stream) != stopped:
        raise GraphtideError(
            f"the run of {checkpoint} is not stopped: it has gone on meanwhile",
            hint="stop it with Ctrl-C or SIGTERM, and try again",
        )
    return after


def not_begun(
    checkpoint: Location, before: going_on.Continued, stream: Location, reserved: int
) -> going_on.Continued:
    """From where a stream goes on, if the one before has not completed a micro-batch."""
    begun = going_on.begun_at(stream)
    fixed = reserved or going_on.in_topics(before.offset)
    if before.reserved < reserved and begun is None:
        raise GraphtideError(
            f"{checkpoint} was rescaled, and has not run since",
            hint="run its program once more with this --checkpoint, stop it, and try again",
        )
    if before.reserved < reserved or (fixed and begun is not None):
        raise incomplete(checkpoint)
    after = replace(before, id=going_on.new_id(), planned=begun or before.planned)
    copy_feedback(checkpoint, before, after, before.first_batch - 1 - before.reserved)
    return after


def not_read(
    checkpoint: Location, before: going_on.Continued, stopped: going_on.Stopped, reserved: int
) -> going_on.Continued:
    """From where a stream goes on, if the one before ran without input: from where that began."""
    if before.reserved:  # its first answers are in the output, and not in the exported state
        raise GraphtideError(
            f"the run of {checkpoint} has read nothing since its program has changed",
            hint="resume it, and try again when it has read some changes",
        )
    first = before.first_batch + stopped.batch + 1 + reserved
    return replace(before, id=going_on.new_id(), first_batch=first, reserved=reserved, planned=None)


def incomplete(checkpoint: Location) -> GraphtideError:
    """The error of a program that changes in the middle of a micro-batch, or of a change."""
    return GraphtideError(
        f"the last micro-batch of {checkpoint} was not completed",
        hint="resume the run as it was, stop it with Ctrl-C, and try again",
    )


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
    file = checkpoint / going_on.folder_of("feedback", before) / name
    if file.exists():
        folder = checkpoint / going_on.folder_of("feedback", after)
        folder.make_directory()
        (folder / name).write_text(file.read_text())


# --- another program ---


@dataclass(frozen=True, slots=True)
class Evolved:
    """What has changed: names of queries, and of patterns and rules that begin empty.

    `ended` is the number of patterns and rules that do not go on; checkpoints do not have names.
    """

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    begin_empty: tuple[str, ...]
    batch: int
    ended: int = 0


def evolve(spark: SparkSession, checkpoint: Path | str, program: Program | Path) -> Evolved:
    """Let a checkpoint of `run` go on with another program.

    The run must have been stopped after a complete micro-batch. Run the new program with this
    checkpoint, the same changes and the same output. It is an error if a new query asks for quads
    that no query before could match: they were not kept.
    """
    new = program if isinstance(program, Program) else Program.read(Path(program))
    where = Location.of(checkpoint, storage_settings(spark))
    found = known_checkpoint(where)
    notes = _notes(where, found)
    job = job_of(new, found.partitions, notes)
    kept.check_kept(notes, job)
    old = {name: text for name, text in found.queries.items() if name != going_on.PROGRAM_NAME}
    _check_changed(old, new.texts)
    texts = dict(new.texts)
    if job.program is not None:
        texts[going_on.PROGRAM_NAME] = job.program.fingerprint
    after = continued_from(spark, where, found, reserved=1)
    unread = (where / going_on.folder_of("feedback", after)).entries()
    if unread and not (job.program and job.program.feeds_back):
        raise GraphtideError(
            f"actions of the last micro-batch of {where} have not been read yet, and the new "
            "program has no actions that change the graph",
            hint="resume the run as it was, without --follow, until it ends; then try again",
        )
    replace(found, queries=texts, continued=after).write(where)
    log.info("%s goes on with another program", where)
    return Evolved(
        tuple(name for name in new.texts if name not in old),
        tuple(name for name in new.texts if name in old and old[name] != new.texts[name]),
        tuple(name for name in old if name not in new.texts),
        _begin_empty(job, notes),
        after.first_batch,
        kept.ended(job, notes),
    )


def _notes(checkpoint: Location, found: opt.Fingerprint) -> kept.Notes:
    """What is known of the job whose state goes on."""
    before = found.continued
    stream = checkpoint / going_on.folder_of(going_on.BASE_STREAM, before)
    if before is not None and going_on.stopped_at(stream) is None:
        return before.job
    notes = going_on.noted_job(checkpoint)
    if notes is None:
        raise made_before(checkpoint)
    return notes


def job_of(program: Program, partitions: int, notes: kept.Notes) -> JobSpec:
    """The job of a program, as far as it matters what its state holds."""
    tick_ms, origin, alignment = notes["clock"]
    clock = Clock(tick_ms=tick_ms, window_origin=origin, window_alignment=alignment)
    spec = program_spec(program, partitions, tick_ms)
    if spec is not None:
        spec.check()
        opt.check_patterns(program)
    job = JobSpec(tuple(program.texts.items()), partitions, clock=clock, program=spec)
    for query in job.shown_queries:
        check_names([variable.name for variable in query.query.variables[: query.shown]])
    return job


def _check_changed(old: Mapping[str, str], new: Mapping[str, str]) -> None:
    """A changed query has the columns it had: its output goes on in the same place."""
    for name, text in new.items():
        if name in old and old[name] != text:
            before, now = (partition_query(name, each, 1, None) for each in (old[name], text))
            columns = [each.query.variables[: each.shown] for each in (before, now)]
            if columns[0] != columns[1] or before.windowed or now.windowed:
                what = "is over windows" if before.windowed or now.windowed else "has other columns"
                raise GraphtideError(
                    f"the query {name} has changed, and it {what}: its output cannot go on",
                    hint="give the changed query another name",
                )


def _begin_empty(job: JobSpec, notes: kept.Notes) -> tuple[str, ...]:
    """The patterns and rules that do not go on."""
    if job.program is None:
        return ()
    new, source = kept.program_notes(job.program), job.program.source
    names = [each.name for each in source.patterns] + [each.name for each in source.rules]
    known = {*notes.get("patterns", ()), *notes.get("rules", ())}
    digests = [*new["patterns"], *new["rules"]]
    return tuple(n for n, digest in zip(names, digests, strict=True) if digest not in known)


# --- the state of a stream ---


def export_logs(
    spark: SparkSession,
    stream: Location,
    batch: int,
    stages: list[str],
    partitions: int,
    to: Location,
) -> int:
    """Save the logs of a stream after a micro-batch, those of each partition in a file.

    Returns the number of partitions of the match that have one.
    """
    matched = 0
    for at, stage in enumerate(stages):
        if stage in SAVED_STAGES:
            (to / stage).make_directory()
            # Spark numbers stateful operators from the last one on.
            rows = state_rows(spark, stream, batch, len(stages) - 1 - at)
            save = saver(to.absolute(), stage, partitions)
            found = rows.groupBy("partition").applyInPandas(save, "partition int").collect()
            matched += len(found) if stage == "match" else 0
    return matched


def saver(to: Location, stage: str, partitions: int) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """Saves the state of one partition."""

    def save(frame: pd.DataFrame) -> pd.DataFrame:
        partition = partition_keys(partitions).index(int(frame["partition"].iloc[0]))
        saved.saved_log(to, stage, partition).write_bytes(saved.save_log(log_of(frame)))
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
