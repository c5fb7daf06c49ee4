"""Backup: a copy of a store that may be in use; it opens as the store would after a crash."""

from __future__ import annotations

import os
import shutil
import sqlite3
from contextlib import closing
from tempfile import mkdtemp
from typing import TYPE_CHECKING, Final

from graphtide.durable.journal import FILE, Journal, check_exists
from graphtide.errors import StoreError

if TYPE_CHECKING:
    from pathlib import Path

ATTEMPTS: Final = 10
"""How often the copy begins anew because a snapshot was dropped meanwhile."""


def back_up(folder: Path, target: Path) -> None:
    """Copy the store in a directory to another one, which must not exist or be empty.

    The journal is copied by SQLite's backup, which sees whole transactions beside a process that
    writes. The copy gets its name when it is complete and on disk.
    """
    check_exists(folder)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(target, "there is something already", hint="name a new directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        partial = type(target)(mkdtemp(prefix=f"{target.name}.", dir=target.parent))
        try:
            _copy(folder, partial)
            if target.exists():
                target.rmdir()
            partial.rename(target)
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
    except (OSError, sqlite3.Error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise StoreError(
            target, f"the backup cannot be written: {reason}", hint="the store is as it was"
        ) from None


def _copy(folder: Path, partial: Path) -> None:
    journal = Journal(folder, writes=False)
    try:
        for left in reversed(range(ATTEMPTS)):
            with closing(sqlite3.connect(partial / FILE)) as copy:
                journal.copy_to(copy)
                snapshots = [row[0] for row in copy.execute("SELECT file FROM snapshots")]
            try:
                for name in snapshots:
                    shutil.copyfile(folder / name, partial / name)
                break
            except FileNotFoundError:  # dropped by the writer, with its row
                if not left:
                    raise
    finally:
        journal.close()
    for path in (*partial.iterdir(), partial):
        _flush(path)


def _flush(path: Path) -> None:
    """Wait until a file or directory is on disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
