"""What a run reads, where it writes, and how it goes about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from graphtide.errors import DataError, GraphtideError
from graphtide.spark.feedback import MOST_ROUNDS
from graphtide.spark.reaction import reaction_of
from graphtide.spark.run_checkpoint import Fingerprint, claim_checkpoint
from graphtide.spark.unpack import check_names
from graphtide.spark.windows import DEFAULT_CLOCK, Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from graphtide.lang.tide.program import Program
    from graphtide.spark.reaction import Reaction
    from graphtide.spark.sink import OutputFormat

_TRIGGER = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m)")
_MILLISECONDS: Final = {"ms": 1, "s": 1000, "m": 60_000}


class How(TypedDict, total=False):
    """The options of a run that have defaults; `RunOptions` says what they mean."""

    trigger: str
    once: bool
    output_format: OutputFormat
    rows_per_batch: int
    most_quarantined: int | None
    only_new: bool
    clock: Clock
    streams: tuple[str, ...]
    most_rounds: int


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run reads, where it writes, and how it goes about it.

    `changes` is a directory of change logs, or a DataFrame as `watch` takes it. `trigger` is the
    pause between micro-batches ("500ms", "1s", "2m"); with `once` the run ends when all that is
    there has been read. It stops when more than `most_quarantined` rows are set aside. Of a
    directory, a micro-batch reads about `rows_per_batch` lines, and with `only_new` a first run
    begins with what is written from now on. `clock` tells windows of ticks, and of how late rows
    may come. Inserts into graphs that are named in `streams` are events, if the changes have no
    column `stream`. If actions cause further actions more than `most_rounds` times in turn, the run
    stops.
    """

    changes: Path | DataFrame
    out: Path
    checkpoint: Path
    cells: int
    trigger: str = "1s"
    once: bool = False
    output_format: OutputFormat = "parquet"
    rows_per_batch: int = 200_000
    most_quarantined: int | None = None
    only_new: bool = False
    clock: Clock = DEFAULT_CLOCK
    streams: tuple[str, ...] = ()
    most_rounds: int = MOST_ROUNDS

    def reaction(self, program: Program) -> Reaction | None:
        """What a program does with events; None if it has nothing but queries."""
        return reaction_of(program, self.cells, self.clock.tick_ms, self.streams)


def check_options(program: Program, options: RunOptions) -> Fingerprint:
    """Check all that can be checked without Spark, and take the checkpoint."""
    reaction = options.reaction(program)
    if reaction is not None:
        reaction.check()
        check_patterns(program)
        if not isinstance(options.changes, Path) and not options.changes.isStreaming:
            raise GraphtideError(
                "rules and patterns need a stream, and this DataFrame is bounded",
                hint="read its files with spark.readStream, or as a directory of change logs",
            )
    source = source_name(options.changes)
    if options.cells < 1:
        raise GraphtideError(f"--cells {options.cells}: at least one cell is needed")
    trigger_milliseconds(options.trigger)
    texts = program.texts
    if reaction is not None:
        texts = {**texts, "events, patterns and rules": reaction.mark}
    return claim_checkpoint(options.checkpoint, texts, options.cells, source)


def check_patterns(program: Program) -> None:
    """The complex events of a pattern are written as the deltas of a query are."""
    for pattern in program.patterns:
        check_names([parameter.name for parameter in pattern.parameters])
        if pattern.name in program.texts:
            raise GraphtideError(
                f"a query and a pattern are both named {pattern.name}, and so is their output",
                hint="give one of them another name",
            )


def source_name(changes: Path | DataFrame) -> str:
    """How a checkpoint remembers what it reads: a directory's path, a DataFrame's kind."""
    if not isinstance(changes, Path):
        return "a DataFrame that streams" if changes.isStreaming else "a bounded DataFrame"
    if not changes.exists():
        hint = "make it, and write change logs into it"
        raise DataError("there is no such directory", source=str(changes), hint=hint)
    if not changes.is_dir():
        raise DataError("is a file; --changes is a directory of change logs", source=str(changes))
    return str(changes.resolve())


def trigger_milliseconds(text: str) -> int:
    """The pause between micro-batches.

    >>> trigger_milliseconds("1.5s"), trigger_milliseconds("200ms")
    (1500, 200)
    """
    found = _TRIGGER.fullmatch(text.strip())
    if found is None:
        raise GraphtideError(f"--trigger {text} is no time", hint="write 500ms, 1s, 2m or once")
    return round(float(found[1]) * _MILLISECONDS[found[2]])
