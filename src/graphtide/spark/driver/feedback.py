"""Feedback: the log of what actions change and emit, which is a source of the same stream.

There is a file for each micro-batch whose actions did something. A batch that is run again writes
its file again; only the batches after it read it. The rows have the time of the watermark then, and
transactions of their own, which come before all others of that time.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from logging import getLogger
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError
from graphtide.spark.state.frontier import FEEDBACK

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyspark.sql import DataFrame, SparkSession

    from graphtide.spark.files import Location

log = getLogger(__name__)

FEEDBACK_SQL: Final = (
    "time bigint, tx bigint, diff int, seq bigint, "
    "s string, p string, o string, g string, stream string"
)
PER_BATCH: Final = 1 << 24
"""How many firings of one micro-batch can act."""

RETAINED_BATCHES: Final = 200
"""How many micro-batches have their file; Spark may go back by 100."""

MAX_ROUNDS: Final = 1000
"""How often actions may cause further actions in turn, before that counts as a loop."""


@dataclass(frozen=True, slots=True)
class Cause:
    """By how many firings in turn a transaction of an action was caused, and of which rules."""

    depth: int = 0
    rules: tuple[str, ...] = ()

    def then(self, rule: str) -> Cause:
        """What a firing of a rule causes that was itself caused by this."""
        return Cause(self.depth + 1, tuple(sorted({*self.rules, rule})))


@dataclass(slots=True)
class FeedbackLog:
    """The files of a directory, and what caused the transactions of the last one."""

    directory: Location
    max_rounds: int = MAX_ROUNDS
    causes: dict[int, Cause] = field(default_factory=dict)

    def begin(self, batch: int) -> None:
        """Read the causes of what a batch may read, after a restart."""
        if not self.causes:
            for name in self._files()[-2:]:
                if _number(name) < batch:
                    for line in (self.directory / name).read_text().splitlines():
                        row = json.loads(line)
                        self.causes[row["tx"]] = Cause(row["depth"], tuple(row["rules"]))

    def cause(self, tx: int, rule: str) -> Cause:
        """The cause of what a firing at a transaction does."""
        found = self.causes.get(tx, Cause()).then(rule)
        if found.depth > self.max_rounds:
            raise GraphtideError(
                f"rules fire without end: {', '.join(found.rules)}",
                hint="an action causes the events that cause the action",
            )
        return found

    def write(self, batch: int, changes: Iterable[tuple[Cause, list[dict[str, Any]]]]) -> None:
        """Write what the firings of a batch change, each as a transaction."""
        lines: list[str] = []
        causes: dict[int, Cause] = {}
        for ordinal, (cause, rows) in enumerate(changes):
            tx = FEEDBACK + batch * PER_BATCH + ordinal
            causes[tx] = cause
            origin = {"depth": cause.depth, "rules": cause.rules}
            for seq, row in enumerate(rows):
                lines.append(json.dumps({"tx": tx, "seq": seq, **row, **origin}))
        self.causes = causes
        if lines:
            text = "".join(f"{line}\n" for line in lines)
            (self.directory / f"batch-{batch:08}.json").write_text(text)
            log.debug("micro-batch %d: actions feed back %d changes", batch, len(lines))
        if batch % RETAINED_BATCHES == 0:
            self._evict(batch - RETAINED_BATCHES)

    def _evict(self, before: int) -> None:
        """Remove the files that were read so long ago that Spark cannot come back to them."""
        for name in self._files():
            if _number(name) < before:
                (self.directory / name).delete()

    def _files(self) -> list[str]:
        found = (entry.name for entry in self.directory.entries())
        return [name for name in found if name.startswith("batch-") and name.endswith(".json")]


def _number(name: str) -> int:
    return int(name.removeprefix("batch-").removesuffix(".json"))


def with_feedback(spark: SparkSession, changes: DataFrame, directory: Location) -> DataFrame:
    """Changes, and what actions change, as one stream."""
    directory.make_directory()
    back = spark.readStream.schema(FEEDBACK_SQL).json(str(directory))
    return changes.unionByName(back, allowMissingColumns=True)
