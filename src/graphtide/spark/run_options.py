"""What a run reads, where it writes, and how it goes about it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypedDict

from graphtide.errors import DataError, GraphtideError
from graphtide.spark.run_checkpoint import Fingerprint, claim_checkpoint
from graphtide.spark.windows import DEFAULT_CLOCK, Clock

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from graphtide.lang.program import Program
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


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run reads, where it writes, and how it goes about it.

    `changes` is a directory of change logs, or a DataFrame as `watch` takes it. `trigger` is the
    pause between micro-batches ("500ms", "1s", "2m"); with `once` the run ends when all that is
    there has been read. It stops when more than `most_quarantined` rows are set aside. Of a
    directory, a micro-batch reads about `rows_per_batch` lines, and with `only_new` a first run
    begins with what is written from now on. `clock` tells windows of ticks, and of how late rows
    may come.
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


def check_options(program: Program, options: RunOptions) -> Fingerprint:
    """Check all that can be checked without Spark, and take the checkpoint."""
    if program.rules or program.events:
        raise GraphtideError(
            "events and rules do not run on Spark yet, only queries do",
            hint="run them in one process: graphtide.rules.run(program, graph)",
        )
    source = source_name(options.changes)
    if options.cells < 1:
        raise GraphtideError(f"--cells {options.cells}: at least one cell is needed")
    trigger_milliseconds(options.trigger)
    return claim_checkpoint(options.checkpoint, program.texts, options.cells, source)


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
