"""Sink: the files of an output directory, each micro-batch written once however often it is run.

    OUT/RouteSensor/batch-00000012.parquet    the deltas of a query, sorted by time and transaction
    OUT/Flapping/batch-00000012.parquet       the complex events of a pattern
    OUT/firings/batch-00000012.parquet        which rules fired, in order, each with its id
    OUT/quarantine/batch-00000012.parquet     input that was set aside
    OUT/_progress.json                        how far it is, and what the deltas add up to
    OUT/_graphtide.json                       to which checkpoint the output belongs

A file has its name only when it is complete, and a file that is there is never written again.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow.parquet as pq

from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    import pyarrow as pa

OutputFormat = Literal["parquet", "json"]

QUARANTINE_NAME: Final = "quarantine"
FIRINGS_NAME: Final = "firings"
_PROGRESS, _OWNER = "_progress.json", "_graphtide.json"


@dataclass(slots=True)
class Tally:
    """What a query's deltas add up to."""

    answer: int = 0
    appeared: int = 0
    disappeared: int = 0

    def add(self, diffs: Iterable[int]) -> None:
        """Count delta rows."""
        for diff in diffs:
            self.answer += diff
            self.appeared += max(diff, 0)
            self.disappeared += max(-diff, 0)


@dataclass(slots=True)
class Progress:
    """The last micro-batch that was written, and totals up to it."""

    batch: int = -1
    time: int | None = None
    tx: int | None = None
    quarantined: int = 0
    fired: int = 0
    queries: dict[str, Tally] = field(default_factory=dict)


class Sink:
    """Writes the deltas of queries and the quarantine."""

    def __init__(
        self,
        out: Path,
        run: str,
        queries: Iterable[str],
        output_format: OutputFormat = "parquet",
        *,
        fires: bool = False,
    ) -> None:
        queries = list(queries)
        self._fires = fires
        self.out = out
        self._format: OutputFormat = output_format
        self._claim(run, queries)
        self.progress = self._read_progress(queries)

    def write(
        self,
        batch: int,
        deltas: Mapping[str, pa.Table],
        aside: pa.Table,
        fired: pa.Table | None = None,
    ) -> None:
        """Write a micro-batch; one that was written before stays as it is."""
        try:
            self._write_batch(batch, deltas, aside, fired)
        except OSError as error:
            raise GraphtideError(
                f"batch {batch} cannot be written to {self.out}: {error.strerror or error}",
                hint="make room, or let this user write there, and start again: nothing is lost, "
                "the micro-batch is run again",
            ) from error

    def _write_batch(
        self,
        batch: int,
        deltas: Mapping[str, pa.Table],
        aside: pa.Table,
        fired: pa.Table | None,
    ) -> None:
        for name, table in [*deltas.items(), (QUARANTINE_NAME, aside), (FIRINGS_NAME, fired)]:
            if table is not None and len(table):
                self._write(self.out / name / f"batch-{batch:08}.{self._format}", table)
        if batch <= self.progress.batch:
            return
        self.progress.batch = batch
        self.progress.quarantined += len(aside)
        self.progress.fired += len(fired) if fired is not None else 0
        for name, table in deltas.items():
            self.progress.queries[name].add(_integers(table, "diff"))
            if len(table):
                last = (_integers(table, "time")[-1], _integers(table, "tx")[-1] or 0)
                before = (self.progress.time or 0, self.progress.tx or 0)
                self.progress.time, self.progress.tx = max(last, before)
        replace_text(self.out / _PROGRESS, json.dumps(asdict(self.progress)))

    def _claim(self, run: str, queries: list[str]) -> None:
        """Make the directories; refuse those of another run: its files would be taken for ours."""
        for taken in (QUARANTINE_NAME, FIRINGS_NAME):
            if taken in {name.lower() for name in queries}:
                raise GraphtideError(
                    f"a query cannot be named {taken}: its directory is taken",
                    hint="give the query another name",
                )
        owner = self.out / _OWNER
        try:
            self.out.mkdir(parents=True, exist_ok=True)
            if not owner.exists():
                if holds_something(self.out):
                    raise GraphtideError(
                        f"{self.out} is not empty, and not the output of graphtide",
                        hint="choose another --out",
                    )
                replace_text(owner, json.dumps({"run": run}))
            for name in [*queries, QUARANTINE_NAME, *([FIRINGS_NAME] if self._fires else [])]:
                (self.out / name).mkdir(exist_ok=True)
            found = json.loads(owner.read_text(encoding="utf-8"))["run"]
        except OSError as error:
            raise GraphtideError(f"{self.out} cannot be written: {error.strerror}") from None
        if found != run:
            raise GraphtideError(
                f"{self.out} holds the output of another run",
                hint="go on with that run's --checkpoint, or choose another --out",
            )

    def _read_progress(self, queries: Iterable[str]) -> Progress:
        path = self.out / _PROGRESS
        if not path.exists():
            return Progress(queries={name: Tally() for name in queries})
        found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        tallies = {name: Tally(**tally) for name, tally in found["queries"].items()}
        return Progress(**{**found, "queries": tallies})

    def _write(self, path: Path, table: pa.Table) -> None:
        if path.exists():
            return
        unfinished = path.with_name(f"_{path.name}.tmp")
        if self._format == "parquet":
            pq.write_table(table, unfinished, compression="zstd")
        else:
            rows = table.to_pylist(maps_as_pydicts="strict")
            lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            unfinished.write_text("".join(lines), encoding="utf-8")
        unfinished.replace(path)


def replace_text(path: Path, text: str) -> None:
    """Write a file so that readers see the old or the new one, never a part."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


def holds_something(directory: Path) -> bool:
    """Whether a directory has anything in it, but for what a crash in `replace_text` may leave."""
    return any(path.suffix != ".tmp" for path in directory.iterdir())


def _integers(table: pa.Table, name: str) -> list[int]:
    column: Any = table[name]
    values: list[int] = column.to_pylist()
    return values
