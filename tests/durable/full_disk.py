"""A disk that is full: databases of SQLite whose statements fail."""

from __future__ import annotations

import sqlite3
from contextlib import contextmanager


class FullDisk(sqlite3.Connection):
    """A database whose statements fail from the `begins`th one on, until there is `room`."""

    statements = 0
    begins = 0
    room = True

    @classmethod
    def fill(cls, begins):
        cls.statements, cls.begins, cls.room = 0, begins, False

    def execute(self, *what):
        if not FullDisk.room and what[0].split()[0] in ("INSERT", "COMMIT"):
            FullDisk.statements += 1
            if FullDisk.statements >= FullDisk.begins:
                raise sqlite3.OperationalError("database or disk is full")
        return super().execute(*what)


@contextmanager
def full_disk(patch):
    """Let all databases be on a disk that can be full; it has room again in the end."""
    connect = sqlite3.connect
    patch.setattr(sqlite3, "connect", lambda *a, **o: connect(*a, factory=FullDisk, **o))
    yield FullDisk
    FullDisk.room = True
