"""Journal: the inputs of a graph in the order in which they came, in a SQLite database.

Torn writes, locks between processes and flushing to disk are SQLite's (write-ahead log). Each row
has a checksum over its fields, its chunk and the checksum of the row before it: a row that was
changed, is missing or is out of order is found, with its number. Rows of the other tables have a
checksum of their own.
"""

from __future__ import annotations

import json
import sqlite3
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, Final

from graphtide.durable.calls import CallRow
from graphtide.durable.tables import (
    COLUMNS,
    FORMAT,
    SCHEMA,
    JournalRow,
    SnapshotRow,
    checksum,
    row_sum,
)
from graphtide.durable.wal import LastRow, damage_in_wal
from graphtide.errors import GraphtideError, StoreError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from pathlib import Path

SETTLED: Final = "settled"
"""The property up to which row all calls are finished: a reader goes no further."""

FILE: Final = "journal.db"
LAST_FILE: Final = "last"

MOST_ROWS, MOST_BYTES = 512, 1 << 22
"""Rows that are read together, at most, and their bytes."""


def check_exists(folder: Path) -> None:
    """Raise unless there is a store in a directory."""
    if (folder / FILE).exists():
        return
    why = "no such directory" if not folder.exists() else f"it has no {FILE}"
    raise GraphtideError(
        f"there is no store in {folder}: {'it is a file' if folder.is_file() else why}",
        hint="name the directory of a store; LiveGraph.open(directory), or `graphtide update` and "
        "`watch` with --store, make one",
    )


def _connect(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=10,
        isolation_level=None,
        check_same_thread=False,
    )


def _lacks_files(database: sqlite3.Connection, path: Path) -> bool:
    """Whether SQLite cannot make the files beside a database that it needs to read it.

    They are missing after a store was closed, and cannot be made on a read-only file system. There
    the database itself has everything, and can be read as one that does not change.
    """
    if path.with_name(f"{FILE}-wal").exists():
        return False
    try:
        database.execute("SELECT 1 FROM sqlite_master LIMIT 1")
    except sqlite3.OperationalError as error:
        return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)
    except sqlite3.Error:
        return False  # it is damaged, which the first use says
    return False


class Journal:
    """The database of a store. `last` is the number of its last row, `crc` the checksum of that."""

    def __init__(
        self, folder: Path, *, writes: bool, fsync: bool = True, check_end: bool = True
    ) -> None:
        self.path = folder / FILE
        self._lock, self._is_open = RLock(), False
        damage = damage_in_wal(folder / f"{FILE}-wal") if writes else None
        if damage is not None:
            raise GraphtideError(
                damage,
                hint="what comes after it would be lost: restore the file; or delete it, and lose "
                "what has come since the store was last closed",
            )
        try:
            self._database = _connect(self.path, "mode=rwc" if writes else "mode=ro")
            if not writes and _lacks_files(self._database, self.path):
                self._database.close()
                self._database = _connect(self.path, "immutable=1")
            if writes and not (self._tables() or self._is_empty()):
                raise self._foreign()
            if writes:
                self._database.execute("PRAGMA journal_mode = WAL")
                self._database.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'OFF'}")
            self._database.execute("PRAGMA cell_size_check = ON")
            if writes and self._is_empty():
                with self._transaction():
                    for statement in SCHEMA.split(";\n"):
                        self._database.execute(statement)
                    self._set("format", FORMAT)
        except sqlite3.Error as error:
            raise self.damaged(error) from None
        self._check_format()
        damaged = self.damaged_rows() if check_end else []
        if damaged:
            self._database.close()
            raise GraphtideError(
                f"{self.path}: {damaged[0]}",
                hint=f"`graphtide store compact {folder} --cut` drops it",
            )
        self.last, self.crc = self._end()
        self._is_open = True
        self._on_disk = LastRow(folder / LAST_FILE) if writes and fsync else None
        if check_end and self._on_disk is not None and self._on_disk.read() > self.last:
            missing = self._on_disk.read()
            self.close()
            raise GraphtideError(
                f"{self.path}: the journal ends with row {self.last}, but had row {missing}",
                hint="restore the files; or accept the loss with `graphtide store compact --cut`",
            )

    def _tables(self) -> bool:
        return bool(self._all("SELECT 1 FROM sqlite_master WHERE name = 'journal'"))

    def _is_empty(self) -> bool:
        return not self._all("SELECT 1 FROM sqlite_master LIMIT 1")

    def _check_format(self) -> None:
        found = self.meta("format") if self._tables() else None
        if not isinstance(found, int):
            raise self._foreign()
        if found != FORMAT:
            age = "a newer" if found > FORMAT else "an earlier"
            raise GraphtideError(
                f"{self.path} was written by {age} version of graphtide: format {found}, and "
                f"this version reads format {FORMAT}",
                hint="open it with that version; its quads can be exported and loaded again",
            )

    def _foreign(self) -> GraphtideError:
        return GraphtideError(
            f"{self.path} is not the journal of a store",
            hint="name the directory of a store, or an empty one to make a new store",
        )

    def _end(self) -> tuple[int, int]:
        """The number and checksum of the last row, or of the snapshot that has replaced it."""
        rows = self._all("SELECT number, crc FROM journal ORDER BY number DESC LIMIT 1")
        rows = rows or self._all("SELECT number, chain FROM snapshots ORDER BY number DESC LIMIT 1")
        return rows[0] if rows else (0, 0)

    def check_alone(self) -> None:
        """Raise if another process has written: its lock should have prevented that."""
        if self._end() != (self.last, self.crc):
            raise StoreError(
                self.path,
                f"another process has written to the store after row {self.last} of the journal",
                hint="nothing more is written here; close this graph, and open it again",
            )

    # --- writing ---

    def append(
        self,
        chunks: Sequence[tuple[int, int, float, bytes]],
        calls: Sequence[CallRow],
        settled: int | None = None,
    ) -> None:
        """Append rows and finished calls, all or none; on disk when this returns.

        No call of the rows up to `settled` can follow.
        """
        number, crc = self.last, self.crc
        with self._transaction():
            for tx, time, wall, chunk in chunks:
                number += 1
                crc = checksum(number, tx, time, wall, chunk, crc)
                self._database.execute(
                    "INSERT INTO journal VALUES (?, ?, ?, ?, ?, ?)",
                    (number, tx, time, wall, chunk, crc),
                )
            for call in calls:
                self._put("calls", number, call.firing, call.error, call.sealed())
            if settled is not None:
                self._set(SETTLED, min(settled, number))
        self.last, self.crc = number, crc
        if self._on_disk is not None:
            self._on_disk.write(number)

    def add_snapshot(self, row: SnapshotRow) -> None:
        """Add a snapshot whose file is complete."""
        with self._transaction():
            self._put("snapshots", *row)

    def drop(self, rows: int, snapshots: int) -> None:
        """Drop the rows up to a number, and the snapshots before another."""
        with self._transaction():
            self._database.execute("DELETE FROM journal WHERE number <= ?", (rows,))
            self._database.execute("DELETE FROM calls WHERE number <= ?", (rows,))
            self._database.execute("DELETE FROM snapshots WHERE number < ?", (snapshots,))

    def shrink(self) -> None:
        """Give the space of dropped rows back to the file system."""
        self._database.execute("VACUUM")
        self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def set_meta(self, key: str, value: object) -> None:
        """Set a property of the store."""
        with self._transaction():
            self._set(key, value)

    def _set(self, key: str, value: object) -> None:
        self._put("meta", key, json.dumps(value))

    def _put(self, table: str, *values: object) -> None:
        """Set a row with its checksum; the format has none, as its checksum might be another."""
        known = None if values[0] == "format" else row_sum(table, *values)
        names = ", ".join((*COLUMNS[table], "sum"))
        marks = ", ".join("?" * (len(values) + 1))
        text = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})"  # noqa: S608 - of above
        self._database.execute(text, (*values, known))

    def acknowledge(self, query: str, name: str, tx: int) -> None:
        """Set up to which transaction a cursor has acknowledged."""
        with self._transaction():
            self._put("cursors", query, name, tx)

    def release(self, query: str, name: str) -> None:
        """Drop a cursor."""
        with self._transaction():
            self._database.execute(
                "DELETE FROM cursors WHERE query = ? AND name = ?", (query, name)
            )

    def keep_cursors(self, queries: Collection[str]) -> None:
        """Drop the cursors of all other queries: they were closed."""
        gone = {query for query, _ in self.cursors()} - set(queries)
        if gone:
            with self._transaction():
                self._database.executemany(
                    "DELETE FROM cursors WHERE query = ?", [(query,) for query in sorted(gone)]
                )

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._lock:
            yield from self._in_transaction()

    def _in_transaction(self) -> Iterator[None]:
        try:
            self._database.execute("BEGIN IMMEDIATE")
            if self._is_open:
                self.check_alone()
            yield
            self._database.execute("COMMIT")
        except sqlite3.Error as error:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise self.damaged(error) from None
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise

    # --- reading ---

    def meta(self, key: str) -> Any:  # noqa: ANN401 - whatever JSON holds
        """A property of the store, or None."""
        rows = self._all("SELECT value FROM meta WHERE key = ?", key)
        try:
            return json.loads(rows[0][0]) if rows else None
        except (ValueError, TypeError):
            raise StoreError(self.path, f"the property {key} is damaged") from None

    def snapshots(self) -> list[SnapshotRow]:
        """The snapshots, oldest first."""
        names = ", ".join(COLUMNS["snapshots"])
        rows = self._all(f"SELECT {names} FROM snapshots ORDER BY number")  # noqa: S608
        return [SnapshotRow(*row) for row in rows]

    def calls(self, after: int) -> list[CallRow]:
        """The calls that were finished after a row of the journal, in order."""
        found = []
        for number, row in self.every_call(after):
            if row is None:
                raise self._broken(number, "has a call that does not have its checksum")
            found.append(row)
        return found

    def every_call(self, after: int = 0) -> Iterator[tuple[int, CallRow | None]]:
        """The same with the last row of the journal then; None for one that is damaged."""
        for *row, sound in self._checked("calls", "WHERE number > ?", after):
            yield row[0], CallRow.opened(*row[1:]) if sound else None

    def _checked(self, table: str, which: str = "", *values: object) -> Iterator[list[Any]]:
        """Rows of a table as they came, each with whether it has its checksum."""
        there = {name for _, name, *_ in self._all(f"PRAGMA table_info({table})")}
        wanted = (*COLUMNS[table], "sum")
        names = ", ".join(name if name in there else f"NULL AS {name}" for name in wanted)
        text = f"SELECT {names} FROM {table} {which} ORDER BY rowid"  # noqa: S608
        for *row, known in self._all(text, *values):
            yield [*row, known is None or known == row_sum(table, *row)]

    def damaged_rows(self) -> list[str]:
        """What does not have its checksum, beside rows of the journal and calls."""
        words = {
            "meta": "the property",
            "snapshots": "the snapshot of row",
            "cursors": "a cursor of",
        }
        return [
            f"{words[table]} {row[0]} does not have its checksum"
            for table in words
            for *row, sound in self._checked(table)
            if not sound
        ]

    def cursors(self) -> dict[tuple[str, str], int]:
        """Up to which transaction each cursor has acknowledged, by query and name."""
        rows = self._all("SELECT query, name, tx FROM cursors")
        return {(query, name): tx for query, name, tx in rows}

    def first(self) -> int:
        """The number of the first row; one more than the last if there is none."""
        found = self._all("SELECT MIN(number) FROM journal")[0][0]
        return self._end()[0] + 1 if found is None else int(found)

    def runs(self, after: int, chain: int | None = None) -> Iterator[list[JournalRow]]:
        """The rows after a number, checked, many at a time; small ones are read together."""
        run: list[JournalRow] = []
        size = 0
        for row in self.rows(after, chain):
            run.append(row)
            size += len(row.chunk)
            if len(run) == MOST_ROWS or size >= MOST_BYTES:
                yield run
                run, size = [], 0
        if run:
            yield run

    def rows(self, after: int, chain: int | None = None) -> Iterator[JournalRow]:
        """The rows after a number, checked; `chain` is the checksum of the row of that number."""
        number, before = after, chain
        while True:
            text = "SELECT * FROM journal WHERE number > ? ORDER BY number LIMIT 16"
            found = [JournalRow(*row) for row in self._all(text, number)]
            for row in found:
                if row.number != number + 1:
                    raise self._broken(number + 1, "is missing")
                if before is not None and checksum(*row[:-1], before) != row.crc:
                    raise self._broken(row.number, "does not have its checksum")
                yield row
                number, before = row.number, row.crc
            if not found:
                return

    def every_row(self) -> Iterator[JournalRow]:
        """All rows in order, unchecked."""
        number = 0
        while found := self._all("SELECT * FROM journal WHERE number > ? LIMIT 16", number):
            yield from (JournalRow(*row) for row in found)
            number = found[-1][0]

    def cut(self, number: int) -> None:
        """Drop the rows after a number: they cannot be read."""
        with self._transaction():
            self._database.execute("DELETE FROM journal WHERE number > ?", (number,))
            self._database.execute("DELETE FROM calls WHERE number > ?", (number,))
            self._database.execute("DELETE FROM snapshots WHERE number > ?", (number,))
            for table in ("snapshots", "cursors"):
                for *row, sound in self._checked(table):
                    if not sound:
                        where = " AND ".join(f"{name} IS ?" for name in COLUMNS[table])
                        self._database.execute(f"DELETE FROM {table} WHERE {where}", row)  # noqa: S608
        self.last, self.crc = self._end()
        if self._on_disk is not None:
            self._on_disk.write(self.last)

    def bytes_after(self, number: int) -> int:
        """The bytes of the rows after a number."""
        text = "SELECT TOTAL(LENGTH(chunk)) FROM journal WHERE number > ?"
        return int(self._all(text, number)[0][0])

    def size(self) -> dict[str, int]:
        """Rows and bytes of the journal."""
        rows, size = self._all("SELECT COUNT(*), TOTAL(LENGTH(chunk)) FROM journal")[0]
        return {"rows": int(rows), "bytes": int(size)}

    def check(self) -> list[str]:
        """Problems that SQLite finds in its own structure."""
        found = [row[0] for row in self._all("PRAGMA integrity_check(10)")]
        return [] if found == ["ok"] else found

    def _all(self, text: str, *values: object) -> list[Any]:
        try:
            with self._lock:
                return self._database.execute(text, values).fetchall()
        except sqlite3.Error as error:
            raise self.damaged(error) from None

    def _broken(self, number: int, what: str) -> GraphtideError:
        return StoreError(
            self.path,
            f"row {number} of the journal {what}",
            hint=f"`graphtide store verify {self.path.parent}` says what can be saved, and "
            "`graphtide store compact --cut` drops the rest",
        )

    def damaged(self, error: sqlite3.Error) -> GraphtideError:
        """The error for what SQLite reports."""
        full = "full" in str(error)
        return StoreError(
            self.path,
            str(error),
            hint="make room: nothing of the last transaction was written"
            if full
            else f"`graphtide store verify {self.path.parent}` says what can be saved",
        )

    def copy_to(self, copy: sqlite3.Connection) -> None:
        """Copy the database as it is now to another one, also while others write."""
        with self._lock:
            self._database.backup(copy)

    def close(self) -> None:
        """Close the database, when nobody uses it."""
        with self._lock:
            self._database.close()
            if self._on_disk is not None:
                self._on_disk.close()
                self._on_disk = None
