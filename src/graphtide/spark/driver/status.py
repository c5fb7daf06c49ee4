"""Status: what happened in a micro-batch, and why a run failed, from Spark's reports."""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from graphtide.errors import GraphtideError
from graphtide.rdf.formats.registry import PACKED
from graphtide.spark.source.plan import log_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from graphtide.spark.files import Location
    from graphtide.spark.output import Progress

_KNOWN_FAILURES: Final = {
    "No space left on device": (
        "no space is left for the checkpoint",
        "make room there and for Spark's scratch files (spark.local.dir), and start again",
    ),
    "Python worker failed to connect back": (
        "Python processes do not start in the ten seconds that Spark gives them",
        (
            "the machine is overloaded or short of memory: give it less to do, or fewer cores: "
            "--spark master=local[1,4]"
        ),
    ),
    "Python worker exited unexpectedly": (
        "a Python worker was killed, or it crashed",
        (
            "is there enough memory? Start again; --spark 'master=local[*,4]' allows each task "
            "four attempts"
        ),
    ),
}
"""Texts in Spark's reports of a failure; what it was, and what to do."""

_PASSING: Final = ("Python worker failed to connect back",)
"""Failures that end by themselves when a machine has less to do."""

_OURS = re.compile(r"graphtide\.errors\.\w+: (.*?)(?:\n\s*\n|\nJVM|\n\tat |\Z)", re.DOTALL)


def explained(report: str) -> GraphtideError | None:
    """The error that Spark's report of a failure is about, without the traces of two languages.

    >>> explained("org.apache.spark.TaskException: java.io.IOException: No space left on device")
    GraphtideError('no space is left for the checkpoint')
    >>> explained("something of Spark's own")
    """
    found = _OURS.search(report)
    if found is not None:
        return GraphtideError(found[1].strip())
    for text, (message, hint) in _KNOWN_FAILURES.items():
        if text in report:
            return GraphtideError(message, hint=f"{hint}; nothing is lost")
    return None


@contextmanager
def explaining() -> Iterator[None]:
    """Raise what a bounded job of Spark fails with as the error that it is about."""
    try:
        yield
    except GraphtideError:
        raise
    except Exception as error:
        raise explained(str(error)) or error from error


def passes(report: str) -> bool:
    """Whether a failure is that of a busy machine, so that the same may succeed a little later.

    >>> passes("SparkException: Python worker failed to connect back."), passes("No space left")
    (True, False)
    """
    return _OURS.search(report) is None and any(text in report for text in _PASSING)


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """One micro-batch: input, speed, what is left to read (if known), state, output so far."""

    batch: int
    rows: int
    rows_per_s: float
    batch_ms: int
    lag_files: int | None
    lag_bytes: int | None
    state_rows: int
    state_bytes: int
    quarantined: int
    matches: Mapping[str, int]
    appeared: int
    disappeared: int
    file: str
    line: int

    def to_json(self) -> dict[str, Any]:
        """A dict of plain values."""
        return asdict(self)

    def line_of_text(self) -> str:
        """One line of text.

        >>> status = BatchStatus(3, 900, 4500.0, 200, 0, 0, 8, 2048, 1, {"q": 7}, 9, 2, "a.nt", 5)
        >>> status.line_of_text()
        'batch 3  4,500 rows/s  200 ms  up to date  state 2.0 KiB  1 rejected  q: 7'
        """
        parts = [
            f"batch {self.batch}",
            f"{self.rows_per_s:,.0f} rows/s",
            f"{self.batch_ms:,} ms",
            *self._lag(),
            f"state {sized(self.state_bytes)}",
            f"{self.quarantined:,} rejected",
            *(f"{name}: {count:,}" for name, count in self.matches.items()),
        ]
        return "  ".join(parts)

    def _lag(self) -> list[str]:
        if self.lag_bytes is None:
            return []
        return [f"{sized(self.lag_bytes)} behind" if self.lag_bytes else "up to date"]


def batch_status(
    report: Mapping[str, Any], progress: Progress, changes: Location | None, state_bytes: int
) -> BatchStatus:
    """The status of a micro-batch from Spark's report, our progress and the directory it reads."""
    source = report["sources"][0] if report["sources"] else {}
    at = ((source.get("endOffset") or {}) if changes else {}).get("position") or {}
    file, offset = at.get("file", ""), at.get("offset", 0)
    files, size = (None, None) if changes is None else lag(changes, file, offset)
    operators = report["stateOperators"]
    tallies = progress.queries.values()
    took = int(report["durationMs"].get("triggerExecution", 0))
    return BatchStatus(
        batch=int(report["batchId"]),
        rows=int(report["numInputRows"]),
        rows_per_s=1000.0 * int(report["numInputRows"]) / max(took, 1),
        batch_ms=took,
        lag_files=files,
        lag_bytes=size,
        state_rows=sum(int(op["numRowsTotal"]) for op in operators),
        state_bytes=state_bytes,
        quarantined=progress.quarantined,
        matches={name: tally.answer for name, tally in progress.queries.items()},
        appeared=sum(tally.appeared for tally in tallies),
        disappeared=sum(tally.disappeared for tally in tallies),
        file=file,
        line=at.get("line", 1),
    )


def lag(changes: Location, file: str, offset: int) -> tuple[int, int]:
    """How many files of a directory are not read yet, and how many bytes in all are not."""
    files = size = 0
    for entry in log_files(changes):
        if entry.name > file:
            files, size = files + 1, size + entry.size
        elif entry.name == file and not file.endswith((*PACKED, ".parquet")) and offset >= 0:
            size += max(entry.size - offset, 0)
    return files, size


def sized(count: float) -> str:
    """A number of bytes as text.

    >>> sized(10), sized(3_000_000)
    ('10 B', '2.9 MiB')
    """
    unit = "B"
    for larger in ("KiB", "MiB", "GiB"):
        if count < 1024:
            break
        count, unit = count / 1024, larger
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
