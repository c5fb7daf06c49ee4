"""evolve: another program for a checkpoint, without reading its input again.

As in `driver.rescale`, the checkpoint goes on with a new stream that begins with the state of the
old one. What is as it was goes on without a gap. A new query starts with its whole answer, a
changed one with the difference between its old and its new answer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from logging import getLogger
from pathlib import Path
from typing import TYPE_CHECKING

from graphtide.errors import GraphtideError
from graphtide.lang.tide.program import Program
from graphtide.spark.driver import continued as going_on
from graphtide.spark.driver import rescale as changing
from graphtide.spark.driver.options import check_patterns
from graphtide.spark.files import Location
from graphtide.spark.job import JobSpec, partition_query
from graphtide.spark.partition.program import program_spec
from graphtide.spark.partition.windows import Clock
from graphtide.spark.restore.kept import check_kept, program_notes
from graphtide.spark.session import storage_settings
from graphtide.spark.stages.unpack import check_names

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

    from graphtide.spark.driver.options import Fingerprint
    from graphtide.spark.restore.kept import Notes

log = getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Evolved:
    """What has changed: names of queries, and of patterns and rules that begin empty."""

    added: tuple[str, ...]
    changed: tuple[str, ...]
    removed: tuple[str, ...]
    begin_empty: tuple[str, ...]
    batch: int


def evolve(spark: SparkSession, checkpoint: Path | str, program: Program | Path) -> Evolved:
    """Let a checkpoint of `run` go on with another program.

    The run must have been stopped after a complete micro-batch. Run the new program with this
    checkpoint, the same changes and the same output. It is an error if a new query asks for quads
    that no query before could match: they were not kept.
    """
    new = program if isinstance(program, Program) else Program.read(Path(program))
    where = Location.of(checkpoint, storage_settings(spark))
    found = changing.known_checkpoint(where)
    notes = _notes(where, found)
    job = job_of(new, found.partitions, notes)
    check_kept(notes, job)
    old = {name: text for name, text in found.queries.items() if name != going_on.PROGRAM_NAME}
    _check_changed(old, new.texts)
    texts = dict(new.texts)
    if job.program is not None:
        texts[going_on.PROGRAM_NAME] = job.program.fingerprint
    after = changing.continued_from(spark, where, found, reserved=1)
    replace(found, queries=texts, continued=after).write(where)
    log.info("%s goes on with another program", where)
    return Evolved(
        tuple(name for name in new.texts if name not in old),
        tuple(name for name in new.texts if name in old and old[name] != new.texts[name]),
        tuple(name for name in old if name not in new.texts),
        _begin_empty(job, notes),
        after.first_batch,
    )


def _notes(checkpoint: Location, found: Fingerprint) -> Notes:
    """What is known of the job whose state goes on."""
    before = found.continued
    stream = checkpoint / going_on.in_generation(going_on.BASE_STREAM, before)
    if before is not None and going_on.stopped_at(stream) is None:
        return before.job
    notes = going_on.noted_job(checkpoint)
    if notes is None:
        raise changing.made_before(checkpoint)
    return notes


def job_of(program: Program, partitions: int, notes: Notes) -> JobSpec:
    """The job of a program, as far as it matters what its state holds."""
    tick_ms, origin, alignment = notes["clock"]
    clock = Clock(tick_ms=tick_ms, window_origin=origin, window_alignment=alignment)
    spec = program_spec(program, partitions, tick_ms)
    if spec is not None:
        spec.check()
        check_patterns(program)
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


def _begin_empty(job: JobSpec, notes: Notes) -> tuple[str, ...]:
    """The patterns and rules that do not go on."""
    if job.program is None:
        return ()
    new, source = program_notes(job.program), job.program.source
    names = [each.name for each in source.patterns] + [each.name for each in source.rules]
    known = {*notes.get("patterns", ()), *notes.get("rules", ())}
    digests = [*new["patterns"], *new["rules"]]
    return tuple(n for n, digest in zip(names, digests, strict=True) if digest not in known)
