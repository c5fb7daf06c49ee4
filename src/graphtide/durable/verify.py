"""Verify and describe a store without opening its graph: what is there, and what is damaged."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from graphtide.durable import chunks
from graphtide.durable import snapshot as snap
from graphtide.durable.handle import open_graph
from graphtide.durable.journal import FILE, LAST_FILE, Journal, check_exists
from graphtide.durable.store import Store
from graphtide.durable.tables import checksum
from graphtide.durable.wal import LastRow, damage_in_wal
from graphtide.errors import GraphtideError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@dataclass(slots=True)
class StoreReport:
    """What was found in a store; `good` is the last row up to which it can be opened."""

    good: int = 0
    rows: int = 0
    snapshots: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def verify(folder: Path, make: Callable[..., Any]) -> StoreReport:
    """Read everything in a store, and compare it with its checksums; then open it, to read.

    `make` makes the live graph, which is above this layer. A journal whose checksums are right is
    not opened either if it has what did not happen: what is called good was replayed.
    """
    report = _checked(folder)
    if not report.problems:
        try:
            open_graph(make, Store(folder, read_only=True), {}, None, {}).close()
        except Exception as error:  # noqa: BLE001 - whatever it is, the store does not open
            _find_row(folder, make, report)
            if not report.problems:
                report.problems.append(f"{folder}: rows cannot be replayed together: {error!r}")
    return report


def _find_row(folder: Path, make: Callable[..., Any], report: StoreReport) -> None:
    """Find the row that cannot be replayed: each by itself."""
    store = Store(folder, read_only=True)
    store.joins = False
    try:
        open_graph(make, store, {}, None, {}).close()
    except GraphtideError as error:
        report.problems.append(error.message)
    except Exception as error:  # noqa: BLE001 - as above
        report.problems.append(f"{folder}: row {store.read_to} cannot be replayed: {error!r}")
    report.good = min(report.good, store.read_to - 1)


def _checked(folder: Path) -> StoreReport:
    report = StoreReport()
    check_exists(folder)
    wal = damage_in_wal(folder / f"{FILE}-wal")
    if wal is not None:
        report.problems.append(wal)
    try:
        journal = Journal(folder, writes=False, check_end=False)
    except GraphtideError as error:
        report.problems.append(error.message)
        return report
    try:
        report.problems += journal.check()
        report.problems += [f"{journal.path}: {problem}" for problem in journal.damaged_rows()]
        sound = _snapshots(folder, journal, report)
        _rows(journal, report, sound)
        last = LastRow.of(folder / LAST_FILE)
        if last > journal.last:
            report.problems.append(f"{journal.path}: the rows up to {last} are missing")
    except GraphtideError as error:
        report.problems.append(error.message)
    finally:
        journal.close()
    return report


def _snapshots(folder: Path, journal: Journal, report: StoreReport) -> dict[int, int]:
    """Check the snapshots; the number and chain of those that are sound."""
    sound = {}
    for row in journal.snapshots():
        try:
            snap.check_snapshot(folder / row.file, row.bytes, row.crc)
            snap.read_snapshot(folder / row.file)
        except GraphtideError as error:
            report.problems.append(error.message)
        else:
            sound[row.number] = row.chain
            report.snapshots.append(row.file)
    return sound


def _rows(journal: Journal, report: StoreReport, sound: dict[int, int]) -> None:
    """Check the rows one by one: also those after a damaged one."""
    first = journal.first()
    number = first - 1
    chain: int | None = 0 if first == 1 else sound.get(number)
    reached = first == 1 or number in sound
    broken = False
    for row in journal.every_row():
        report.rows += 1
        if row.number != number + 1:
            report.problems.append(f"{journal.path}: row {number + 1} of the journal is missing")
            broken = True
        elif chain is not None and checksum(*row[:-1], chain) != row.crc:
            report.problems.append(
                f"{journal.path}: row {row.number} of the journal does not have its checksum"
            )
            broken = True
        number, chain = row.number, row.crc
        if row.number in sound and sound[row.number] == row.crc:
            broken, reached = False, True  # a snapshot stands for all before it
        if reached and not broken:
            report.good = row.number
    for damaged in (at for at, call in journal.every_call() if call is None):
        report.problems.append(f"{journal.path}: a call of row {damaged} is damaged")
        if damaged > max(sound, default=0):
            report.good = min(report.good, damaged - 1)
    report.good = max([report.good, *sound], default=0)


def describe(folder: Path) -> Iterator[tuple[str, str]]:
    """What a store holds, as names and texts."""
    check_exists(folder)
    journal = Journal(folder, writes=False)
    try:
        size, snapshots = journal.size(), journal.snapshots()
        yield "format", str(journal.meta("format"))
        yield "options", ", ".join(f"{k}={v!r}" for k, v in (journal.meta("options") or {}).items())
        rows = f"{journal.first():,} to {journal.last:,}" if size["rows"] else "none"
        yield "journal", f"rows {rows}, {size['bytes']:,} bytes"
        for row in snapshots:
            yield "snapshot", f"{row.file}: time {row.time}, tx {row.tx:,}, {row.bytes:,} bytes"
        for (query, name), tx in journal.cursors().items():
            yield "cursor", f"{name} on {query}, acknowledged up to {tx}"
        state = snap.read_snapshot(folder / snapshots[-1].file).state if snapshots else None
        for each in [] if state is None else state.registrations:
            yield each["kind"], each["fields"]["name"]
        for entry in journal.rows(snapshots[-1].number if snapshots else 0):
            for header in chunks.headers_of(entry.chunk):
                if header["kind"] in ("watch", "run", "stream", "unwatch", "stop", "replace"):
                    yield header["kind"], header["name"]
    finally:
        journal.close()
